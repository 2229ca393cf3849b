"""The types: what can be compared is compared, and what is shown is short."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.ir import Circuits, Op, Transfers, same_columns
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.plans.compare import compare_plans
from opticcl.plans.plan import compile
from opticcl.training.train import train


def test_fabrics_of_the_same_parameters_are_equal():
    """However they were written; other parameters, other ranks and other things are not."""
    torus = fabric("torus:shape=4x4")
    assert torus == fabric("torus", shape=(4, 4))
    assert torus != fabric("torus:shape=4x4,rate=1Tb/s")
    assert torus != fabric("torus:shape=2x8")
    assert torus != fabric_at_scale("bcube", 16)
    assert torus != "torus"
    assert len({torus, fabric("torus:shape=4x4"), fabric("torus:shape=2x8")}) == 2


def test_jobs_are_equal_if_their_ranks_are():
    """The same nodes in the same order."""
    torus = fabric("torus:shape=4x4")
    assert job(torus, [0, 1]) == job(torus, range(2))
    assert job(torus, [0, 1]) != job(torus, [1, 0])
    assert torus != job(torus, range(16))


TORUS = fabric("torus:shape=4x4")
PLAN = compile(TORUS, "all_to_all", "1MB", algorithm="mesh")
JOB = TaskGraph(
    "own",
    "a test",
    16,
    (Task("forward", 1e-3), Task("sum", 0.0, "all_reduce", 10**6, "all")),
    {"all": ProcessGroup("all", range(16))},
)
FOUND = compare_plans([TORUS, fabric("ideal:nodes=16")], "all_reduce", [10**6], assumptions="published")
TRAINED = train(JOB, [TORUS, "ideal"], assumptions="published")


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (TORUS, ["torus", "16 nodes", "2.048 Tb/s"]),
        (job(TORUS, [3, 1]), ["torus", "2 of 16 nodes"]),
        (PLAN, ["all_to_all", "1 MB", "torus", "mesh"]),
        (PLAN.circuits, ["all_to_all", "torus", "mesh"]),
        (PLAN.schedule, ["mesh", "all_to_all", "16 ranks", "1 step>"]),
        (PLAN.schedule.collective, ["all_to_all", "16 ranks"]),
        (PLAN.schedule.step(0), ["240"]),
        (PLAN.circuits.rounds(0)[0], ["240"]),
        (PLAN.verify(), ["verified", "240 circuits"]),
        (PLAN.simulate(assumptions="published"), ["1 step,", "us"]),
        (FOUND, ["all_reduce of 1 MB", "2 plans", "fastest"]),
        (FOUND.entries[0], [FOUND.entries[0].fabric.name, "right"]),
        (JOB, ["own", "16 devices", "2 tasks", "1 ms", "1 message of 1 MB"]),
        (TRAINED, ["own", "2 fabrics", "fastest"]),
        (TRAINED.rows[1], ["own", TRAINED.rows[1].machine.name]),
        (TRAINED.rows[0].iteration, ["own", "1 message>"]),
        (TRAINED.rows[0].plans[0], ["1 message of 1 MB", "right"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_shows_itself_in_one_short_line(thing, told):
    """What a notebook shows of it, and what stands of it in a message."""
    shown = repr(thing)
    assert shown.startswith(f"<{type(thing).__name__} ")
    assert len(shown) < 130
    assert "\n" not in shown
    assert all(words in shown for words in told)


def test_tables_are_printed_row_by_row():
    """The fastest first, below a head."""
    for found, names in (
        (FOUND, [entry.fabric.name for entry in FOUND.entries]),
        (TRAINED, [row.machine.name for row in TRAINED.rows]),
    ):
        head, *lines = str(found).splitlines()
        assert head.startswith("fabric ")
        assert [line.split()[0] for line in lines] == names
        assert all(line.endswith("yes") for line in lines)


def test_a_fabric_prints_its_parameters():
    """One a line, with those that are not set left out."""
    head, *lines = str(fabric("fat_tree:nodes=8")).splitlines()
    assert head == "fat_tree: 8 nodes, 400 Gb/s per node"
    assert ["nodes", "8"] in [line.split() for line in lines]
    assert not any("None" in line for line in lines)


@pytest.mark.parametrize("n", [0, 1, 10, 11])
def test_columns_print_their_first_rows(n):
    """At most ten, and how many there are beyond; none is a head alone."""
    ranks = np.arange(n)
    transfers = Transfers.of(ranks, ranks + 1, 0, 1, Op.REDUCE)
    for printed, first in ((str(transfers), "src"), (str(Circuits.of(ranks, ranks, ranks + 1)), "transfer")):
        head, *lines = printed.splitlines()
        assert head.split()[0] == first
        assert len(lines) == min(n, 10) + (n > 10)
        assert (lines[-1:] == ["... and 1 more"]) == (n > 10)


LISTED = Circuits.of(
    np.arange(5), np.arange(5), np.arange(5) + 1, 0, np.arange(5), 1, (np.arange(12) * 7, np.array([0, 3, 3, 4, 9, 12]))
)


@pytest.mark.parametrize(
    "rows", [[4, 0, 3], [1], [2, 2, 0, 4], [True, False, True, False, True], [0, 1, 2, 3, 4], [0, 1, 2, 4, 3]]
)
def test_circuits_that_are_taken_have_the_paths_of_their_rows(rows):
    """Also rows of rows, and with other transfers; all of them in their order share their paths."""
    numbers = np.flatnonzero(rows) if rows and isinstance(rows[0], bool) else np.array(rows, int)
    taken = LISTED.take(np.array(rows))
    assert [list(taken.path(i)) for i in range(len(taken))] == [list(LISTED.path(i)) for i in numbers]
    assert taken.num_hops().tolist() == LISTED.num_hops()[numbers].tolist()
    assert taken.wavelength_lo.tolist() == numbers.tolist()
    other = LISTED.take(np.array(rows)).carrying_others(np.full(len(numbers), 9, np.int32))
    assert same_columns(replace(other, transfer=taken.transfer), taken)
    assert set(other.transfer.tolist()) <= {9}
    again = LISTED.take(np.array(rows)).take(np.arange(len(numbers))[::-1])
    assert [list(again.path(i)) for i in range(len(again))] == [list(LISTED.path(i)) for i in numbers[::-1]]
    assert same_columns(pickle.loads(pickle.dumps(LISTED.take(np.array(rows)))), taken)
    assert (taken.hops is LISTED.hops) == (taken.hop_offsets is LISTED.hop_offsets) == (rows == [0, 1, 2, 3, 4])


def test_bytes_of_circuits_are_those_of_their_columns():
    """Six columns of numbers and the paths."""
    taken = LISTED.take([0, 3, 4])
    assert taken.num_bytes == taken.hops.nbytes + taken.hop_offsets.nbytes + 6 * taken.src.nbytes
