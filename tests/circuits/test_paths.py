"""Paths that transfers state on fabrics of packets: followed by the rule, judged, counted by every engine, kept in files."""

import json
import pickle
from itertools import pairwise

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.circuits import lower
from opticcl.errors import ParameterError, PlanFileError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.formats.plan_read import read_plan_file
from opticcl.formats.plan_write import write_plan_file
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers, concatenate_transfers, no_progress
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.plans.plan import Plan
from opticcl.simulate.bottleneck import loads
from opticcl.verify.light.circuits import check_light

TORUS = fabric("torus:shape=4")  # a ring in both directions


def links(where, *vertices):
    """Numbers of the links that join vertices in a row."""
    ends = zip(where.network.tail.tolist(), where.network.head.tolist(), strict=True)
    number = {pair: at for at, pair in enumerate(ends)}
    return [number[pair] for pair in pairwise(vertices)]


def stated(*paths):
    """(hops, hop_offsets) of paths given as lists of links."""
    return np.array([link for path in paths for link in path]), np.cumsum([0, *map(len, paths)])


def plan_of(where, *steps):
    """A plan of listed steps."""
    made = Steps.of_lists(where.num_nodes, 4, steps)
    return lower(where, Schedule.of("by hand", nothing_required(where.num_nodes, 4), made))


ONE_WAY = [links(TORUS, 0, 1, 2), [], links(TORUS, 3, 2, 1)]


def one_way(where=TORUS, paths=ONE_WAY):
    """Three transfers, the second of which states no path."""
    return plan_of(where, Transfers.of([0, 1, 3], [2, 2, 1], [0, 1, 2], 1, Op.COPY, path=stated(*paths)))


def test_a_stated_path_is_the_path_of_the_circuit_and_an_empty_one_is_routed():
    """Hop by hop; the judge finds nothing."""
    plan = one_way()
    (circuits,) = plan.rounds(0)
    assert [circuits.path(i).tolist() for i in range(3)] == [ONE_WAY[0], links(TORUS, 1, 2), ONE_WAY[2]]
    assert check_light(plan, progress=no_progress).violations == ()
    steps = plan.schedule.steps
    again = pickle.loads(pickle.dumps(steps))
    assert again == steps
    assert again != one_way(paths=[ONE_WAY[0], [], []]).schedule.steps
    assert [column.tolist() for column in again(0).path] == [column.tolist() for column in steps(0).path]


@pytest.mark.parametrize("engine", ["closed_form", "flow", "packet", "device"])
def test_links_carry_what_is_stated_whichever_engine_counts(engine):
    """Two chunks of 1 MB from node 0 to node 2 share the links of one way round, or each has a way to itself."""
    rate, ways = TORUS.resources[0].capacity, [links(TORUS, 0, 1, 2), links(TORUS, 0, 3, 2)]
    for paths, most in (([ways[0]] * 2, 2), ([ways[1]] * 2, 2), (ways, 1)):
        plan = plan_of(TORUS, Transfers.of([0, 0], [2, 2], [0, 1], 1, Op.COPY, path=stated(*paths)))
        (carried,) = loads(plan, 4_000_000)
        due = {link: paths.count(way) * 10**6 for way in paths for link in way}
        assert dict(zip(carried.index.tolist(), carried.carried_bytes.tolist(), strict=True)) == due
        timeline = Plan(plan, 4_000_000).simulate(engine=engine, assumptions="published")
        assert float(timeline.transfer_s.sum()) == pytest.approx(
            most * 8e6 / rate, rel=0.02 if engine == "packet" else 1e-9
        )


@pytest.mark.parametrize(
    ("path", "rule"),
    [([0, 0], "path_broken"), (links(TORUS, 0, 3), "path_broken"), (links(TORUS, 1, 2), "path_broken")],
    ids=["no walk", "another end", "another start"],
)
def test_a_path_that_does_not_join_its_ends_is_refused(path, rule):
    """By the rule for circuits."""
    plan = one_way(paths=[path, [], ONE_WAY[2]])
    assert rule in {violation.rule for violation in check_light(plan, progress=no_progress).violations}


@pytest.mark.parametrize("path", [[-1, 2], [0, 99]])
def test_links_that_the_fabric_does_not_have_are_refused(path):
    """Before anything is counted."""
    with pytest.raises(UnsupportedError, match="not lists of its 8 links"):
        one_way(paths=[path, [], []]).rounds(0)


