"""The judge of phases, the judge of lists and the forty lines that define what is right agree, on right and wrong plans."""

from collections import Counter
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from tests.matrix import at_scale, cases, is_deep, pairs

from opticcl.collective import COLLECTIVES, Request
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import Op, Schedule
from opticcl.ir.collective import Holders
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps, join
from opticcl.schedule import all_variants, generate, reason_declined
from opticcl.verify.data.contributions import check_data
from opticcl.verify.data.explain import contributions_of, events_of
from opticcl.verify.data.proof import contributors, copied_from, orbits
from opticcl.verify.data.reference import right

MACHINES = [
    ("ideal", 8),
    ("ideal", 6),
    ("torus", 9),
    ("terarack", 12),
    ("sipac", 8),
    ("oddl", 12),
    ("ramp", 8),
    ("lightpath", 8),
]
MUTANTS = 250
VARIANTS = 2
"""Of an algorithm, for every machine and collective [count]."""


@cache
def schedules():
    """Schedules of phases that translations make of few rows, of every collective and algorithm of some small machines."""
    found = []
    for name, nodes in MACHINES:
        try:
            machine = fabric_at_scale(name, nodes)
        except FabricError:
            continue
        for collective in COLLECTIVES:
            wanted = Request(collective)
            seen = Counter()
            for algorithm in all_variants(wanted, machine):
                seen[algorithm.partition(":")[0]] += 1
                if seen[algorithm.partition(":")[0]] > VARIANTS:
                    continue
                if reason_declined(algorithm, wanted, machine) is None:
                    made = generate(algorithm, wanted, machine)
                    if all(isinstance(phase.rows, PhaseRows) for phase in made.steps.phases) and made.num_steps:
                        found.append(made)
    return found


def listed(schedule):
    """The same transfers without phases."""
    c = schedule.collective
    steps = Steps.of_lists(c.num_ranks, c.num_chunks, [schedule.step(i) for i in range(schedule.num_steps)])
    return Schedule.of(schedule.name, c, steps)


def judged(schedule):
    """Whether data are right, as every judge says it."""
    lists = listed(schedule)
    found = {not check_data(schedule).violations, not check_data(lists).violations, right(lists)}
    assert len(found) == 1, (schedule, schedule.parameters)
    return found.pop()


@pytest.mark.parametrize("number", range(6))
def test_right_plans_are_right(number):
    """By phases, by lists and by definition."""
    every = schedules()
    for schedule in every[number :: 6 * 5]:
        assert judged(schedule)


@pytest.mark.deep
def test_all_right_plans_are_right():
    """All of them."""
    assert all(map(judged, schedules()))


def schedules_of(cells):
    """Schedules of cells of the conformance matrix, each once: (fabric, algorithm, nodes, request)."""
    seen = set()
    for name, algorithm, nodes, wanted in cells:
        machine = at_scale(name, nodes)
        if isinstance(machine, str) or reason_declined(algorithm, wanted, machine) is not None:
            continue
        try:
            made = generate(algorithm, wanted, machine)
        except UnsupportedError:
            continue
        key = (made.name, str(made.parameters), nodes, wanted, made.num_steps)
        if key not in seen:
            seen.add(key)
            yield made


def test_a_tenth_of_the_matrix():
    """Of the cells that `make test` tries elsewhere, at up to 12 nodes."""
    every = [(*pair, *case) for pair in pairs() for case in cases(pair[0]) if not is_deep(*case) and case[0] <= 12]
    assert sum(map(judged, schedules_of(every[::10]))) > 100


@pytest.mark.deep
@pytest.mark.parametrize("algorithm", dict.fromkeys(algorithm for _, algorithm in pairs()))
def test_the_whole_matrix(algorithm):
    """Every plan of up to 64 nodes is right, as every judge says it."""
    every = [(name, algorithm, *case) for name, mine in pairs() if mine == algorithm for case in cases(name)]
    assert all(map(judged, schedules_of(every)))


