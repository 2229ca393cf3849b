"""RAMP's claims."""

from __future__ import annotations

import numpy as np

from opticcl.circuits import lower
from opticcl.fabric import fabric
from opticcl.ir import CircuitPlan, IntArray
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.schedule.ramp import Geometry, geometry
from opticcl.simulate import assumptions, profile
from opticcl.verify import verify


def _plan(x: int, racks: int, devices: int, variant: str = "auto") -> CircuitPlan:
    where = fabric("ramp", groups=x, racks=racks, wavelengths=devices)
    return lower(where, generate(f"ramp:variant={variant}", "all_reduce", where))


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


@claim("ramp", "RAMP-E5")
def transceivers_towards_peers() -> list[int]:
    plans = [_plan(32, 1, 32 * device_groups) for device_groups in (2, 3, 4, 8, 16)]
    return [_ports_of_node_0(plan, 2) for plan in plans]  # with one rack the steps are 1, 2 and 4


@claim("ramp", "RAMP-T8-rs")
def parts_to_each_peer() -> list[int]:
    schedule = _plan(32, 32, 64).schedule
    return [schedule.collective.num_chunks // int(schedule.step(i).chunk_n[0]) for i in range(4)]


@claim("ramp", "RAMP-8-2-8x")
def compute_speed_up() -> float:
    plan = _plan(32, 1, 32)
    chain, fused = (profile(plan, assumptions(compute=way)).timeline(10**9).compute_s[0] for way in ("chain", "fused"))
    return float(chain / fused)