def test_circuits_that_leave_the_stated_path_are_refused():
    """They join the same nodes, the other way round the ring."""
    plan, other = one_way(), one_way(paths=[links(TORUS, 0, 3, 2), [], ONE_WAY[2]])
    (violation,) = check_light(CircuitPlan(TORUS, plan.schedule, other.rounds), progress=no_progress).violations
    assert (violation.rule, violation.where, violation.count) == ("circuit_astray", "0 -> 2", 1)


def test_steps_of_a_class_state_equal_paths():
    """Two steps that are equal but for a path are no class."""
    first, second = (
        Transfers.of([0], [2], [0], 1, Op.COPY, path=stated(links(TORUS, *way))) for way in ((0, 1, 2), (0, 3, 2))
    )
    made = Steps.listed(4, 4, 2, (first, second).__getitem__, [range(2)])
    plan = lower(TORUS, Schedule.of("by hand", nothing_required(4, 4), made))
    found = check_light(plan, progress=no_progress).violations
    assert [violation.rule for violation in found] == ["steps_unequal"]


def test_rows_keep_their_paths():
    """Those that are taken, joined, and left out since they go nowhere."""
    paths = [[0, 1], [2], [3, 4, 5]]
    t = Transfers.of([0, 1, 2], [1, 1, 3], [0, 1, 2], 1, Op.COPY, path=stated(*paths))
    none = Transfers.of([0], [1], [0], 1, Op.COPY)
    every = concatenate_transfers([t, none, t.take(np.array([1, 0])), t.take(slice(1, 2)), t.take(t.src == 0)])
    due = [[0, 1], [3, 4, 5], [], [3, 4, 5], [0, 1], [3, 4, 5], [0, 1]]
    hops, offsets = every.path
    assert [hops[a:b].tolist() for a, b in pairwise(offsets)] == due
    assert none.path is None


def test_a_job_states_links_of_the_machine_and_groups_state_none():
    """Ranks 0 and 1 are nodes 3 and 1."""
    where = job(TORUS, [3, 1])
    step = Transfers.of([0], [1], [0], 1, Op.COPY, path=stated(links(TORUS, 3, 2, 1)))
    plan = plan_of(where, step)
    assert plan.rounds(0)[0].hops.tolist() == links(TORUS, 3, 2, 1)
    assert check_light(plan, progress=no_progress).violations == ()
    with pytest.raises(UnsupportedError, match="paths have those of one group"):
        plan.schedule.in_groups(2).step(0)


def test_circuits_are_assigned_their_paths():
    """A schedule that states paths is for packets."""
    where = fabric("sip_ring:nodes=4")
    with pytest.raises(UnsupportedError, match="by hand on sip_ring: step 0 states paths of packets"):
        one_way(where).rounds(0)


TWICE = [links(TORUS, 0, 3, 2), [], links(TORUS, 3, 2, 1)]


def in_pieces(paths=TWICE):
    """Four steps of one phase, in each of which a piece takes each of the ways."""
    rows = PhaseRows.of(1, [[0], [1], [3]], [[2], [2], [1]], 0, unit_lo=[0, 0, -1], unit_shift=1)
    part = MessagePart(((UNIT, 1, 4),), 4)
    made = Steps(Space((4,)), [part], [Phase(rows, (), 4, paths=stated(*paths))])
    return lower(TORUS, Schedule.of("by hand", nothing_required(4, 4), made))


def by_function(paths=TWICE):
    """Two steps of a function, the second of which states no path."""
    steps = [
        Transfers.of([0, 1, 3], [2, 2, 1], [0, 1, 2], 1, Op.COPY, path=stated(*paths)),
        Transfers.of([0], [1], 0, 1, 0),
    ]
    made = Steps.listed(4, 4, 2, steps.__getitem__)
    return lower(TORUS, Schedule.of("by hand", nothing_required(4, 4), made))


def paths_in(schedule):
    """Stated paths of every transfer of every step."""
    found = []
    for number in range(schedule.num_steps):
        hops, offsets = schedule.step(number).path or ([], np.zeros(len(schedule.step(number)) + 1, int))
        found.append([list(hops[a:b]) for a, b in pairwise(offsets)])
    return found


