// Compare: fabrics with their fastest plans, as a table, as parts of the time, and against the size of the message.

import { ask } from "./api.js";
import { stackedBars } from "./bars.js";
import { h, scrolling, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { bytes, seconds, short } from "./format.js";
import { lineChart } from "./lines.js";
import { href, list, ofTable } from "./state.js";
import { table } from "./table.js";

export const title = "Compare";
export const defaults = { nodes: "64", size: "1MB", collective: "all_reduce" };

const HIDDEN = ["total_bytes", "reconfiguration_s", "latency_s", "transfer_s", "compute_s", "control_s", "algorithm_bytes_per_s", "bottleneck_bytes", "num_nodes", "num_steps", "specification", "published_algorithm", "common_algorithm", "as_built_algorithm", "verdict", "verified", "light_of", "light_closes", "light_optics", "node_rate_bits_per_s", "built_node_rate_bits_per_s", "groups", "command", "ties_with_fastest", "bottleneck_utilisation"];
const FIRST = ["rank", "fabric", "algorithm", "total_s", "as_built_s", "as_built_rank", "light_margin_db", "no_rank", "gap"];

const BUILT = ["as_built_rank", "no_rank"];
const SHOWN = 3; // notes that are not folded

export function fields(about) {
  return [
    { name: "nodes", label: "Nodes", kind: "text" },
    { name: "size", label: "Message", kind: "text", several: true },
    { name: "collective", label: "Collective", kind: "select", options: about.names.collective },
    { name: "algorithm", label: "Algorithm", kind: "select", options: [["", "fastest of each"], ["main", "and the paper's"], ["all", "all"]] },
    { name: "assumptions", label: "Assumptions", kind: "select", options: [["", "common"], ...about.names.assumptions.filter((one) => one !== "common")] },
    { name: "equal", label: "Equal nodes", kind: "text", placeholder: "rate=800Gb/s" },
    { name: "fabric", label: "Fabrics", kind: "many", options: about.names.fabric, placeholder: "ramp:groups=4,racks=4,wavelengths=8 ..." },
  ];
}

export function render(root, { parameters, about, line, update, run }) {
  const { sort, hide, filter, lines, ...asked } = parameters;
  root.append(questionForm(fields(about), parameters, (given) => update({ ...parameters, ...given })), line);
  const results = h("div");
  root.append(results);
  run(async (tools) => {
    const found = await ask("compare", { ...asked, size: list(asked.size) }, tools);
    show(results, found, { parameters, about, update });
    if (list(asked.size).length > 1 || asked.algorithm === "all" || asked.algorithm === "main") return;
    const { nodes, fabric, collective, assumptions, equal } = asked;
    const against = h("section", {}, h("h2", {}, "Time against the size of the message"), h("p", { class: "quiet" }, "being computed ..."));
    results.append(against);
    const swept = await ask("sweep", { nodes, fabric, collective, assumptions, equal, sizes: "1KB:1GB:8" }, { ...tools, report: ({ command, progress }) => {
      if (command) tools.also(command);
      if (progress) against.lastChild.textContent = `being computed: ${progress}`;
    } });
    against.lastChild.replaceWith(chart(swept.rows, about, list(lines), (off) => update({ lines: off }, { quiet: true })));
  });
}

function show(results, found, { parameters, about, update }) {
  const names = Object.keys(found.rows[0]);
  const columns = [...FIRST.filter((name) => names.includes(name)), ...names.filter((name) => !FIRST.includes(name) && found.rows.some((row) => typeof row[name] !== "object" || row[name] === null))].map((name) => ({ name }));
  for (const column of columns) {
    if (column.name === "fabric") column.cell = (row) => [swatch(about.fabric_colours[row.fabric]), row.fabric];
    if (column.name === "verified") column.cell = (row) => h("span", { class: { right: "good", wrong: "bad" }[row.verdict] ?? "" }, { right: "yes", wrong: "no" }[row.verdict] ?? "not judged");
    if (column.name === "algorithm") column.cell = (row) => h("a", { href: href("light", { fabric: row.specification, collective: parameters.collective, algorithm: row.algorithm, size: list(parameters.size)[0] }), title: "Play its light" }, row.algorithm);
    if (column.name === "total_s") Object.assign(column, { head: "time", cell: (row) => h("a", { href: href("time", { fabric: row.specification, collective: parameters.collective, algorithm: row.algorithm, size: list(parameters.size)[0], assumptions: parameters.assumptions }), title: "Where the time goes" }, seconds(row.total_s)) });
    if (column.name === "gap") Object.assign(column, { head: "x bound", text: (row) => (row.gap ? `${short(row.gap, 3)}x` : "-") });
  }
  results.replaceChildren(
    h("div", {}, summary(found)),
    table(found.rows, columns, { ...ofTable(parameters, update, HIDDEN), caption: "Plans, fastest first; those without a rank last" }),
    h("div", { class: "columns" }, h("section", {}, h("h2", {}, "Parts of the time"), bars(found.rows.slice(0, 40), about)), ranks(found, about) ?? ""),
    leftOut(found) ?? "",
  );
}

/** The answer, what the verifier found, and what decides most beside it; the other notes are folded below. */
function summary(found) {
  const wrong = found.rows.filter((row) => row.verdict === "wrong").length;
  const open = found.rows.filter((row) => row.verdict === "not_judged").length;
  const judged = wrong ? h("strong", { class: "bad" }, `${wrong} plans are wrong. `) : open ? `${open} plans are not judged. ` : "Every plan is verified. ";
  return [h("strong", {}, found.headline), " ", judged, h("ul", {}, found.caveats.slice(0, SHOWN).map((one) => h("li", {}, one)))];
}

function bars(rows, about) {
  const parts = Object.keys(about.part_colours);
  const several = new Set(rows.map((row) => row.fabric)).size < rows.length;
  return stackedBars(
    rows.map((row) => ({ name: several ? `${row.fabric} ${row.algorithm}` : row.fabric, mark: row.lower_bound_s, parts: Object.fromEntries(parts.map((part) => [part, row[`${part}_s`]])) })),
    about.part_colours, { label: "Parts of the time of each plan", text: (value) => seconds(value, 3), markLabel: "lower bound" });
}

/** Ranks under both sets of assumptions, and the values that swap ranks. */
function ranks(found, about) {
  const other = Object.keys(found.rows[0]).find((name) => name.endsWith("_rank") && !BUILT.includes(name));
  if (!other) return null;
  const set = other.replace("_rank", "");
  const moved = found.rows.filter((row) => row[other] !== row.rank);
  const rows = moved.map((row) => h("tr", {}, h("td", {}, swatch(about.fabric_colours[row.fabric]), row.fabric), h("td", { class: "number" }, row.rank ?? "-"), h("td", { class: "number" }, row[other] ?? "-"), h("td", { class: "number" }, seconds(row[`${set}_s`]))));
  const flips = found.flips.map((one) => h("li", {}, `${one.variation} alone swaps ${one.swaps.map((pair) => pair.join(" and ")).join(", ")}`));
  return h("section", {}, h("h2", {}, `Ranks under ${found.assumptions.name} and ${set}`),
    moved.length ? scrolling("Ranks", h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "fabric"), h("th", { class: "number" }, found.assumptions.name), h("th", { class: "number" }, set), h("th", { class: "number" }, `time under ${set}`))), h("tbody", {}, rows))) : h("p", {}, "The same order under both."),
    flips.length ? h("ul", {}, flips) : null);
}

function leftOut(found) {
  const notes = [...found.notes, ...found.caveats.slice(SHOWN)];
  if (!found.left_out.length && !notes.length) return null;
  return h("details", {}, h("summary", {}, `${found.left_out.length} left out, ${notes.length} notes`), h("ul", {}, notes.map((note) => h("li", {}, note)), found.left_out.map((one) => h("li", {}, `${one.fabric}: ${one.reason}`))));
}

function chart(rows, about, hidden, changed) {
  const names = [...new Set(rows.map((row) => row.fabric))];
  const series = names.map((name) => ({ name, colour: about.fabric_colours[name], points: rows.filter((row) => row.fabric === name).map((row) => ({ x: row.size_bytes, y: row.total_s, note: row.algorithm })) }));
  return lineChart(series, { label: "Time of each fabric against the size of the message", textX: (x) => bytes(x, 3), textY: (y) => seconds(y, 3), labelX: "message", labelY: "time", hidden, changed });
}
