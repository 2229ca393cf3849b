// The canvas with the light of one round. Lines are drawn once a round; while it plays, only pulses move on top.

import { layoutOf } from "./layout.js";
import { colourIndex, colourOf, isDark, ofTheme } from "./palette.js";

const MOST_PULSES = 500;
const CLASH = "#e0201b";

export class Stage {
  /** canvas: the element; machine: the overview of a plan; picked: called with a node, a place or null. */
  constructor(canvas, machine, picked) {
    this.canvas = canvas;
    this.machine = machine;
    this.layout = layoutOf(machine);
    this.below = document.createElement("canvas");
    this.frame = null;
    this.chosen = null;
    this.drawn = 0; // pictures since the start, for measurements
    canvas.addEventListener("click", (event) => picked(this.at(event)));
    canvas.addEventListener("pointermove", (event) => { canvas.title = this.nameOf(this.at(event)); });
  }

  /** Set the side of the square in CSS pixels. */
  resize(side) {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.side = side * ratio;
    this.ratio = ratio * Math.max(1, side / 1000); // lines are thicker on large pictures
    for (const one of [this.canvas, this.below]) { one.width = this.side; one.height = this.side; }
    this.canvas.style.width = this.canvas.style.height = `${side}px`;
    if (this.frame) this.show(this.frame, this.chosen);
  }

  /** Draw a round, with the circuits of a node or place in the foreground. */
  show(frame, chosen) {
    this.chosen = chosen;
    if (frame !== this.frame) this.lines = frame.src.map((_, i) => this.layout.line(frame, i));
    this.frame = frame;
    this.lay();
    this.paint(null);
  }

  /** Whether a circuit belongs to what is chosen. */
  belongs(i) {
    const { chosen, frame } = this;
    if (!chosen) return true;
    if (chosen.node !== undefined) return frame.src[i] === chosen.node || frame.dst[i] === chosen.node;
    return (frame.places[i] ?? []).some((one) => one.kind === chosen.kind && one.index === chosen.index);
  }

