// Studies: progress of a design space, its map, Pareto front and tornado. Files are those that opticcl explore was given.

import { ask } from "./api.js";
import { chart, heightOf, logAxis, plain, rowsAxis, rule } from "./charts.js";
import { h, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { bytes, count, seconds, short, value } from "./format.js";
import { inkOn } from "./palette.js";
import { list } from "./state.js";

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
      } else if (!state.finished) map.replaceChildren(h("p", {}, "Run it in another terminal; this page follows: ", h("code", {}, `opticcl study run ${studies.find((one) => one.key === study)?.name}`)));
      finished = state.finished;
      if (state.finished >= state.points || signal.aborted) return;
      doing.quiet("");
      await new Promise((done) => setTimeout(done, EVERY_MS));
      if (signal.aborted) return;
    }
  });
}

const axis = (name) => name.replace(/^num_|_bytes$/g, "").replaceAll("_", " ");
const place = (where) => Object.entries(where).map(([name, one]) => `${axis(name)} ${value(name, one)}`).join(", ");

const LEAD = { name: "lead", text: (row) => (row.lead ? `${short(row.lead, 4)}x` : "-") };

/** Show a heading, where it holds, and a picture; its table stays open while a study runs. */
function put(section, heading, where, ...parts) {
  const open = section.querySelector("details")?.open;
  section.replaceChildren(h("h2", {}, heading), h("p", { class: "quiet" }, place(where)), ...parts);
  section.querySelector("details").open = open;
}

/** The fastest fabric over two axes. */
function drawMap(section, found, about) {
  const xs = [...new Set(found.cells.map((one) => one.x))].sort((a, b) => a - b), ys = [...new Set(found.cells.map((one) => one.y))].sort((a, b) => a - b);
  const text = (name, one) => (name === "size_bytes" ? bytes(one, 3) : value(name, one));
  const names = [...new Set(found.cells.map((one) => one.fabric))];
  const label = (cell) => `${text(found.x, cell.x)}, ${text(found.y, cell.y)}: ${cell.fabric}${cell.lead ? `, ${short(cell.lead, 3)} times as fast as the next` : ""}`;
  const draw = () => ({
    traces: names.map((name) => {
      const mine = found.cells.filter((one) => one.fabric === name);
      return {
        type: "bar", name: plain(name), x: mine.map((one) => xs.indexOf(one.x)), base: mine.map((one) => ys.indexOf(one.y) - 0.48), y: mine.map(() => 0.96), width: 0.96, marker: { color: about.fabric_colours[name] },
        text: mine.map((one) => plain(`${name} ${one.lead ? `${short(one.lead, 2)}x` : ""}`)), textposition: "inside", insidetextanchor: "middle", textangle: 0, insidetextfont: { color: inkOn(about.fabric_colours[name]) }, hovertext: mine.map((one) => plain(label(one))), hoverinfo: "text",
      };
    }),
    layout: {
      barmode: "overlay", height: Math.max(200, ys.length * 44 + 90), xaxis: { title: { text: axis(found.x) }, tickvals: xs.map((_, i) => i), ticktext: xs.map((one) => text(found.x, one)), showgrid: false },
      yaxis: { title: { text: axis(found.y) }, tickvals: ys.map((_, i) => i), ticktext: ys.map((one) => text(found.y, one)), showgrid: false },
    },
  });
  put(section, `Fastest fabric over ${axis(found.x)} and ${axis(found.y)}`, found.where,
    h("div", { class: "legend" }, names.map((name) => h("span", {}, swatch(about.fabric_colours[name]), `${name} (${found.wins[name] ?? 0})`))),
    chart(draw, {
      label: "Fastest fabric over two axes", name: "map", caption: "The number is how many times as fast as the next fabric it is.", rows: found.cells,
      columns: [{ name: "x", head: axis(found.x), text: (row) => text(found.x, row.x) }, { name: "y", head: axis(found.y), text: (row) => text(found.y, row.y) }, { name: "fabric" }, { name: "algorithm" }, { name: "total_s", head: "time" }, LEAD, { name: "second", head: "next" }],
    }));
}

