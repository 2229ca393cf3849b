"""Every plan of the conformance matrix is the same plan after it was saved and loaded: its digest, and its times."""

import random
from itertools import islice

import pytest
from tests.conformance.test_times import CIRCUITS, ENGINES, SETS, SIZES
from tests.matrix import cases, cells, compiled, shared_out

from opticcl.formats.plan_file import read_plan_file, write_plan_file
from opticcl.formats.programme_file import plan_digest, read_programme_file, write_programme_file
from opticcl.simulate import programme
from opticcl.verify.time.programme import check_programme, rules_of

FEW_NODES = 5
SUFFIXES = (".parquet", ".json", ".csv")
CELLS = cells()


def plans(name, algorithm, most=64):
    """The plans of a cell with at least two nodes, in an order that is drawn for each cell."""
    tried = [case for case in cases(name) if 1 < case[0] <= most]
    random.Random(f"{name} {algorithm}").shuffle(tried)
    found = (compiled(name, algorithm, *case) for case in tried)
    return (plan for plan in found if not isinstance(plan, str))


def loaded(plan, folder, suffix):
    """The plan of a file that holds it."""
    write_plan_file(folder / f"plan{suffix}", plan, 1000, "as it was compiled")
    return read_plan_file(folder / f"plan{suffix}").plan


def check_times(made_of, judged, folder, turn, engine):
    """A programme of one form of a plan is right beside the other form."""
    path = folder / f"times-{turn}{SUFFIXES[turn % 3]}"
    write_programme_file(path, made_of, programme(made_of, SIZES[turn % 3], SETS[turn % 4], engine=engine))
    read = read_programme_file(path, judged)
    verdict = check_programme(judged, read, rules_of(read))
    assert verdict.ok, f"{made_of.schedule!r} on {made_of.fabric!r}, {engine}: {verdict}"


def check(plan, folder, turn, engines=()):
    """One plan and its file."""
    folder.mkdir()
    file = loaded(plan, folder, SUFFIXES[turn % 3])
    assert plan_digest(file) == plan_digest(plan), f"{plan.schedule!r} on {plan.fabric!r}"
    for j, engine in enumerate(engines):
        check_times(plan, file, folder, 2 * j, engine)
        check_times(file, plan, folder, 2 * j + 1, engine)


@pytest.mark.parametrize(("name", "algorithm", "turn"), shared_out(CELLS))
def test_a_plan_of_each_cell(name, algorithm, turn, tmp_path):
    """With few nodes; its times by one engine, by another in another cell."""
    for plan in islice(plans(name, algorithm, FEW_NODES), 1):
        check(plan, tmp_path / "plan", turn, [ENGINES[turn % 6]] if name in CIRCUITS else ())


@pytest.mark.deep
@pytest.mark.parametrize(("name", "algorithm"), CELLS)
def test_every_plan_of_each_cell(name, algorithm, tmp_path):
    """All of them, and the times of a few by every engine."""
    for k, plan in enumerate(plans(name, algorithm)):
        check(plan, tmp_path / str(k), k, ENGINES if name in CIRCUITS and k < 6 else ())