  /** Draw all that stands still on the lower canvas. */
  lay() {
    const { frame, layout, machine, side } = this;
    const pen = this.below.getContext("2d");
    const dark = isDark();
    pen.clearRect(0, 0, side, side);
    pen.lineJoin = "round";
    const groups = new Map();
    frame.src.forEach((_, i) => {
      const clash = frame.clashing.has(i);
      const rank = clash ? 2 : this.belongs(i) ? 1 : 0;
      const key = `${rank} ${frame.idleSet.has(i) ? 1 : 0} ${colourIndex(frame.wavelength[i], machine.num_wavelengths)}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(i);
    });
    const many = frame.src.length > 1500;
    for (const [key, members] of [...groups].sort()) {
      const [rank, idle, colour] = key.split(" ").map(Number);
      pen.beginPath();
      for (const i of members) {
        const line = this.lines[i];
        pen.moveTo(line[0] * side, line[1] * side);
        for (let k = 2; k < line.length; k += 2) pen.lineTo(line[k] * side, line[k + 1] * side);
      }
      const chosen = this.chosen && rank === 1;
      pen.globalAlpha = rank === 2 ? 1 : rank === 0 ? 0.12 : idle ? 0.35 : many && !chosen ? 0.45 : 0.85;
      pen.strokeStyle = rank === 2 ? CLASH : machine.packets ? ofTheme("--muted") : colourOf(colour, machine.num_wavelengths, dark);
      pen.lineWidth = (rank === 2 ? 3 : chosen ? 2.2 : many ? 0.7 : 1.5) * this.ratio;
      pen.setLineDash(idle ? [4 * this.ratio, 4 * this.ratio] : []);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    this.places = this.drawPlaces(pen);
    this.drawNodes(pen, layout);
    this.drawClashes(pen);
  }

  drawPlaces(pen) {
    const { frame, layout, side, chosen } = this;
    const found = new Map();
    for (const use of frame.used) {
      for (const index of use.index) {
        const key = `${use.kind} ${index}`;
        if (!found.has(key)) found.set(key, { kind: use.kind, index, name: use.names[index] ?? `${use.kind} ${index}`, point: layout.place(use.kind, index, use.count) });
      }
    }
    pen.fillStyle = ofTheme("--paper");
    pen.strokeStyle = ofTheme("--muted");
    pen.lineWidth = this.ratio;
    const half = Math.max(1.5, Math.min(4, 900 / found.size)) * this.ratio;
    for (const one of found.values()) {
      const marked = chosen?.kind === one.kind && chosen.index === one.index;
      const size = marked ? 2 * half : half;
      pen.fillRect(one.point[0] * side - size, one.point[1] * side - size, 2 * size, 2 * size);
      pen.strokeRect(one.point[0] * side - size, one.point[1] * side - size, 2 * size, 2 * size);
    }
    return [...found.values()];
  }

  drawNodes(pen, layout) {
    const { side, chosen, frame } = this;
    const radius = Math.max(1.5 * this.ratio, layout.size * side);
    const receives = new Set(frame.dst);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `${Math.min(Math.max(13 * this.ratio, side / 75), radius * 1.15)}px sans-serif`;
    layout.nodes.forEach(([x, y], node) => {
      const marked = chosen?.node === node;
      const filled = receives.has(node);
      pen.beginPath();
      if (layout.square) pen.rect(x * side - radius, y * side - radius, 2 * radius, 2 * radius);
      else pen.arc(x * side, y * side, marked ? radius * 1.5 : radius, 0, 7);
      pen.globalAlpha = layout.square && !marked ? 0.35 : 1;
      pen.fillStyle = marked ? ofTheme("--accent") : ofTheme(filled ? "--muted" : "--band");
      pen.fill();
      pen.globalAlpha = 1;
      pen.strokeStyle = ofTheme("--ink");
      pen.lineWidth = 0.8 * this.ratio;
      pen.stroke();
      if (radius >= 6 * this.ratio) {
        if (layout.square) { // circuits lead across a tile
          pen.strokeStyle = ofTheme(marked ? "--accent" : "--paper");
          pen.lineWidth = 4 * this.ratio;
          pen.lineJoin = "round";
          pen.strokeText(node, x * side, y * side);
        }
        pen.fillStyle = marked ? ofTheme("--on-accent") : layout.square ? ofTheme("--ink") : ofTheme(filled ? "--paper" : "--ink");
        pen.fillText(node, x * side, y * side);
      }
    });
  }

  /** Red circles around what carries more than it can. */
  drawClashes(pen) {
    const { frame, layout, side } = this;
    pen.strokeStyle = CLASH;
    pen.lineWidth = 3 * this.ratio;
    for (const clash of frame.clashes.slice(0, 60)) {
      const use = frame.used.find((one) => one.kind === clash.kind && one.index.includes(clash.index));
      const node = /photodiode|rx_port/.test(clash.kind) ? frame.dst[clash.circuits[0]] : frame.src[clash.circuits[0]];
      const point = use ? layout.place(clash.kind, clash.index, use.count) : layout.nodes[node];
      if (!point) continue;
      pen.beginPath();
      pen.arc(point[0] * side, point[1] * side, 11 * this.ratio, 0, 7);
      pen.stroke();
    }
  }

  /** Show the lower canvas, with pulses at a share of their way if it is given. */
  paint(share) {
    const pen = this.canvas.getContext("2d");
    pen.clearRect(0, 0, this.side, this.side);
    pen.drawImage(this.below, 0, 0);
    this.drawn += 1;
    if (share === null || !this.lines?.length) return;
    const step = Math.max(1, Math.floor(this.lines.length / MOST_PULSES));
    const size = 2.6 * this.ratio;
    pen.fillStyle = ofTheme("--ink");
    pen.beginPath();
    for (let i = 0; i < this.lines.length; i += step) {
      if (this.frame.idleSet.has(i) || !this.belongs(i)) continue;
      const [x, y] = along(this.lines[i], share);
      pen.moveTo(x * this.side + size, y * this.side);
      pen.arc(x * this.side, y * this.side, size, 0, 7);
    }
    pen.fill();
  }

  /** The node or place under the pointer. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width, y = (event.clientY - box.top) / box.height;
    const near = (point, least) => Math.hypot(point[0] - x, point[1] - y) < least;
    let best = null, distance = Math.max(this.layout.size * 1.6, 0.012);
    this.layout.nodes.forEach((point, node) => {
      const away = Math.hypot(point[0] - x, point[1] - y);
      if (away < distance) { best = { node }; distance = away; }
    });
    const place = (this.places ?? []).find((one) => near(one.point, Math.min(distance, 0.012)));
    return place ? { kind: place.kind, index: place.index, name: place.name } : best;
  }

  nameOf(chosen) {
    if (!chosen) return "";
    return chosen.node === undefined ? chosen.name : `node ${chosen.node}${this.machine.nodes[chosen.node] === String(chosen.node) ? "" : ` ${this.machine.nodes[chosen.node]}`}`;
  }
}

/** Point of a line at a share of its length, by its corners. */
function along(line, share) {
  const corners = line.length / 2 - 1;
  const at = Math.min(share * corners, corners - 1e-9);
  const k = 2 * Math.floor(at), part = at - Math.floor(at);
  return [line[k] + part * (line[k + 2] - line[k]), line[k + 1] + part * (line[k + 3] - line[k + 1])];
}
