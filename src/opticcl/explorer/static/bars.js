// Horizontal bars of parts, such as the parts of a time.

import { h, letter, onWidth, s, swatch } from "./dom.js";

/**
 * Bars. Rows: {name, parts: {part: value}, mark}; colours by part. `mark` is a value drawn as a line, such as a bound.
 */
export function stackedBars(rows, colours, { label, text, markLabel, picked }) {
  const picture = s("svg", { role: "img", "aria-label": label });
  const legend = h("div", { class: "legend" }, Object.entries(colours).map(([part, colour]) => h("span", {}, swatch(colour), part)),
    markLabel ? h("span", {}, "┃ ", markLabel) : null);
  const figure = h("figure", {}, picture, legend);
  const totals = rows.map((row) => Object.values(row.parts).reduce((a, b) => a + b, 0));
  const most = Math.max(...totals, ...rows.map((row) => row.mark ?? 0)) || 1;
  onWidth(figure, (width) => {
    const left = Math.min(23 * letter(), width * 0.34), right = width - 78, tall = 24;
    picture.setAttribute("viewBox", `0 0 ${width} ${rows.length * tall + 6}`);
    const scale = (right - left) / most;
    picture.replaceChildren(...rows.flatMap((row, i) => {
      const top = i * tall + 4;
      let from = left;
      const room = Math.floor(left / letter());
      const name = row.name.length > room ? `${row.name.slice(0, room - 1)}…` : row.name;
      const pieces = [s("text", { x: left - 6, y: top + 13, "text-anchor": "end" }, s("title", {}, row.name), name)];
      for (const [part, amount] of Object.entries(row.parts)) {
        const wide = amount * scale;
        if (wide > 0) pieces.push(s("rect", { x: from, y: top, width: wide, height: 17, fill: colours[part] }, s("title", {}, `${row.name}, ${part}: ${text(amount)}`)));
        from += wide;
      }
      if (row.mark) pieces.push(s("line", { x1: left + row.mark * scale, x2: left + row.mark * scale, y1: top - 2, y2: top + 19, stroke: "var(--ink)", "stroke-width": 2 }));
      pieces.push(s("text", { x: from + 5, y: top + 13 }, text(totals[i])));
      if (picked) pieces.push(s("rect", { x: 0, y: top - 3, width, height: tall, fill: "transparent", class: "hit", onclick: () => picked(row) }));
      return pieces;
    }));
  });
  return figure;
}
