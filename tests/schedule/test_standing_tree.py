"""WRHT's tree on circuits that stand."""

from math import prod

import pytest
from tests.schedule.oracle import check
from tests.schedule.test_circulant_rings import PLAIN

from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule.standing_tree import shared_among, tree_of

TREES = [(12, (3,)), (15, (5,)), (27, (3, 3)), (100, (9, 3)), (13, ())]


@pytest.mark.parametrize(("count", "groups"), TREES)
@pytest.mark.parametrize("cut", [False, True])
def test_all_reduce(count, groups, cut):
    """Data, light, and the closed form: one reconfiguration, 2 L + 1 steps, the wavelengths of each level."""
    where, size = fabric("terarack", nodes=count), 1_000_000
    name = f"standing_tree:cut={cut}" + (f",groups={'x'.join(map(str, groups))}" if groups else "")
    check(name, "all_reduce", where)
    plan = compile(where, "all_reduce", size, algorithm=name)
    if not groups:
        return
    tree = tree_of(count, groups)
    widths = shared_among(tree, where.lasers_per_port, cut)
    carried = 2 * sum(1 / k for k in widths[:-1]) + (2 / tree.top if cut else 1) / widths[-1]
    due = 25e-6 + (2 * len(groups) + 1 + cut) * 1e-6 + carried * 8 * size / where.rate_bits_per_s
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(("count", "wavelengths", "groups"), [(25, 4, (5, 5)), (21, 4, (5, 5)), (45, 6, (9, 5))])
def test_one_node_left_needs_no_exchange(count, wavelengths, groups):
    """All wavelengths are in use, and there are 2 L steps: so 1 KB on 4,096 nodes takes 29.8 us, in four steps."""
    where, size = fabric("terarack", nodes=count, wavelengths=wavelengths), 1_000
    tree = tree_of(count, groups)
    assert (tree.top, tree.fewest_wavelengths) == (1, wavelengths)
    name = f"standing_tree:groups={'x'.join(map(str, groups))}"
    check(name, "all_reduce", where)
    plan = compile(where, "all_reduce", size, algorithm=name)
    due = 25e-6 + 4 * (1e-6 + 8 * size / where.rate_bits_per_s)
    assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(("count", "groups"), [(16, (3,)), (27, (3, 5)), (25, (25,)), (7, ())])
@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather"])
def test_blocks(count, groups, collective):
    """Whole messages on one way of a level, on the other what is for the nodes below; one step for the exchange."""
    where, size = fabric("terarack", nodes=count), 10**6
    name = "standing_tree" + (f":groups={'x'.join(map(str, groups))}" if groups else "")
    schedule = check(name, collective, where)
    tree = tree_of(count, groups)
    assert schedule.num_steps == 2 * tree.levels + (tree.top > 1)
    widths = shared_among(tree, where.lasers_per_port, True)
    below = [prod(groups[:level]) / count for level in range(tree.levels + 1)]
    carried = sum((1 + part) / k for part, k in zip(below[:-1], widths[:-1], strict=True))
    carried += below[-1] / widths[-1] if tree.top > 1 else 0
    due = 25e-6 + schedule.num_steps * 1e-6 + carried * 8 * size / where.rate_bits_per_s
    timeline = compile(where, collective, size, algorithm=name).simulate(**PLAIN)
    assert timeline.total_s == pytest.approx(due, rel=1e-3 if count % prod(groups) else 1e-9)


@pytest.mark.parametrize("count", [12, 15, 27, 100])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_rooted(count, collective):
    """Turned so that any root is at the top."""
    for root in (0, 5, count - 1):
        check("standing_tree", Request(collective, root), fabric("terarack", nodes=count))


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_pieces(collective):
    """L + S - 1 steps, each as long as the level with the fewest wavelengths takes for a piece."""
    where = fabric("terarack:nodes=105")
    for pieces in (2, 5):
        name = f"standing_tree:groups=3x5x7,pipeline={pieces}"
        schedule = check(name, Request(collective, 17), where)
        assert schedule.num_steps == 3 + pieces - 1
    slowest = 1 / min(shared_among(tree_of(105, (3, 5, 7)), where.lasers_per_port, False)[:-1])
    timeline = compile(where, collective, 10**6, algorithm=name).simulate(**PLAIN)
    most = timeline.step_s[2] / 3 - 1e-6  # of three steps in which all levels are busy
    assert most == pytest.approx(8e6 / 5 * slowest / where.rate_bits_per_s, rel=1e-9)
