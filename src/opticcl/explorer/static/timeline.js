// A timeline of lanes that can be zoomed: wheel or + and -, drag or arrow keys, 0 for all.

import { axes, linearScale } from "./axes.js";
import { h, letter, onWidth, s } from "./dom.js";
import { seconds } from "./format.js";

const MOST = 2500;

/**
 * Lanes: {name, items(from, to, least)} returns {start, end, colour, label, opacity} of what is longer than `least` [s].
 * `window` is [from, to] [s]; `changed` receives it.
 */
export function timeline(lanes, total, { label, window: given, changed = () => {} }) {
  const picture = s("svg", { role: "img", "aria-label": `${label}. Plus and minus zoom, arrow keys move, 0 shows all.`, tabindex: 0 });
  let [from, to] = given ?? [0, total], width = 0, drag = null;
  const zoom = (factor, at = (from + to) / 2) => set(at - (at - from) * factor, at + (to - at) * factor);
  const buttons = h("div", { class: "tools" },
    [["Zoom in", () => zoom(0.5)], ["Zoom out", () => zoom(2)], ["Earlier", () => pan(-0.3)], ["Later", () => pan(0.3)], ["All", () => set(0, total)]]
      .map(([name, act]) => h("button", { type: "button", onclick: act }, name)));
  const figure = h("figure", {}, buttons, picture);
  const longest = Math.max(...lanes.map((lane) => lane.name.length)) * letter() + 12;
  const box = () => ({ left: Math.min(longest, Math.max(124, width * 0.2)), right: width - 10, top: 8, bottom: 12 + lanes.length * 26 });

  function set(a, b) {
    const wide = Math.min(total, Math.max(b - a, total * 1e-7));
    from = Math.min(Math.max(0, a), total - wide);
    to = from + wide;
    changed([from, to]);
    draw();
  }

  const pan = (share) => set(from + share * (to - from), to + share * (to - from));

  function draw() {
    if (!width) return;
    const frame = box(), x = linearScale(from, to, frame.left, frame.right);
    picture.setAttribute("viewBox", `0 0 ${width} ${frame.bottom + 40}`);
    const nothing = { at: () => 0, marks: [] };
    const parts = axes(x, nothing, frame, (at) => seconds(at, 3 + Math.max(0, Math.round(Math.log10(total / (to - from))))), String, "time", "");
    const least = (to - from) / (frame.right - frame.left);
    lanes.forEach((lane, row) => {
      const top = frame.top + row * 26;
      const room = Math.floor((frame.left - 8) / letter());
      parts.push(s("text", { x: frame.left - 6, y: top + 15, "text-anchor": "end" }, lane.name.length > room ? `${lane.name.slice(0, room - 1)}…` : lane.name));
      for (const item of lane.items(from, to, least).slice(0, MOST)) {
        const a = Math.max(frame.left, x.at(item.start)), b = Math.min(frame.right, x.at(item.end));
        if (b < a) continue;
        const bar = s("rect", { x: a, y: top, width: Math.max(0.7, b - a), height: 20, fill: item.colour, opacity: item.opacity ?? 1 }, s("title", {}, `${item.label}: ${seconds(item.end - item.start)} from ${seconds(item.start)}`));
        parts.push(bar);
        if (b - a > letter() * String(item.text ?? "").length + 6 && item.text) parts.push(s("text", { x: (a + b) / 2, y: top + 14, "text-anchor": "middle", "data-on": item.colour.startsWith("#") && "colour" }, item.text));
      }
    });
    picture.replaceChildren(...parts);
  }

  const timeOf = (event) => {
    const area = picture.getBoundingClientRect(), frame = box();
    return from + ((((event.clientX - area.left) / area.width) * width - frame.left) / (frame.right - frame.left)) * (to - from);
  };
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) < 1) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, timeOf(event));
  }, { passive: false });
  picture.addEventListener("pointerdown", (event) => { drag = { at: timeOf(event), from, to }; picture.setPointerCapture(event.pointerId); });
  picture.addEventListener("pointermove", (event) => { if (drag) { const moved = drag.at - timeOf(event); set(from + moved, to + moved); } });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { drag = null; });
  picture.addEventListener("keydown", (event) => {
    const act = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => set(0, total), ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2) }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  onWidth(figure, (now) => { width = now; draw(); });
  return figure;
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
