// A timeline of lanes that can be zoomed, by drawing a box and by buttons.

import { chart, heightOf, plain, rowsAxis } from "./charts.js";
import { h } from "./dom.js";
import { seconds } from "./format.js";
import { inkOn, ofTheme } from "./palette.js";

const MOST = 2500;
const PIXELS = 900; // that a lane is wide, about

/**
 * Lanes: {name, items(from, to, least)} returns {start, end, colour, label, text, opacity} of what is longer than `least` [s].
 * `window` is [from, to] [s]; `changed` receives it.
 */
export function timeline(lanes, total, { label, file, window: given, changed = () => {} }) {
  let [from, to] = given ?? [0, total];
  const shown = () => lanes.flatMap((lane, row) => lane.items(from, to, (to - from) / PIXELS).slice(0, MOST).map((item) => ({ ...item, lane: lane.name, row })));
  const about = (item) => `${item.label}: ${seconds(item.end - item.start)} from ${seconds(item.start)}`;

  function set(a, b) {
    const wide = Math.min(total, Math.max(b - a, total * 1e-7));
    from = Math.min(Math.max(0, a), total - wide);
    to = from + wide;
    changed([from, to]);
    figure.redraw();
  }

  const pan = (share) => set(from + share * (to - from), to + share * (to - from));
  const draw = () => {
    const items = shown();
    const colour = (name) => (name.startsWith("var(") ? ofTheme(name.slice(4, -1)) : name);
    return {
      traces: [{
        type: "bar", orientation: "h", y: items.map((item) => item.row), base: items.map((item) => item.start), x: items.map((item) => item.end - item.start), width: 0.8,
        marker: { color: items.map((item) => colour(item.colour)), opacity: items.map((item) => item.opacity ?? 1), line: { width: 0 } },
        text: items.map((item) => plain(item.text ?? "")), textposition: "inside", insidetextanchor: "middle", textangle: 0, insidetextfont: { color: items.map((item) => inkOn(colour(item.colour))) },
        hovertext: items.map((item) => plain(about(item))), hoverinfo: "text",
      }],
      layout: { height: heightOf(lanes.length), uniformtext: { minsize: 9, mode: "hide" }, dragmode: "zoom", uirevision: `${from} ${to}`, xaxis: { range: [from, to], text: (one) => seconds(one) }, yaxis: rowsAxis(lanes.map((lane) => lane.name)) },
    };
  };
  const moved = (zoomed) => set(...(zoomed ?? [0, total]));
  const rows = shown();
  const columns = [{ name: "lane" }, { name: "label", head: "what" }, { name: "start", text: (row) => seconds(row.start) }, { name: "end", text: (row) => seconds(row.end) }];
  const figure = chart(draw, { label, name: file, rows, columns, moved });
  const buttons = h("div", { class: "tools" },
    [["Earlier", -0.3], ["Later", 0.3]].map(([name, share]) => h("button", { type: "button", onclick: () => pan(share) }, name)));
  return h("div", {}, buttons, figure);
}

/** Items of spans that are sorted by their start: those that are too short to be drawn are joined with their neighbours. */
export function joined(spans) {
  return (from, to, least) => {
    const kept = [];
    for (const one of spans) {
      if (one.end < from) continue;
      if (one.start > to) break;
      const last = kept.at(-1);
      if (last && one.start - last.end < least && one.end - last.start < 3 * least && last.colour === one.colour) {
        last.end = Math.max(last.end, one.end);
        last.count += 1;
        last.label = `${last.count} spans`;
        last.text = "";
      } else kept.push({ ...one, count: 1 });
    }
    return kept;
  };
}
