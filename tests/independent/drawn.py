"""Plan files to judge: plans of all optical systems, divided transfers of plans by hand, and mutants of both.

Drawing uses the library; the judge does not. What a seed draws is always the same.
"""

import base64
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tests.independent.judge import judge

import opticcl
from opticcl.collective import COLLECTIVES, Request
from opticcl.errors import OpticclError
from opticcl.ir import Fabric
from opticcl.registry import parse_call, write_call
from opticcl.schedule import ALGORITHMS

MACHINES = {
    "ramp": (
        "ramp:groups=3,racks=2,wavelengths=3",
        "ramp:groups=3,racks=3,wavelengths=3",
        "ramp:groups=2,racks=1,wavelengths=4",
        "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2",
        "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=3,receiver=tunable",
        "ramp:groups=2,racks=2,wavelengths=4,receiver=none",
        "ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast",
        "ramp:groups=3,racks=1,wavelengths=3,subnet=route_broadcast,receiver=none",
        "ramp:groups=2,racks=2,wavelengths=2,subnet=route_switch,transceivers_per_group=2",
    ),
    "sipac": (
        "sipac:radix=3,levels=2,wavelengths=3",
        "sipac:radix=4,levels=2,wavelengths=10,channels=retuned",
        "sipac:radices=2x3x2,channels=ring",
        "sipac:radix=5,levels=1,channels=ring,wavelengths=12",
        "sipac:radix=2,levels=3",
    ),
    "terarack": (
        "terarack:nodes=5,wavelengths=2",
        "terarack:nodes=8,wavelengths=4,striping=true",
        "terarack:nodes=9,wavelengths=3,rings=2",
        "terarack:nodes=12,wavelengths=6",
    ),
    "oddl": ("oddl:shape=2x4", "oddl:shape=3x5", "oddl:shape=8,wavelengths=4", "oddl:shape=2x3x2,wavelengths=2"),
    "lightpath": (
        "lightpath:shape=3x3,lasers=4,waveguides=1",
        "lightpath:shape=2x4,lasers=3,waveguides=2",
        "lightpath:shape=4x4,lasers=4,waveguides=2,numbering=squares",
        "lightpath:shape=1x5,lasers=2,waveguides=1",
        "lightpath:shape=3x3,lasers=2,waveguides=3,switch_unit=waveguide",
    ),
    "terarack_torus": (
        "terarack_torus:shape=3x3,wavelengths=2",
        "terarack_torus:shape=2x4,wavelengths=4,striping=true",
        "terarack_torus:shape=3x4,wavelengths=3,wrap=false",
    ),
    "sip_ring": ("sip_ring:nodes=8,wavelengths=4", "sip_ring:nodes=7,wavelengths=6,directions=2"),
    "ocs": (
        "ocs:nodes=8,planes=2",
        "ocs:nodes=9,planes=1",
        "ocs:nodes=6,planes=3",
        "ocs:nodes=7,planes=2,forwarding=any",
    ),
    "topoopt": ("topoopt:nodes=8,degree=2", "topoopt:nodes=9,degree=1", "topoopt:nodes=10,strides=1x3x3"),
}
"""Small machines, odd and even, with every kind of hardware that changes what circuits may do."""

ATTEMPTS = 12
"""Circuits that a round of a grown plan is offered [count]."""
MOST_ROWS, MOST_EVENTS = 500, 5000
"""Of a plan: circuits of its file, chunks that all of its transfers carry [count]."""
SHARES = 720_720_000
"""Of a port of `ocs` [count]."""
COLUMNS = (
    "step", "round", "transfer", "src", "dst", "chunk_lo", "chunk_n", "parts", "op", "port",
    "wavelength_lo", "wavelength_n", "wavelength_step", "path",
)  # fmt: skip


@dataclass
class Drawn:
    """A plan file that is not written yet.

    Args:
        name: what was drawn.
        header: of the file.
        rows: of the file, by column.
    """

    name: str
    header: dict
    rows: list[dict]

    def write(self, folder: Path, suffix: str) -> Path:
        """The file, of this suffix."""
        path = folder / f"plan{suffix}"
        rows = sorted(self.rows, key=lambda row: (row["step"], row["round"]))
        names = list(rows[0]) if rows else COLUMNS
        if suffix == ".json":
            columns = {name: [row[name] for row in rows] for name in names}
            path.write_text(json.dumps({"header": self.header, "columns": columns}), "utf-8")
        else:
            lines = [",".join(_cell(row[name]) for name in names) for row in rows]
            path.write_text("\n".join([f"# {json.dumps(self.header)}", ",".join(names), *lines, ""]), "utf-8")
        return path


