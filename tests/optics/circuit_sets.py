"""Random sets of circuits on small machines, and both judges on many sets at once.

The emulator judges many sets in one run: a netlist of many copies of the machine, one set on each.
"""

from dataclasses import replace
from itertools import islice

import numpy as np

from opticcl.collective import collective
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers, no_progress
from opticcl.ir.netlist import Bundle, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.optics.emulator import Emulator, Listeners
from opticcl.optics.rounds import lanes_of, needed_settings, round_settings
from opticcl.verify.light.circuits import check_light

NUM_CHUNKS = 3


def copies(netlist, count):
    """A netlist of that many machines side by side."""

    def of_one(function, group):
        return lambda element: function(element % group.count)

    def control_of(group):
        return lambda element: group.control(element % group.count) + element // group.count * group.devices

    groups = tuple(
        replace(
            group,
            count=group.count * count,
            devices=group.devices * count,
            parameters={name: of_one(function, group) for name, function in group.parameters.items()},
            control=None if group.control is None else control_of(group),
        )
        for group in netlist.groups
    )

    def bundles():
        for bundle in netlist.bundles():
            source, target = (netlist.groups[netlist.position[name]] for name in (bundle.source, bundle.target))
            copy = np.arange(count)[:, None]
            outputs = np.asarray(bundle.outputs) + copy * (source.count * source.n_out)
            inputs = np.asarray(bundle.inputs) + copy * (target.count * target.n_in)
            yield Bundle(bundle.source, outputs.ravel(), bundle.target, inputs.ravel())

    return Netlist(netlist.name, groups, netlist.num_wavelengths, bundles, netlist.transmitter)


def both_judges(fabric, sets, batch=64):
    """Of each set (circuits, transfers): whether `usage` accepts it, and whether its light arrives; bool (sets,) each.

    Args:
        fabric: that has the netlist.
        sets: to be judged.
        batch: sets of one run of the emulator.
    """
    sets = list(sets)
    accepted = [accepts(fabric, circuits, transfers) for circuits, transfers in sets]
    emulator = Emulator(copies(fabric.netlist(), min(batch, len(sets))))
    clean = [ok for first in range(0, len(sets), batch) for ok in _clean(fabric, emulator, sets[first : first + batch])]
    return np.array(accepted), np.array(clean)


def accepts(fabric, circuits, transfers):
    """Whether the judge of resources accepts circuits as the only round of a plan."""
    schedule = Schedule("by hand", collective("broadcast", fabric.num_nodes, NUM_CHUNKS), 1, lambda i: transfers)
    return not check_light(CircuitPlan(fabric, schedule, lambda i: (circuits,)), progress=no_progress).violations


