"""RAMP's claims about its maps, circuits and collectives: sections 3.1 and 5, tables 5 to 8, equations 1 to 5."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.ir import CircuitPlan, Circuits, IntArray
from opticcl.ir.phases import StoredSteps
from opticcl.papers import Found, claim, found
from opticcl.papers.formula import evaluate
from opticcl.schedule import generate
from opticcl.schedule.ramp_maps import Geometry, geometry
from opticcl.simulate import profile
from opticcl.verify import verify


@cache
def _plan(x: int, racks: int, devices: int, variant: str = "auto", collective: str = "all_reduce") -> CircuitPlan:
    where = fabric("ramp", groups=x, racks=racks, wavelengths=devices)
    return lower(where, generate(f"ramp:variant={variant}", collective, where))


def _published() -> Geometry:
    return geometry(fabric("ramp", groups=8, racks=8, wavelengths=16), "published")


def _partition(members: IntArray) -> list[int]:
    """[subgroups, nodes of each] if the members of all nodes' subgroups part the nodes, else []."""
    groups = np.unique(np.sort(members, axis=1), axis=0)
    return list(groups.shape) if groups.size == len(members) else []


@claim("ramp", "RAMP-A-nodes")
def nodes() -> int:
    return fabric("ramp").num_nodes


@claim("ramp", "RAMP-A-nodebw")
def node_rate() -> float:
    return fabric("ramp").node_rate_bits_per_s


@claim("ramp", "RAMP-A-capacity")
def capacity() -> float:
    return fabric("ramp").num_nodes * fabric("ramp").node_rate_bits_per_s


@claim("ramp", "RAMP-3-subnets", "subnet")
@claim("ramp", "RAMP-3-activepaths", "tx_port")
def resources(kind: str) -> int:
    return next(r.count for r in fabric("ramp").resources if r.kind == kind)


@claim("ramp", "RAMP-4-950B")
def slot_payload() -> float:
    return fabric("ramp").slot_payload_bytes


@claim("ramp", "RAMP-T5-s1", 1)
@claim("ramp", "RAMP-T5-s2", 2)
@claim("ramp", "RAMP-T5-s3x", 3)
@claim("ramp", "RAMP-T5-s4", 4)
def subgroups(step: int) -> list[int]:
    return _partition(_published().peers(step))


@claim("ramp", "RAMP-T5-s3")
def subgroups_3_as_printed() -> list[int]:
    maps = _published()
    node = np.arange(maps.num_nodes)
    g, j, i, d = maps.split(node)
    device, modulus = d * maps.groups + i, maps.devices * j
    number = (device + maps.devices * (j - g)) % np.maximum(modulus, 1)
    sizes = np.unique(number, return_counts=True)[1]
    return [len(sizes), int(sizes[0])] if (modulus > 0).all() and (sizes == maps.racks).all() else []


@claim("ramp", "RAMP-6-active")
def jobs_on_used_groups_racks_and_places() -> Found:
    """Whether every job whose used groups, racks and places are a RAMP runs as that does; the last of each are used."""
    where = fabric("ramp", groups=3, racks=3, wavelengths=6)
    numbers = np.arange(where.num_nodes).reshape(3, 3, 6)
    shapes = list(product(range(1, 4), range(1, 4), range(1, 7)))
    right = []
    for x, racks, places in shapes:
        part = job(where, numbers[-x:, -racks:, -places:].ravel())
        if part.equivalent is not None:
            plan, alone = lower(part, generate("ramp", "all_reduce", part)), _plan(x, racks, places)
            right.append(verify(plan).ok and plan.schedule.num_steps == alone.schedule.num_steps)
    return found(all(right), shapes=len(shapes), fit=len(right))


class _Nodes(NamedTuple):
    """All nodes of a RAMP by the coordinates of the tables, or one other node for each of them: int (num_nodes,) each."""

    g: IntArray
    j: IntArray
    device: IntArray