def _cell(value: int | list[int]) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def drawn(seed: int, folder: Path) -> Iterator[Drawn]:
    """Ten plans and mutants of one system; ten seeds in a row draw of every system, of RAMP twice.

    Args:
        seed: of the draw.
        folder: for files.
    """
    random = Random(seed)
    system = [*MACHINES, "ramp"][seed % (len(MACHINES) + 1)]
    fabric = random.choice(MACHINES[system])
    plan = compiled(random, fabric, folder)
    yield plan
    yield from (mutant(random, plan) for _ in range(3))
    plan = divided(random, fabric)
    yield plan
    yield mutant(random, plan)
    plan = grown(random, fabric, folder)
    yield plan
    yield from (with_one_more(random, plan) for _ in range(3))


# --- plans --------------------------------------------------------------------------------------------------------------


def compiled(random: Random, fabric: str, folder: Path) -> Drawn:
    """The plan of some algorithm for some collective, of all nodes or of a part of them.

    Args:
        random: what to draw from.
        fabric: machine.
        folder: for a file.
    """
    path, nodes = folder / "compiled.json", machine(fabric).num_nodes
    while True:
        job = sorted(random.sample(range(nodes), random.randint(2, nodes))) if random.random() < 0.1 else None
        ranks = nodes if job is None else len(job)
        request = Request(random.choice(COLLECTIVES), random.randrange(ranks), random.randint(1, 3))
        algorithm = random.choice(ALGORITHMS.names())
        try:
            plan = opticcl.compile(fabric, request, "1 MB", algorithm=algorithm, root=request.root, nodes=job)
            plan.save(path, listed=random.random() < 0.5)
        except OpticclError:
            continue
        whole = json.loads(path.read_text("utf-8"))
        header, columns = whole["header"], whole["columns"]
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        turns = defaultdict(lambda: 1, {run["step"]: run["count"] for run in header.get("runs", [])})
        if 0 < len(rows) <= MOST_ROWS and sum(r["chunk_n"] * turns[r["step"]] for r in rows) <= MOST_EVENTS:
            return Drawn(f"{fabric} {request} {algorithm}", header, rows)


def machine(fabric: str) -> Fabric:
    """The machine of a text."""
    name, given = parse_call(fabric)
    return opticcl.fabric(name, **given)


def divided(random: Random, fabric: str) -> Drawn:
    """A plan by hand: few senders a round, each with several receivers, and transfers divided among circuits of several ports.

    Receivers of a sender are often of one kind, so that they can receive one signal; what is promised is mostly what arrives.

    Args:
        random: what to draw from.
        fabric: machine.
    """
    made = machine(fabric)
    nodes, chunks = made.num_nodes, random.choice([1, 1, 2, 4])
    held = np.zeros((chunks, nodes), bool)
    held[np.arange(chunks), [random.randrange(nodes) for _ in range(chunks)]] = True
    before, rows = held.copy(), []
    numbers = defaultdict(int)
    for step, number in [(0, 0), *random.sample([(0, 1), (1, 0)], random.randint(0, 1))]:
        for _ in range(random.randint(1, 2)):
            ranges = [(lo, n) for lo in range(chunks) for n in range(1, chunks - lo + 1)]
            lo, n = random.choice(ranges)
            senders = np.flatnonzero(before[lo : lo + n].all(axis=0) if step == 0 else held[lo : lo + n].all(axis=0))
            if not len(senders):
                continue
            src = int(random.choice(senders.tolist()))
            same = random.random() < 0.7  # receivers on one wavelength of a RAMP
            apart = random.choice([made.num_wavelengths, 1]) if same and fabric.startswith("ramp") else 1
            first = random.randrange(nodes)
            others = [d for d in range(nodes) if d % apart == first % apart and d != src]
            ports = None
            for dst in random.sample(others, min(len(others), random.choice([1, 2, 2, 3, 3]))):
                mine = (lo, n) if random.random() < 0.9 else random.choice(ranges)
                circuits = random_circuits(random, made, src, dst, ports if random.random() < 0.7 else None)
                ports = {port for port, *_ in circuits}
                for port, lines, path, guide in circuits:
                    carried = {"transfer": numbers[step], "chunk_lo": mine[0], "chunk_n": mine[1], "parts": 1, "op": 0}
                    rows.append(row_of(step, number, src, dst, port, lines, path, guide, carried))
                if circuits:
                    numbers[step] += 1
                    held[mine[0] : mine[0] + mine[1], dst] = True
    after = held & ~(np.array([random.random() < 0.3 for _ in range(held.size)]).reshape(held.shape) & before)
    if random.random() < 0.1:
        after[random.randrange(chunks), random.randrange(nodes)] = True
    return Drawn(f"{fabric} by hand", header_by_hand(made, before, after, rows), rows)


