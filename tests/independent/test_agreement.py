"""The independent judge and `verify` give one verdict on every plan that is drawn, and on every mutant of it."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.independent.drawn import MACHINES, Drawn, divided, drawn, grown, with_one_more
from tests.independent.judge import judge

from opticcl.errors import PlanFileError
from opticcl.plans.plan import read

AT_ONCE = 10
"""Seeds of a test of plans and mutants: one or more of every system."""
SEEDS = range(0, 200, AT_ONCE)
"""First seeds; each draws ten plans and mutants."""
LIGHT = range(20)
"""Seeds of plans by hand, of which each draws five for every machine."""


def first_of(seeds):
    """The first for `make test`, the others for `make test-deep`."""
    return [pytest.param(seed, marks=() if seed == seeds[0] else pytest.mark.deep) for seed in seeds]


def verdict_of_verify(path: Path) -> str:
    """Of the library; a file that it does not read is wrong."""
    try:
        ok = read(path).verify().ok
    except PlanFileError:
        return "wrong"
    return {True: "right", False: "wrong", None: "not_judged"}[ok]


def compared(plan: Drawn, folder: Path, number: int) -> tuple[str, str]:
    """Both verdicts; those that differ are a failure.

    Args:
        plan: that was drawn.
        folder: for its file.
        number: by which it is JSON or CSV.
    """
    path = plan.write(folder, (".csv", ".json")[number % 2])
    mine, theirs = judge(path), verdict_of_verify(path)
    assert mine.verdict != "not_judged", f"{plan.name}: {mine.reason}"
    assert theirs in ("not_judged", mine.verdict), f"{plan.name}: {mine}, verify: {theirs}\n{path.read_text()}"
    return mine.verdict, theirs


@pytest.mark.parametrize("first", first_of(SEEDS))
def test_plans_and_mutants(tmp_path, first):
    """A hundred of all systems; a fifth or more is right, and a fifth wrong; few are not judged."""
    found = Counter(
        compared(plan, tmp_path, number)
        for seed in range(first, first + AT_ONCE)
        for number, plan in enumerate(drawn(seed, tmp_path))
    )
    assert found.total() == 10 * AT_ONCE
    assert min(found["right", "right"], found["wrong", "wrong"]) >= 2 * AT_ONCE
    assert found["right", "not_judged"] + found["wrong", "not_judged"] <= AT_ONCE // 10


@pytest.mark.parametrize(
    ("system", "seed"),
    [
        pytest.param(system, seed, marks=() if system == "ramp" and seed < 2 else pytest.mark.deep)
        for system in MACHINES
        for seed in LIGHT
    ],
)
def test_light_by_hand(tmp_path, system, seed):
    """Transfers divided among ports, of which RAMP hands one signal to several receivers; rounds with little room left."""
    found = Counter()
    for fabric in MACHINES[system]:
        random = Random(f"{seed} {fabric}")
        plan = grown(random, fabric, tmp_path)
        more = (with_one_more(random, plan) for _ in range(3))
        found.update(compared(one, tmp_path, seed) for one in (divided(random, fabric), plan, *more))
    assert min(found["right", "right"], found["wrong", "wrong"]) >= 1
