// A chart of lines over logarithmic axes: the legend hides lines, crossings are marked.

import { chart, logAxis, plain } from "./charts.js";
import { h, swatch } from "./dom.js";
import { ofTheme } from "./palette.js";

/** Places where another line becomes the lowest: [{x, y, below, above}], interpolated on logarithmic axes. */
export function crossings(series) {
  const shown = series.filter((one) => one.points.length);
  if (!shown.length) return [];
  const lowest = (i) => shown.reduce((best, one) => ((one.points[i]?.y ?? Infinity) < (best.points[i]?.y ?? Infinity) ? one : best));
  const found = [];
  for (let i = 0; i + 1 < shown[0].points.length; i += 1) {
    const [first, next] = [lowest(i), lowest(i + 1)];
    if (first === next) continue;
    const [a0, a1, b0, b1] = [first.points[i], first.points[i + 1], next.points[i], next.points[i + 1]];
    const log = Math.log;
    const gap0 = log(b0.y) - log(a0.y), gap1 = log(b1.y) - log(a1.y);
    const share = gap0 === gap1 ? 0 : gap0 / (gap0 - gap1);
    found.push({
      x: Math.exp(log(a0.x) + share * (log(a1.x) - log(a0.x))),
      y: Math.exp(log(a0.y) + share * (log(a1.y) - log(a0.y))),
      below: first.name,
      above: next.name,
    });
  }
  return found;
}

/**
 * The chart. Series: {name, colour, points: [{x, y, note}]}, with the same x in each. `hidden` names lines that are not
 * shown; `changed` receives them.
 */
export function lineChart(series, { label, textX, textY, labelX, labelY, columns, rows, file, hidden = [], changed = () => {} }) {
  const off = new Set(hidden);
  const list = h("ul");
  const [xs, ys] = ["x", "y"].map((name) => series.flatMap((one) => one.points.map((point) => point[name])).filter((at) => at > 0));
  const draw = () => {
    const shown = series.filter((one) => !off.has(one.name));
    const crossed = crossings(shown);
    list.replaceChildren(...crossed.map((one) => h("li", {}, `${one.below} is the fastest up to ${textX(one.x)}, then ${one.above}`)));
    const lines = shown.map((one) => ({
      type: "scatter", mode: "lines+markers", name: plain(one.name), x: one.points.map((point) => point.x), y: one.points.map((point) => point.y), line: { color: one.colour, width: 2 }, marker: { size: 5 },
      hovertext: one.points.map((point) => plain(`${one.name}: ${textY(point.y)} ${point.note ?? ""}`)), hovertemplate: "%{hovertext}<extra></extra>",
    }));
    const rings = { type: "scatter", mode: "markers", name: "crossings", x: crossed.map((one) => one.x), y: crossed.map((one) => one.y), hoverinfo: "skip", marker: { symbol: "circle-open", size: 13, color: ofTheme("--ink"), line: { width: 2 } } };
    return {
      traces: crossed.length ? [...lines, rings] : lines,
      layout: { height: 460, hovermode: "x unified", xaxis: logAxis(xs, textX, labelX), yaxis: logAxis(ys, textY, labelY) },
    };
  };
  const figure = chart(draw, { label, name: file, rows, columns, caption: "Circles: another fabric becomes the fastest." });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines" }, series.map((one) => {
    const button = h("button", { type: "button", "aria-pressed": String(!off.has(one.name)) }, swatch(one.colour), one.name);
    button.addEventListener("click", () => {
      if (off.has(one.name)) off.delete(one.name);
      else off.add(one.name);
      button.setAttribute("aria-pressed", String(!off.has(one.name)));
      changed([...off]);
      figure.redraw();
    });
    return button;
  }));
  return h("div", {}, legend, figure, list);
}
