// Compare: fabrics with their fastest plans, as a table, as parts of the time, and against the size of the message.

import { ask } from "./api.js";
import { stackedBars } from "./charts.js";
import { h, notes, notesOf, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { bytes, light, ratio, seconds, short } from "./format.js";
import { lineChart } from "./lines.js";
import { href, list, ofTable } from "./state.js";
import { table } from "./table.js";

export const title = "Compare";
export const defaults = { nodes: "64", size: "1MB", collective: "all_reduce" };

export function fields(about) {
  return [
    { name: "nodes", label: "Nodes", kind: "text" },
    { name: "size", label: "Message", kind: "text", several: true },
    { name: "collective", label: "Collective", kind: "select", options: about.names.collective, value: "all_reduce" },
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
    against.lastChild.replaceWith(h("p", {}, swept.headline), chart(swept.rows, about, list(lines), (off) => update({ lines: off }, { quiet: true })));
  });
}

function show(results, found, { parameters, about, update }) {
  const [best] = found.rows, ties = found.rows.filter((row) => row.ties_with_fastest).length;
  const rows = found.rows.map((row) => ({ ...row, vs_best: best.total_s ? row.total_s / best.total_s : 1, tied: ties > 1 && row.ties_with_fastest }));
  const first = answering(rows);
  const names = Object.keys(rows[0]).filter((name) => name !== "tied" && !first.includes(name) && rows.some((row) => typeof row[name] !== "object" || row[name] === null));
  const columns = [...first, ...names].map((name) => ({ name, ...cells(about, parameters)[name] }));
  results.replaceChildren(
    h("p", {}, h("strong", {}, found.headline), " ", judged(found)),
    table(rows, columns, { ...ofTable(parameters, update, names), caption: "Plans, fastest first; those without a rank last" }),
    h("section", {}, h("h2", {}, "Parts of the time"), bars(found.rows.slice(0, 40), about)),
    notes(notesOf(found)),
  );
}

/** Names of the columns that answer the question, in the order of every other form of the answer. */
function answering(rows) {
  const known = (name) => rows.some((row) => row[name] !== null && row[name] !== undefined);
  return ["fabric", "algorithm", "total_s", "vs_best", known("as_built_s") ? "as_built_s" : "node_rate_bits_per_s", "light_margin_db", ...(known("no_rank") ? ["no_rank"] : [])];
}

/** How the columns are shown that are more than a value, by name. */
function cells(about, parameters) {
  const asked = (row) => ({ fabric: row.specification, collective: parameters.collective, algorithm: row.algorithm, size: list(parameters.size)[0] });
  const built = (row) => [seconds(row.as_built_s), ...(row.as_built_rank ? [`#${row.as_built_rank}`] : []), ...(row.rate_factor >= 2 ? [`${short(row.rate_factor, 3)}x`] : [])].join(" ");
  return {
    fabric: { cell: (row) => [swatch(about.fabric_colours[row.fabric]), row.fabric] },
    algorithm: { cell: (row) => h("a", { href: href("light", asked(row)), title: "Play its light" }, row.algorithm) },
    total_s: { head: "time", cell: (row) => h("a", { href: href("time", { ...asked(row), assumptions: parameters.assumptions }), title: "Where the time goes" }, seconds(row.total_s)) },
    vs_best: { head: "vs best", text: (row) => (row.tied ? "tie" : row.rank === 1 ? "best" : ratio(row.vs_best)) },
    as_built_s: { head: "as built", number: false, text: (row) => (row.as_built_s === null ? "-" : built(row)) },
    light_margin_db: { head: "light", number: false, text: light },
    no_rank: { head: "no rank", text: (row) => row.no_rank ?? "" },
    gap: { head: "x bound", text: (row) => (row.gap ? ratio(row.gap) : "-") },
    verified: { cell: (row) => h("span", { class: { right: "good", wrong: "bad" }[row.verdict] ?? "" }, { right: "yes", wrong: "no" }[row.verdict] ?? "not judged") },
  };
}

/** What the verifier found. */
function judged(found) {
  const wrong = found.rows.filter((row) => row.verdict === "wrong").length;
  const open = found.rows.filter((row) => row.verdict === "not_judged").length;
  return wrong ? h("strong", { class: "bad" }, `${wrong} plans are wrong.`) : open ? `${open} plans are not judged.` : "Every plan is verified.";
}

function bars(rows, about) {
  const parts = Object.keys(about.part_colours);
  const several = new Set(rows.map((row) => row.fabric)).size < rows.length;
  return stackedBars(
    rows.map((row) => ({ name: several ? `${row.fabric} ${row.algorithm}` : row.fabric, mark: row.lower_bound_s, parts: Object.fromEntries(parts.map((part) => [part, row[`${part}_s`]])) })),
    about.part_colours, { label: "Parts of the time of each plan", text: (value) => seconds(value, 3), markLabel: "lower bound", file: "compare" });
}

function chart(rows, about, hidden, changed) {
  const names = [...new Set(rows.map((row) => row.fabric))];
  const series = names.map((name) => ({ name, colour: about.fabric_colours[name], points: rows.filter((row) => row.fabric === name).map((row) => ({ x: row.size_bytes, y: row.total_s, note: row.algorithm })) }));
  return lineChart(series, { label: "Time of each fabric against the size of the message", textX: (x) => bytes(x, 3), textY: (y) => seconds(y, 3), labelX: "message", labelY: "time", file: "sizes", hidden, changed, rows, columns: ["size_bytes", "fabric", "algorithm", "total_s"].map((name) => ({ name })) });
}