def _members_by_table_6(x: int, racks: int, devices: int) -> dict[str, Iterator[_Nodes]]:
    """By step, the members of every node's subgroup, one after the other; step 4.1 has one successor of each node."""
    number = np.arange(x * racks * devices)
    g, j, device = number // (racks * devices), number // devices % racks, number % devices
    d, most = device // x, devices // x
    turn = (d + 1) // most  # 1 after the last device group
    return {
        "1": (_Nodes((g + y) % x, j, device) for y in range(x)),
        "2": (_Nodes((g + y) % x, j, (device % x + y) % x + x * d) for y in range(x)),
        "3": (_Nodes(((g - j) % x + y) % x, ((j + y) % racks - j) % racks, device) for y in range(racks)),
        "4.1": iter([_Nodes((g + j - turn * (d + 1) * j) % x, j, device % x + x * ((d + 1) % most))]),
        "4.2": (_Nodes(((g - d) % x + y) % x, j, device % x + x * (((y + d) % most - d) % most)) for y in range(most)),
    }


def _subgroups_by_table_5(x: int, devices: int) -> dict[str, Callable[[_Nodes], IntArray]]:
    """Number of the subgroup of nodes, by step; step 3 modulo L x."""
    return {
        "1": lambda n: n.device + devices * n.j,
        "2": lambda n: (n.device - n.g) % x + devices * n.j + n.device // x * x,
        "3": lambda n: (n.device + devices * (n.j - n.g)) % (devices * x),
        "4.1": lambda n: n.device % x + x**2 * n.j + (n.g - n.j * (n.device // x)) % x * x,
        "4.2": lambda n: x**2 * n.j + x * ((n.g - n.device // x) % x) + n.device % x,
    }


@claim("ramp", "RAMP-T6-all")
def members_are_in_the_subgroup() -> list[bool]:
    """By step, with as many racks as groups and with fewer."""
    agree = dict.fromkeys(_subgroups_by_table_5(2, 2), True)
    for x, racks, devices in ((3, 3, 6), (4, 4, 8), (8, 8, 16), (8, 4, 16), (5, 3, 15)):
        number = np.arange(x * racks * devices)
        own = _Nodes(number // (racks * devices), number // devices % racks, number % devices)
        members = _members_by_table_6(x, racks, devices)
        for step, subgroup in _subgroups_by_table_5(x, devices).items():
            agree[step] &= all(np.array_equal(subgroup(own), subgroup(other)) for other in members[step])
    return list(agree.values())


@claim("ramp", "RAMP-T5-s4text")
def dimensions_of_a_subgroup_in_step_4() -> list[int]:
    """Device groups, racks and communication groups that a subgroup extends over, by formulation."""
    x, racks, devices = 8, 8, 16
    extents = []
    for step, subgroup in _subgroups_by_table_5(x, devices).items():
        if step.startswith("4"):
            number = np.arange(x * racks * devices)
            nodes = _Nodes(number // (racks * devices), number // devices % racks, number % devices)
            numbers = subgroup(nodes)
            inside = numbers == numbers[racks * devices - 1]  # a node of the last rack, whose subgroups are the widest
            extents += [len(np.unique(digit[inside])) for digit in (nodes.device // x, nodes.j, nodes.g)]
    return extents


@claim("ramp", "RAMP-T7-rank")
def rank_is_a_rank() -> bool:
    return np.array_equal(np.sort(_published().info()), np.arange(1024))


@claim("ramp", "RAMP-T7-consistent", 3, 3, 6, "published")
@claim("ramp", "RAMP-T7-128", 4, 4, 8, "published")
@claim("ramp", "RAMP-5-allreduce", 8, 8, 16)
def _wrong_nodes(x: int, racks: int, devices: int, variant: str = "auto") -> int:
    notes = [n for n in verify(_plan(x, racks, devices, variant)).notes if n.endswith("nodes end with a wrong sum")]
    return int(notes[0].split()[0]) if notes else 0


@claim("ramp", "RAMP-5-54")
def shares_of_54() -> list[int]:
    schedule = _plan(3, 3, 6).schedule
    return [int(schedule.step(i).chunk_n[0]) for i in range(4)]


@cache
def _sent_by_node_0(plan: CircuitPlan) -> CircuitPlan:
    """What node 0 sends, in every step; a transfer's transceivers do not depend on other transfers."""
    steps = map(plan.schedule.step, range(plan.schedule.num_steps))
    own = StoredSteps(tuple(step.take(np.flatnonzero(step.src == 0)) for step in steps))
    return lower(plan.fabric, replace(plan.schedule, step=own, classes=()))


@claim("ramp", "RAMP-5-trxuse")
def transceivers_used() -> list[int]:
    plan = _sent_by_node_0(_plan(32, 32, 64, collective="reduce_scatter"))
    return [_ports_used(plan, step) for step in range(plan.schedule.num_steps)]


def _ports_used(plan: CircuitPlan, step: int) -> int:
    return len(np.unique(plan.rounds(step)[0].port))


@claim("ramp", "RAMP-5-logx")
def steps_of_reduce_scatter() -> Found:
    plan = _plan(32, 32, 64)
    return found(plan.schedule.num_steps // 2, logarithm=math.log(plan.fabric.num_nodes, 32))


@claim("ramp", "RAMP-5-recdouble")
def halving_and_doubling() -> bool:
    """Whether x = 2 exchanges with one node a step, and half as much in every step of the reduce-scatter, at (2, 2, 4)."""
    plan = _plan(2, 2, 4)
    halved = lower(plan.fabric, generate("halving_doubling", "all_reduce", plan.fabric))
    ours, theirs = (
        [
            (len(step.src), int(step.size_chunks()[0]))
            for step in map(made.schedule.step, range(made.schedule.num_steps))
        ]
        for made in (plan, halved)
    )
    return ours == theirs


@claim("ramp", "RAMP-9-8steps")
def steps_of_all_reduce() -> int:
    return _plan(32, 32, 64).schedule.num_steps


@claim("ramp", "RAMP-E2-s1", (4, 4, 8), 0)
@claim("ramp", "RAMP-E2-s2", (4, 4, 8), 1)
@claim("ramp", "RAMP-E2-s3", (4, 4, 8), 2)
@claim("ramp", "RAMP-E2-s3-8", (8, 8, 16), 2)
@claim("ramp", "RAMP-E2-s3-odd", (5, 5, 10), 2)
@claim("ramp", "RAMP-E2-s4", (4, 4, 8), 3)
def _receivers_used_twice(shape: tuple[int, int, int], step: int) -> int:
    violations = verify(_plan(*shape, "published"), num_chunks=1).violations
    return sum(v.count for v in violations if v.rule == "receiver_shared" and v.step == step)


@claim("ramp", "RAMP-E4-s4.2")
def clashes_of_equation_4() -> int:
    plan = _plan(4, 4, 8, "modular", "reduce_scatter")
    once = plan.rounds(3)[0]
    extra = 2  # equation 3 for d = 2 of x = 4; in steps of d, around the circle of x
    twice = np.repeat(np.arange(len(once)), extra)
    g_src, j_src, g_dst = once.src // 32, once.src // 8 % 4, once.dst // 32
    port = (np.repeat(g_src + g_dst + j_src, extra) + 2 * np.tile(np.arange(extra), len(once))) % 4
    wide = replace(once.take(twice), port=port.astype(np.int32))

    def rounds(step: int) -> tuple[Circuits, ...]:
        return (wide,) if step == 3 else plan.rounds(step)

    violations = verify(replace(plan, rounds=rounds)).violations
    return sum(v.count for v in violations if v.rule == "wavelength_clash")


_PEERS = (
    2,
    3,
    4,
    8,
    16,
)  # d, of equations 3 to 5: with one rack the steps are 1, 2 and 4, and step 4 has d device groups


@claim("ramp", "RAMP-E3")
def transceivers_for_each_peer() -> list[int]:
    plans = [_sent_by_node_0(_plan(32, 1, 32 * d, collective="reduce_scatter")) for d in _PEERS]
    return [len(plan.rounds(2)[0]) // len(plan.schedule.step(2)) for plan in plans]


@claim("ramp", "RAMP-E5")
def transceivers_towards_peers() -> list[int]:
    return [_ports_used(_sent_by_node_0(_plan(32, 1, 32 * d, collective="reduce_scatter")), 2) for d in _PEERS]


@claim("ramp", "RAMP-E1")
def best_number_of_stages() -> Found:
    """Of a broadcast of 1 GB in stages of 1.4 us."""
    like = fabric("ramp", groups=4, racks=4, wavelengths=8, transceivers_per_group=8, slot=0)  # a node's 12.8 Tb/s

    def time_s(stages: int) -> float:
        plan = lower(like, generate(f"ramp:stages={stages}", "broadcast", like))
        return profile(plan, assumptions("published")).timeline(10**9).total_s

    root = math.sqrt(8e9 / like.node_rate_bits_per_s / 1.4e-6)
    return found(
        min(range(round(root) - 5, round(root) + 6), key=time_s), root=root
    )  # the time is convex in the stages


@claim("ramp", "RAMP-6-bcastreach")
def reach_of_a_broadcast() -> list[int]:
    schedule = _plan(32, 32, 64, collective="broadcast").schedule
    first, second = schedule.step(0), schedule.step(1)
    return [len(first) + 1, len(np.unique(second.src)), len(np.unique(second.dst)) + 1]


@claim("ramp", "RAMP-T8-rs", "reduce_scatter")
@claim("ramp", "RAMP-T8-a2a", "all_to_all")
@claim("ramp", "RAMP-T8-scatter", "scatter")
def _parts_to_each_peer(collective: str) -> list[int]:
    """The message over what one peer of node 0 gets, in each step."""
    schedule = _sent_by_node_0(_plan(32, 32, 64, collective=collective)).schedule
    sizes = [schedule.step(i).size_chunks() for i in range(schedule.num_steps)]
    return [schedule.collective.num_chunks // int(size[0]) for size in sizes]


@claim("ramp", "RAMP-T8-ag", "all_gather")
@claim("ramp", "RAMP-T8-gather", "gather")
def _chunks_held(collective: str) -> list[int]:
    """Chunks that node 0, which starts with one, holds after each step."""
    schedule = _plan(32, 32, 64, collective=collective).schedule
    steps = map(schedule.step, range(schedule.num_steps))
    return [1 + int(total) for total in np.cumsum([step.chunk_n[step.dst == 0].sum() for step in steps])]


@claim("ramp", "RAMP-T8-timeslot")
def table_of_the_sizes() -> int:
    """The table, 7 or 8, whose entries for a reduce-scatter are the data of the steps; table 7 has numbers of portions."""
    plan, letters = _plan(8, 8, 16, collective="reduce_scatter"), {"x": 8, "J": 8, "L": 16}
    whole = plan.schedule.collective.num_chunks
    sent = [whole // int(plan.schedule.step(i).size_chunks()[0]) for i in range(plan.schedule.num_steps)]
    maps = _published()
    portions = [
        maps.info()[-1] // left % radix for left, radix in zip(maps.chunks_left().values(), maps.radices, strict=True)
    ]
    tables = {7: portions, 8: [evaluate(parts, letters) for parts in ("x", "x ** 2", "J * x ** 2", "J * L * x")]}
    return next(table for table, values in tables.items() if [*map(int, values)] == sent)


@claim("ramp", "RAMP-T8-barrier")
def bytes_of_a_barrier() -> list[float]:
    plan = _plan(8, 8, 16, collective="barrier")
    return [float(t) for t in profile(plan, assumptions("published")).timeline(0).transfer_s]


@claim("ramp", "RAMP-T8-bcast")
def steps_of_a_broadcast() -> int:
    where = fabric("ramp")
    return generate("ramp:stages=21", "broadcast", where).num_steps


@claim("ramp", "RAMP-F15")
def steps_by_strategy() -> list[int]:
    where = fabric("ramp")
    return [generate(name, "all_reduce", where).num_steps // 2 for name in ("ring", "ramp")]


@claim("ramp", "RAMP-8-2-8x")
def compute_speed_up() -> float:
    plan = _plan(32, 1, 32)
    chain, fused = (
        profile(plan, assumptions("published", compute=way)).timeline(10**9).compute_s[0] for way in ("chain", "fused")
    )
    return float(chain / fused)
