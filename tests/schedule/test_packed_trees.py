"""Trees along the links that are left: they span, share links evenly, and alternate on them."""

import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.operations.faults.residual import residual_bound_s
from opticcl.plans.plan import compile

COMB = "sipac:radix=3,levels=2,failed=comb_laser:3"
WSS = "oddl:shape=4x4,failed=switch:3"


@pytest.mark.parametrize(("spec", "algorithm", "most"), [
    (COMB, "packed_trees:pipeline=128", 1.05),
    (WSS, "packed_trees:pipeline=24,stagger=true", 1.25),
])  # fmt: skip
def test_time_over_the_bound(spec, algorithm, most):
    """An all_reduce of 1 GB without the time of sums, verified."""
    assumed = assumptions("common", compute="none")
    plan = compile(spec, "all_reduce", "1 GB", algorithm=algorithm, assumptions=assumed)
    assert plan.verify().ok
    bound_s = residual_bound_s(plan.circuits.fabric, Request("all_reduce"), 10**9, assumed)
    assert plan.simulate(assumptions=assumed).total_s < most * bound_s


def test_trees_with_a_number_are_for_all_reduce_in_turns():
    """Others are declined with the reason."""
    for given, name in (("trees=8", "all_reduce"), ("trees=8,stagger=true", "all_gather")):
        with pytest.raises(UnsupportedError, match="trees=8: 1 to 128 go with all_reduce and stagger=true"):
            compile(WSS, name, "1 MB", algorithm=f"packed_trees:{given}")
