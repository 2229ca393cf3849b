"""Short rings, then trees and rings on rails."""

import pytest
from tests.schedule.oracle import check
from tests.schedule.test_circulant_rings import PLAIN

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.schedule.rails import rails_of
from opticcl.verify import verify

SHAPES = [(27, 3, (3,)), (24, 2, (3,)), (60, 4, (3,)), (110, 2, (3, 3)), (28, 4, (2,))]


def written(radix, groups):
    """The algorithm as a user writes it."""
    return f"rails:radix={radix},groups={'x'.join(map(str, groups))}"


@pytest.mark.parametrize(("count", "radix", "groups"), SHAPES)
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather"])
def test_right_at_every_rank(count, radix, groups, collective):
    """Odd and even radices and rings, groups that divide a rail and that do not."""
    where = fabric("terarack", nodes=count)
    schedule = check(written(radix, groups), collective, where)
    middle = -(-count // radix)
    for m in groups:
        middle = -(-middle // m)
    one_way = radix // 2 + len(groups) + middle // 2
    assert schedule.num_steps == (2 * one_way if collective == "all_reduce" else one_way + len(groups))


@pytest.mark.parametrize(("count", "radix", "groups"), SHAPES[:3])
def test_time(count, radix, groups):
    """One setting, and what the wavelengths of each level carry."""
    where, size = fabric("terarack", nodes=count), 10**6
    made = rails_of(count, where.lasers_per_port, radix, groups)
    carried = (radix - 1) / (radix * made.widths[0]) + (2 * sum(1 / k for k in made.widths[1:-1])) / radix
    top = made.tree.top
    carried += (top - 1) / (top * radix * made.widths[-1])
    steps = 2 * (radix // 2 + len(groups) + top // 2)
    due = 25e-6 + steps * 1e-6 + carried * 8 * size / where.rate_bits_per_s
    plan = compile(where, "all_reduce", size, algorithm=written(radix, groups))
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)
    of_groups = sum(k * (m // 2) for k, m in zip(made.widths[1:-1], groups, strict=True))
    assert made.widths[0] + radix * (made.widths[-1] + of_groups) <= where.lasers_per_port


@pytest.mark.deep
def test_largest_scale():
    """4,096 nodes: every chunk and all light."""
    where = fabric("terarack:nodes=4096")
    verdict = verify(lower(where, generate("rails:radix=16,groups=5", "all_reduce", where)))
    assert verdict.ok
    assert verdict.exhaustive
