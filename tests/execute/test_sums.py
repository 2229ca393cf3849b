"""Order of additions: fingerprints against sums of floats, and plans for processes, which add in one order on all ranks."""

import numpy as np
import pytest

import opticcl
from opticcl.collective import Request
from opticcl.execute.lockstep import execute_by_ranks
from opticcl.execute.ranks import rank_schedules
from opticcl.execute.sums import adds_in_one_order
from opticcl.plans.rank_plans import RankPlanner

CASES = [
    ("ideal:nodes=2", "dissemination", True),
    ("ideal:nodes=3", "divide_and_conquer", False),
    ("ideal:nodes=4", "dissemination", False),
    ("ideal:nodes=4", "recursive_doubling", True),
    ("ideal:nodes=5", "ring", True),
    ("ideal:nodes=7", "divide_and_conquer", False),
    ("lightpath:shape=2x4", "all_dimensions:shape=4x2,k=0", False),
    ("oddl:shape=4", "auto", True),
]


@pytest.mark.parametrize(("fabric", "algorithm", "same"), CASES)
def test_fingerprints_tell_whether_floats_are_equal(fabric, algorithm, same):
    """Floats of very different size, whose sums show the order."""
    plan = opticcl.compile(fabric, "all_reduce", "16 B", algorithm=algorithm)
    random = np.random.default_rng(0)
    scale = 10.0 ** random.uniform(-3, 3, (plan.schedule.collective.num_ranks, 1))
    given = (random.standard_normal((len(scale), 840)) * scale).astype(np.float32)
    sums = execute_by_ranks(plan.schedule, list(given))
    assert all(np.array_equal(each, sums[0]) for each in sums) == same
    assert adds_in_one_order(rank_schedules(plan.schedule)) == same


@pytest.mark.parametrize("fabric", sorted({fabric for fabric, _, _ in CASES}))
@pytest.mark.parametrize("size_bytes", [1, 1000, 1 << 20])
def test_all_ranks_of_processes_get_equal_bits(fabric, size_bytes):
    """The fastest plan that adds in one order on all ranks; a named algorithm is taken as it is."""
    ranks = opticcl.fabric(fabric).num_nodes
    assert adds_in_one_order(RankPlanner(ranks, fabric)(Request("all_reduce"), size_bytes))
    named = RankPlanner(4, algorithm="dissemination")(Request("all_reduce"), size_bytes)
    assert not adds_in_one_order(named)
