"""RAMP: several jobs on one machine."""

from __future__ import annotations

from opticcl.circuits import lower
from opticcl.operations.arbiter import Arbiter
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.isolation import verify_together


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