def changed(schedule, draw):
    """A schedule with one thing changed: what is changed, and the schedule, or None where there is nothing to change."""
    steps = schedule.steps
    phases = list(steps.phases)
    at = int(draw.integers(len(phases)))
    phase = phases[at]
    rows = phase.rows
    assert isinstance(rows, PhaseRows)
    kind = draw.choice(
        ["column", "column", "column", "column", "moves", "count", "drop", "double", "swap", "row", "twice", "op"]
    )
    if kind == "column":
        column = draw.choice([field.name for field in fields(PhaseRows) if field.name not in ("op", "part")])
        values = np.array(getattr(rows, column))
        place = tuple(int(draw.integers(size)) for size in values.shape)
        values[place] += draw.choice([-1, 1, 1, 2])
        phases[at] = replace(phase, rows=replace(rows, **{str(column): values}))
        kind = column
    elif kind == "op":
        values = np.array(rows.op)
        values[int(draw.integers(len(values)))] = draw.integers(4)
        phases[at] = replace(phase, rows=replace(rows, op=values))
    elif kind == "moves":
        digit = int(draw.integers(len(steps.space.radices)))
        moves = list(phase.moves or (False,) * len(steps.space.radices))
        moves[digit] = not moves[digit]
        phases[at] = replace(phase, moves=tuple(moves))
    elif kind == "count":
        phases[at] = replace(phase, count=phase.count + int(draw.choice([-1, 1])))
    elif kind == "drop":
        del phases[at]
    elif kind == "double":
        phases.insert(at, phase)
    elif kind == "swap":
        other = int(draw.integers(len(phases)))
        phases[at], phases[other] = phases[other], phases[at]
    else:
        row = int(draw.integers(len(rows)))
        kept = np.delete(np.arange(len(rows)), row) if kind == "row" else np.append(np.arange(len(rows)), row)
        if not len(kept):
            return kind, None
        phases[at] = Phase(rows.take(kept), phase.moves, phase.count)
    cut = schedule.cut if schedule.cut is None or kind not in ("drop", "double") else None
    return str(kind), Schedule.of("changed", schedule.collective, Steps(steps.space, steps.parts, phases), cut=cut)


def agree_on_mutants(seed, count):
    """Draw wrong and harmless changes of right plans, and let all judges judge them."""
    draw, found = np.random.default_rng(seed), Counter()
    every = [one for one in schedules() if one.collective.num_chunks * one.num_steps < 100]
    while found.total() < count:
        try:
            kind, schedule = changed(every[int(draw.integers(len(every)))], draw)
        except ParameterError:
            found["malformed"] += 1
            continue
        if schedule is not None:
            found[kind, judged(schedule)] += 1
    return found


def test_judges_agree_on_changed_phases():
    """Every kind of change makes some plans wrong; none is judged otherwise by one of them."""
    found = agree_on_mutants(7, MUTANTS)
    wrong = sum(many for key, many in found.items() if key != "malformed" and not key[1])
    assert wrong > MUTANTS // 4
    assert sum(many for key, many in found.items() if key != "malformed" and key[1]) > MUTANTS // 20


@pytest.mark.deep
def test_judges_agree_on_very_many_changed_phases():
    """Ten thousand."""
    assert agree_on_mutants(99, 10_000).total() == 10_000


def test_an_order_that_changes_nothing_is_none():
    """Rings of machines that number their nodes along the ring are described as those of others."""
    assert Space((2, 3), np.arange(6)) == Space((2, 3))
    assert Space((2, 3), np.arange(6)).order is None
    assert Space((2, 3), np.arange(6)[::-1]) != Space((2, 3))


def test_what_no_one_contributed_is_wrong_behind_a_cut():
    """A copy that becomes a sum adds to the partial sum that its receiver still has."""
    made = generate("ring", "all_reduce", fabric("ideal", nodes=6))
    first, second = made.steps.phases
    sums = replace(second, rows=replace(second.rows, op=np.full(len(second.rows), int(Op.REDUCE))))
    wrong = Schedule.of("ring", made.collective, Steps(made.steps.space, made.steps.parts, [first, sums]), cut=made.cut)
    assert not judged(wrong)
    assert "contribution_doubled" in {one.rule for one in check_data(wrong).violations}


def test_a_cut_where_owners_have_no_sums_is_no_cut():
    """The schedule is judged as a whole then."""
    made = generate("halving_doubling", "all_reduce", fabric("ideal", nodes=8))
    assert judged(Schedule.of("moved", made.collective, made.steps, cut=2))


