"""Routes of steps that are too large to list: cost, verdict and loads are those of all routes, whatever moves there are."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.collectives import nothing_required
from tests.images import Made

from opticcl.assumptions import assumptions
from opticcl.circuits import _routes, lower
from opticcl.collective import as_request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.fabrics.job import job
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers, no_progress
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import all_variants, generate
from opticcl.simulate import profile
from opticcl.simulate.bottleneck import loads
from opticcl.simulate.closed_form import routes as routes_module
from opticcl.verify.light import images as images_module
from opticcl.verify.light.circuits import check_light

MACHINES = (
    "ideal:nodes=6",
    "torus:shape=4x4",
    "torus:shape=3x5",
    "torus:shape=8",
    "bcube:radix=4,levels=2",
    "bcube:radix=2,levels=3",
    "fat_tree:nodes=16,radix=4",
    "fat_tree:nodes=10,radix=4",
    "leaf_spine:nodes=20,nodes_per_leaf=4",
    "superpod:nodes=24,nodes_per_server=2,radix=4",
    "dragonfly:nodes=24,nodes_per_router=2,routers_per_group=4,global_links=1",
    "topoopt:nodes=9,degree=2",
)
COMMON = assumptions("common")
NEAR = replace(COMMON, floor=replace(COMMON.floor, nodes_per_rack=2))
LAWS = (NEAR, COMMON, assumptions("published"))


@pytest.fixture
def few(monkeypatch):
    """No step is small enough to be listed; seven routes are evaluated at a time."""
    monkeypatch.setattr(_routes, "ROUTES_LISTED", 0)
    for module in (routes_module, images_module):
        monkeypatch.setattr(module, "ROUTES_AT_ONCE", 7)


def plans(where, collective):
    """Of every algorithm that a machine runs, on the routes of the machine."""
    for algorithm in all_variants(as_request(collective), where):
        with suppress(UnsupportedError):
            plan = lower(where, generate(algorithm, as_request(collective), where))
            if not plan.schedule.steps.states_paths(0):
                yield plan


def listed(plan):
    """The same circuits, all of them listed."""
    return CircuitPlan(plan.fabric, plan.schedule, lambda i: plan.rounds(i))


def check(plan):
    """Compare with the listed plan."""
    every = listed(plan)
    assert plan.routed(0) is not None
    assert every.routed(0) is None
    routes_module._of_exchange.cache_clear()
    for assumed in LAWS:
        assert profile(plan, assumed).costs == profile(every, assumed).costs
    for one, other in zip(loads(plan, 10**6), loads(every, 10**6), strict=True):
        assert (one.resource, one.index.tolist()) == (other.resource, other.index.tolist())
        assert one.carried_bytes.tolist() == other.carried_bytes.tolist()
    assert check_light(plan, progress=no_progress) == check_light(every, progress=no_progress)


@pytest.mark.parametrize("text", MACHINES)
def test_nothing_differs(text, few):
    """Every algorithm, latencies by floor plans too."""
    for plan in plans(fabric(text), "all_to_all"):
        check(plan)


@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "tree", "mesh", "double_tree:pipeline=8"])
def test_nothing_differs_on_part_of_a_machine(algorithm, few):
    """Ranks that are no nodes in order; steps that a function lists."""
    for machine in (job(fabric("torus:shape=4x5"), [3, 17, 4, 11, 8, 0, 9, 14]), fabric("torus:shape=2x4")):
        check(lower(machine, generate(algorithm, "all_reduce", machine)))


@pytest.mark.parametrize("text", MACHINES)
def test_steps_of_any_sizes(text, few):
    """Of a function, with several transfers of a pair: no moves."""
    where, random = fabric(text), np.random.default_rng(5)
    n = where.num_nodes
    src, ahead = random.integers(0, n, 40), random.integers(1, n, 40)
    steps = [
        Transfers.of(src, (src + ahead) % n, 0, random.integers(1, 9, 40), random.choice([Op.COPY, Op.REDUCE], 40))
        for _ in range(2)
    ]
    check(lower(where, Schedule("by hand", nothing_required(n, 8), 2, lambda i: steps[i])))


@pytest.mark.parametrize(
    ("name", "collective"),
    [("mesh", "all_to_all"), ("mesh", "barrier"), ("by_dimension", "all_to_all"), ("bruck:radix=3", "all_to_all"),
     ("halving_doubling", "all_reduce"), ("torus2d", "all_reduce"), ("tree", "all_reduce"), ("mesh", "gather")],
)  # fmt: skip
def test_ends_of_transfers(name, collective):
    """Those of a list of the step, of all senders and of some, however many are given at a time."""
    steps = generate(name, collective, fabric("torus:shape=4x4")).steps
    for i, ranks, most in product(range(min(3, steps.num_steps)), (np.arange(16), np.array([9, 2, 3])), (1, 7, 10**6)):
        t = steps(i)
        due = Counter(zip(t.src.tolist(), t.dst.tolist(), t.size_chunks().tolist(), strict=True))
        found = Counter()
        for some in steps.ends(i, most, ranks):
            assert len(some) <= max(most, len(ranks))
            found.update(zip(some.src.tolist(), some.dst.tolist(), some.chunks.tolist(), strict=True))
        assert found == Counter({row: n for row, n in due.items() if row[0] in ranks})
        joined = {row[:2] for row in due} == {(a, b) for a in range(16) for b in range(16) if a != b}
        assert steps.joins_all(i) == (joined and len(t) == 240 and len({row[2] for row in due}) == 1)


class Law(SimpleNamespace):
    """A law of latency."""

    __hash__ = object.__hash__


def test_the_longest_of_all_images(few):
    """Not that of the routes that are listed: with an aisle as the only long way, by a listing of every route."""
    where = fabric("torus:shape=8x4")
    plan = lower(where, generate("mesh", "all_to_all", where))
    routed = plan.routed(0)
    assert len(routed.moves) == 2
    assert len(routed.senders) == 4
    src, dst = (column.ravel() for column in np.indices((32, 32)))
    hops, offsets = where.route(src[src != dst], dst[src != dst])
    few_listed = routed.circuits(next(plan.schedule.steps.ends(0, 10**6, routed.senders)))
    random = np.random.default_rng(2)
    for _ in range(20):
        seconds = random.choice([1.0, 1.5, 7.0], where.network.num_links, p=[0.7, 0.28, 0.02])
        law = Law(constant=False, base_s=0.25, num_hops=len(seconds), of_hops=lambda h, of=seconds: of[h])
        due = 0.25 + max(seconds[hops[a:b]].sum() for a, b in pairwise(offsets.tolist()))
        assert routes_module.longest_of_images_s(law, few_listed, routed.moves) == due
        assert routes_module.longest_of_images_s(law, few_listed, routed.moves, due + 1) == due + 1


class Changed:
    """The rule of a plan, whose routed steps are changed.

    plan: with the rule.
    change: of a routed step.
    """

    def __init__(self, plan, change):
        self.rule, self.change = plan.rounds.lowered_by.rule, change

    def represents(self, step):
        """None is."""
        return False

    def routed(self, step):
        """Changed."""
        return self.change(self.rule.routed(step))


def judged(text, change):
    """Report on a changed direct exchange."""
    where = fabric(text)
    plan = lower(where, generate("mesh", "all_to_all", where))
    return check_light(replace(plan, rounds=Made(plan, Changed(plan, change))), progress=no_progress)


def refused(text, change):
    """Rules that a changed direct exchange breaks, with the number of each."""
    report = judged(text, change)
    for violation in report.violations:
        of_step = violation.rule in ("moves_wrong", "transfer_not_carried")
        assert (violation.step, violation.round) == (0, -1 if of_step else 0)
    return {violation.rule: violation.count for violation in report.violations}


def each(edit):
    """A change of all routes."""
    return lambda routed: replace(routed, circuits=lambda transfers: edit(routed.circuits(transfers)))


@pytest.mark.parametrize("text", ["torus:shape=4x4", "leaf_spine:nodes=16,nodes_per_leaf=4"])
@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda c: replace(c, src=np.roll(c.src, 1), dst=np.roll(c.dst, 1)), "circuit_astray"),
        (lambda c: replace(c, hops=c.hops[::-1].copy()), "path_broken"),
        (lambda c: replace(c, hops=c.hops + 10**6), "path_broken"),
        (lambda c: replace(c, transfer=c.transfer + 10**6), "transfer_unknown"),
        (lambda c: c.take(np.arange(1, len(c))), "transfer_not_carried"),
        (lambda c: replace(c, port=c.port + 99), "port_unknown"),
    ],
)
def test_wrong_routes_are_refused(text, edit, rule, few):
    """The columns name the rule; all blocks count."""
    assert rule in refused(text, each(edit))


def test_violations_of_all_routes_are_added(few):
    """One violation a rule, with the number of all listed routes that break it."""
    assert refused("leaf_spine:nodes=16,nodes_per_leaf=4", lambda routed: routed) == {}
    wrong = each(lambda c: replace(c, dst=(c.dst + 1) % 16))
    assert refused("leaf_spine:nodes=16,nodes_per_leaf=4", wrong)["circuit_astray"] == 16 * 15
    first = judged("leaf_spine:nodes=16,nodes_per_leaf=4", wrong).violations[0]
    assert (first.where, first.expected, first.found) == ("circuit 0", "0 -> 1", "0 -> 2")


def first_move(**columns):
    """A change of the first move."""

    def changed(routed):
        first = replace(routed.moves[0], **{name: new(routed.moves[0]) for name, new in columns.items()})
        return replace(routed, moves=(first, *routed.moves[1:]))

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda routed: replace(routed, moves=routed.moves[1:]),
        lambda routed: replace(routed, senders=routed.senders[1:]),
        lambda routed: replace(routed, senders=np.append(routed.senders, 15)),
        lambda routed: replace(routed, senders=routed.senders[[0, 0, 1, 2]]),
        lambda routed: replace(routed, senders=routed.senders - 1),
        lambda routed: replace(routed, senders=routed.senders[:0]),
        lambda routed: replace(routed, senders=np.arange(16)),
        lambda routed: replace(routed, moves=(*routed.moves, routed.moves[0])),
        lambda routed: replace(routed, moves=(), senders=routed.senders),
        first_move(nodes=lambda move: np.roll(move.nodes, 1)),
        first_move(nodes=lambda move: np.zeros_like(move.nodes)),
        first_move(hops=lambda move: np.arange(len(move.hops))),
        first_move(hops=lambda move: np.roll(move.hops, 1)),
        first_move(hops=lambda move: move.hops[:-1]),
        first_move(ports=lambda move: np.arange(9)),
    ],
)
def test_wrong_moves_are_refused(change, few):
    """Moves that are none of the machine or join other senders; senders that do not define all."""
    assert set(refused("torus:shape=4x4", change)) == {"moves_wrong"}
    assert judged("torus:shape=4x4", change).circuits in (0, 240)  # none where the moves alone are wrong


def test_a_fabric_that_gives_other_images(few, monkeypatch):
    """Links that routes do not take once they are moved: the fabric says that links move the other way."""
    text = "torus:shape=4x6"
    given = type(fabric(text)).resource_images
    monkeypatch.setattr(type(fabric(text)), "resource_images", lambda self, move: (np.argsort(given(self, move)[0]),))
    assert set(refused(text, lambda routed: routed)) == {"moves_wrong"}


def test_moves_that_change_a_step_are_refused(few):
    """A turn of rows takes the machine to itself, but no step that a few rows define in other digits."""
    where = fabric("torus:shape=5x5")
    plan = lower(where, generate("bruck:radix=2", "all_to_all", where))
    exchange = lower(where, generate("mesh", "all_to_all", where))
    rule = SimpleNamespace(represents=lambda i: False, routed=lambda i: exchange.routed(0))
    made = replace(plan, rounds=Made(plan, rule))
    found = check_light(made, progress=no_progress).violations
    assert {violation.rule for violation in found} == {"moves_wrong"}


def test_moves_of_digits_that_stay_are_refused(few):
    """In the second step the columns send to their neighbours alone, not the rows."""
    where = fabric("torus:shape=4x4")
    exchange = lower(where, generate("mesh", "all_to_all", where))
    rule = SimpleNamespace(represents=lambda i: False, routed=lambda i: exchange.routed(0))
    phases = [Phase(PhaseRows.of(2, (0, 0), (0, 1), 0), moves) for moves in ((True, True), (True, False))]
    steps = Steps(Space((4, 4)), [MessagePart(((UNIT, 1, 1),), 1)], phases)
    made = CircuitPlan(where, Schedule("by hand", nothing_required(16, 1), 2, steps), exchange.rounds)
    (violation,) = check_light(replace(made, rounds=Made(made, rule)), progress=no_progress).violations
    assert (violation.step, violation.rule, violation.expected) == (1, "moves_wrong", "nodes that move as ranks may")
    together = replace(made, schedule=replace(made.schedule, classes=(range(2),)))
    found = check_light(replace(together, rounds=Made(together, rule)), progress=no_progress).violations
    assert "steps_unequal" in {violation.rule for violation in found}


def test_moves_that_do_not_commute_are_refused(few):
    """A turn of a torus and its reflection: each takes it to itself."""

    def reflected(routed):
        row, place = np.divmod(np.arange(15), 5)
        net, nodes = fabric("torus:shape=3x5").network, -row % 3 * 5 + -place % 5
        number = {ends: link for link, ends in enumerate(zip(net.tail.tolist(), net.head.tolist(), strict=True))}
        ends = zip(nodes[net.tail].tolist(), nodes[net.head].tolist(), strict=True)
        mirror = replace(routed.moves[0], nodes=nodes, hops=np.array([number[pair] for pair in ends]))
        return replace(routed, moves=(routed.moves[0], mirror))

    (violation,) = judged("torus:shape=3x5", reflected).violations
    assert (violation.rule, violation.expected) == ("moves_wrong", "permutations that commute")


def test_moves_of_other_ranks_are_refused(few):
    """Where ranks are other nodes, or not as many as nodes, moves of the machine say nothing about them."""
    where = fabric("torus:shape=4x4")
    exchange = lower(where, generate("mesh", "all_to_all", where))
    rule = SimpleNamespace(represents=lambda i: False, routed=lambda i: exchange.routed(0))
    others = job(where, [*range(1, 16), 0])
    renumbered = lower(others, generate("mesh", "all_to_all", others))
    fewer = replace(exchange, schedule=generate("mesh", "all_to_all", fabric("torus:shape=2x4")))
    for plan in (renumbered, fewer):
        (violation,) = check_light(replace(plan, rounds=Made(plan, rule)), progress=no_progress).violations
        assert (violation.rule, violation.expected) == ("moves_wrong", "ranks that are the nodes of the machine")
