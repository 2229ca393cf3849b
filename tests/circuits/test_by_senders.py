"""Circuits of some senders, of which moves of the machine make those of all others: against the circuits of all."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.altered import altered
from tests.images import Made

from opticcl.assumptions import assumptions
from opticcl.circuits import _chessboard as board
from opticcl.circuits import lightpath as rule
from opticcl.circuits import lower
from opticcl.collective import as_request
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, concatenate_circuits, no_progress
from opticcl.ir.circuit_plan import StoredRounds
from opticcl.ir.representatives import LightMove, Represented, SymmetricRounds
from opticcl.plans.light import light_of_plan
from opticcl.plans.plan import compile
from opticcl.plans.summary import summarize
from opticcl.report.load_pictures import load_view
from opticcl.report.simulation import Simulation
from opticcl.schedule import all_variants, generate
from opticcl.simulate import profile, simulate
from opticcl.simulate.bottleneck import loads
from opticcl.verify.light.circuit_rows import RULE_OF_KIND
from opticcl.verify.light.circuits import check_light

MACHINES = (
    "sipac:radix=3,levels=2",
    "sipac:radix=4,levels=2",
    "sipac:radices=3x4x2",
    "sipac:radices=2x6,channels=retuned",
    "sipac:radices=4x3,channels=ring",
    "sipac:radix=5,levels=1,wavelengths=7",
    "ramp:groups=4,racks=2,wavelengths=4",
    "ramp:groups=3,racks=2,wavelengths=6",
)
LARGER = ("sipac:radix=4,levels=2", "sipac:radices=3x4x2", "ramp:groups=4,racks=2,wavelengths=4")
MORE = ("reduce_scatter", "all_gather", "barrier", "broadcast")
COLLECTIVES = ("all_reduce", "all_to_all", *(pytest.param(name, marks=pytest.mark.deep) for name in MORE))


def plans(where, collective):
    """Of every algorithm that a machine runs."""
    for algorithm in all_variants(as_request(collective), where):
        with suppress(UnsupportedError):
            yield lower(where, generate(algorithm, as_request(collective), where))


def columns_of(circuits):
    """What makes each circuit, without the number of its transfer."""
    names = ("src", "dst", "port", "wavelength_lo", "wavelength_n")
    rows = np.column_stack([getattr(circuits, name) for name in names])
    paths = [tuple(circuits.path(i).tolist()) for i in range(len(circuits))]
    return [(*row, circuits.wavelength_step, *path) for row, path in zip(rows.tolist(), paths, strict=True)]


def powers(columns):
    """Every power of several tables, of which the first is a permutation."""
    found, now = [], [np.arange(len(column)) for column in columns]
    while not found or (now[0] != np.arange(len(now[0]))).any():
        found.append(now)
        now = [np.append(column, -1)[before] for column, before in zip(columns, now, strict=True)]
    return found


def images(sets):
    """Circuits of all senders, by products of powers of the moves of each set, round by round."""
    found = [Counter() for _ in sets[0].rounds]
    for rounds in sets:
        for every, circuits in zip(found, rounds.rounds, strict=True):
            for one in product(*(powers(move.columns) for move in rounds.moves)):
                moved = circuits
                for columns in one:
                    moved = LightMove(*columns).of(moved)
                every.update(columns_of(moved))
    return found


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=pytest.mark.deep) if text in LARGER else text for text in MACHINES]
)
def test_they_are_those_of_all(text, collective):
    """Images are the circuits of all senders; times and light follow from some."""
    for plan in plans(fabric(text), collective):
        for i in range(plan.schedule.num_steps):
            some = plan.by_senders(i)
            if some:
                assert images(some) == [Counter(columns_of(circuits)) for circuits in plan.rounds(i)]
        every = CircuitPlan(plan.fabric, plan.schedule, lambda i, plan=plan: plan.rounds(i))
        assert not any(every.by_senders(i) for i in range(plan.schedule.num_steps))
        assert_answers_are_equal(plan, every)


def assert_answers_are_equal(plan, every):
    """Loads, verdicts, margins and times of a plan, and of the same with all circuits listed."""
    for one, other in zip(loads(plan, 10**6), loads(every, 10**6), strict=True):
        assert (one.resource, one.index.tolist()) == (other.resource, other.index.tolist())
        assert one.carried_bytes == pytest.approx(other.carried_bytes, rel=1e-9)
    verdicts = [check_light(each, progress=no_progress) for each in (plan, every)]
    assert not verdicts[0].violations
    assert verdicts[0].circuits == verdicts[1].circuits
    assert light_of_plan(plan).margin_db == pytest.approx(light_of_plan(every).margin_db, rel=1e-12)
    for assumed in map(assumptions, ("common", "published")):
        one, other = profile(plan, assumed), profile(every, assumed)
        for size in (1, 1000, 10**8):
            assert one.timeline(size).total_s == pytest.approx(other.timeline(size).total_s, rel=1e-12)


@pytest.mark.parametrize("text", MACHINES)
def test_moves_keep_the_machine(text):
    """Moved circuits occupy the images of what they occupied, can be made if they could be, and take as long."""
    where = fabric(text)
    tried = 0
    for plan in plans(where, "all_to_all"):
        for i in range(plan.schedule.num_steps):
            moves = [move for some in plan.by_senders(i) for move in some.moves]
            for move, circuits in product(moves, plan.rounds(i)):
                tried += 1
                moved = move.of(circuits)
                assert not any(len(fault.circuits) for fault in where.faults(moved))
                of_units = where.resource_images(move)
                for image, before, after in zip(of_units, where.usage(circuits), where.usage(moved), strict=True):
                    assert (image[before.index] == after.index).all()
    assert tried


WAFERS = (
    ("lightpath:shape=8x8", "lumorph:radix=2"),
    ("lightpath:shape=8x8,waveguides=2", "lumorph:radix=4"),
    ("lightpath:shape=8x8,waveguides=3,reconfiguration=0s", "lumorph:radix=8"),
    ("lightpath:shape=4x16,waveguides=2", "lumorph:factors=8x4x2"),
    ("lightpath:shape=16x4", "lumorph:factors=2x8x4"),
    ("lightpath:shape=10x6", "lumorph:factors=4x3x5"),
    ("lightpath:shape=12x4,reconfiguration=0s", "lumorph:factors=12x4"),
    ("lightpath:shape=16x16,waveguides=4", "lumorph:radix=4"),
    pytest.param("lightpath:shape=16x16,waveguides=7", "lumorph:radix=16", marks=pytest.mark.deep),
    pytest.param("lightpath:shape=32x32,waveguides=5", "lumorph:radix=4", marks=pytest.mark.deep),
    pytest.param("lightpath:shape=64x16", "lumorph:radix=8", marks=pytest.mark.deep),
)


def on_wafers(monkeypatch, text, algorithm, collective="all_reduce", spread=0):
    """A plan whose steps are all large enough to follow from some senders, if not another number of circuits is spread."""
    monkeypatch.setattr(rule, "MOST_SPREAD", spread)
    where = fabric(text)
    return lower(where, generate(algorithm, as_request(collective), where))


@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all"])
@pytest.mark.parametrize(("text", "algorithm"), WAFERS)
def test_rows_and_columns_of_wafers_are_identical(monkeypatch, text, algorithm, collective):
    """Exchanges of digits along rows, along columns and from row to row: circuits, loads, verdicts, margins and times."""
    plan = on_wafers(monkeypatch, text, algorithm, collective)
    some = [plan.by_senders(i) for i in range(plan.schedule.num_steps)]
    assert any(some)
    for i, sets in enumerate(some):
        for of_step in sets:
            assert len(of_step.senders) < plan.fabric.num_nodes
            assert images(sets) == [Counter(columns_of(circuits)) for circuits in plan.rounds(i)]
            for move in of_step.moves:
                for image, usage in zip(
                    plan.fabric.resource_images(move), plan.fabric.usage(plan.rounds(i)[0]), strict=True
                ):
                    assert (image[usage.index] >= 0).all()
    assert_answers_are_equal(plan, CircuitPlan(plan.fabric, plan.schedule, plan.rounds.__call__))


BOARDS = ("8x8,lasers=4,waveguides=4", "12x8,lasers=5", "16x16,lasers=5,reconfiguration=0s")


@pytest.mark.parametrize("text", BOARDS)
def test_circuits_along_rows_and_along_columns_have_moves_of_their_own(text):
    """At the same time: circuits, loads, verdicts, margins and times."""
    where = fabric(f"lightpath:shape={text}")
    plan = lower(where, generate("chessboard_exchange", "all_to_all", where))
    for i in range(2):
        sets = plan.by_senders(i)
        assert [len(one.senders) * one.images for one in sets] == [where.num_nodes // 2] * 2
        assert images(sets) == [Counter(columns_of(circuits)) for circuits in plan.rounds(i)]
    assert_answers_are_equal(plan, CircuitPlan(plan.fabric, plan.schedule, plan.rounds.__call__))


@pytest.mark.parametrize("text", [*BOARDS, "32x16"])
def test_a_chessboard_that_is_not_listed(monkeypatch, text):
    """Summary, times, loads and bytes between blocks of nodes are those of the list; 32 rows are several racks."""
    where, found = fabric(f"lightpath:shape={text}"), []
    for most in (board.MOST_HOPS, 0):
        monkeypatch.setattr(board, "MOST_HOPS", most)
        plan = compile(where, "all_to_all", "1MB", algorithm="chessboard_exchange")
        assert plan.circuits.has_images is (most == 0)
        assert plan.verify().ok
        times = [profile(plan.circuits, assumptions(name)).costs for name in ("common", "published")]
        carried = [(load.index.tolist(), load.carried_bytes.tolist()) for load in loads(plan.circuits, 10**6)]
        view = load_view(Simulation(plan, "closed_form", simulate(plan.circuits, 10**6, "common")))
        found.append((summarize(plan).runs, times, carried, view.sent.tolist()))
    for one, other in zip(*found, strict=True):
        assert one == other


def test_a_chessboard_that_is_too_large_to_list(monkeypatch):
    """Is timed and judged, and its list refused with its size: 8 x 8 nodes send to 7 each, 2 hops away on average."""
    monkeypatch.setattr(board, "MOST_HOPS", 800)
    monkeypatch.setattr(board, "MOST_LISTED", 800)
    plan = compile(f"lightpath:shape={BOARDS[0]}", "all_to_all", "1MB", algorithm="chessboard_exchange")
    assert plan.verify().ok
    assert plan.simulate().total_s > 0
    with pytest.raises(TooLargeError, match="448 transfers cross about 896 edges; at most 800 are listed; take fewer"):
        plan.circuits.rounds(0)


def test_rounds_of_one_kind_of_circuits_that_are_fewer():
    """A round that only some senders have is refused, and what is not carried then is named."""
    where = fabric(f"lightpath:shape={BOARDS[0]}")
    plan = lower(where, generate("chessboard_exchange", "all_to_all", where))
    rows, columns = plan.by_senders(0)
    refused = broken_rules(plan, 0, (rows, replace(columns, rounds=columns.rounds[:-1])))
    assert ("moves_wrong", "as many of all senders", "other numbers") in refused
    assert {one[0] for one in broken_rules(plan, 0, (rows,))} == {"moves_wrong"}  # half of the senders
    assert {one[0] for one in broken_rules(plan, 0, (rows, columns, rows))} == {"moves_wrong"}


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("lightpath:shape=8x8,waveguides=1", "lumorph:radix=2"),
        ("lightpath:shape=16x16,waveguides=3", "lumorph:radix=2"),
        ("lightpath:shape=8x8,lasers=1,waveguides=2", "lumorph:radix=8"),
        ("lightpath:shape=4x16,lasers=1,waveguides=3", "lumorph:factors=8x4x2"),
        ("lightpath:shape=12x4,lasers=1,waveguides=2", "lumorph:factors=12x4"),
        ("lightpath:shape=10x6,lasers=2,waveguides=1", "lumorph:factors=2x3x10"),
    ],
)
def test_rounds_of_blocks_are_those_of_all_circuits_together(monkeypatch, text, algorithm):
    """With one laser set at most in each turn, or circuits that fit, nothing is spread: the same rounds block by block."""
    by_blocks = on_wafers(monkeypatch, text, algorithm)
    rounds = [by_blocks.rounds(i) for i in range(by_blocks.schedule.num_steps)]
    assert any(by_blocks.by_senders(i) and len(some) > 1 for i, some in enumerate(rounds))
    together = on_wafers(monkeypatch, text, algorithm, spread=10**6)
    for i, some in enumerate(rounds):
        assert not together.by_senders(i)
        assert [columns_of(one) for one in some] == [columns_of(one) for one in together.rounds(i)]


@pytest.mark.parametrize("spread", [64, 128, 192, 256, 448])
def test_laser_sets_are_spread_for_all_circuits_together(monkeypatch, spread):
    """No circuits follow from others where that may be, and the others are as in the list."""
    plan = on_wafers(monkeypatch, "lightpath:shape=8x8,lasers=4,waveguides=1", "lumorph:factors=8x4x2", spread=spread)
    some = [plan.by_senders(i) for i in range(plan.schedule.num_steps)]
    assert [bool(one) for one in some] == [many > spread for many in (192, 192, 64, 64, 192, 192)]
    for i, of_step in enumerate(some):
        if of_step:
            assert images(of_step) == [Counter(columns_of(circuits)) for circuits in plan.rounds(i)]


class Changed(Represented):
    """A rule of circuits of some senders, of which those of one step are others."""

    def __init__(self, plan, number, rounds):
        self.plan, self.number, self.rounds = plan, number, rounds

    def represents(self, step):
        """No step is too large to list."""
        return False

    def senders(self, step):
        """Of the rounds."""
        return np.concatenate([some.senders for some in self.symmetric(step)])

    def symmetric(self, step):
        """The others in one step."""
        return self.rounds if step == self.number else self.plan.by_senders(step)


def violations(plan, number, rounds):
    """What the judge finds where the circuits of some senders of a step are others."""
    changed = CircuitPlan(plan.fabric, plan.schedule, Made(plan, Changed(plan, number, rounds)))
    report = check_light(changed, progress=no_progress)
    assert all(one.step == number for one in report.violations)
    return report.violations


def broken_rules(plan, number, rounds):
    """As `violations`: rules, expected and found."""
    return {(one.rule, one.expected, one.found) for one in violations(plan, number, rounds)}


def overfull(found):
    """Units that carry more than they may: round, rule, the first of them, what they may, how many, and what it carries."""
    rows = [(v.round, v.rule, v.where, v.expected, v.count, v.found.partition(":")[0]) for v in found]
    return [row for row in rows if row[1] in RULE_OF_KIND.values()]


def expanded(rounds, moves):
    """Circuits of a round and all their images, as far as these have images; the transfer stays that of the listed one."""
    every = [rounds]
    for one in product(*(powers(move.columns) for move in moves)):
        moved = rounds
        for columns in one:
            ends = np.append(columns[3], -1)
            moved = replace(LightMove(*columns[:3], ends).of(moved), transfer=moved.transfer)
        every.append(moved)
    return every[1:]


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("lightpath:shape=6x4,lasers=5,waveguides=3", "lumorph:factors=2x2x6"),
        ("lightpath:shape=4x8", "lumorph:factors=4x4x2"),
        ("lightpath:shape=8x8,lasers=4,waveguides=4", "chessboard_exchange"),
    ],
)
@pytest.mark.parametrize("changes", [40, pytest.param(400, marks=pytest.mark.deep)])
def test_changed_circuits_are_judged_as_in_a_list(monkeypatch, text, algorithm, changes):
    """Of some senders by images, of all senders row by row: both verdicts are right or both are wrong."""
    plan = on_wafers(monkeypatch, text, algorithm, "all_reduce" if algorithm.startswith("lumorph") else "all_to_all")
    random, verdicts, units = np.random.default_rng(5), Counter(), 0
    nodes, lasers = plan.fabric.num_nodes, plan.fabric.num_wavelengths
    below = {"src": nodes, "dst": nodes, "wavelength_lo": lasers, "wavelength_n": lasers, "hops": 4 * nodes}
    steps = [i for i in range(plan.schedule.num_steps) if plan.by_senders(i)]
    for _ in range(changes):
        number = int(random.choice(steps))
        sets, transfers = plan.by_senders(number), plan.schedule.step(number)
        which = int(random.integers(len(sets)))
        some = sets[which]
        at, name = int(random.integers(len(some.rounds))), str(random.choice(list(below)))
        column = getattr(some.rounds[at], name).copy()
        row = int(random.integers(len(column)))
        near = np.clip(column[row] + random.choice([-1, 1]), 0, below[name] - 1)
        column[row] = random.choice(column) if random.random() < 0.7 else near
        changed = replace(some.rounds[at], **{name: column})
        rounds = tuple(changed if r == at else circuits for r, circuits in enumerate(some.rounds))
        others = tuple(replace(some, rounds=rounds) if k == which else one for k, one in enumerate(sets))
        found = violations(plan, number, others)
        row_of = {pair: k for k, pair in enumerate(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True))}
        listed = []
        for r in range(len(rounds)):
            every_image = []
            for one, other in zip(sets, others, strict=True):
                pairs = [(image.src, image.dst) for image in expanded(one.rounds[r], one.moves)]
                carried = [[row_of[pair] for pair in zip(*map(np.ndarray.tolist, ends), strict=True)] for ends in pairs]
                images_of = zip(expanded(other.rounds[r], one.moves), carried, strict=True)
                every_image += [image.carrying_others(np.array(rows, np.int32)) for image, rows in images_of]
            listed.append(concatenate_circuits(every_image))
        every = [plan.rounds(i) for i in range(plan.schedule.num_steps)]
        every[number] = tuple(listed)
        due = check_light(CircuitPlan(plan.fabric, plan.schedule, StoredRounds(tuple(every))), progress=no_progress)
        assert bool(found) == bool(due.violations), (number, name, row, found, due.violations)
        if "moves_wrong" not in {one.rule for one in found}:
            assert overfull(found) == overfull(due.violations)
            units += len(overfull(found))
        verdicts[bool(found)] += 1
    assert min(verdicts.values()) > 10
    assert units > 1


def test_circuits_over_the_end_of_a_move_are_refused(monkeypatch):
    """Circuits along a row are not identical along it, though they are identical within a machine that is a torus."""
    plan = on_wafers(monkeypatch, "lightpath:shape=8x8", "lumorph:radix=2")
    (along,), (down,) = plan.by_senders(1), plan.by_senders(4)  # of nodes 2 apart, and of rows 2 apart
    transfers = plan.schedule.steps.sent_by(1, down.senders)
    listed = plan.rounds(1)[0]
    row = np.flatnonzero(np.isin(listed.src, down.senders))
    own = listed.take(row).carrying_others(np.arange(len(transfers)))
    wrong = SymmetricRounds(down.senders, (own,), down.moves)
    (lost,) = violations(plan, 1, (wrong,))
    assert str(lost).endswith("waveguide 0 wavelength 0: expected an image under all products of the moves, found none")
    assert not broken_rules(plan, 1, (along,))
    ends = [np.where(move.hops < 0, np.arange(len(move.hops)), move.hops) for move in along.moves]
    onto = [replace(move, hops=hops) for move, hops in zip(along.moves, ends, strict=True)]
    (refused,) = broken_rules(plan, 1, (replace(along, moves=tuple(onto)),))
    assert refused[0] == "moves_wrong"
    fewer = [replace(move, hops=np.where(move.hops == 2, -1, move.hops)) for move in down.moves]
    assert {one[0] for one in broken_rules(plan, 4, (replace(down, moves=tuple(fewer)),))} == {"moves_wrong"}


def test_circuits_of_one_step_say_nothing_of_other_phases(monkeypatch):
    """Steps that are said to be equal are listed and compared where they are of two phases."""
    plan = on_wafers(monkeypatch, "lightpath:shape=8x8", "lumorph:radix=2")
    classes = (range(2), *(range(i, i + 1) for i in range(2, plan.schedule.num_steps)))
    together = replace(plan, schedule=replace(plan.schedule, classes=classes))
    assert plan.by_senders(0)
    made = replace(together, rounds=Made(together, plan.rounds.lowered_by.rule))
    assert "steps_unequal" in {one.rule for one in check_light(made, progress=no_progress).violations}


def test_circuits_are_counted_one_by_one_where_ports_are_divided():
    """Orbits are of no use there, whatever the rule gives."""
    where = fabric(MACHINES[0])
    plan = next(plan for plan in plans(where, "all_to_all") if plan.by_senders(0))
    first, *others = where.resources
    divided = altered(where, resources=(replace(first, in_wavelengths=True), *others))
    made = CircuitPlan(divided, plan.schedule, Made(plan, plan.rounds.lowered_by.rule, divided))
    assert made.by_senders(0)
    assert not check_light(made, progress=no_progress).violations


def test_waveguides_of_images_are_counted(monkeypatch):
    """All rounds of a step as one need as many waveguides by images as in the list."""
    plan = on_wafers(monkeypatch, "lightpath:shape=8x8,waveguides=2", "lumorph:radix=8")
    for number in (0, 1):
        (some,) = plan.by_senders(number)
        together = replace(some, rounds=(concatenate_circuits(some.rounds),))
        ((rule_of, expected, found),) = broken_rules(plan, number, (together,))
        everything = concatenate_circuits(plan.rounds(number))
        listed = StoredRounds(((everything,) * 1,) * plan.schedule.num_steps)
        due = check_light(CircuitPlan(plan.fabric, plan.schedule, listed), progress=no_progress).violations
        mine = next(one for one in due if one.step == number and one.rule == rule_of)
        assert (mine.expected, mine.found.partition(":")[0]) == (expected, found)
