"""SiPAC's claims: shape of the network, wavelength map, SiPCO, table II, table III; the rivals are in sipac_rivals.py."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.fabrics.sipac import Sipac
from opticcl.ir import Fabric, Op, Schedule
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers.formula import evaluate
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify

SIZE = "100 MB"  # figure 7
LINK_RATE = 512e9  # figure 7 [bit/s]


@claim("sipac", "S1")
def nodes() -> list[int]:
    """Nodes for L = 2 and 3 at r = 16."""
    return [fabric("sipac", radix=16, levels=levels).num_nodes for levels in (2, 3)]


@claim("sipac", "S2")
@claim("sipac", "S24")
def switches() -> int:
    """Switches of SiPAC(8, 3)."""
    return _num_switches(fabric("sipac"))


@claim("sipac", "S3")
def diameter_and_neighbours() -> list[int]:
    """Steps to reach the last node from node 0, and nodes reached in the first."""
    where = fabric("sipac")
    node = np.arange(where.num_nodes)
    reached, sizes = node == 0, [1]
    while not reached.all():
        reached = reached | where.linked(node[reached][:, None], node).any(axis=0)
        sizes.append(int(reached.sum()))
    return [len(sizes) - 1, sizes[1] - 1]


@claim("sipac", "S4")
def outputs_receive_different_wavelengths() -> bool:
    """Whether all inputs of a switch can send to all outputs at the same time."""
    switches = [fabric("sipac", radix=r, levels=1, wavelengths=3 * r) for r in (2, 3, 8, 32)]
    return all(verify(lower(switch, generate("sipco", "all_reduce", switch))).ok for switch in switches)


@claim("sipac", "S5")
def pair_rate() -> float:
    """What the circuits of a pair carry [bit/s]."""
    where = fabric("sipac")
    (circuits,) = lower(where, generate("sipco", "all_reduce", where)).rounds(0)
    return float(circuits.wavelength_n.max()) * where.rate_bits_per_s


@claim("sipac", "S14")
def table_3() -> list[str]:
    """Tables III (b), (c), (d), one text a row."""
    return [row for cells in _tables(2, 2)[1:] for row in cells]


@claim("sipac", "S14a")
def table_3_start() -> str:
    """Third row of table III (a)."""
    return _tables(2, 2)[0][2]


@claim("sipac", "S13", 3)
@claim("sipac", "S15", 1)
def steps_and_chunks(levels: int) -> list[int]:
    """Steps, and chunks on every link in every step."""
    where = fabric("sipac", radix=8, levels=levels)
    return _steps_and_chunks(where, generate("sipco", "all_reduce", where))


@claim("sipac", "S16")
def contributions() -> list[int]:
    """Most contributions in a chunk after each of the first L steps."""
    where = fabric("sipac", radix=4, levels=3)
    after = [int(held.sum(axis=2).max()) for held in _played(generate("sipco", "all_reduce", where))]
    return after[1 : 1 + where.ports_per_node]


@claim("sipac", "S17")
def ring() -> float:
    """Ring of 1024 nodes with one link each [s]."""
    return _time_s(_one_link_each(), "ring")


@claim("sipac", "S18", 32)
@claim("sipac", "S18g", 8)
def _hierarchical_ring_s(group_size: int) -> float:
    """Rings of neighbours, a ring of their leaders and the way back, 1024 nodes [s]."""
    return _time_s(_one_link_each(), f"hierarchical_ring:group_size={group_size},distribution=pipeline")


@claim("sipac", "S46")
def scattered_jobs() -> Found:
    """Times of jobs on CUs with gaps between them over that of a job on adjacent ones."""
    where, digits = fabric("sipac"), np.array([0, 2, 5, 7])
    cube = np.add.outer(np.add.outer(64 * digits, 8 * digits), digits).ravel()
    plans = [compile(job(where, nodes), "all_reduce", SIZE) for nodes in (np.arange(64), np.arange(0, 512, 8), cube)]
    adjacent_s, *others = (plan.simulate().total_s for plan in plans)
    algorithms = ", ".join(plan.algorithm for plan in plans)
    return found([other_s / adjacent_s for other_s in others], algorithms=algorithms)


@claim("sipac", "S20")
def relatively_constant() -> Found:
    """Whether the slowest of five sizes takes less than 1.3 times the fastest."""
    shapes = ((8, 2), (16, 2), (8, 3), (32, 2), (16, 3))
    times, sizes = [_sipco_s(r, levels, "retuned") for r, levels in shapes], [r**levels for r, levels in shapes]
    spread = max(times) / min(times)
    return found(spread < 1.3, spread=spread, nodes=max(sizes) // min(sizes))


@claim("sipac", "S21")
def volume_over_optimum() -> Found:
    """What a node sends over 2 (p - 1)/p of the message."""
    where = fabric("sipac", radix=32, levels=2)
    schedule = generate("sipco", "all_reduce", where)
    p, steps = where.num_nodes, [schedule.step(i) for i in range(schedule.num_steps)]
    sent = sum(int(step.chunk_n[step.src == 0].sum()) for step in steps) / schedule.collective.num_chunks
    equal_rate = fabric("sipac", radix=32, levels=2, node_rate=LINK_RATE, channels="retuned")
    return found(
        sent / (2 * (p - 1) / p),
        sipco_ms=_time_s(equal_rate, "sipco") * 1e3,
        mesh_ms=_sipco_s(1024, 1, "retuned") * 1e3,
    )


@claim("sipac", "S23")
def links() -> int:
    """Links between nodes and switches of SiPAC(8, 3)."""
    where = fabric("sipac")
    return where.num_nodes * where.ports_per_node


@claim("sipac", "S25")
def few_switches_with_two_levels() -> Found:
    """Whether SiPAC(64, 2) has less than a fifth of a fat tree's switches."""
    where = fabric("sipac", radix=64, levels=2)
    fat_tree = evaluate(printed_claims("sipac")["S24"]["formula"], {"p": where.num_nodes})
    switches = _num_switches(where)
    return found(switches < fat_tree / 5, switches=switches, fat_tree=fat_tree)