def header_by_hand(made: Fabric, before: np.ndarray, after: np.ndarray, rows: list[dict]) -> dict:
    """The header of a plan by hand.

    Args:
        made: machine.
        before, after: which rank holds which chunk, bool (chunks, ranks).
        rows: of the file.
    """
    chunks, ranks = before.shape
    tables = {"before": packed(before), "after": packed(after)}
    return {
        "format": "opticcl-plan",
        "version": 2,
        "opticcl": "by hand",
        "fabric": write_call(made.name, {key: value for key, value in made.parameters.items() if value is not None}),
        "collective": {"name": "by_hand", "num_ranks": ranks, "num_chunks": chunks, "reduces": False, **tables},
        "algorithm": "by hand",
        "num_steps": 1 + max((row["step"] for row in rows), default=-1),
        "size_bytes": 1000,
        "nodes": None,
    }


def grown(random: Random, fabric: str, folder: Path) -> Drawn:
    """A round of circuits, each kept only where the judge finds the round right with it: little room is left in the end.

    All ranks hold both chunks, so that the light alone decides.

    Args:
        random: what to draw from.
        fabric: machine.
        folder: for files.
    """
    made = machine(fabric)
    held = np.ones((2, made.num_nodes), bool)
    plan = Drawn(f"{fabric} grown", header_by_hand(made, held, held, []), [])
    for _ in range(ATTEMPTS):
        more = with_one_more(random, plan, made)
        if more.rows and judge(more.write(folder, ".json")).verdict == "right":
            plan = more
    plan.name = f"{fabric} grown"
    return plan


def with_one_more(random: Random, plan: Drawn, made: Fabric | None = None) -> Drawn:
    """The plan with one more transfer, or a circuit that stands idle, in its first round.

    Args:
        random: what to draw from.
        plan: by hand.
        made: its machine; None: read its header.
    """
    made = made or machine_of(plan)
    senders = [row["src"] for row in plan.rows] if plan.rows and random.random() < 0.5 else range(made.num_nodes)
    receivers = [row["dst"] for row in plan.rows] if plan.rows and random.random() < 0.2 else range(made.num_nodes)
    src, dst = random.choice(senders), random.choice(receivers)
    carried = {"transfer": len(plan.rows), "chunk_lo": random.choice((0, 0, 1)), "chunk_n": 1, "parts": 1, "op": 0}
    if random.random() < 0.1:
        carried |= {"transfer": -1, "chunk_lo": 0, "chunk_n": 0}
    ways = random_circuits(random, made, src, dst) if src != dst else []
    rows = [row_of(0, 0, src, dst, *way, carried) for way in ways]
    return Drawn(f"{plan.name}, one more", {**plan.header, "num_steps": int(bool(plan.rows + rows))}, plan.rows + rows)


def packed(table: np.ndarray) -> str:
    """A bit for each chunk and rank, as headers hold it."""
    return base64.b64encode(zlib.compress(np.packbits(table).tobytes())).decode("ascii")


def row_of(
    step: int,
    number: int,
    src: int,
    dst: int,
    port: int,
    lines: tuple[int, int, int],
    path: list[int],
    guide: int | None,
    carried: dict,
) -> dict:
    """A row.

    Args:
        step, number: step and round.
        src, dst: nodes.
        port: of both.
        lines: first wavelength, number and distance.
        path: elements that the light passes.
        guide: waveguide, if these have numbers.
        carried: transfer, chunks, parts and operation.
    """
    ends = {"step": step, "round": number, "src": src, "dst": dst, "port": port, "path": path}
    light = dict(zip(("wavelength_lo", "wavelength_n", "wavelength_step"), lines, strict=True))
    row = {**ends, **light, **carried}
    return {name: row[name] for name in COLUMNS} | ({} if guide is None else {"waveguide": guide})


Way = tuple[int, tuple[int, int, int], list[int], int | None]
"""Port, wavelengths, path and waveguide of a circuit."""


