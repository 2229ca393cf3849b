// A chart of lines over logarithmic axes, whose legend hides lines.

import { chart, logAxis, plain } from "./charts.js";
import { h, swatch } from "./dom.js";

/**
 * The chart. Series: {name, colour, points: [{x, y, note}]}, with the same x in each. `hidden` names lines that are not
 * shown; `changed` receives them.
 */
export function lineChart(series, { label, textX, textY, labelX, labelY, columns, rows, file, hidden = [], changed = () => {} }) {
  const off = new Set(hidden);
  const [xs, ys] = ["x", "y"].map((name) => series.flatMap((one) => one.points.map((point) => point[name])).filter((at) => at > 0));
  const draw = () => {
    const shown = series.filter((one) => !off.has(one.name));
    const traces = shown.map((one) => ({
      type: "scatter", mode: "lines+markers", name: plain(one.name), x: one.points.map((point) => point.x), y: one.points.map((point) => point.y), line: { color: one.colour, width: 2 }, marker: { size: 5 },
      hovertext: one.points.map((point) => plain(`${one.name}: ${textY(point.y)} ${point.note ?? ""}`)), hovertemplate: "%{hovertext}<extra></extra>",
    }));
    return {
      traces,
      layout: { height: 460, hovermode: "x unified", xaxis: logAxis(xs, textX, labelX), yaxis: logAxis(ys, textY, labelY) },
    };
  };
  const figure = chart(draw, { label, name: file, rows, columns });
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
  return h("div", {}, legend, figure);
}