@claim("sipac", "S41")
def link_rate() -> float:
    """One link of the default SiPAC [bit/s]."""
    where = fabric("sipac")
    return where.node_rate_bits_per_s / where.ports_per_node


@claim("sipac", "S42")
def all_reduce_is_two_halves() -> bool:
    """Whether the all-reduce of least volume is, step by step, the reduce-scatter and then the all-gather."""
    where = fabric("sipac", radix=4, levels=3)
    whole = generate("sipco:k=3", "all_reduce", where)
    halves = [generate("sipco", name, where) for name in ("reduce_scatter", "all_gather")]
    steps = [half.step(i) for half in halves for i in range(half.num_steps)]
    columns = ("src", "dst", "chunk_lo", "chunk_n", "op")
    return len(steps) == whole.num_steps and all(
        np.array_equal(getattr(whole.step(i), column), getattr(step, column))
        for i, step in enumerate(steps)
        for column in columns
    )


@claim("sipac", "S43")
def irregular() -> bool:
    """Whether SiPCO is right, data and light, where the levels have 4, 8 and 2 ports."""
    where = fabric("sipac", radices=(4, 8, 2))
    return verify(lower(where, generate("sipco", "all_reduce", where))).ok


@claim("sipac", "S44")
def links_busy_in_all_to_all() -> bool:
    """Whether all links carry the same in every step, in and out, and the plan is right."""
    where = fabric("sipac")
    schedule = generate("sipco", "all_to_all", where)
    return verify(lower(where, schedule)).ok and len(_steps_and_chunks(where, schedule)) == 2


def _num_switches(where: Fabric) -> int:
    """Linked pairs over the pairs that a switch links; all nodes have as many neighbours as node 0."""
    neighbours = int(where.linked(np.zeros(1, np.int64), np.arange(where.num_nodes)).sum())
    r = where.machine_as(Sipac).radix
    return where.num_nodes * neighbours // (r * (r - 1))


@claim("sipac", "S13t", 8, 3, "retuned")
@claim("sipac", "S13p", 8, 3, "published")
@claim("sipac", "S17m", 1024, 1, "retuned")
@claim("sipac", "S19", 32, 2, "retuned")
@claim("sipac", "S19p", 32, 2, "published")
@cache
def _sipco_s(radix: int, levels: int, channels: str) -> float:
    """SiPCO with links of 512 Gb/s, on retuned channels or those of section III-B [s]."""
    where = fabric("sipac", radix=radix, levels=levels, node_rate=levels * LINK_RATE, channels=channels)
    return _time_s(where, "sipco")


def _one_link_each() -> Fabric:
    """1024 nodes as in figure 7."""
    return fabric("ideal", nodes=1024, rate=LINK_RATE, latency=fabric("sipac").latency_s)


def _time_s(where: Fabric, algorithm: str) -> float:
    return compile(where, "all_reduce", SIZE, algorithm=algorithm).simulate(assumptions="sipac").total_s


def _steps_and_chunks(where: Fabric, schedule: Schedule) -> list[int]:
    """Steps, and the distinct numbers of chunks on a link (out of or into a port) in a step."""
    plan, ports = lower(where, schedule), where.ports_per_node
    seen: set[int] = set()
    for i in range(schedule.num_steps):
        chunks = schedule.step(i).size_chunks()
        for circuits in plan.rounds(i):
            for node in (circuits.src, circuits.dst):
                links = np.bincount(node * ports + circuits.port, chunks[circuits.transfer], where.num_nodes * ports)
                seen |= {int(n) for n in links}
    return [schedule.num_steps, *sorted(seen)]


def _tables(radix: int, levels: int) -> list[list[str]]:
    """What each node holds, at the start and after each step: one text a chunk, as in table III.

    There, the node of digit x owns the chunk of digit r - 1 - x of each group.
    """
    schedule = generate("sipco", "all_reduce", fabric("sipac", radix=radix, levels=levels))
    numbers = np.arange(radix * levels).reshape(levels, radix)[:, ::-1].ravel()
    return [[_row(held[:, number], chunk) for chunk, number in enumerate(numbers)] for held in _played(schedule)]


def _row(held: np.ndarray, chunk: int) -> str:
    """A chunk in all nodes, from how often each holds each contribution: "A0 | A0+B0"."""
    names = [f"{chr(ord('A') + origin)}{chunk}" for origin in range(len(held))]
    return " | ".join("+".join(name for name, n in zip(names, row, strict=True) for _ in range(n)) for row in held)


def _played(schedule: Schedule) -> Iterator[np.ndarray]:
    """How often each node holds each contribution to each chunk, at the start and after each step.

    Returns: int64 (nodes, chunks, nodes) each.
    """
    n, num_chunks = schedule.collective.num_ranks, schedule.collective.num_chunks
    held = np.tile(np.eye(n, dtype=np.int64)[:, None, :], (1, num_chunks, 1))
    yield held
    for i in range(schedule.num_steps):
        before, held, step = held, held.copy(), schedule.step(i)
        for src, dst, lo, count, op in zip(step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, strict=True):
            chunks = slice(lo, lo + count)
            held[dst, chunks] = before[src, chunks] + (held[dst, chunks] if op == Op.REDUCE else 0)
        yield held
