"""All-to-all with relays over links that are set once: every block, ways of fewest hops, time by hand."""

from itertools import product

import pytest
from tests.schedule.oracle import check

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify

CASES = [
    ("oddl:shape=3,wavelengths=2", ""),
    ("oddl:shape=7,wavelengths=2", ""),
    ("oddl:shape=16", ""),
    ("oddl:shape=10,wavelengths=3", ":strides=1x3x4"),
    ("oddl:shape=2x2", ""),
    ("oddl:shape=2x4", ""),
    ("oddl:shape=8x4", ""),
    ("oddl:shape=8x8", ""),
    ("oddl:shape=16x16", ""),
    ("oddl:shape=4x4", ":multiplier=3"),
    ("oddl:shape=4x6", ""),
    ("oddl:shape=8x4", ":multiplier=3"),
    ("oddl:shape=4x4x4", ""),
    ("oddl:shape=16x16", ":multiplier=3"),
]


@pytest.mark.parametrize(("name", "given"), CASES)
def test_right_at_every_rank(name, given):
    """In line and on grids of equal and unequal sides, periods of 2 and 4."""
    check(f"relayed_exchange{given}", "all_to_all", fabric(name))


def hops_on_a_grid(sides, multiplier):
    """Hops from each node to all, the sum over all pairs; each node of a line leads to m^c further, node by node."""
    ahead = {}
    for place in product(*map(range, sides)):
        for d, side in enumerate(sides):
            to = list(place)
            to[d] = (place[d] + pow(multiplier, sum(place) - place[d], side)) % side
            ahead.setdefault(place, []).append(tuple(to))
    total = 0
    for start in ahead:
        far, reached = 0, {start}
        front = {start}
        while front:
            total += far * len(front)
            front = {to for place in front for to in ahead[place]} - reached
            reached |= front
            far += 1
    return total


@pytest.mark.parametrize(
    ("sides", "multiplier"), [((4, 4), 3), ((8, 8), 3), ((16, 16), 7), ((16, 16), 3), ((4, 4, 4), 3)]
)
def test_ways_have_the_fewest_hops(sides, multiplier):
    """The bytes on the wire are those of shortest ways."""
    where = fabric("oddl:shape=" + "x".join(map(str, sides)))
    schedule = generate(f"relayed_exchange:multiplier={multiplier}", "all_to_all", where)
    sent = sum(int(schedule.step(i).size_chunks().sum()) for i in range(schedule.num_steps))
    assert sent == len(sides) * hops_on_a_grid(sides, multiplier)


def sent_by(schedule):
    """Blocks on the wire, and the links of each node as (src, dst)."""
    steps = [schedule.step(i) for i in range(schedule.num_steps)]
    links = {pair for step in steps for pair in zip(step.src.tolist(), step.dst.tolist(), strict=True)}
    return sum(int(step.size_chunks().sum()) for step in steps), links


@pytest.mark.parametrize("shape", ["2x2", "2x4", "4x8", "8x8", "16x8", "16x16"])
def test_a_butterfly_has_two_links_a_node_and_the_fewest_hops(shape):
    """Breadth first over the links that the schedule uses."""
    where = fabric(f"oddl:shape={shape}")
    sent, links = sent_by(generate("relayed_exchange", "all_to_all", where))
    ahead = {node: {dst for src, dst in links if src == node} for node in range(where.num_nodes)}
    assert {len(to) for to in ahead.values()} == {2}
    hops = 0
    for start in ahead:
        front, reached, far = {start}, {start}, 0
        while front:
            hops += far * len(front)
            front = set().union(*(ahead[node] for node in front)) - reached
            reached |= front
            far += 1
        assert len(reached) == where.num_nodes
    assert sent == hops


@pytest.mark.parametrize(
    ("shape", "loss", "rounds"), [("4x8", 0.04, 12), ("8x8", 0.2, 18), ("16x8", 0.02, 32), ("16x16", 0.005, 40)]
)
def test_time_of_a_butterfly(shape, loss, rounds):
    """Set once, few rounds, and both NICs busy nearly all the time where there are more levels than coefficients."""
    where = fabric(f"oddl:shape={shape}")
    plan = compile(where, "all_to_all", 10**8, algorithm="relayed_exchange")
    timeline = plan.simulate(assumptions="common")
    assert (timeline.reconfiguration_s > 0).sum() == 1
    n, rate = where.num_nodes, where.lasers_per_port * where.rate_bits_per_s
    least = sent_by(plan.schedule)[0] / n / 2 * 8e8 / n / rate
    assert least * (1 - 1e-9) < timeline.transfer_s.sum() < (1 + loss) * least
    assert timeline.num_rounds == rounds


def fewest_hops_in_line(num_nodes):
    """Hops to all nodes by 1 and the best second stride, each node by all numbers of hops of either."""
    return min(
        sum(
            min(i + j for i in range(num_nodes) for j in range(num_nodes) if (i + j * stride - node) % num_nodes == 0)
            for node in range(num_nodes)
        )
        for stride in range(2, num_nodes)
    )


@pytest.mark.parametrize("num_nodes", [5, 8, 16])
def test_time_in_line(num_nodes):
    """Each of two strides is set once, and a hop of a block takes as long as on half of the wavelengths."""
    where = fabric(f"oddl:shape={num_nodes},wavelengths=4")
    timeline = compile(where, "all_to_all", 10**7, algorithm="relayed_exchange").simulate(assumptions="common")
    assert (timeline.reconfiguration_s > 0).sum() == 2
    due = fewest_hops_in_line(num_nodes) * 8e7 / num_nodes / (2 * where.rate_bits_per_s)
    assert timeline.transfer_s.sum() == pytest.approx(due, rel=1e-9)


def test_sixteen_nodes_in_line():
    """46 hops of 6.25 MB over two wavelengths take 11.5 ms, where four levels of 4 take 12."""
    plan = compile(fabric("oddl:shape=16"), "all_to_all", 10**8, algorithm="auto")
    assert plan.schedule.name == "relayed_exchange"
    assert 11.5e-3 < plan.simulate(assumptions="common").total_s < 11.8e-3


@pytest.mark.parametrize(("shape", "multiplier"), [("8x8", 3), ("16x16", 7)])
def test_time_on_a_grid(shape, multiplier):
    """All lines are set once, and NICs of both dimensions are busy most of the time, on all wavelengths."""
    where = fabric(f"oddl:shape={shape}")
    plan = compile(where, "all_to_all", 10**8, algorithm=f"relayed_exchange:multiplier={multiplier}")
    timeline = plan.simulate(assumptions=assumptions("common"))
    assert (timeline.reconfiguration_s > 0).sum() == 1
    sides, n = tuple(map(int, shape.split("x"))), where.num_nodes
    rate = where.lasers_per_port * where.rate_bits_per_s
    least = hops_on_a_grid(sides, multiplier) / n / 2 * 8e8 / n / rate
    assert least * (1 - 1e-9) < timeline.transfer_s.sum() < 1.15 * least


@pytest.mark.deep
def test_largest_scale():
    """1,024 nodes: every chunk and all light."""
    where = fabric("oddl:shape=32x32")
    verdict = verify(lower(where, generate("relayed_exchange", "all_to_all", where)))
    assert verdict.ok
    assert verdict.exhaustive