def random_circuits(random: Random, made: Fabric, src: int, dst: int, ports: set[int] | None = None) -> list[Way]:
    """Circuits that could carry a transfer together, one to three; none where the nodes are not linked.

    Args:
        random: what to draw from.
        made: machine.
        src, dst: nodes.
        ports: with one circuit on each of them, if that is possible.
    """
    if made.name in BY_HAND:
        ways = BY_HAND[made.name](random, made, src, dst)
    else:
        found = made.options(np.array([src]), np.array([dst])).circuits
        ways = []
        for row in range(len(found)):
            first, many = int(found.wavelength_lo[row]), int(found.wavelength_n[row])
            kept = random.randint(1, many)
            lines = first + random.randint(0, many - kept) * found.wavelength_step, kept, found.wavelength_step
            guide = None if found.waveguide is None else int(found.waveguide[row])
            ways.append((int(found.port[row]), lines, found.path(row).tolist(), guide))
    if ports and (same := [[way for way in ways if way[0] == port] for port in sorted(ports)]) and all(same):
        return [random.choice(of_port) for of_port in same]
    ways = random.sample(ways, min(len(ways), random.choice([1, 1, 2, 2, 2, 3])))
    return ways if random.random() < 0.2 else sorted(ways)


def _ring_ways(random: Random, made: Fabric, src: int, dst: int) -> list[Way]:
    n, found = made.num_nodes, []
    for port in range(made.ports_per_node):
        if port == 0:
            path = [(src + k) % n for k in range((dst - src) % n)]
        else:
            path = [n + (src - 1 - k) % n for k in range((src - dst) % n)]
        found += [(port, (line, 1, 1), path, None) for line in range(made.num_wavelengths)]
    return found


def _torus_ways(random: Random, made: Fabric, src: int, dst: int) -> list[Way]:
    (rows, columns), n, found = made.shape, made.num_nodes, []
    here, there = divmod(src, columns), divmod(dst, columns)
    for port in range(4):
        axis, way, side = (1 if port < 2 else 0), (-1 if port % 2 else 1), (columns if port < 2 else rows)
        if here[1 - axis] != there[1 - axis]:
            continue
        at, path = list(here), []
        while tuple(at) != there:
            begin = at[0] * columns + at[1]
            wraps = not 0 <= at[axis] + way < side
            at[axis] = (at[axis] + way) % side
            if wraps and not made.wrap:
                break
            path.append(port * n + (begin if way == 1 else at[0] * columns + at[1]))
        if tuple(at) == there and path:
            number = random.randint(1, made.num_wavelengths)
            found += [(port, (line, number, 1), path, None) for line in range(made.num_wavelengths - number + 1)]
    return found


def _ocs_ways(random: Random, made: Fabric, src: int, dst: int) -> list[Way]:
    n, planes = made.num_nodes, made.ports_per_node
    shares = SHARES // random.choice([1, 1, 2, 3])
    found = []
    for plane in range(planes):
        found.append((plane, (0, shares, 1), [plane * n + src], None))
        relay = random.randrange(n)
        if relay not in (src, dst):
            onto = random.randrange(planes) if made.parameters["forwarding"] == "any" else plane
            found.append((plane, (0, shares, 1), [plane * n + src, (planes + onto) * n + relay], None))
    return found


def _packet_ways(random: Random, made: Fabric, src: int, dst: int) -> list[Way]:
    hops, _ = made.route(np.array([src]), np.array([dst]))
    return [(port, (0, 1, 1), hops.tolist(), None) for port in range(made.ports_per_node)]


BY_HAND: dict[str, Callable[[Random, Fabric, int, int], list[Way]]] = {
    "sip_ring": _ring_ways,
    "terarack_torus": _torus_ways,
    "ocs": _ocs_ways,
    "topoopt": _packet_ways,
}
"""Circuits between two nodes, of fabrics without `options`."""


# --- mutants ------------------------------------------------------------------------------------------------------------


def mutant(random: Random, plan: Drawn) -> Drawn:
    """The plan with one to three small changes, of which some leave it right."""
    found = Drawn(plan.name, deepcopy(plan.header), deepcopy(plan.rows))
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if found.rows:
            change = random.choice(CHANGES)
            change(random, found)
            found.name += f", {change.__name__.strip('_')}"
    return found


def _of_transfer(plan: Drawn, row: dict) -> list[dict]:
    """Rows of the transfer that a row belongs to; an idle row alone."""
    key = ("step", "transfer", "src", "dst", "chunk_lo", "chunk_n", "chunk_step", "parts", "op")
    if row["transfer"] < 0:
        return [row]
    return [other for other in plan.rows if all(other.get(name) == row.get(name) for name in key)]


