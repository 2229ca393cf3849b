// A chart of lines over a logarithmic axis: hover and arrow keys read values, the legend hides lines, crossings are marked.

import { axes, logScale } from "./axes.js";
import { h, onWidth, s, swatch } from "./dom.js";

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
export function lineChart(series, { label, textX, textY, labelX, labelY, hidden = [], changed = () => {} }) {
  const off = new Set(hidden);
  const picture = s("svg", { role: "img", "aria-label": label, tabindex: 0 });
  const tip = h("div", { class: "tip", hidden: true });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines" });
  const list = h("ul");
  const figure = h("figure", {}, picture, tip, legend, h("figcaption", {}, "Circles: another fabric becomes the fastest. Arrow keys read the values of the chart."), list);
  let width = 0, marked = -1, place = null;
  const xs = series[0]?.points.map((point) => point.x) ?? [];

  function draw() {
    const shown = series.filter((one) => !off.has(one.name));
    const height = Math.max(260, Math.min(520, width * 0.6));
    const box = { left: 62, right: width - 14, top: 24, bottom: height - 42 };
    const ys = shown.flatMap((one) => one.points.map((point) => point.y)).filter((y) => y > 0);
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (!ys.length || xs.length < 2) {
      picture.replaceChildren(s("text", { x: 10, y: 30 }, "no lines are shown"));
      return;
    }
    const x = logScale(xs[0], xs.at(-1), box.left, box.right);
    const y = logScale(Math.min(...ys) / 1.15, Math.max(...ys) * 1.15, box.bottom, box.top);
    place = { x, y, box };
    const path = (one) => one.points.map((point, i) => `${i ? "L" : "M"}${x.at(point.x).toFixed(1)} ${y.at(point.y).toFixed(1)}`).join("");
    const crossed = crossings(shown);
    picture.replaceChildren(
      ...axes(x, y, box, textX, textY, labelX, labelY),
      ...shown.map((one) => s("path", { class: "series", d: path(one), fill: "none", stroke: one.colour, "stroke-width": 2, "stroke-linejoin": "round" })),
      ...crossed.map((one) => s("circle", { class: "crossing", cx: x.at(one.x), cy: y.at(one.y), r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 2 })),
      s("line", { class: "guide axis", x1: 0, x2: 0, y1: box.top, y2: box.bottom, visibility: "hidden" }),
    );
    list.replaceChildren(...crossed.map((one) => h("li", {}, `${one.below} is the fastest up to ${textX(one.x)}, then ${one.above}`)));
    mark(marked);
  }

  function mark(i) {
    marked = i;
    const guide = picture.querySelector(".guide");
    tip.hidden = i < 0 || !guide;
    guide?.setAttribute("visibility", tip.hidden ? "hidden" : "visible");
    if (tip.hidden) return;
    const at = place.x.at(xs[i]);
    guide.setAttribute("x1", at);
    guide.setAttribute("x2", at);
    const rows = series.filter((one) => !off.has(one.name)).map((one) => [one, one.points[i]]).sort((a, b) => a[1].y - b[1].y);
    tip.replaceChildren(h("strong", {}, textX(xs[i])), h("table", {}, h("tbody", {}, rows.map(([one, point]) =>
      h("tr", {}, h("td", {}, swatch(one.colour, true), one.name), h("td", { class: "number" }, textY(point.y)), h("td", { class: "quiet" }, point.note ?? ""))))));
    const left = at > width / 2 ? at - tip.offsetWidth - 12 : at + 12;
    tip.style.left = `${Math.max(0, Math.min(left, width - tip.offsetWidth))}px`;
    tip.style.top = "1.5rem";
  }

  picture.addEventListener("pointermove", (event) => {
    if (!place) return;
    const at = ((event.clientX - picture.getBoundingClientRect().left) / picture.getBoundingClientRect().width) * width;
    const distances = xs.map((x) => Math.abs(place.x.at(x) - at));
    mark(distances.indexOf(Math.min(...distances)));
  });
  picture.addEventListener("pointerleave", () => mark(-1));
  picture.addEventListener("blur", () => mark(-1));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") mark(-1);
    if (!step) return;
    event.preventDefault();
    mark(Math.max(0, Math.min(xs.length - 1, marked + step)));
  });
  legend.append(...series.map((one) => {
    const button = h("button", { type: "button", "aria-pressed": String(!off.has(one.name)) }, swatch(one.colour, true), one.name);
    button.addEventListener("click", () => {
      if (off.has(one.name)) off.delete(one.name);
      else off.add(one.name);
      button.setAttribute("aria-pressed", String(!off.has(one.name)));
      changed([...off]);
      draw();
    });
    return button;
  }));
  onWidth(figure, (now) => { width = now; draw(); });
  return figure;
}