def test_pieces_follow_the_paths_of_their_rows():
    """A row that begins a step later has its own path."""
    plan = in_pieces()
    assert paths_in(plan.schedule) == [TWICE[:2], TWICE, TWICE, TWICE]
    assert [circuits.path(0).tolist() for i in range(4) for circuits in plan.rounds(i)] == [TWICE[0]] * 4
    assert check_light(plan, progress=no_progress).violations == ()
    assert plan.schedule.steps != in_pieces([TWICE[0], [], []]).schedule.steps


@pytest.mark.parametrize("paths", [(np.arange(3), np.array([0, 3])), (np.arange(3), np.array([0, 2, 1, 3]))])
def test_rows_without_a_path_each(paths):
    """Fewer than rows, and ends that fall, are no paths; nor are those of rows that translations move."""
    rows = PhaseRows.of(1, [[0], [0], [0]], [[2], [2], [1]], 0)
    part = MessagePart(((UNIT, 1, 1),), 1)
    with pytest.raises(ParameterError, match="not one for each row"):
        Steps(Space((4,)), [part], [Phase(rows, paths=paths)])
    with pytest.raises(ParameterError, match="paths of rows that translations move"):
        Steps(Space((4,)), [part], [Phase(rows, (True,), paths=stated([0], [1], [2]))])


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
@pytest.mark.parametrize("make", [one_way, in_pieces, by_function])
def test_files_keep_stated_paths(make, suffix, tmp_path):
    """What is read has the same circuits, states the same paths and passes the judge."""
    plan, path = make(), tmp_path / f"plan.{suffix}"
    write_plan_file(path, plan, 4_000_000, "by hand")
    read = read_plan_file(path).plan
    for number in range(plan.schedule.num_steps):
        (mine,), (its,) = plan.rounds(number), read.rounds(number)
        assert (its.hops.tolist(), its.hop_offsets.tolist()) == (mine.hops.tolist(), mine.hop_offsets.tolist())
    due = paths_in(plan.schedule)
    if make is by_function:  # only the rows of the file have its paths, so that a route is stated too
        due = [[path or links(TORUS, 1, 2) for path in due[0]], due[1]]
    assert paths_in(read.schedule) == due
    assert check_light(read, progress=no_progress).violations == ()


@pytest.mark.parametrize(
    ("hops", "rule"),
    [([1, 99], "path_broken"), ([0, 0], "path_broken"), (links(TORUS, 0, 1, 2), "circuit_astray")],
    ids=["a link that does not exist", "no walk", "the other way round"],
)
@pytest.mark.parametrize("make", [one_way, in_pieces])
def test_files_with_another_path_are_refused(make, hops, rule, tmp_path):
    """Of the first transfer, which states the way of the schedule in the header."""
    path = tmp_path / "plan.json"
    write_plan_file(path, make(paths=TWICE), 4_000_000, "by hand")
    file = json.loads(path.read_text())
    file["columns"]["path"][0] = hops
    path.write_text(json.dumps(file))
    found = {violation.rule for violation in check_light(read_plan_file(path).plan, progress=no_progress).violations}
    assert rule in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lengths": None}, "hops without lengths"),
        ({"lengths": "!"}, "steps:"),
        ({"hops": "eJwDAAAAAAE="}, "not 4 values"),
    ],
)
def test_files_with_paths_that_are_none(change, reason, tmp_path):
    """A header that packs no lists."""
    path = tmp_path / "plan.json"
    write_plan_file(path, in_pieces(), 4_000_000, "by hand")
    file = json.loads(path.read_text())
    file["header"]["steps"]["phases"][0].update(change)
    path.write_text(json.dumps(file))
    with pytest.raises(PlanFileError, match=reason):
        read_plan_file(path)


def test_many_stated_paths_are_all_followed():
    """More transfers than routes that are listed, of which each states the longer way."""
    where = fabric("torus:shape=3")
    count = 70_000
    paths = np.tile(links(where, 0, 2, 1), count), np.arange(count + 1) * 2
    t = Transfers.of(np.zeros(count), np.ones(count), 0, 1, Op.COPY, path=paths)
    plan = plan_of(where, t)
    assert plan.routed(0) is None
    (carried,) = loads(plan, 4_000_000)
    used = dict(zip(carried.index.tolist(), carried.carried_bytes.tolist(), strict=True))
    assert [used.get(link, 0) for link in links(where, 0, 2, 1)] == [count * 10**6] * 2
    assert used.get(links(where, 0, 1)[0], 0) == 0