def _drop_row(random: Random, plan: Drawn) -> None:
    plan.rows.remove(random.choice(plan.rows))


def _drop_transfer(random: Random, plan: Drawn) -> None:
    gone = [id(row) for row in _of_transfer(plan, random.choice(plan.rows))]
    plan.rows = [row for row in plan.rows if id(row) not in gone]


def _repeat_row(random: Random, plan: Drawn) -> None:
    plan.rows.append(deepcopy(random.choice(plan.rows)))


def _repeat_transfer(random: Random, plan: Drawn) -> None:
    """In another round of its own, with another number."""
    row = random.choice(plan.rows)
    step = [other for other in plan.rows if other["step"] == row["step"]]
    number, last = max(other["transfer"] for other in step) + 1, max(other["round"] for other in step)
    plan.rows += [{**deepcopy(other), "transfer": number, "round": last + 1} for other in _of_transfer(plan, row)]


def _swap(random: Random, plan: Drawn) -> None:
    """A value of two transfers of a step."""
    name = random.choice(("chunk_lo", "chunk_n", "src", "dst", "op"))
    one = random.choice(plan.rows)
    other = random.choice([row for row in plan.rows if row["step"] == one["step"]])
    first, second = _of_transfer(plan, one), _of_transfer(plan, other)
    values = one[name], other[name]
    for rows, value in ((first, values[1]), (second, values[0])):
        for row in rows:
            row[name] = value


def _change_transfer(random: Random, plan: Drawn) -> None:
    """One value of all rows of a transfer."""
    rows, ranks = _of_transfer(plan, random.choice(plan.rows)), plan.header["collective"]["num_ranks"]
    name = random.choice(("chunk_lo", "chunk_n", "parts", "op", "op", "src", "dst"))
    value = {
        "op": random.choice((0, 0, 1, 1, 2, 3, 3, 4)),
        "src": random.randrange(ranks),
        "dst": random.randrange(ranks),
    }.get(name, rows[0][name] + random.choice((-1, 1)))
    for row in rows:
        row[name] = value


def _change_row(random: Random, plan: Drawn) -> None:
    """One value of one row."""
    row = random.choice(plan.rows)
    name = random.choice(
        ("transfer", "chunk_lo", "src", "dst", "port", "wavelength_lo", "wavelength_n", "wavelength_step")
    )
    row[name] += random.choice((-1, 1, 1, 2))


def _change_light(random: Random, plan: Drawn) -> None:
    """Wavelength, port or waveguide, as another row of the plan has it."""
    row, other = random.choice(plan.rows), random.choice(plan.rows)
    for name in random.choice((("port",), ("wavelength_lo",), ("wavelength_lo", "wavelength_n"), ("port", "path"))):
        row[name] = deepcopy(other[name])
    if "waveguide" in row and random.random() < 0.5:
        row["waveguide"] = random.randint(-1, 3)


def _change_path(random: Random, plan: Drawn) -> None:
    path = random.choice(plan.rows)["path"]
    kind = random.randrange(3)
    if kind == 0 and path:
        del path[random.randrange(len(path))]
    elif kind == 1 and path:
        path[random.randrange(len(path))] += random.choice((-1, 1))
    else:
        path.insert(random.randint(0, len(path)), random.choice([0, *path]))


def _another_way(random: Random, plan: Drawn) -> None:
    """A circuit gets another port, wavelengths and path that lead to its receiver."""
    row = random.choice(plan.rows)
    made = machine_of(plan)
    if not (0 <= row["src"] < made.num_machine_nodes and 0 <= row["dst"] < made.num_machine_nodes):
        return
    for port, lines, path, guide in random_circuits(random, made, row["src"], row["dst"])[:1]:
        row.update(port=port, path=path, wavelength_lo=lines[0], wavelength_n=lines[1], wavelength_step=lines[2])
        row.update({} if guide is None or "waveguide" not in row else {"waveguide": guide})


def machine_of(plan: Drawn) -> Fabric:
    """The machine of a header."""
    name, given = parse_call(plan.header["fabric"])
    return opticcl.fabric(name, **{key: _value(text) for key, text in given.items()})


