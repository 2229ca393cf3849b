// Studies: progress of a design space, its map, Pareto front and tornado. Files are those that opticcl explore was given.

import { ask } from "./api.js";
import { axes, logScale } from "./axes.js";
import { h, letter, onWidth, s, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { bytes, count, seconds, short, value } from "./format.js";
import { list } from "./state.js";
import { table } from "./table.js";

export const title = "Studies";
export const defaults = {};
const EVERY_MS = 4000;
const MOST_NAMED = 3; // fabrics that a heading names one by one

export function render(root, { parameters, about, line, state: doing, update, run, signal }) {
  const studies = about.files.filter((file) => file.kind === "study");
  if (!studies.length) {
    root.append(h("p", {}, "No study is open. Start with ", h("code", {}, "opticcl explore study.toml"), "; docs/studies.md says how to write one."));
    return;
  }
  const study = parameters.study ?? studies[0].key;
  root.append(questionForm([
    { name: "study", label: "Study", kind: "select", options: studies.map((one) => [one.key, one.name]) },
    { name: "x", label: "Map: columns", kind: "text", placeholder: "size" },
    { name: "y", label: "Map: rows", kind: "text", placeholder: "nodes" },
    { name: "where", label: "Where (axis=value)", kind: "text", wide: true, several: true, placeholder: "nodes=256 size=1MB" },
  ], { ...parameters, study, where: list(parameters.where).join(" ") }, update), line);
  const progress = h("p", { role: "status" }), map = h("section"), pareto = h("section"), tornado = h("section"), breakeven = h("section");
  root.append(progress, map, h("div", { class: "columns" }, pareto, h("div", {}, tornado, breakeven)));
  const answers = [["map", map, drawMap, "Fastest fabric"], ["pareto", pareto, drawPareto, "Time against price"], ["tornado", tornado, drawTornado, "What moves the answer"], ["breakeven", breakeven, drawBreakeven, "Where the lead changes"]];
  run(async (tools) => {
    let finished = -1;
    for (;;) {
      const state = await ask("study", { study }, finished < 0 ? tools : { signal });
      const bar = h("progress", { max: state.points, value: state.finished, "aria-label": "Points that are finished" });
      progress.replaceChildren(bar, ` ${count(state.finished)} of ${count(state.points)} points are finished.`);
      if (state.finished !== finished && state.finished > 0) {
        for (const [name, section, draw, heading] of answers) {
          try {
            draw(section, await ask(name, { study, where: list(parameters.where), ...(name === "map" && { x: parameters.x, y: parameters.y }) }, tools), about);
          } catch (error) {
            if (error.name === "AbortError") throw error;
            section.replaceChildren(h("h2", {}, heading), h("p", { class: "quiet" }, error.message.replace(`${name}: `, "").replace("--where ", "in the field Where write ")));
          }
        }
      } else if (!state.finished) map.replaceChildren(h("p", {}, "Run it in another terminal; this page follows: ", h("code", {}, `opticcl study ${studies.find((one) => one.key === study)?.name}`)));
      finished = state.finished;
      if (state.finished >= state.points || signal.aborted) return;
      doing.quiet("");
      await new Promise((done) => setTimeout(done, EVERY_MS));
      if (signal.aborted) return;
    }
  });
}

const axis = (name) => name.replace(/^num_|_bytes$/g, "");
const place = (where) => Object.entries(where).map(([name, one]) => `${axis(name)} ${value(name, one)}`).join(", ");

/** The values of a picture, which a pointer shows, as a folded table; it stays open while a study runs. */
const asTable = (section, caption, rows, columns) => h("details", { open: section.querySelector("details")?.open }, h("summary", {}, "As a table"), table(rows, columns, { caption }));
const LEAD = { name: "lead", text: (row) => (row.lead ? `${short(row.lead, 4)}x` : "-") };

/** The fastest fabric over two axes. */
function drawMap(section, found, about) {
  const xs = [...new Set(found.cells.map((one) => one.x))].sort((a, b) => a - b), ys = [...new Set(found.cells.map((one) => one.y))].sort((a, b) => a - b);
  const text = (name, one) => (name === "size_bytes" ? bytes(one, 3) : value(name, one));
  const picture = s("svg", { role: "img", "aria-label": "Fastest fabric over two axes" });
  const names = [...new Set(found.cells.map((one) => one.fabric))];
  const figure = h("figure", {}, picture, h("div", { class: "legend" }, names.map((name) => h("span", {}, swatch(about.fabric_colours[name]), `${name} (${found.wins[name] ?? 0})`))),
    h("figcaption", {}, "The number is how many times as fast as the next fabric it is."));
  onWidth(figure, (width) => {
    const left = 70, wide = (width - left - 4) / xs.length, tall = Math.max(24, Math.min(44, wide * 0.7));
    picture.setAttribute("viewBox", `0 0 ${width} ${ys.length * tall + 44}`);
    picture.replaceChildren(
      ...found.cells.flatMap((cell) => {
        const x = left + xs.indexOf(cell.x) * wide, y = (ys.length - 1 - ys.indexOf(cell.y)) * tall;
        const about_ = `${text(found.x, cell.x)}, ${text(found.y, cell.y)}: ${cell.fabric}${cell.lead ? `, ${short(cell.lead, 3)} times as fast as the next` : ""}`;
        const box = s("rect", { x, y, width: wide - 1, height: tall - 1, fill: about.fabric_colours[cell.fabric] }, s("title", {}, about_));
        const texts = [cell.lead ? `${short(cell.lead, 2)}x` : ""];
        texts.unshift(`${cell.fabric} ${texts[0]}`.trim());
        const fits = texts.find((one) => one && one.length * letter() + 6 < wide && wide > 40);
        return [box, fits ? s("text", { x: x + wide / 2, y: y + tall / 2 + 4, "text-anchor": "middle", "data-on": "colour" }, fits) : ""];
      }).filter(Boolean),
      ...ys.map((one, i) => s("text", { x: left - 6, y: (ys.length - 0.5 - i) * tall + 4, "text-anchor": "end" }, text(found.y, one))),
      ...xs.filter((_, i) => i % Math.ceil(56 / wide) === 0).map((one) => s("text", { x: left + (xs.indexOf(one) + 0.5) * wide, y: ys.length * tall + 16, "text-anchor": "middle" }, text(found.x, one))));
  });
  section.replaceChildren(h("h2", {}, `Fastest fabric over ${axis(found.x)} and ${axis(found.y)}`), h("p", { class: "quiet" }, place(found.where)), figure,
    asTable(section, "Fastest fabric", found.cells, [{ name: found.x, head: axis(found.x), text: (row) => text(found.x, row.x), key: (row) => row.x }, { name: found.y, head: axis(found.y), text: (row) => text(found.y, row.y), key: (row) => row.y }, { name: "fabric" }, { name: "algorithm" }, { name: "total_s", head: "time" }, LEAD, { name: "second", head: "next" }]));
}

/** Time against dollars; the front is filled. */
function drawPareto(section, found, about) {
  const picture = s("svg", { role: "img", "aria-label": "Time against price of a node" });
  const figure = h("figure", {}, picture, h("figcaption", {}, `On the front: ${found.front.join(", ")}. Hollow: another fabric is not worse in time, price and power, and better in one.`));
  const times = found.rows.map((one) => one.total_s), prices = found.rows.map((one) => one.usd_per_node);
  onWidth(figure, (width) => {
    const frame = { left: 66, right: width - 70, top: 24, bottom: Math.max(260, width * 0.6) - 42 };
    const x = logScale(Math.min(...prices) / 1.2, Math.max(...prices) * 1.2, frame.left, frame.right), y = logScale(Math.min(...times) / 1.2, Math.max(...times) * 1.2, frame.bottom, frame.top);
    picture.setAttribute("viewBox", `0 0 ${width} ${frame.bottom + 42}`);
    picture.replaceChildren(...axes(x, y, frame, (one) => `$${count(one)}`, (one) => seconds(one, 3), "price of a node", "time"),
      ...found.rows.flatMap((one) => {
        const colour = about.fabric_colours[one.fabric], front = found.front.includes(one.fabric);
        return [
          s("circle", { class: "series", cx: x.at(one.usd_per_node), cy: y.at(one.total_s), r: 6, fill: front ? colour : "none", stroke: colour, "stroke-width": 2 }, s("title", {}, `${one.fabric}: ${seconds(one.total_s)}, $${count(Math.round(one.usd_per_node))}, ${count(one.w_per_node)} W${one.better ? `; ${one.better} is better` : ""}`)),
          front ? s("text", { x: x.at(one.usd_per_node) + 9, y: y.at(one.total_s) + 4 }, one.fabric) : "",
        ].filter(Boolean);
      }));
  });
  section.replaceChildren(h("h2", {}, "Time against price"), h("p", { class: "quiet" }, place(found.where)), figure,
    asTable(section, "Time against price", found.rows, [{ name: "fabric" }, { name: "algorithm" }, { name: "total_s", head: "time" }, { name: "usd_per_node" }, { name: "w_per_node" }, { name: "better", head: "not worse", text: (row) => row.better || "on the front" }]));
}

/** Lead of the fastest fabric as each assumption is halved and doubled. */
function drawTornado(section, found) {
  const keys = [...new Set(found.bars.map((one) => one.key))];
  const leads = found.bars.map((one) => one.lead);
  const least = Math.min(1, found.base.lead, ...leads), most = Math.max(found.base.lead, ...leads);
  const picture = s("svg", { role: "img", "aria-label": `Lead of ${found.fabric} as assumptions change` });
  const figure = h("figure", {}, picture, h("figcaption", {}, `Lead of ${found.fabric} over the next fabric. Left of 1 another is the fastest.`));
  onWidth(figure, (width) => {
    const frame = { left: Math.min(170, width * 0.36), right: width - 16, top: 8, bottom: 12 + keys.length * 24 };
    const x = logScale(least / 1.02, most * 1.02, frame.left, frame.right);
    picture.setAttribute("viewBox", `0 0 ${width} ${frame.bottom + 40}`);
    picture.replaceChildren(...axes(x, { at: () => 0, marks: [] }, frame, (one) => `${short(one, 3)}x`, String, `lead of ${found.fabric}`, ""),
      ...keys.flatMap((key, row) => {
        const y = frame.top + 4 + row * 24, mine = found.bars.filter((one) => one.key === key);
        return [s("text", { x: frame.left - 6, y: y + 12, "text-anchor": "end" }, key.replaceAll("_", " ")),
          ...mine.map((one) => s("rect", { x: Math.min(x.at(one.lead), x.at(found.base.lead)), y, width: Math.max(1, Math.abs(x.at(one.lead) - x.at(found.base.lead))), height: 16, fill: one.flips ? "#ee6677" : "#4477aa" }, s("title", {}, `${one.variation}: ${short(one.lead, 4)} over ${one.rival}`)))];
      }),
      s("line", { class: "axis", x1: x.at(found.base.lead), x2: x.at(found.base.lead), y1: frame.top, y2: frame.bottom, "stroke-width": 2 }),
      s("line", { class: "axis", x1: x.at(1), x2: x.at(1), y1: frame.top, y2: frame.bottom, "stroke-dasharray": "4 3" }));
  });
  section.replaceChildren(h("h2", {}, "What moves the answer"), h("p", { class: "quiet" }, place(found.where)), figure,
    asTable(section, "What moves the answer", found.bars, [{ name: "variation" }, LEAD, { name: "rival", head: "over" }, { name: "total_s", head: "time" }, { name: "rival_s", head: "its time" }]));
}

/** Which fabric is the fastest along an axis, and where that changes. */
function drawBreakeven(section, found) {
  const text = (one) => (found.over === "size_bytes" ? bytes(one, 3) : value(found.over, one));
  section.replaceChildren(h("h2", {}, `Fastest ${found.fabrics.length <= MOST_NAMED ? `of ${found.fabrics.join(", ")}` : "fabric"} over ${axis(found.over)}`), h("p", { class: "quiet" }, place(found.where)),
    h("ul", {}, found.crossovers.length ? found.crossovers.map((one) => h("li", {}, `${one.before} up to about ${text(one.at)}, then ${one.after} (between ${text(one.below)} and ${text(one.above)})`))
      : h("li", {}, `${found.stretches.map((one) => one.fabric).join(", ") || "no fabric"} everywhere`)));
}
