// Places of nodes, fibres and switches, and the lines of circuits between them, in a square from 0 to 1.

const TURN = 2 * Math.PI;
const STEP = [[1, 0], [-1, 0], [0, 1], [0, -1]]; // right, left, down, up: order of hops on a grid

const onCircle = (share, radius) => [0.5 + radius * Math.sin(share * TURN), 0.5 - radius * Math.cos(share * TURN)];

/** {nodes: [[x, y]], size, place(kind, index, count), line(frame, i)} of a machine. */
export function layoutOf(machine) {
  if (machine.layout.kind === "grid") return grid(machine);
  if (machine.layout.kind === "ring") return ring(machine);
  return circle(machine);
}

function circle(machine) {
  const n = machine.num_nodes;
  const nodes = Array.from({ length: n }, (_, i) => onCircle(i / n, 0.45));
  const place = (kind, index, count) => onCircle((index + 0.5) / count, 0.29);
  const line = (frame, i) => {
    const [from, to] = [nodes[frame.src[i]], nodes[frame.dst[i]]];
    const through = frame.places[i];
    if (through?.length && through.length <= 6) return [from, ...through.map((one) => place(one.kind, one.index, one.count)), to].flat();
    return curve(from, to);
  };
  return { nodes, size: Math.min(0.016, 1.1 / n), place, line };
}

/** A line from one place to another that bends to the middle. */
function curve([x0, y0], [x1, y1]) {
  const points = [];
  const bend = 0.75;
  const [cx, cy] = [(1 - bend) * (x0 + x1) / 2 + bend * 0.5, (1 - bend) * (y0 + y1) / 2 + bend * 0.5];
  for (let k = 0; k <= 10; k += 1) {
    const t = k / 10;
    points.push((1 - t) ** 2 * x0 + 2 * t * (1 - t) * cx + t * t * x1, (1 - t) ** 2 * y0 + 2 * t * (1 - t) * cy + t * t * y1);
  }
  return points;
}

function ring(machine) {
  const n = machine.num_nodes;
  const nodes = Array.from({ length: n }, (_, i) => onCircle(i / n, 0.36));
  const place = (kind, index, count) => {
    const fibre = index % (count / 2 || 1);
    return onCircle((fibre + 0.5) / n, index < count / 2 ? 0.385 : 0.335);
  };
  const line = (frame, i) => {
    const way = frame.port[i] % 2 === 0 ? 1 : -1;
    const hops = frame.hop_offsets[i + 1] - frame.hop_offsets[i] || ((way * (frame.dst[i] - frame.src[i]) + n) % n);
    const lane = frame.lane[i] / Math.max(1, frame.lanes);
    const radius = way > 0 ? 0.38 + 0.1 * lane : 0.34 - 0.16 * lane;
    const begin = frame.src[i] / n, end = begin + (way * hops) / n;
    const count = Math.max(2, Math.ceil((hops / n) * 90));
    const points = [...nodes[frame.src[i]]];
    for (let k = 0; k <= count; k += 1) points.push(...onCircle(begin + ((end - begin) * k) / count, radius));
    points.push(...nodes[frame.dst[i]]);
    return points;
  };
  return { nodes, size: Math.min(0.014, 0.8 / n), place, line };
}

function grid(machine) {
  const { rows, columns, node_at: at } = machine.layout;
  const pitch = 0.94 / Math.max(rows, columns);
  const centre = (tile) => [0.5 + ((tile % columns) - (columns - 1) / 2) * pitch, 0.5 + (Math.floor(tile / columns) - (rows - 1) / 2) * pitch];
  const nodes = [];
  at.forEach((node, tile) => { nodes[node] = centre(tile); });
  const place = (kind, index) => {
    const [x, y] = centre(Math.floor(index / 4));
    const [right, down] = STEP[index % 4];
    return [x + (right * pitch) / 2, y + (down * pitch) / 2];
  };
  const line = (frame, i) => {
    const aside = ((frame.lane[i] % 9) - (Math.min(frame.lanes, 9) - 1) / 2) * pitch * 0.055;
    const points = [];
    let last = null;
    for (let k = frame.hop_offsets[i]; k < frame.hop_offsets[i + 1]; k += 1) {
      const [x, y] = centre(Math.floor(frame.hops[k] / 4));
      points.push(x + aside, y + aside);
      const [right, down] = STEP[frame.hops[k] % 4];
      last = [x + right * pitch + aside, y + down * pitch + aside];
    }
    return last ? [...points, ...last] : [...nodes[frame.src[i]], ...nodes[frame.dst[i]]];
  };
  return { nodes, size: pitch * 0.3, place, line, square: true };
}

/** Complete a round from the server: lanes by wavelength, and the fibres and switches of each circuit. */
export function prepared(frame) {
  const distinct = [...new Set(frame.wavelength)].sort((a, b) => a - b);
  const lanes = new Map(distinct.map((one, i) => [one, i]));
  frame.lane = frame.wavelength.map((one) => lanes.get(one));
  frame.lanes = distinct.length;
  frame.places = [];
  for (const use of frame.used) {
    use.circuit.forEach((circuit, k) => {
      (frame.places[circuit] ??= []).push({ kind: use.kind, index: use.index[k], count: use.count });
    });
  }
  frame.clashing = new Set(frame.clashes.flatMap((one) => one.circuits));
  frame.idleSet = new Set(frame.idle);
  return frame;
}
