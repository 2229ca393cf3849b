// Light: the circuits of a plan, round by round. Space plays, arrow keys change the round, a click shows settings.

import { ask, sendPlan } from "./api.js";
import { save, saveTable } from "./charts.js";
import { h, onWidth, scrolling, swatch } from "./dom.js";
import { questionForm } from "./form.js";
import { count, seconds, words } from "./format.js";
import { prepared } from "./layout.js";
import { colourIndex, colourOf, isDark } from "./palette.js";
import { Stage } from "./stage.js";

export const title = "Light";
export const defaults = { fabric: "terarack:nodes=16", collective: "all_reduce", algorithm: "wrht", size: "1MB" };
const KEPT = 64;
const MOST_ROWS = 300;
const CIRCUIT = ["src", "dst", "port", "wavelength", "num_wavelengths"];

export function render(root, context) {
  const { parameters, about, line, state, update, run } = context;
  const { at, node, ...asked } = parameters;
  const plans = about.files.filter((file) => file.kind === "plan");
  const file = h("input", { type: "file", accept: ".json,.csv,.parquet", "aria-label": "Plan file" });
  file.addEventListener("change", async () => {
    try {
      update({ plan: await sendPlan(file.files[0]) });
    } catch (error) {
      state.bad(error.message);
    }
  });
  root.append(
    questionForm([
      { name: "fabric", label: "Fabric", kind: "text", wide: true, placeholder: "ramp:groups=4,racks=4,wavelengths=8" },
      { name: "nodes", label: "Nodes", kind: "text", placeholder: "as the fabric" },
      { name: "collective", label: "Collective", kind: "select", options: about.names.collective, value: "all_reduce" },
      { name: "algorithm", label: "Algorithm", kind: "text", placeholder: "auto" },
      { name: "size", label: "Message", kind: "text", value: "1MB" },
    ], asked.plan ? {} : asked, (given) => update(given)),
    h("div", { class: "tools" }, h("label", {}, "Or a plan file: ", file), plans.map((one) => h("button", { type: "button", onclick: () => update({ plan: one.key }) }, one.name))),
    line);
  const results = h("div");
  root.append(results);
  const plan = asked.plan ? { plan: asked.plan } : asked;
  run(async (tools) => {
    const machine = await ask("light", plan, tools);
    await player(results, machine, { plan, tools, at: Number(at) || 0, node, context });
  });
}

/** Frames: every round of every step; those of one run of steps have equal circuits. */
function frames(machine) {
  const starts = [];
  let total = 0;
  for (const one of machine.runs) {
    starts.push(total);
    total += (one.last - one.first + 1) * one.rounds;
  }
  const locate = (at) => {
    let run = starts.length - 1;
    while (run > 0 && starts[run] > at) run -= 1;
    const { first, rounds } = machine.runs[run];
    const within = at - starts[run];
    return { run, step: first + Math.floor(within / rounds), round: within % rounds, rounds };
  };
  const of = (step, round) => {
    const run = machine.runs.findIndex((one) => one.first <= step && step <= one.last);
    if (run < 0) return 0;
    return starts[run] + (step - machine.runs[run].first) * machine.runs[run].rounds + Math.max(0, round);
  };
  return { total, locate, of };
}

