"""ODDL's control plane: its protocol played and explored, its arbiter asked."""

from __future__ import annotations

from opticcl.circuits import lower
from opticcl.control import scripts
from opticcl.control.arbiter import Arbiter
from opticcl.control.explore import explore
from opticcl.control.player import simulate
from opticcl.fabric import fabric
from opticcl.ir import CircuitPlan, Fabric
from opticcl.papers import claim
from opticcl.papers.oddl import _order
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.isolation import verify_together

MB = 10**6


def _plan(where: Fabric) -> CircuitPlan:
    return lower(where, generate("halving_doubling", "all_reduce", where))


@claim("oddl", "O18.safe")
def thirteen_bits_are_safe() -> bool:
    """All states of four nodes on a network that loses nothing and keeps the order."""
    return explore(scripts(_plan(fabric("oddl:shape=4")), numbering="none"), "perfect").ok


@claim("oddl", "O18.exchanges")
def exchanges_of_a_step() -> float:
    """Messages of a node and step."""
    plan = _plan(fabric("oddl:shape=8"))
    return simulate(plan, MB).messages / (8 * plan.schedule.num_steps)


@claim("oddl", "O19.played")
def control_delay_played() -> str:
    """Mean over the steps of 256 nodes, each unit on its own: 22.5 us."""
    played = simulate(_plan(fabric("oddl:shape=16x16")), MB)
    return _order(float(played.mean_control_s.mean()))


@claim("oddl", "O39.jobs")
def a_new_job_disturbs_nobody() -> bool:
    """A job of 16 nodes runs; another comes; both verify, alone and together, and the first one's light is as before."""
    arbiter = Arbiter("oddl:shape=8x8")
    first = arbiter.place(16)
    before = _plan(arbiter.fabric_of(first.name))
    lit = [circuits.dst.tolist() for i in range(before.schedule.num_steps) for circuits in before.rounds(i)]
    second = arbiter.place(8)
    plans = [_plan(arbiter.fabric_of(job.name)) for job in (first, second)]
    after = [circuits.dst.tolist() for i in range(plans[0].schedule.num_steps) for circuits in plans[0].rounds(i)]
    return lit == after and all(verify(plan).ok for plan in plans) and verify_together(plans).ok