@pytest.mark.parametrize(
    ("algorithm", "nodes"), [("recursive_doubling", 64), ("dissemination", 32), ("divide_and_conquer", 12)]
)
def test_whole_messages_are_followed_back_from_one_rank(algorithm, nodes):
    """One of the chunks of the message is all of it; a step left out, or done twice, is found."""
    made = generate(algorithm, "all_reduce", fabric("ideal", nodes=nodes))
    assert judged(made)
    for phases in (made.steps.phases[1:], (*made.steps.phases, made.steps.phases[-1])):
        assert not judged(Schedule.of(algorithm, made.collective, Steps(made.steps.space, made.steps.parts, phases)))


def test_owners_that_do_not_move_along():
    """Every chunk is played where the owners of two chunks have changed places: one of them is wrong."""
    made = generate("mesh", "reduce_scatter", fabric("ideal", nodes=6))
    owner = made.collective.owner.copy()
    owner[[3, 5]] = owner[[5, 3]]
    wrong = Schedule.of("mesh", Request("reduce_scatter").on(6, 6, owner), made.steps)
    assert not judged(wrong)


def one_by_one(schedule, digit):
    """The same transfers from phases that do not translate a digit: rows are listed for each of its values."""
    steps, phases = schedule.steps, []
    for phase in steps.phases:
        rows, radix = phase.rows, steps.space.radices[digit]
        every = rows.take(np.tile(np.arange(len(rows)), radix))
        columns = {name: np.array(getattr(every, name)) for name in ("src", "dst", "lo")}
        for column in columns.values():
            column[:, digit] = (column[:, digit] + np.repeat(np.arange(radix), len(rows))) % radix
        moves = tuple(moved and d != digit for d, moved in enumerate(phase.moves))
        phases.append(replace(phase, rows=replace(every, **columns), moves=moves))
    return Schedule.of("still", schedule.collective, Steps(steps.space, steps.parts, phases), cut=schedule.cut)


def in_order(schedule, order):
    """The same steps with other ranks at the places, and chunks that are theirs."""
    steps, c = schedule.steps, schedule.collective
    made = Steps(Space(steps.space.radices, np.array(order)), steps.parts, steps.phases)
    owner = None if c.owner is None else made.owners
    return Schedule.of("ordered", Request(c.name).on(c.num_ranks, c.num_chunks, owner), made, cut=schedule.cut)