/** Time against dollars; the front is filled. */
function drawPareto(section, found, about) {
  const rows = found.rows, front = (one) => found.front.includes(one.fabric);
  const draw = () => ({
    traces: [{
      type: "scatter", mode: "markers+text", x: rows.map((one) => one.usd_per_node), y: rows.map((one) => one.total_s), text: rows.map((one) => (front(one) ? plain(` ${one.fabric}`) : "")), textposition: "middle right", cliponaxis: false,
      marker: { size: 12, symbol: rows.map((one) => (front(one) ? "circle" : "circle-open")), color: rows.map((one) => about.fabric_colours[one.fabric]), line: { width: 2 } },
      hovertext: rows.map((one) => plain(`${one.fabric}: ${seconds(one.total_s)}, $${count(Math.round(one.usd_per_node))}, ${count(one.w_per_node)} W${one.better ? `; ${one.better} is better` : ""}`)), hoverinfo: "text",
    }],
    layout: { height: 400, margin: { l: 8, r: 90, t: 34, b: 8 }, xaxis: logAxis(rows.map((one) => one.usd_per_node), (one) => `$${count(one)}`, "price of a node"), yaxis: logAxis(rows.map((one) => one.total_s), (one) => seconds(one, 3), "time") },
  });
  put(section, "Time against price", found.where, chart(draw, {
    label: "Time against price of a node", name: "pareto", caption: `On the front: ${found.front.join(", ")}. Hollow: another fabric is not worse in time, price and power, and better in one.`, rows,
    columns: [{ name: "fabric" }, { name: "algorithm" }, { name: "total_s", head: "time" }, { name: "usd_per_node" }, { name: "w_per_node" }, { name: "better", head: "not worse", text: (row) => row.better || "on the front" }],
  }));
}

/** Lead of the fastest fabric as each assumption is halved and doubled. */
function drawTornado(section, found) {
  const keys = [...new Set(found.bars.map((one) => one.key))];
  const base = found.base.lead, leads = [1, base, ...found.bars.map((one) => one.lead)].map(Math.log10);
  const draw = () => ({
    traces: [{
      type: "bar", orientation: "h", y: found.bars.map((one) => keys.indexOf(one.key)), base, x: found.bars.map((one) => one.lead - base), marker: { color: found.bars.map((one) => (one.flips ? "#ee6677" : "#4477aa")) },
      hovertext: found.bars.map((one) => plain(`${one.variation}: ${short(one.lead, 4)} over ${one.rival}`)), hoverinfo: "text",
    }],
    layout: {
      barmode: "overlay", height: heightOf(keys.length) + 44, xaxis: { type: "log", range: [Math.min(...leads) - 0.01, Math.max(...leads) + 0.01], title: { text: `lead of ${plain(found.fabric)}` }, ticksuffix: "x", nticks: 5 },
      yaxis: rowsAxis(keys.map((key) => key.replaceAll("_", " "))), shapes: [rule(base), rule(1, "dash")],
    },
  });
  put(section, "What moves the answer", found.where, chart(draw, {
    label: `Lead of ${found.fabric} as assumptions change`, name: "tornado", caption: `Lead of ${found.fabric} over the next fabric. Left of 1 another is the fastest.`, rows: found.bars,
    columns: [{ name: "variation" }, LEAD, { name: "rival", head: "over" }, { name: "total_s", head: "time" }, { name: "rival_s", head: "its time" }],
  }));
}

/** Which fabric is the fastest along an axis, and where that changes. */
function drawBreakeven(section, found) {
  const text = (one) => (found.over === "size_bytes" ? bytes(one, 3) : value(found.over, one));
  section.replaceChildren(h("h2", {}, `Fastest ${found.fabrics.length <= MOST_NAMED ? `of ${found.fabrics.join(", ")}` : "fabric"} over ${axis(found.over)}`), h("p", { class: "quiet" }, place(found.where)),
    h("ul", {}, found.crossovers.length ? found.crossovers.map((one) => h("li", {}, `${one.before} up to about ${text(one.at)}, then ${one.after} (between ${text(one.below)} and ${text(one.above)})`))
      : h("li", {}, `${found.stretches.map((one) => one.fabric).join(", ") || "no fabric"} everywhere`)));
}
