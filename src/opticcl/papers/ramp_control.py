"""RAMP: several jobs on one machine, failed parts, traffic that no plan knows."""

from __future__ import annotations

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Condition
from opticcl.operations.arbiter import Arbiter
from opticcl.operations.dynamic_traffic.flows import flow_mix
from opticcl.operations.dynamic_traffic.simulation import TrafficResult, TrafficSetup, simulate_traffic
from opticcl.papers import Found, claim, found
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together


@claim("ramp", "RAMP-6-jobs")
def jobs_on_other_devices() -> bool:
    """Four jobs in the same groups, each on device numbers of its own."""
    arbiter = Arbiter("ramp:groups=4,racks=4,wavelengths=8,subnet=route_broadcast")
    plans = []
    for _ in range(4):
        where = arbiter.fabric_of(arbiter.place(32).name)
        plans.append(lower(where, generate("halving_doubling", "all_reduce", where)))
    groups = [set((plan.fabric.node_of_rank // 32).tolist()) for plan in plans if plan.fabric.node_of_rank is not None]
    shared = any(a & b for i, a in enumerate(groups) for b in groups[:i])
    return shared and all(verify(plan).ok for plan in plans) and verify_together(plans).ok


@claim("ramp", "RAMP-3-reliability")
def all_to_all_around_any_part() -> Found:
    """One part of each kind and each position on a path, on a machine with star couplers and on one with crossbars."""
    slow = []
    for spec in (
        "ramp:groups=3,racks=2,wavelengths=3",
        "ramp:groups=3,racks=2,wavelengths=3,subnet=route_switch",
    ):
        whole = fabric(spec)
        healthy_s = compile(whole, "all_to_all", "1 MB").simulate().total_s
        for kind in whole.inventory():
            if kind.kind == "node":
                continue
            plan = compile(whole.without([Condition(kind.kind, 0)]), "all_to_all", "1 MB")
            plan.verify().raise_if_bad()
            slow.append(plan.simulate().total_s / healthy_s)
    return found(True, kinds=len(slow), slowest=max(slow))


MACHINE = Ramp(groups=4, racks=4, wavelengths=16)


def _traffic(load: float, skew: float, scheduler: str) -> TrafficResult:
    """Single cells on 256 nodes for 6,000 slots, after which a backlog at load 0.9 no longer fills."""
    mix = flow_mix("cell", skew=skew)
    return simulate_traffic(TrafficSetup(MACHINE, mix, load, scheduler=scheduler, slots=6000))


def _tail_us(run: TrafficResult) -> float:
    """Delay that 99 % of the cells do not exceed [us]."""
    return float(run.counts.delay(0.99).value * MACHINE.slot * 1e6)


@claim("ramp", "RAMP-3-throughput")
def most_load_of_a_rack_scheduler() -> Found:
    """Whether the backlog stays at load 0.9 if each transceiver is kept for one rack, and if none is."""
    kept, free = _traffic(0.9, 1.0, "rack"), _traffic(0.9, 6.0, "native")
    return found(kept.stable, kept_us=_tail_us(kept), free=free.stability, free_us=_tail_us(free))


@claim("ramp", "RAMP-3-tail")
def tail_is_in_milliseconds() -> Found:
    """Whether 1 % of the cells wait a millisecond or longer where the scheduler of PULSE carries the load."""
    run = _traffic(0.6, 1.0, "rack")
    return found(_tail_us(run) >= 1e3, tail_us=_tail_us(run))
