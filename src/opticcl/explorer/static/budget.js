// Budget and bill of a machine: optical power after every element of the worst path, and what its parts cost.

import { ask } from "./api.js";
import { axes, linearScale } from "./axes.js";
import { stackedBars } from "./bars.js";
import { h, onWidth, s } from "./dom.js";
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
  const picture = s("svg", { role: "img", "aria-label": `Optical power after each element of the path on ${found.fabric}` });
  const figure = h("figure", {}, picture, h("figcaption", {}, "Each bar leads from the power before an element to the power after it. Solid line: sensitivity of the receiver; dashed: least power at an amplifier."));
  const steps = [];
  let before = found.launch_dbm;
  for (const one of found.elements) {
    steps.push({ name: one.element + (one.count > 1 ? ` x ${short(one.count)}` : ""), before, after: one.power_dbm, basis: one.basis });
    before = one.power_dbm;
  }
  const values = [found.launch_dbm, found.sensitivity_dbm, found.floor_dbm, ...steps.map((one) => one.after)].filter((one) => one !== null);
  onWidth(figure, (width) => {
    const tall = 24, left = Math.min(170, width * 0.36);
    const frame = { left, right: width - 60, top: 10, bottom: 16 + steps.length * tall };
    const x = linearScale(Math.min(...values) - 1, Math.max(...values) + 1, frame.left, frame.right);
    const rule = (at, dash, name) => at === null ? [] : [s("line", { class: "axis", x1: x.at(at), x2: x.at(at), y1: frame.top, y2: frame.bottom, "stroke-width": 2, "stroke-dasharray": dash }, s("title", {}, `${name}: ${short(at, 3)} dBm`))];
    picture.setAttribute("viewBox", `0 0 ${width} ${frame.bottom + 40}`);
    picture.replaceChildren(
      ...axes(x, { at: () => 0, marks: [] }, frame, (at) => short(at, 3), String, "optical power [dBm]", ""),
      ...steps.flatMap((one, i) => {
        const y = frame.top + 4 + i * tall, a = x.at(one.before), b = x.at(one.after);
        return [
          s("text", { x: left - 6, y: y + 13, "text-anchor": "end" }, one.name),
          s("rect", { x: Math.min(a, b), y, width: Math.max(1, Math.abs(b - a)), height: 16, fill: b < a ? "#c4572e" : "#2e8b57" }, s("title", {}, `${one.name}: ${short(one.before, 3)} to ${short(one.after, 3)} dBm (${one.basis})`)),
          s("text", { x: Math.max(a, b) + 5, y: y + 13 }, `${one.after >= one.before ? "+" : ""}${short(one.after - one.before, 3)} dB`),
          s("line", { class: "axis", x1: b, x2: b, y1: y, y2: y + tall }),
        ];
      }),
      ...rule(found.sensitivity_dbm, null, "sensitivity"), ...rule(found.floor_dbm, "5 4", "floor"));
  });
  return figure;
}

const HEADS = { usd: "USD", w: "W" };

function showBill(root, found, options) {
  const colours = { least: "#4477aa", most: "#99b8d8" };
  const bars = (name, unit) => stackedBars(found.rows.map((row) => ({ name: row.fabric, parts: { least: row[name][0] / row.num_nodes, most: (row[name][1] - row[name][0]) / row.num_nodes } })), colours, { label: `${unit} of a node`, text: (amount) => `${count(Math.round(amount))} ${unit}` });
  const parts = found.rows.flatMap((row) => row.parts.map((part) => ({ fabric: row.fabric, ...part })));
  root.replaceChildren(
    h("h2", {}, "Bill of a node"),
    h("div", { class: "columns" }, h("section", {}, h("p", { class: "quiet" }, "Dollars, from the least to the most of the price list"), bars("usd", "USD")), h("section", {}, h("p", { class: "quiet" }, "Power"), bars("w", "W"))),
    h("h3", {}, "Parts of the whole machine"),
    table(parts, ["fabric", "part", "count", "ports", "rate_bits_per_s", "usd", "w", "source"].map((name) => ({ name, head: HEADS[name] ?? words(name), number: name in HEADS || undefined, text: (row) => (row[name] === 0 ? "-" : value(name, row[name])), key: (row) => [row[name]].flat()[0] })), { ...options, caption: "Parts" }),
    found.left_out.length ? h("ul", {}, found.left_out.map((one) => h("li", {}, `${one.fabric}: ${one.reason}`))) : "");
}
