// Training: time of an iteration on each fabric, and its timeline with the communication that nothing hides.

import { ask } from "./api.js";
import { stackedBars } from "./charts.js";
import { h, notes, notesOf, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { light, seconds, short } from "./format.js";
import { ofTable } from "./state.js";
import { table } from "./table.js";
import { joined, timeline } from "./timeline.js";

export const title = "Training";
export const defaults = { model: "vgg19", nodes: "16", fabric: ["ramp", "sipac", "torus", "fat_tree"] };
const COLOURS = { computation: "#4477aa", exposed: "#ee6677", bubble: "#ccbb44" };
const LANES = { computation: "#4477aa", communication: "#228833", exposed: "#ee6677" };
const COLUMNS = ["fabric", "iteration_s", "exposed_s", "as_built_s", "light_margin_db", "no_rank", "published_s", "compute_s", "communication_s", "bubble_s", "utilisation", "messages", "verified"];

export function render(root, { parameters, about, line, update, run }) {
  const { show, from, to, sort, hide, filter, ...asked } = parameters;
  root.append(questionForm([
    { name: "model", label: "Model", kind: "select", options: about.names.model },
    { name: "nodes", label: "Nodes", kind: "text" },
    { name: "assumptions", label: "Assumptions", kind: "select", options: [["", "common"], ...about.names.assumptions.filter((one) => one !== "common")] },
    { name: "fabric", label: "Fabrics", kind: "many", options: about.names.fabric },
  ], asked, update), line);
  const results = h("div");
  root.append(results);
  run(async (tools) => {
    const { record, trace } = await ask("train", asked, tools);
    const rows = record.rows;
    const lane = h("section");
    const draw = (number, window) => {
      const keep = ([a, b]) => update({ show: number, from: a, to: b }, { quiet: true });
      lane.replaceChildren(h("h2", {}, `Timeline on ${rows[number].fabric}`),
        h("div", { class: "legend" }, Object.entries(LANES).map(([name, colour]) => h("span", {}, swatch(colour), name))),
        timeline(...lanes(trace, number), { label: `Computation and communication on ${rows[number].fabric}`, file: "timeline", window, changed: keep }));
    };
    results.replaceChildren(
      h("p", {}, h("strong", {}, record.headline), ` ${record.job.name}: of the iteration on ${rows[0].fabric}, ${seconds(rows[0].exposed_s)} is communication that nothing hides.`),
      table(rows, COLUMNS.filter((name) => name !== "no_rank" || rows.some((row) => row.no_rank)).map((name) => ({ name, ...cells(about)[name] })), { ...ofTable(parameters, update), caption: "Training iterations" }),
      stackedBars(rows.map((row, number) => ({ number, name: row.fabric, parts: { computation: row.compute_s, exposed: row.exposed_s, bubble: row.bubble_s } })), COLOURS, { label: "Parts of an iteration", text: (amount) => seconds(amount, 3), file: "iterations" }),
      notes(notesOf(record)),
      h("label", {}, "Timeline of ", h("select", { id: "timeline-of", onchange: (event) => { draw(Number(event.target.value)); update({ show: event.target.value, from: undefined, to: undefined }, { quiet: true }); } }, rows.map((row, i) => h("option", { value: i, selected: i === Number(show) }, row.fabric)))),
      lane);
    draw(Math.min(Number(show) || 0, rows.length - 1), from && to ? [Number(from), Number(to)] : undefined);
  });
}

/** How the columns are shown that are more than a value, by name. */
const cells = (about) => ({
  fabric: { cell: (row) => [swatch(about.fabric_colours[row.fabric]), row.fabric] },
  light_margin_db: { head: "light", number: false, text: light },
  utilisation: { text: (row) => `${short(100 * row.utilisation, 4)} %` },
  no_rank: { text: (row) => row.no_rank ?? "" },
});

/** Lanes of one fabric, and the end of the last span [s]. */
function lanes(trace, number) {
  const events = (trace.traceEvents ?? trace).filter((one) => one.pid === number);
  const names = new Map(events.filter((one) => one.ph === "M" && one.name === "thread_name").map((one) => [one.tid, one.args.name]));
  const spans = events.filter((one) => one.ph === "X").map((one) => ({ start: one.ts / 1e6, end: (one.ts + one.dur) / 1e6, label: one.name, text: one.name, thread: one.tid, kind: one.cat, colour: LANES[one.cat] })).sort((a, b) => a.start - b.start);
  const threads = [...new Set(spans.map((one) => one.thread))].sort((a, b) => a - b);
  const of = (kind) => spans.filter((one) => one.kind === kind);
  const exposed = without(of("communication"), of("computation")).map((one) => ({ ...one, colour: LANES.exposed, label: "communication that nothing hides" }));
  const found = threads.map((thread) => ({ name: names.get(thread) ?? `queue ${thread}`, items: joined(spans.filter((one) => one.thread === thread)) }));
  return [[...found, { name: "exposed", items: joined(exposed) }], Math.max(...spans.map((one) => one.end), 1e-12)];
}

/** Stretches that the first spans cover and the others do not; both are sorted by their start. */
export function without(first, others) {
  const union = (spans) => spans.reduce((kept, one) => {
    const last = kept.at(-1);
    if (last && one.start <= last.end) last.end = Math.max(last.end, one.end);
    else kept.push({ start: one.start, end: one.end });
    return kept;
  }, []);
  const hidden = union(others), found = [];
  for (const one of union(first)) {
    let at = one.start;
    for (const other of hidden) {
      if (other.end <= at || other.start >= one.end) continue;
      if (other.start > at) found.push({ start: at, end: other.start });
      at = Math.max(at, other.end);
    }
    if (at < one.end) found.push({ start: at, end: one.end });
  }
  return found;
}