def twice(schedule, units, apart=1):
    """The message twice: a part more, whose units are carried by two rows: the first and all others, or every second one."""
    steps, c = schedule.steps, schedule.collective
    (one,) = steps.parts
    more = MessagePart((*one.fields[:-1], (UNIT, 1, units)), units)
    phases = []
    for phase in steps.phases:
        rows = phase.rows
        every = np.arange(len(rows))
        few = 1 if apart == 1 else -(-units // apart)
        ones = np.ones(len(rows), int)
        first = replace(rows, part=ones, unit_count=few * ones, unit_step=apart * ones)
        rest = replace(first, unit_lo=first.unit_lo + 1, unit_count=(units - few) * ones)
        phases.append(replace(phase, rows=join([rows.take(every), first, rest])))
    made = Steps(steps.space, (one, more), phases)
    wanted = Request(c.name).on(c.num_ranks, made.num_chunks, None if c.owner is None else made.owners)
    return Schedule.of("twice", wanted, made, cut=schedule.cut)


def plan_of(name, algorithm, nodes=4):
    """A schedule of the ideal fabric."""
    return generate(algorithm, name, fabric("ideal", nodes=nodes))


PROVEN = {
    "ring": (lambda: plan_of("all_reduce", "ring"), "one of 4"),
    "dissemination": (lambda: plan_of("all_reduce", "dissemination"), "one of 1"),
    "whole message, six ranks": (lambda: plan_of("all_reduce", "divide_and_conquer", 6), "one of 1"),
    "whole message, a digit stays": (lambda: one_by_one(plan_of("all_reduce", "divide_and_conquer", 6), 1), "one of 1"),
    "whole message, another order": (
        lambda: in_order(plan_of("all_reduce", "recursive_doubling"), [2, 0, 1, 3]),
        "one of 1",
    ),
    "halving": (lambda: plan_of("all_reduce", "halving_doubling"), "one of 4"),
    "first digit stays": (lambda: one_by_one(plan_of("all_reduce", "halving_doubling"), 0), "2 of 4"),
    "no digit moves": (lambda: one_by_one(one_by_one(plan_of("all_gather", "lumorph:radix=2", 6), 0), 1), "6 of 6"),
    "second digit stays": (lambda: one_by_one(plan_of("reduce_scatter", "lumorph:radix=4", 6), 1), "3 of 6"),
    "scattered order": (
        lambda: in_order(plan_of("reduce_scatter", "lumorph:radix=2", 6), [5, 0, 3, 1, 4, 2]),
        "one of 6",
    ),
    "gathered order": (
        lambda: in_order(one_by_one(plan_of("all_gather", "torus2d", 6), 0), [5, 0, 3, 1, 4, 2]),
        "2 of 6",
    ),
    "two parts": (lambda: twice(plan_of("all_gather", "mesh"), 3), "3 of 16"),
    "every second unit": (lambda: twice(plan_of("all_to_all", "mesh"), 5, 2), "3 of 24"),
    "two parts, a digit stays": (lambda: one_by_one(twice(plan_of("all_reduce", "halving_doubling"), 2), 0), "6 of 12"),
    "two parts without digits": (lambda: twice(plan_of("all_reduce", "recursive_doubling"), 3), "3 of 4"),
    "exchange": (lambda: plan_of("all_to_all", "bruck:radix=2", 6), "one of 6"),
    "exchange in two digits": (lambda: one_by_one(plan_of("all_to_all", "lumorph:radix=2"), 0), "2 of 4"),
    "two sides": (lambda: plan_of("all_reduce", "two_sided_ring"), "2 of 8"),
    "trees": (lambda: plan_of("all_reduce", "double_tree:pipeline=3"), "2 of 6"),
    "pieces": (lambda: plan_of("reduce", "ring"), "one of 4"),
    "blocks": (lambda: plan_of("scatter", "tree"), "4 of 4"),
    "owners": (lambda: plan_of("gather", "ring"), "4 of 4"),
    "neighbours": (lambda: plan_of("send_recv", "send_recv"), "one of 4"),
}
"""Schedules, and how many of their chunks are played where phases prove the others."""
CHANGED = 6
"""Changes of each of them [count]."""


@cache
def proven(name):
    """A schedule of the table with some changes of it, each with its lists and whether it is right."""
    made, _ = PROVEN[name]
    draw, one = np.random.default_rng(len(name)), made()
    found = [one]
    while len(found) <= CHANGED:
        try:
            other = changed(one, draw)[1]
        except ParameterError:
            continue
        if other is not None and other.num_steps:
            found.append(other)
    return [(schedule, lists, right(lists)) for schedule in found for lists in (listed(schedule),)]


@pytest.mark.parametrize("name", PROVEN)
def test_orbits_prove_what_is_right_by_definition(name, monkeypatch):
    """Small plans too, of which all transfers are listed where no one asks for orbits."""
    monkeypatch.setattr("opticcl.verify.data.contributions.CHUNKS_AS_A_PHASE", -(1 << 40))
    wrong_sums = {"contribution_missing", "contribution_doubled"}  # of which the first wrong chunks are named
    for schedule, lists, due in proven(name):
        by_orbits, by_lists = check_data(schedule), check_data(lists)
        rules, of_lists = ({v.rule for v in report.violations} for report in (by_orbits, by_lists))
        assert (not rules, not of_lists) == (due, due)
        assert rules - wrong_sums == of_lists - wrong_sums
        assert by_orbits.transfers == by_lists.transfers
        assert (by_orbits.chunks, by_orbits.exhaustive) == (by_lists.chunks, by_lists.exhaustive)
    schedule, _, due = proven(name)[0]
    report = check_data(schedule)
    assert (due, report.chunks, report.exhaustive) == (True, schedule.collective.num_chunks, True)
    assert report.how == f"{PROVEN[name][1]} chunks played, which stand for all by translation"


@pytest.fixture
def by_orbits(monkeypatch):
    """`check_data` of any plan by orbits, also where few transfers could be listed."""
    monkeypatch.setattr("opticcl.verify.data.contributions.CHUNKS_AS_A_PHASE", -(1 << 40))
    return check_data


PIECES = {
    "a step less": lambda rows, count: (rows, count - 1),
    "one step alone": lambda rows, count: (rows, 1),
    "every second one": lambda rows, count: (replace(rows, unit_shift=2 * rows.unit_shift), count),
    "from the second one on": lambda rows, count: (replace(rows, unit_lo=rows.unit_lo + 1), count),
    "the first one again and again": lambda rows, count: (
        replace(rows, unit_shift=0 * rows.unit_shift, unit_lo=0 * rows.unit_lo),
        count,
    ),
    "backwards": lambda rows, count: (replace(rows, unit_shift=-rows.unit_shift), count),
}
"""Changes of the rows of a phase, and of its steps, with which some pieces do not arrive."""


@pytest.mark.parametrize("name", PIECES)
def test_pieces_that_do_not_all_pass(name, by_orbits):
    """Pieces that follow each other are played as one only where all ranks pass on all of them."""
    made = plan_of("broadcast", "tree:pipeline=4")
    (phase,) = made.steps.phases
    assert by_orbits(made).how.startswith("one of 4 chunks")
    rows, count = PIECES[name](phase.rows, phase.count)
    steps = Steps(made.steps.space, made.steps.parts, [replace(phase, rows=rows, count=count)])
    wrong = Schedule.of("short", made.collective, steps)
    assert not judged(wrong)
    report = by_orbits(wrong)
    assert report.violations
    if name != "the first one again and again":
        assert report.how.startswith("4 of 4 chunks")


def test_pieces_of_labels_that_shift(by_orbits):
    """The first piece is the sender's own, the second one of the other rank."""
    rows = PhaseRows.of(1, 0, 1, 0, unit_shift=1, shift=np.array([[1]]))
    steps = Steps(Space((2,)), [MessagePart(((0, 1, 2), (UNIT, 1, 2)), 2)], [Phase(rows, (True,), 2)])
    wrong = Schedule.of("shifted", Request("all_gather").on(2, 4, steps.owners), steps)
    assert not judged(wrong)
    report = by_orbits(wrong)
    assert report.how.startswith("2 of 4 chunks")
    assert {"sent_before_held"} <= {v.rule for v in report.violations}


@pytest.mark.parametrize("kind", ["owner", "root", "table", "one owner"])
def test_holders_that_do_not_move_along(kind, by_orbits):
    """Every chunk is played where translations of the steps do not move those that hold it."""
    if kind == "owner":
        made = plan_of("reduce_scatter", "mesh", 6)
        owner = made.collective.owner.copy()
        owner[[3, 5]] = owner[[5, 3]]
        wanted = Request("reduce_scatter").on(6, 6, owner)
    else:
        made = plan_of("all_reduce", "dissemination")
        wanted = Request("reduce", root=2).on(4, 1) if kind == "root" else None
        after = (
            Holders("owner", owners=np.array([2])) if kind == "one owner" else lambda rank, chunk: np.asarray(rank) >= 0
        )
        wanted = wanted or replace(made.collective, after=after)
    report = by_orbits(Schedule.of("held", wanted, made.steps))
    assert report.how == "every chunk played"
    assert {v.rule for v in report.violations} == ({"contribution_missing"} if kind == "owner" else set())


def test_holders_that_differ_where_labels_do(by_orbits):
    """Owners of chunks may be any others in a digit that stays: each value of it is played, and is wrong."""
    made = one_by_one(plan_of("reduce_scatter", "halving_doubling"), 0)
    owner = made.collective.owner
    report = by_orbits(Schedule.of("moved", Request("reduce_scatter").on(4, 4, owner ^ 2), made.steps))
    assert report.how.startswith("2 of 4 chunks")
    assert sum(v.count for v in report.violations if v.rule == "contribution_missing") == 2


def any_steps(draw):
    """Steps of rows that are right or wrong: digits that move or stay, boxes of labels and units, shifts, all operations."""
    space, phases = Space((2, 3)), []
    for _ in range(draw.integers(1, 4)):
        moves, n = draw.choice([False, True, True], 2), int(draw.integers(1, 4))
        part = draw.integers(0, 2, n)
        src, by = draw.integers(0, (2, 3), (n, 2)), draw.integers(0, (2, 3), (n, 2))
        by[~by.any(axis=1), 1] = 1  # no rank sends to itself
        src[:, moves] = 0
        count = np.ones((n, 2), int)
        count[:, 1] = draw.integers(1, 4, n)
        units, apart = draw.integers(1, 3, n), draw.integers(1, 3, n)
        shifts = draw.integers(0, 2, n) * (part == 1)
        last = 4 - (units - 1) * apart
        rows = PhaseRows.of(
            2, src, (src + by) % (2, 3), draw.integers(0, (2, 3), (n, 2)), count, part=part,
            unit_lo=np.where(shifts > 0, draw.integers(-1, 4, n), draw.integers(0, 4, n) % last) * part,
            unit_count=np.where((shifts > 0) | (part == 0), 1, units), unit_step=np.where(part == 0, 1, apart),
            unit_shift=shifts, shift=draw.integers(0, 3, (n, 2)) * moves, op=draw.choice([0, 1, 1, 1, 3], n),
        )  # fmt: skip
        phases.append(Phase(rows, tuple(moves.tolist()), int(draw.integers(1, 3))))
    parts = [MessagePart(((UNIT, 1, 1),)), MessagePart(((1, 1, 3), (UNIT, 1, 4)), 4)]
    return Steps(space, parts, phases)


@pytest.mark.parametrize("seed", range(6))
def test_contributors_are_those_of_all_transfers(seed):
    """Of chunks that are played, in front of any step; and through which copies each place has its value."""
    draw, known = np.random.default_rng(seed), Counter()
    for _ in range(4):
        steps = any_steps(draw)
        schedule = Schedule.of("any", Request("all_reduce").on(6, 13), steps)
        every = range(len(steps.phases))
        for orbit in orbits(steps, every):
            listed_events = events_of(schedule, orbit.chunk)
            until, place = int(draw.integers(0, steps.num_steps + 1)), int(draw.integers(6))
            times = contributions_of(listed_events.take(np.flatnonzero(listed_events.step < until)), place, 6)
            many = int(times.sum())
            known[many] += 1
            assert np.array_equal(contributors(steps, orbit, until, place, 1 << 20), np.flatnonzero(times))
            if not (
                listed_events.op & Op.MOVE
            ).any():  # else more may be counted of a place before it gave up what it had
                assert contributors(steps, orbit, until, place, many) is not None
                assert many == 1 or contributors(steps, orbit, until, place, many - 1) is None
            number, origin = copied_from(listed_events, 6)
            assert number == max([0, *(listed_events.step[listed_events.op != Op.COPY] + 1).tolist()])
            late = listed_events.take(np.flatnonzero(listed_events.step >= number))
            for at in range(6):
                assert np.array_equal(np.flatnonzero(contributions_of(late, at, 6)), origin[[at]])
    assert len(known) > 1


@pytest.mark.parametrize(("ranks", "rules"), [(1, set()), (2, {"contribution_missing"})])
def test_no_step_at_all(by_orbits, ranks, rules):
    """One rank has its sum, two have not; all chunks of a part have one history, which is empty."""
    steps = Steps(Space((ranks,)), [MessagePart(((UNIT, 1, 3),), 3), MessagePart(((UNIT, 1, 2),), 2)], [])
    report = by_orbits(Schedule.of("none", Request("all_reduce").on(ranks, 5), steps))
    assert {v.rule for v in report.violations} == rules
    assert (report.how, report.transfers) == ("2 of 5 chunks played, which stand for all by translation", 0)


@pytest.mark.parametrize("op", [Op.COPY, Op.REDUCE, Op.REDUCE_MOVE])
@pytest.mark.parametrize("algorithm", ["mesh", "dissemination", "tree:pipeline=2"])
def test_rows_to_oneself_are_no_transfers(algorithm, op, by_orbits):
    """Steps do not list them, so that they are neither played nor counted."""
    made = plan_of("all_reduce", algorithm)
    first = made.steps.phases[0]
    for pieces in (0, 1):
        rows = PhaseRows.of(1, 0, 0, 0, op=op, unit_shift=pieces)
        steps = Steps(made.steps.space, made.steps.parts, [Phase(rows, first.moves, 2), *made.steps.phases])
        more = Schedule.of("more", made.collective, steps)
        assert judged(more)
        assert not by_orbits(more).violations
        assert by_orbits(more).transfers == sum(len(more.step(i)) for i in range(more.num_steps))


def test_a_row_to_oneself_keeps_nothing(by_orbits):
    """A rank gives up what it has; a row to itself does not bring it back."""
    rows = PhaseRows.of(1, [[0], [0]], [[1], [0]], 0, op=np.array([Op.REDUCE_MOVE, Op.COPY]))
    steps = Steps(Space((3,)), [MessagePart(((UNIT, 1, 1),))], [Phase(rows), Phase(PhaseRows.of(1, 0, 2, 0))])
    wrong = Schedule.of("kept", Request("broadcast").on(3, 1), steps)
    assert not judged(wrong)
    assert {"sent_before_held", "contribution_missing"} == {v.rule for v in by_orbits(wrong).violations}
