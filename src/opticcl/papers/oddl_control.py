"""ODDL's control plane: its protocol, simulated and searched exhaustively, and its arbiter."""

from __future__ import annotations

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Fabric
from opticcl.operations import scripts
from opticcl.operations.arbiter import Arbiter
from opticcl.operations.oddl_control.simulation import simulate
from opticcl.operations.oddl_control.state_space import explore
from opticcl.papers import Found, claim, found
from opticcl.papers.oddl import order_of_magnitude
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together

MB = 10**6


def _plan(where: Fabric) -> CircuitPlan:
    return lower(where, generate("halving_doubling", "all_reduce", where))


@claim("oddl", "O18.safe")
def thirteen_bits_are_safe() -> bool:
    """All states of four nodes on a lossless network that keeps the order."""
    return explore(scripts(_plan(fabric("oddl:shape=4")), numbering="none"), "perfect").ok


@claim("oddl", "O18.exchanges")
def exchanges_of_a_step() -> float:
    """Messages per node and step."""
    plan = _plan(fabric("oddl:shape=8"))
    return simulate(plan, MB).messages / (8 * plan.schedule.num_steps)


@claim("oddl", "O19.played")
def simulated_control_delay() -> Found:
    """Mean over the steps of 256 nodes, with every unit simulated."""
    mean_s = float(simulate(_plan(fabric("oddl:shape=16x16")), MB).mean_control_s.mean())
    return found(order_of_magnitude(mean_s), mean_us=mean_s * 1e6)


@claim("oddl", "O39.jobs")
def a_new_job_disturbs_no_other() -> bool:
    """A second job is placed beside one of 16 nodes; both verify, alone and together, and the first keeps its circuits."""
    arbiter = Arbiter("oddl:shape=8x8")
    first = arbiter.place(16)
    before = _plan(arbiter.fabric_of(first.name))
    standing = [circuits.dst.tolist() for i in range(before.schedule.num_steps) for circuits in before.rounds(i)]
    second = arbiter.place(8)
    plans = [_plan(arbiter.fabric_of(job.name)) for job in (first, second)]
    after = [circuits.dst.tolist() for i in range(plans[0].schedule.num_steps) for circuits in plans[0].rounds(i)]
    return standing == after and all(verify(plan).ok for plan in plans) and verify_together(plans).ok