async function player(results, machine, { plan, tools, at, node, context }) {
  const all = frames(machine), known = new Map();
  let current = Math.min(Math.max(0, at), all.total - 1), playing = false, frame = null, since = 0, loading = false;
  let chosen = node === undefined ? null : { node: Number(node) };
  const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Circuits of this round" });
  const stage = new Stage(canvas, machine, (picked) => choose(picked));
  const slider = h("input", { type: "range", min: 0, max: all.total - 1, step: 1, "aria-label": "Round of the plan", value: current });
  const play = h("button", { type: "button", class: "main", "aria-pressed": "false" }, "Play");
  const speed = h("select", { "aria-label": "Rounds a second" }, [0.5, 1, 2, 5, 10, 30].map((one) => h("option", { value: one }, `${one} round${one === 1 ? "" : "s"}/s`)));
  speed.value = 1;
  const where = h("p", { role: "status" }), side = h("div", { class: "side", tabindex: 0, role: "region", "aria-label": "Circuits and settings" }), legend = h("div", { class: "legend" });
  const move = (by) => { stop(); go(current + by); };
  const buttons = [["First", () => move(-current)], ["Back", () => move(-1)], ["Next", () => move(1)]].map(([name, act]) => h("button", { type: "button", onclick: act }, name));
  const circuits = () => frame.src.map((_, i) => Object.fromEntries(CIRCUIT.map((name) => [name, frame[name][i]])));
  const files = [["PNG", "Download the picture", () => canvas.toBlob((content) => save("light.png", content))],
    ["CSV", "Download the circuits of this round", () => saveTable("light", circuits(), CIRCUIT.map((name) => ({ name })))]];
  buttons.push(...files.map(([name, title_, act]) => h("button", { type: "button", title: title_, onclick: act }, name)));
  results.replaceChildren(
    h("p", {}, machine.plan, ". ", verdict(machine)),
    violations(machine, (step, round) => { stop(); go(all.of(step, round)); canvas.scrollIntoView({ block: "center" }); }),
    h("div", { class: "light" },
      h("div", {}, h("div", { class: "stage" }, canvas), h("div", { class: "player" }, play, buttons, slider, speed), where, legend),
      side),
    h("p", { class: "quiet" }, `${machine.about.split(". ")[0].replace(/\.$/, "")}.`, machine.packets ? " Packets share its links: lines join senders and receivers." : " Filled nodes receive; small squares are fibres, subnets or switches; dashed circuits stand idle."));

  /** A round from the server or from those that were shown before. */
  async function load(index) {
    const { run, round } = all.locate(index);
    const key = `${run} ${round}`;
    if (!known.has(key)) {
      if (known.size >= KEPT) known.delete(known.keys().next().value);
      known.set(key, ask("light", { ...plan, run, round }, { signal: tools.signal }).then(prepared));
    }
    return known.get(key);
  }

  async function go(index) {
    const wanted = (current = Math.min(Math.max(0, index), all.total - 1));
    slider.value = wanted;
    loading = true;
    const loaded = await load(wanted).finally(() => { loading = wanted !== current; });
    if (wanted !== current || tools.signal.aborted) return;
    frame = loaded;
    describe();
    stage.show(frame, chosen);
    showSide();
    context.update({ at: wanted, node: chosen?.node }, { quiet: true });
    if (wanted + 1 < all.total) load(wanted + 1).catch(() => {});
  }

  function describe() {
    const { step, round, rounds } = all.locate(current);
    const drawn = frame.total > frame.src.length ? `, ${count(frame.src.length)} of them drawn` : "";
    const clash = frame.clashes.length ? `; ${frame.clashes.length} places carry more than they can` : "";
    where.textContent = `Step ${step} of ${machine.num_steps}${rounds > 1 ? `, round ${round} of ${rounds}` : ""}: ${count(frame.total)} circuits${drawn}${clash}.`;
    slider.setAttribute("aria-valuetext", where.textContent);
    canvas.setAttribute("aria-label", `Circuits: ${where.textContent}`);
    const used = [...new Set(frame.wavelength)].sort((a, b) => a - b);
    const names = used.length > 12 ? [used[0], used[Math.floor(used.length / 2)], used.at(-1)] : used;
    legend.replaceChildren(...(machine.packets ? [] : [h("span", { class: "quiet" }, `${used.length} wavelength${used.length === 1 ? "" : "s"}:`), ...names.map((one) => h("span", {}, swatch(colourOf(colourIndex(one, machine.num_wavelengths), machine.num_wavelengths, isDark())), one))]));
  }

  function choose(picked) {
    chosen = picked;
    if (frame) stage.show(frame, chosen);
    showSide();
    context.update({ at: current, node: chosen?.node }, { quiet: true });
  }

  function showSide() {
    side.replaceChildren(...(chosen && frame ? settings(machine, stage, frame, chosen) : [h("p", { class: "quiet" }, "Click a node, fibre or switch, or press up and down on the picture, to see its circuits and settings."), devices(machine)]));
  }

  function stop() {
    playing = false;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
    if (frame) stage.paint(null);
  }

  function toggle() {
    if (playing) { stop(); return; }
    playing = true;
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    since = performance.now();
    if (current >= all.total - 1) go(0);
    requestAnimationFrame(tick);
  }

  function tick(now) {
    if (!playing || tools.signal.aborted) return;
    const share = ((now - since) / 1000) * Number(speed.value);
    stage.paint(Math.min(1, Math.max(0, share)));
    canvas.dataset.pictures = stage.drawn;
    if (share >= 1 && !loading) {
      if (current >= all.total - 1) { stop(); return; }
      since = now;
      go(current + 1);
    }
    requestAnimationFrame(tick);
  }

  play.addEventListener("click", toggle);
  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  canvas.addEventListener("keydown", (event) => {
    const n = machine.num_nodes;
    const act = {
      " ": toggle,
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      Home: () => move(-current),
      ArrowUp: () => choose({ node: ((chosen?.node ?? -1) + 1) % n }),
      ArrowDown: () => choose({ node: ((chosen?.node ?? 0) - 1 + n) % n }),
      Escape: () => choose(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const redraw = () => frame && stage.show(frame, chosen);
  addEventListener("theme", redraw);
  tools.signal.addEventListener("abort", () => removeEventListener("theme", redraw));
  onWidth(canvas.parentElement, (width) => stage.resize(Math.min(width, Math.max(320, innerHeight * 0.8))));
  const first = machine.verdict.violations.find((one) => one.step >= 0);
  await go(at === 0 && first ? all.of(first.step, first.round) : current);
}

function verdict(machine) {
  const { ok, violations: found } = machine.verdict;
  return ok ? h("span", { class: "good" }, "The plan is verified.") : h("strong", { class: "bad" }, `The plan is refused: ${found.length} violation${found.length === 1 ? "" : "s"}.`);
}

function violations(machine, show) {
  const found = machine.verdict.violations;
  if (!found.length) return "";
  return h("details", { open: true }, h("summary", {}, "Violations"), h("ul", {}, found.slice(0, 100).map((one) => h("li", {},
    one.step >= 0 ? h("button", { type: "button", onclick: () => show(one.step, one.round) }, `Step ${one.step}${one.round >= 0 ? ` round ${one.round}` : ""}`) : null,
    ` ${one.rule}: ${one.where}: expected ${one.expected}, found ${one.found}`))));
}

function devices(machine) {
  if (!machine.devices.length) return h("p", {}, "Nothing on this machine is ever set.");
  return h("table", {}, h("thead", {}, h("tr", {}, ["device", "count", "setting time"].map((name) => h("th", {}, name)))),
    h("tbody", {}, machine.devices.map((one) => h("tr", {}, h("td", {}, words(one.kind)), h("td", { class: "number" }, count(one.count * one.pool)), h("td", { class: "number" }, seconds(one.setting_time_s))))));
}

/** Circuits and settings of what is chosen. */
function settings(machine, stage, frame, chosen) {
  const mine = new Set(frame.src.map((_, i) => i).filter((i) => stage.belongs(i)));
  const rows = [...mine].slice(0, MOST_ROWS).map((i) => h("tr", { class: frame.clashing.has(i) && "bad" },
    h("td", {}, `${frame.src[i]} → ${frame.dst[i]}`), h("td", { class: "number" }, frame.port[i]),
    h("td", { class: "number" }, frame.num_wavelengths[i] > 1 ? `${frame.wavelength[i]} + ${count(frame.num_wavelengths[i] - 1)}` : frame.wavelength[i]),
    h("td", {}, frame.idleSet.has(i) ? "idle" : "carries")));
  const set = frame.settings.flatMap((use) => use.circuit.map((circuit, k) => [circuit, use.kind, use.index[k], use.setting[k]]).filter(([circuit]) => mine.has(circuit)));
  const distinct = [...new Map(set.map((one) => [`${one[1]} ${one[2]}`, one])).values()].sort((a, b) => a[1].localeCompare(b[1]) || a[2] - b[2]);
  const table = (heads, body, name) => scrolling(name, h("table", { "aria-label": name }, h("thead", {}, h("tr", {}, heads.map((head) => h("th", {}, head)))), h("tbody", {}, body)));
  return [
    h("h2", {}, stage.nameOf(chosen)),
    distinct.length ? table(["device", "number", "setting"], distinct.slice(0, MOST_ROWS).map(([, kind, index, setting]) => h("tr", {}, h("td", {}, words(kind)), h("td", { class: "number" }, index), h("td", { class: "number" }, setting))), "Settings of devices") : "",
    rows.length ? table(["circuit", "port", "wavelength", "state"], rows, "Circuits") : h("p", { class: "quiet" }, "It has no circuit in this round."),
    mine.size > MOST_ROWS ? h("p", { class: "quiet" }, `${count(mine.size - MOST_ROWS)} more`) : "",
  ];
}