def _value(text: str) -> str | int | float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _divide(random: Random, plan: Drawn) -> None:
    """A transfer gets one more circuit, or a circuit of several wavelengths becomes two."""
    row = random.choice(plan.rows)
    other = deepcopy(row)
    if row["wavelength_n"] > 1:
        first = random.randint(1, row["wavelength_n"] - 1)
        other["wavelength_lo"] += first * row["wavelength_step"]
        other["wavelength_n"] -= first
        row["wavelength_n"] = first
    else:
        other[random.choice(("port", "wavelength_lo"))] += 1
    plan.rows.insert(plan.rows.index(row) + 1, other)


def _move_round(random: Random, plan: Drawn) -> None:
    """A transfer, or a row, in another round."""
    row = random.choice(plan.rows)
    rows = _of_transfer(plan, row) if random.random() < 0.8 else [row]
    number = random.choice([max(other["round"] for other in plan.rows if other["step"] == row["step"]) + 1, 0])
    for one in rows:
        one["round"] = number


def _join_rounds(random: Random, plan: Drawn) -> None:
    """All rounds of a step at once."""
    step = random.choice(plan.rows)["step"]
    for row in plan.rows:
        row["round"] = 0 if row["step"] == step else row["round"]


def _swap_steps(random: Random, plan: Drawn) -> None:
    one, other = (random.choice(plan.rows)["step"] for _ in range(2))
    for row in plan.rows:
        row["step"] = {one: other, other: one}.get(row["step"], row["step"])


def _reorder(random: Random, plan: Drawn) -> None:
    """Rows of the file in another order, transfers of a step with other numbers: both mean nothing without runs.

    Rows of one transfer stay in their order.
    """
    if plan.header.get("runs") or plan.header.get("steps"):
        return
    place = {}
    for row in plan.rows:
        place.setdefault((row["step"], row["transfer"]), random.random())
    plan.rows.sort(key=lambda row: place[row["step"], row["transfer"]])
    for row in plan.rows:
        row["transfer"] *= 3 if row["transfer"] > 0 else 1


def _idle(random: Random, plan: Drawn) -> None:
    """A circuit stands idle in a round of its own step or of another."""
    row, there = random.choice(plan.rows), random.choice(plan.rows)
    idle = {"transfer": -1, "chunk_lo": 0, "chunk_n": 0, "op": 0, "parts": 1}
    idle |= {"chunk_step": 1} if "chunk_step" in row else {}
    plan.rows.append({**deepcopy(row), **idle, "step": there["step"], "round": there["round"]})


def _narrow(random: Random, plan: Drawn) -> None:
    """A circuit of several wavelengths keeps some of them."""
    row = random.choice(plan.rows)
    row["wavelength_n"] = random.randint(1, max(1, row["wavelength_n"]))


def _change_header(random: Random, plan: Drawn) -> None:
    """Another root or shift, a step more or fewer, claims that do not hold, a run that is changed."""
    header, c = plan.header, plan.header["collective"]
    kind = random.randrange(5)
    if kind == 0:
        c["root"] = random.randrange(c["num_ranks"])
    elif kind == 1:
        c["shift"] = random.randint(1, 3)
    elif kind == 2:
        header["num_steps"] += random.choice((-1, 1))
    elif header.get("steps"):
        _change_phase(random, header)
    elif header.get("runs"):
        run = random.choice(header["runs"])
        member = random.choice(run["members"])
        shift = member["shift"]
        if shift and shift["kind"] == "digits" and random.random() < 0.5:
            shift["add"] += random.choice((-1, 1))
        elif run["count"] > 1:
            run["count"] -= 1
            header["num_steps"] -= 1


def _change_phase(random: Random, header: dict) -> None:
    """A step more or fewer of a phase, another digit that moves, another value of all rows."""
    phase = random.choice(header["steps"]["phases"])
    kind = random.randrange(3)
    if kind == 0:
        more = random.choice((-1, 1))
        phase["count"] = phase.get("count", 1) + more
        header["num_steps"] += more
    elif kind == 1:
        digit = random.randrange(len(header["steps"]["radices"]))
        moves = set(phase.get("moves", [])) ^ {digit}
        phase["moves"] = sorted(moves)
    elif phase.get("rows") is not None:
        name = random.choice([name for name, value in phase["rows"].items() if isinstance(value, int)])
        phase["rows"][name] += random.choice((-1, 1))


CHANGES = (
    _drop_row, _drop_transfer, _repeat_row, _repeat_transfer, _swap, _change_transfer, _change_row, _change_light,
    _change_path, _another_way, _another_way, _divide, _divide, _move_round, _join_rounds, _swap_steps, _reorder, _reorder,
    _idle, _idle, _narrow, _change_header,
)  # fmt: skip
