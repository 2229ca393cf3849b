// Budget and bill of a machine: optical power after every element of the worst path, and what its parts cost.

import { ask } from "./api.js";
import { chart, heightOf, plain, rowsAxis, rule, stackedBars } from "./charts.js";
import { h } from "./dom.js";
import { questionForm } from "./form.js";
import { count, short, value, words } from "./format.js";
import { list, ofTable } from "./state.js";
import { table } from "./table.js";

export const title = "Budget and bill";
export const defaults = { fabric: "ramp", nodes: "64" };

export function render(root, { parameters, about, line, update, run }) {
  root.append(questionForm([
    { name: "fabric", label: "Fabric", kind: "text", wide: true },
    { name: "nodes", label: "Nodes", kind: "text" },
    { name: "beside", label: "Bill beside", kind: "many", none: "none", options: about.names.fabric, placeholder: "further fabrics with parameters" },
  ], parameters, update), line);
  const light = h("section"), bill = h("section");
  root.append(light, bill);
  const { fabric, nodes } = parameters;
  run(async (tools) => {
    let refused = null;
    try {
      const found = await ask("budget", { fabric, nodes }, tools);
      light.replaceChildren(h("h2", {}, "Light budget"), h("p", {}, sentence(found)), waterfall(found));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      refused = error;
      light.replaceChildren(h("h2", {}, "Light budget"), h("p", { class: "quiet" }, error.message));
    }
    const costs = await ask("cost", { fabric: [fabric, ...list(parameters.beside)], nodes }, tools);
    showBill(bill, costs, ofTable(parameters, update, ["source"]));
    if (refused && !costs.rows.length) throw refused;
  });
}

const sentence = (found) => [`${found.fabric}, ${found.path}, values: ${found.preset}. `,
  h("strong", { class: found.closes ? "good" : "bad" }, found.closes ? `It closes with ${short(found.margin_db, 3)} dB.` : `It does not close: ${short(found.margin_db, 3)} dB.`)];

/** Power after each element; the sensitivity and the floor as lines. */
function waterfall(found) {
  const steps = [];
  let before = found.launch_dbm;
  for (const one of found.elements) {
    steps.push({ element: one.element + (one.count > 1 ? ` x ${short(one.count)}` : ""), before_dbm: before, after_dbm: one.power_dbm, basis: one.basis });
    before = one.power_dbm;
  }
  const change = (one) => `${one.after_dbm >= one.before_dbm ? "+" : ""}${short(one.after_dbm - one.before_dbm, 3)} dB`;
  const draw = () => ({
    traces: [{
      type: "bar", orientation: "h", y: steps.map((_, i) => i), base: steps.map((one) => one.before_dbm), x: steps.map((one) => one.after_dbm - one.before_dbm),
      marker: { color: steps.map((one) => (one.after_dbm < one.before_dbm ? "#c4572e" : "#2e8b57")) }, text: steps.map(change), textposition: "outside", cliponaxis: false,
      hovertext: steps.map((one) => plain(`${one.element}: ${short(one.before_dbm, 3)} to ${short(one.after_dbm, 3)} dBm (${one.basis})`)), hoverinfo: "text",
    }],
    layout: {
      height: heightOf(steps.length) + 44, margin: { l: 8, r: 60, t: 34, b: 8 }, xaxis: { title: { text: "optical power [dBm]" } }, yaxis: rowsAxis(steps.map((one) => one.element)),
      shapes: [rule(found.sensitivity_dbm), ...(found.floor_dbm === null ? [] : [rule(found.floor_dbm, "dash")])],
    },
  });
  return chart(draw, {
    label: `Optical power after each element of the path on ${found.fabric}`, name: "budget", rows: steps, columns: ["element", "before_dbm", "after_dbm", "basis"].map((name) => ({ name })),
    caption: "Each bar leads from the power before an element to the power after it. Solid line: sensitivity of the receiver; dashed: least power at an amplifier.",
  });
}

const HEADS = { usd: "USD", w: "W" };

function showBill(root, found, options) {
  const colours = { least: "#4477aa", most: "#99b8d8" };
  const bars = (name, unit) => stackedBars(found.rows.map((row) => ({ name: row.fabric, parts: { least: row[name][0] / row.num_nodes, most: (row[name][1] - row[name][0]) / row.num_nodes } })), colours, { label: `${unit} of a node`, text: (amount) => `${count(Math.round(amount))} ${unit}`, file: `bill-${name}` });
  const parts = found.rows.flatMap((row) => row.parts.map((part) => ({ fabric: row.fabric, ...part })));
  root.replaceChildren(
    h("h2", {}, "Bill of a node"),
    h("div", { class: "columns" }, h("section", {}, h("p", { class: "quiet" }, "Dollars, from the least to the most of the price list"), bars("usd", "USD")), h("section", {}, h("p", { class: "quiet" }, "Power"), bars("w", "W"))),
    h("h3", {}, "Parts of the whole machine"),
    table(parts, ["fabric", "part", "count", "ports", "rate_bits_per_s", "usd", "w", "source"].map((name) => ({ name, head: HEADS[name] ?? words(name), number: name in HEADS || undefined, text: (row) => (row[name] === 0 ? "-" : value(name, row[name])), key: (row) => [row[name]].flat()[0] })), { ...options, caption: "Parts" }),
    found.left_out.length ? h("ul", {}, found.left_out.map((one) => h("li", {}, `${one.fabric}: ${one.reason}`))) : "");
}
