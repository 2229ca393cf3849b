"""RAMP's claims."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opticcl.circuits import lower
from opticcl.fabric import fabric
from opticcl.ir import CircuitPlan, Circuits, IntArray
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.schedule._ramp_maps import Geometry, geometry
from opticcl.simulate import assumptions, profile
from opticcl.verify import verify


def _plan(x: int, racks: int, devices: int, variant: str = "auto", collective: str = "all_reduce") -> CircuitPlan:
    where = fabric("ramp", groups=x, racks=racks, wavelengths=devices)
    return lower(where, generate(f"ramp:variant={variant}", collective, where))


def _published(x: int, racks: int, devices: int) -> Geometry:
    return geometry(fabric("ramp", groups=x, racks=racks, wavelengths=devices), "published")


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


@claim("ramp", "RAMP-3-subnets")
def subnets() -> int:
    return next(r.count for r in fabric("ramp").resources if r.kind == "subnet")


@claim("ramp", "RAMP-3-activepaths")
def active_paths() -> int:
    return next(r.count for r in fabric("ramp").resources if r.kind == "tx_port")


@claim("ramp", "RAMP-4-950B")
def slot_payload() -> float:
    return fabric("ramp").slot_payload_bytes


@claim("ramp", "RAMP-T5-s1")
def subgroups_1() -> list[int]:
    return _partition(_published(8, 8, 16).peers(1))


@claim("ramp", "RAMP-T5-s2")
def subgroups_2() -> list[int]:
    return _partition(_published(8, 8, 16).peers(2))


@claim("ramp", "RAMP-T5-s3")
def subgroups_3_as_printed() -> list[int]:
    maps = _published(8, 8, 16)
    node = np.arange(maps.num_nodes)
    g, j, i, d = maps.split(node)
    device, modulus = d * maps.groups + i, maps.devices * j
    number = (device + maps.devices * (j - g)) % np.maximum(modulus, 1)
    sizes = np.unique(number, return_counts=True)[1]
    return [len(sizes), int(sizes[0])] if (modulus > 0).all() and (sizes == maps.racks).all() else []


@claim("ramp", "RAMP-T5-s3x")
def subgroups_3() -> list[int]:
    return _partition(_published(8, 8, 16).peers(3))


@claim("ramp", "RAMP-T5-s4")
def subgroups_4() -> list[int]:
    return _partition(_published(8, 8, 16).peers(4))


@claim("ramp", "RAMP-T7-rank")
def rank_is_a_rank() -> bool:
    return np.array_equal(np.sort(_published(8, 8, 16).info()), np.arange(1024))


def _wrong_nodes(plan: CircuitPlan) -> int:
    notes = [n for n in verify(plan).notes if n.endswith("nodes end with a wrong sum")]
    return int(notes[0].split()[0]) if notes else 0


@claim("ramp", "RAMP-T7-consistent")
def wrong_nodes_of_54() -> int:
    return _wrong_nodes(_plan(3, 3, 6, "published"))


@claim("ramp", "RAMP-T7-128")
def wrong_nodes_of_128() -> int:
    return _wrong_nodes(_plan(4, 4, 8, "published"))


@claim("ramp", "RAMP-5-allreduce")
def wrong_nodes_corrected() -> int:
    return _wrong_nodes(_plan(8, 8, 16))


@claim("ramp", "RAMP-5-54")
def shares_of_54() -> list[int]:
    schedule = _plan(3, 3, 6).schedule
    return [int(schedule.step(i).chunk_n[0]) for i in range(4)]


@claim("ramp", "RAMP-5-trxuse")
def transceivers_used() -> list[int]:
    plan = _plan(32, 32, 64)
    return [_ports_of_node_0(plan, step) for step in range(4)]


def _ports_of_node_0(plan: CircuitPlan, step: int) -> int:
    circuits = plan.rounds(step)[0]
    return len(np.unique(circuits.port[circuits.src == 0]))


@claim("ramp", "RAMP-5-logx")
def steps_of_reduce_scatter() -> int:
    return _plan(32, 32, 64).schedule.num_steps // 2


@claim("ramp", "RAMP-9-8steps")
def steps_of_all_reduce() -> int:
    return _plan(32, 32, 64).schedule.num_steps


def _receivers_used_twice(plan: CircuitPlan, step: int) -> int:
    found = verify(plan, num_chunks=1).violations
    return sum(v.count for v in found if v.rule == "receiver_shared" and v.step == step)


@claim("ramp", "RAMP-E2-s1")
def clashes_in_step_1() -> int:
    return _receivers_used_twice(_plan(4, 4, 8, "published"), 0)


@claim("ramp", "RAMP-E2-s2")
def clashes_in_step_2() -> int:
    return _receivers_used_twice(_plan(4, 4, 8, "published"), 1)


@claim("ramp", "RAMP-E2-s3")
def clashes_in_step_3() -> int:
    return _receivers_used_twice(_plan(4, 4, 8, "published"), 2)


@claim("ramp", "RAMP-E2-s3-8")
def clashes_in_step_3_of_1024() -> int:
    return _receivers_used_twice(_plan(8, 8, 16, "published"), 2)


@claim("ramp", "RAMP-E2-s3-odd")
def clashes_in_step_3_odd() -> int:
    return _receivers_used_twice(_plan(5, 5, 10, "published"), 2)


@claim("ramp", "RAMP-E2-s4")
def clashes_in_step_4() -> int:
    return _receivers_used_twice(_plan(4, 4, 8, "published"), 3)


@claim("ramp", "RAMP-E4-s4.2")
def clashes_of_equation_4() -> int:
    plan = _plan(4, 4, 8, "modular", "reduce_scatter")
    lit = plan.rounds(3)[0]
    extra = 2  # equation 3 for d = 2 of x = 4; in steps of d, around the circle of x
    twice = np.repeat(np.arange(len(lit)), extra)
    g_src, j_src, g_dst = lit.src // 32, lit.src // 8 % 4, lit.dst // 32
    port = (np.repeat(g_src + g_dst + j_src, extra) + 2 * np.tile(np.arange(extra), len(lit))) % 4
    wide = replace(lit.take(twice), port=port.astype(np.int32))

    def rounds(step: int) -> tuple[Circuits, ...]:
        return (wide,) if step == 3 else plan.rounds(step)

    found = verify(replace(plan, rounds=rounds)).violations
    return sum(v.count for v in found if v.rule == "wavelength_clash")


_PEERS = (
    2,
    3,
    4,
    8,
    16,
)  # d, of equations 3 to 5: with one rack the steps are 1, 2 and 4, and step 4 has d device groups


@claim("ramp", "RAMP-E3")
def transceivers_for_each_peer() -> list[int]:
    plans = [_plan(32, 1, 32 * d) for d in _PEERS]
    return [len(plan.rounds(2)[0]) // len(plan.schedule.step(2)) for plan in plans]


@claim("ramp", "RAMP-E5")
def transceivers_towards_peers() -> list[int]:
    return [_ports_of_node_0(_plan(32, 1, 32 * d), 2) for d in _PEERS]


@claim("ramp", "RAMP-E1")
def best_number_of_stages() -> int:
    like = fabric("ramp", groups=4, racks=4, wavelengths=8, transceivers_per_group=8, slot=0)  # a node's 12.8 Tb/s

    def time_s(stages: int) -> float:
        plan = lower(like, generate(f"ramp:stages={stages}", "broadcast", like))
        return profile(plan, assumptions()).timeline(10**9).total_s

    return min(range(1, 65), key=time_s)


@claim("ramp", "RAMP-6-bcastreach")
def reach_of_a_broadcast() -> list[int]:
    schedule = _plan(32, 32, 64, collective="broadcast").schedule
    first, second = schedule.step(0), schedule.step(1)
    return [len(first) + 1, len(np.unique(second.src)), len(np.unique(second.dst)) + 1]


@claim("ramp", "RAMP-T8-rs")
def parts_of_reduce_scatter() -> list[int]:
    return _parts_to_each_peer(_plan(32, 32, 64, collective="reduce_scatter"))


@claim("ramp", "RAMP-T8-ag")
def buffer_of_all_gather() -> list[int]:
    return _chunks_held(_plan(32, 32, 64, collective="all_gather"), 0)


@claim("ramp", "RAMP-T8-gather")
def buffer_of_gather() -> list[int]:
    return _chunks_held(_plan(32, 32, 64, collective="gather"), 0)


def _chunks_held(plan: CircuitPlan, node: int) -> list[int]:
    """Chunks that a node that starts with one holds after each step."""
    steps = [plan.schedule.step(i) for i in range(plan.schedule.num_steps)]
    return [1 + int(total) for total in np.cumsum([step.chunk_n[step.dst == node].sum() for step in steps])]


@claim("ramp", "RAMP-T8-a2a")
def parts_of_all_to_all() -> list[int]:
    return _parts_to_each_peer(_plan(32, 32, 64, collective="all_to_all"))


@claim("ramp", "RAMP-T8-scatter")
def parts_of_scatter() -> list[int]:
    return _parts_to_each_peer(_plan(32, 32, 64, collective="scatter"))


def _parts_to_each_peer(plan: CircuitPlan) -> list[int]:
    """The message over what one peer gets, in each step."""
    schedule = plan.schedule
    sizes = [schedule.step(i).size_chunks() for i in range(schedule.num_steps)]
    return [schedule.collective.num_chunks // int(size[0]) for size in sizes]


@claim("ramp", "RAMP-T8-barrier")
def bytes_of_a_barrier() -> list[float]:
    plan = _plan(8, 8, 16, collective="barrier")
    return [float(t) for t in profile(plan, assumptions()).timeline(0).transfer_s]


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
    chain, fused = (profile(plan, assumptions(compute=way)).timeline(10**9).compute_s[0] for way in ("chain", "fused"))
    return float(chain / fused)
