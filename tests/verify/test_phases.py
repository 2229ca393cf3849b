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
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps
from opticcl.schedule import all_variants, generate, reason_declined
from opticcl.verify.data.contributions import check_data
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
