// Where the time goes: the parts of every step of one plan, on a timeline.

import { ask } from "./api.js";
import { stackedBars } from "./charts.js";
import { h, scrolling } from "./dom.js";
import { questionForm } from "./form.js";
import { seconds, short, value, words } from "./format.js";
import { ofTable } from "./state.js";
import { table } from "./table.js";
import { timeline } from "./timeline.js";

export const title = "Time";
export const defaults = { fabric: "terarack:nodes=64", collective: "all_reduce", size: "1MB" };
const SHOWN = ["fabric", "algorithm", "engine", "total_s", "lower_bound_s", "bound_by", "gap", "num_steps", "num_rounds", "published_s", "common_s", "algorithm_bytes_per_s", "bus_bytes_per_s", "bottleneck", "bottleneck_utilisation"];
const MOST_STEPS = 300;

export function render(root, { parameters, about, line, update, run }) {
  const { from, to, sort, hide, filter, ...asked } = parameters;
  root.append(questionForm([
    { name: "fabric", label: "Fabric", kind: "text", wide: true },
    { name: "nodes", label: "Nodes", kind: "text", placeholder: "as the fabric" },
    { name: "collective", label: "Collective", kind: "select", options: about.names.collective, value: "all_reduce" },
    { name: "algorithm", label: "Algorithm", kind: "text", placeholder: "auto" },
    { name: "size", label: "Message", kind: "text", value: "1MB" },
    { name: "engine", label: "Engine", kind: "select", options: [["", "closed_form"], ...about.names.engine.filter((one) => one !== "closed_form")] },
    { name: "assumptions", label: "Assumptions", kind: "select", options: [["", "common"], ...about.names.assumptions.filter((one) => one !== "common")] },
  ], asked, update), line);
  const results = h("div");
  root.append(results);
  run(async (tools) => {
    const found = await ask("simulate", asked, tools);
    const window = from && to ? [Number(from), Number(to)] : undefined;
    const keep = ([a, b]) => update({ from: a > 0 || b < found.total_s ? a : undefined, to: b < found.total_s || a > 0 ? b : undefined }, { quiet: true });
    const parts = Object.keys(about.part_colours);
    const rows = found.steps.map((one) => ({ ...one, steps: one.first === one.last ? String(one.first) : `${one.first} to ${one.last}`, total_s: parts.reduce((sum, part) => sum + one[`${part}_s`], 0) }));
    results.replaceChildren(
      h("p", {}, `${found.algorithm} takes ${seconds(found.total_s)} in ${found.num_steps} steps${found.gap ? `, ${short(found.gap, 3)} times its lower bound (${found.bound_by})` : ""}.`),
      stackedBars([{ name: "whole plan", mark: found.lower_bound_s, parts: Object.fromEntries(parts.map((part) => [part, found[`${part}_s`]])) }], about.part_colours, { label: "Parts of the whole time", text: (one) => seconds(one, 3), markLabel: "lower bound", file: "parts" }),
      h("h2", {}, "Steps"),
      timeline(lanes(found, about.part_colours), found.total_s, { label: "Steps and the parts of their time", file: "steps", window, changed: keep }),
      table(rows, ["steps", "rounds", ...parts.map((part) => `${part}_s`), "total_s"].map((name) => ({ name, ...(name === "steps" && { key: (row) => row.first, text: (row) => row.steps }) })), { ...ofTable(parameters, update), caption: "Runs of equal steps" }),
      h("h2", {}, "The plan"),
      scrolling("The plan", h("table", { class: "facts" }, h("tbody", {}, SHOWN.filter((name) => name in found).map((name) => h("tr", {}, h("th", { scope: "row" }, words(name)), h("td", {}, parted(String(value(name, found[name]))))))))));
  });
}

/** A text that may be broken after each comma. */
const parted = (text) => text.split(",").flatMap((one, i) => (i ? [",", h("wbr"), one] : [one]));

/** A lane of steps, and one a part; steps of a run are apart where they are wide enough to be drawn. */
function lanes(found, colours) {
  const parts = ["control", "reconfiguration", "latency", "transfer", "compute"].filter((part) => found[`${part}_s`] > 0);
  let at = 0;
  const runs = found.steps.map((one) => {
    const length = Object.keys(colours).reduce((sum, part) => sum + one[`${part}_s`], 0);
    const run = { ...one, start: at, end: (at += length), count: one.last - one.first + 1 };
    return { ...run, each: length / run.count };
  });
  /** Runs in a window, or their steps if there are few. */
  const visible = (from, to) => {
    const kept = runs.filter((run) => run.end >= from && run.start <= to);
    const steps = kept.reduce((sum, run) => sum + Math.min(run.count, (Math.min(to, run.end) - Math.max(from, run.start)) / run.each), 0);
    if (steps > MOST_STEPS) return kept.map((run) => ({ run, start: run.start, end: run.end, name: `steps ${run.first} to ${run.last}`, whole: true }));
    return kept.flatMap((run) => {
      const low = Math.max(0, Math.floor((from - run.start) / run.each)), high = Math.min(run.count, Math.ceil((to - run.start) / run.each));
      return Array.from({ length: Math.max(0, high - low) }, (_, i) => ({ run, start: run.start + (low + i) * run.each, end: run.start + (low + i + 1) * run.each, name: `step ${run.first + low + i}` }));
    });
  };
  const stepLane = { name: "steps", items: (from, to) => visible(from, to).map((one, i) => ({ start: one.start, end: one.end, colour: i % 2 ? "var(--faint)" : "var(--band)", label: one.name, text: one.name })) };
  return [stepLane, ...parts.map((part) => ({
    name: part,
    items: (from, to) => visible(from, to).flatMap((one) => {
      const amount = one.run[`${part}_s`] / one.run.count;
      if (!amount) return [];
      if (one.whole) return [{ start: one.start, end: one.end, colour: colours[part], opacity: Math.max(0.15, amount / one.run.each), label: `${part}, ${short((100 * amount) / one.run.each, 3)} % of ${one.name}` }];
      const before = parts.slice(0, parts.indexOf(part)).reduce((sum, other) => sum + one.run[`${other}_s`] / one.run.count, 0);
      return [{ start: one.start + before, end: one.start + before + amount, colour: colours[part], label: `${part} of ${one.name}` }];
    }),
  }))];
}