def _clean(fabric, emulator, sets):
    """Whether the light of each set arrives."""
    one = fabric.netlist()
    settings, listeners, owner = [], [], []
    for copy, (circuits, transfers) in enumerate(sets):
        lanes = lanes_of(fabric, circuits, transfers)
        needed = [round_settings(fabric, one, circuits, lanes), needed_settings(fabric, one, circuits, True)]
        for part in needed:
            devices = np.array([group.num_devices for group in one.groups])
            signal = part.kind == one.position[one.transmitter]
            setting, device = part.setting + signal * (copy << 24), part.device + copy * devices[part.kind]
            settings.append(replace(part, device=device, setting=setting, owner=part.owner + 1000 * copy))
        diodes = lanes.photodiode + copy * one.photodiodes.count
        listeners.append((diodes, lanes.wavelength, lanes.signal + (copy << 24)))
        owner.append(np.full(len(lanes), copy))
    report = emulator.run(DeviceTable.joined(settings), Listeners(*map(np.concatenate, zip(*listeners, strict=True))))
    if report.circulating:  # of which set, the report does not say
        return [ok for one in sets for ok in _clean(fabric, emulator, [one])] if len(sets) > 1 else [False]
    dirty = np.zeros(len(sets), bool)
    of_lane = np.concatenate(owner)
    for rows in (report.missing, report.collided, report.wrong):
        dirty[of_lane[rows]] = True
    dirty[report.stray // one.photodiodes.count] = True
    dirty[[clash.owners[0] // 1000 for clash in report.clashes]] = True
    return (~dirty).tolist()


# --- sets ---------------------------------------------------------------------------------------------------------------


def sets_of(fabric, draw, count, *, most=5, seed=0):
    """Random sets (circuits, transfers).

    Args:
        fabric: that they are for.
        draw: (fabric, random, number of circuits) -> columns of the circuits.
        count: number of sets.
        most: circuits of a set.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)

    def drawn():
        while True:
            circuits = draw(fabric, random, int(random.integers(1, most + 1)))
            chunk = random.integers(0, NUM_CHUNKS, len(circuits))
            idle = random.random(len(circuits)) < 0.1
            circuits = replace(circuits, transfer=np.where(idle, -1, np.cumsum(~idle) - 1).astype(np.int32))
            yield circuits, Transfers.of(circuits.src[~idle], circuits.dst[~idle], chunk[~idle], 1, Op.COPY)

    return islice(drawn(), count)


def wavelengths(fabric, random, count):
    """First wavelength and number of wavelengths of each circuit, mostly one."""
    lo = random.integers(0, fabric.num_wavelengths, count)
    many = np.where(random.random(count) < 0.7, 1, random.integers(1, fabric.num_wavelengths + 1, count))
    return lo, np.minimum(many, fabric.num_wavelengths - lo)


def on_ring(fabric, random, count):
    """Circuits along a double ring, at most once round."""
    n = fabric.num_nodes
    src, hops = random.integers(0, n, count), random.integers(1, n, count)
    port = random.integers(0, fabric.ports_per_node, count)
    way = port % 2
    dst = (src + hops * (1 - 2 * way)) % n
    paths = [
        [(s + k) % n if not w else n + (s - 1 - k) % n for k in range(h)]
        for s, h, w in zip(src.tolist(), hops.tolist(), way.tolist(), strict=True)
    ]
    lo, many = wavelengths(fabric, random, count)
    return of_paths(src, dst, port, lo, many, paths)


def on_torus(fabric, random, count):
    """Circuits along rows and columns of a torus or mesh, at most once round; on a mesh those that the sides allow."""
    rows, columns = fabric.parameters["shape"]
    places = []
    while len(places) < count:
        node, port, hops = (int(random.integers(0, n)) for n in (rows * columns, 4, max(rows, columns)))
        row, column = divmod(node, columns)
        at, side = (column, columns) if port < 2 else (row, rows)
        step = 1 - 2 * (port % 2)
        end = at + step * hops
        if not 0 < hops < side or not (fabric.parameters["wrap"] or 0 <= end < side):
            continue
        near = [(at + step * k - (step < 0)) % side for k in range(hops)]
        path = [port * rows * columns + (row * columns + k if port < 2 else k * columns + column) for k in near]
        places.append((node, row * columns + end % side if port < 2 else end % side * columns + column, port, path))
    src, dst, port, paths = zip(*places, strict=True)
    return of_paths(np.array(src), np.array(dst), np.array(port), *wavelengths(fabric, random, count), paths)


def of_paths(src, dst, port, lo, many, paths):
    """Circuits with paths of different lengths."""
    ends = np.cumsum([0, *map(len, paths)])
    hops = np.concatenate([np.asarray(path, np.int64) for path in paths])
    return Circuits.of(np.arange(len(src)), src, dst, port, lo, many, (hops, ends))


def on_levels(fabric, random, count):
    """Circuits of a SiPAC at one level each; three of four on the wavelengths that its switch leads to the receiver."""
    sides, strides = np.array(fabric.sides), fabric.strides
    src, level = random.integers(0, fabric.num_nodes, count), random.integers(0, len(sides), count)
    side, stride = sides[level], strides[level]
    i = src // stride % side
    j = (i + random.integers(1, side)) % side
    groups = np.array(fabric.groups_of_levels)[level]
    gap = fabric.channels == "retuned"
    residue = (j - i - gap) % side
    if fabric.channels == "ring":
        residue = np.where((residue == 1) & (random.random(count) < 0.5), 0, residue)
    w = fabric.num_wavelengths
    step = int(np.lcm.reduce(fabric.groups_of_levels))
    lo = np.minimum(residue + groups * random.integers(0, max(w // groups.max(), 1), count), w - 1)
    lo = np.where(random.random(count) < 0.75, lo, random.integers(0, w, count))
    many = 1 + np.minimum(random.integers(0, 2, count), (w - 1 - lo) // step)
    level = level[:, None]
    return Circuits.of(np.arange(count), src, src + (j - i) * stride, level[:, 0], lo, many, level, step)


def on_switches(fabric, random, count):
    """Circuits of an ocs over one to three links, most of them those of one setting, some by a plane of their own."""
    n, k = fabric.nodes, fabric.planes
    src, dst, port, paths = [], [], [], []
    while len(src) < count:
        nodes, planes = [int(random.integers(n))], [int(random.integers(k))]
        for link in range(int(random.integers(1, 4))):
            if link:
                planes.append(int(random.integers(k)) if random.random() < 0.2 else planes[0])
            ahead = 1 + planes[-1] if random.random() < 0.9 else int(random.integers(1, n))
            nodes.append((nodes[-1] + ahead) % n)
        if len(set(nodes)) < len(nodes):
            continue
        src.append(nodes[0])
        dst.append(nodes[-1])
        port.append(planes[0])
        paths.append(
            [(at > 0) * k * n + plane * n + node for at, (plane, node) in enumerate(zip(planes, nodes, strict=False))]
        )
    return of_paths(np.array(src), np.array(dst), np.array(port), 0, 1, paths)


def on_lines(fabric, random, count):
    """Circuits of ODDL along one dimension each."""
    shape = np.array(fabric.shape)
    dimension = random.choice(np.flatnonzero(shape > 1), count)
    stride = np.array([int(np.prod(fabric.shape[d + 1 :])) for d in range(len(shape))])[dimension]
    src = random.integers(0, fabric.num_nodes, count)
    i = src // stride % shape[dimension]
    j = (i + random.integers(1, shape[dimension])) % shape[dimension]
    lo, many = wavelengths(fabric, random, count)
    return Circuits.of(np.arange(count), src, src + (j - i) * stride, dimension, lo, many, dimension[:, None])


def on_subnets(fabric, random, count):
    """Circuits of RAMP, most of them with the gates and the wavelength that they need, some from one transmitter."""
    n, x, devices = fabric.num_nodes, fabric.groups, fabric.wavelengths
    src = random.integers(0, n, count)
    group, planes = random.integers(0, x, count), fabric.transceivers_per_group
    port = group * planes + random.integers(0, planes, n * x)[src * x + group]  # one plane of each sender's group
    again = random.random(count) < 0.3
    again[0] = False
    of = np.where(again, random.integers(0, np.maximum(np.arange(count), 1)), np.arange(count))
    src, port = src[of], port[of]
    dst = (src + random.integers(1, n, count)) % n
    due = dst % devices if fabric.subnet == "broadcast" else (dst - src) % devices
    lo = np.where(random.random(count) < 0.95, due, random.integers(0, devices, count))
    gates = np.stack([dst // fabric.nodes_per_group, src // fabric.nodes_per_group], axis=1)
    _, which, users = np.unique(
        src * x + port // fabric.transceivers_per_group, return_inverse=True, return_counts=True
    )
    alone = users[which] == 1  # else another circuit opens the gate that this one should have named
    astray = (random.random((count, 2)) < 0.02) & alone[:, None]
    gates = np.where(astray, random.integers(0, x, (count, 2)), gates)
    circuits = Circuits.of(np.arange(count), src, dst, port, lo, 1, gates)
    if fabric.subnet != "route_switch":
        return circuits
    _, first = np.unique(src * fabric.ports_per_node + port, return_index=True)
    return Circuits.of(np.arange(len(first)), src[first], dst[first], port[first], lo[first], 1, gates[first])


def on_grid(fabric, random, count):
    """Circuits of LIGHTPATH on shortest paths, each with its turns and, where it has one, its waveguide at random."""
    rows, columns = fabric.shape
    n = rows * columns
    src = random.integers(0, n, count)
    dst = (src + random.integers(1, n, count)) % n
    paths = [
        _walk(random, *divmod(a, columns), *divmod(b, columns), columns)
        for a, b in zip(src.tolist(), dst.tolist(), strict=True)
    ]
    lo, many = wavelengths(fabric, random, count)
    circuits = of_paths(src, dst, np.zeros(count, int), lo, many, paths)
    if fabric.switch_unit == "wavelength":
        return circuits
    again = random.integers(0, count, count)  # some go the way of another, which may be on their waveguide
    rows = np.where(random.random(count) < 0.3, again, np.arange(count))
    guide = random.integers(0, fabric.waveguides, count)[rows]
    guide = np.where(random.random(count) < 0.02, random.choice([-1, fabric.waveguides], count), guide)
    ends = circuits.take(rows)
    return replace(
        ends, wavelength_lo=circuits.wavelength_lo, wavelength_n=circuits.wavelength_n, waveguide=guide.astype(np.int32)
    )


def _walk(random, row, column, end_row, end_column, columns):
    """Edges of a shortest path."""
    steps = [0 if end_column > column else 1] * abs(end_column - column) + [2 if end_row > row else 3] * abs(
        end_row - row
    )
    path = []
    for way in random.permutation(steps).tolist():
        path.append(4 * (row * columns + column) + way)
        row, column = row + (way == 2) - (way == 3), column + (way == 0) - (way == 1)
    return path
