"""Algorithms that raise, such as a plugin's: left out with their name and error, never the end of a comparison."""

import pickle

import numpy as np
import pytest

import opticcl
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, UnsupportedError
from opticcl.ir import Op, Schedule, Transfers
from opticcl.plans.compare import compare_plans
from opticcl.plans.search import Searches
from opticcl.plans.sweep import sweep_fabrics
from opticcl.schedule import ALGORITHMS, all_variants, generate, register_algorithm
from opticcl.traces import load_job
from opticcl.training.train import train

FABRICS = [opticcl.fabric("ideal:nodes=4"), opticcl.fabric("torus:shape=2x2")]


def accepts(collective, fabric):
    """Every all_gather."""
    return None if collective.name == "all_gather" else "it does all_gather"


def step_of(i, n=4):
    """A step of a ring."""
    node = np.arange(n)
    return Transfers.of(node, (node + 1) % n, (node - i) % n, 1, Op.COPY)


@pytest.fixture
def failing(monkeypatch):
    """Registers an algorithm whose step function is given."""
    ALGORITHMS.names()
    monkeypatch.setattr(ALGORITHMS, "_entries", dict(ALGORITHMS._entries))

    def register(step, num_steps=1, classes=(), accepted=accepts):
        @register_algorithm("failing", accepted)
        def make(collective, fabric):
            return Schedule("failing", collective.on(4, 4), num_steps, step, classes)

    return register


def raises(i):
    """A step that cannot be made."""
    raise ZeroDivisionError("division\x1b[31m by zero")


def late(i):
    """Good in the first step of its class only."""
    return step_of(0) if i == 0 else raises(i)


@pytest.mark.parametrize("algorithm", ["auto", "all", "main"])
def test_a_step_that_raises_is_left_out(failing, algorithm):
    """With the name of the algorithm, of the error, and its text without control characters."""
    failing(raises)
    found = compare_plans(FABRICS, "all_gather", [1000], algorithm=algorithm, assumptions="published")
    left_out = [one for one in found.declined if one.algorithm == "failing"]
    assert {one.fabric for one in left_out} == {"ideal", "torus"}
    assert all("algorithm failing: step 0 raised ZeroDivisionError: division" in one.reason for one in left_out)
    assert all(one.reason.isprintable() for one in left_out)
    assert {entry.fabric.name for entry in found.entries} == {"ideal", "torus"}
    assert all(entry.verdict.ok and entry.plan.algorithm != "failing" for entry in found.entries)


@pytest.mark.parametrize("algorithm", ["auto", "all"])
def test_a_later_step_that_raises_gives_way_to_the_next_fastest(failing, algorithm, monkeypatch):
    """The search needs one step of a class, the verifier all of them."""
    failing(late, 2, (range(2),))
    kept = {name: ALGORITHMS.get(name) for name in ("failing", "ring")}  # a ring takes three steps
    monkeypatch.setattr(ALGORITHMS, "_entries", kept)
    found = compare_plans(FABRICS, "all_gather", [1], algorithm=algorithm, assumptions="published")
    assert sorted((entry.fabric.name, entry.plan.algorithm) for entry in found.entries) == [
        ("ideal", "ring"),
        ("torus", "ring"),
    ]
    assert all(entry.verdict.ok for entry in found.entries)
    assert any(one.algorithm == "failing" and "step 1 raised" in one.reason for one in found.declined)


@pytest.mark.parametrize("classes", [(), (range(2),), (range(1), range(1, 2))])
def test_the_step_is_named_by_its_number_in_the_schedule(failing, classes):
    """However its steps are cut into classes, and after it was pickled."""
    failing(late, 2, classes)
    made = generate("failing", "all_gather", FABRICS[0])
    for schedule in (made, pickle.loads(pickle.dumps(made))):
        with pytest.raises(AlgorithmError, match="failing: step 1 raised ZeroDivisionError"):
            schedule.step(1)


@pytest.mark.parametrize("algorithm", ["failing", "auto"])
def test_nothing_else_to_compare_is_refused_with_the_error(failing, monkeypatch, algorithm):
    """One line with the algorithm and its error."""
    failing(raises)
    monkeypatch.setattr(ALGORITHMS, "_entries", {"failing": ALGORITHMS.get("failing")})
    with pytest.raises(UnsupportedError, match="failing: step 0 raised ZeroDivisionError"):
        compare_plans(FABRICS[:1], "all_gather", [1000], algorithm=algorithm, assumptions="published")


def test_compiling_it_names_it(failing):
    """Alone it is an error of the input; the search for the fastest takes another."""
    failing(raises)
    plan = opticcl.compile(FABRICS[0], "all_gather", 1000, algorithm="failing")
    with pytest.raises(AlgorithmError, match="algorithm failing: step 0 raised ZeroDivisionError"):
        plan.verify()
    assert opticcl.compile(FABRICS[0], "all_gather", 1000).verify().ok


def test_what_is_no_transfers_is_named(failing):
    """A step function that returns something else."""
    failing(lambda i: None)
    with pytest.raises(AlgorithmError, match="algorithm failing: step 0 returned NoneType, not Transfers"):
        generate("failing", "all_gather", FABRICS[0]).step(0)


def test_functions_around_a_schedule_are_named(failing, monkeypatch):
    """`accepts`, `generate` and `variants`."""
    failing(step_of, accepted=lambda collective, fabric: 1 / 0)
    with pytest.raises(AlgorithmError, match="algorithm failing: accepts raised ZeroDivisionError: division by zero"):
        generate("failing", "all_gather", FABRICS[0])
    assert compare_plans(FABRICS, "all_gather", [1000], assumptions="published").declined[0].algorithm == "failing"
    maker = ALGORITHMS.get("failing")
    entries = dict(ALGORITHMS._entries)
    broken = maker._replace(accepts=accepts, generate=lambda collective, fabric: 1 / 0)
    monkeypatch.setattr(ALGORITHMS, "_entries", entries | {"failing": broken})
    with pytest.raises(AlgorithmError, match="algorithm failing: generate raised ZeroDivisionError"):
        generate("failing", "all_gather", FABRICS[0])
    broken = maker._replace(accepts=accepts, variants=lambda collective, fabric: 1 / 0)
    monkeypatch.setattr(ALGORITHMS, "_entries", entries | {"failing": broken})
    with pytest.raises(AlgorithmError, match="algorithm failing: variants raised ZeroDivisionError"):
        all_variants(Request("all_gather"), FABRICS[0])


def test_step_functions_pickle():
    """They travel as the request that they were generated from."""
    made = generate("ring", "all_gather", FABRICS[0]).step
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made
    assert len(copy(1)) == len(made(1))


def test_a_sweep_and_a_training_name_it(failing, tmp_path):
    """Beside the results of the other algorithms."""
    failing(raises)
    found = sweep_fabrics([("ideal:nodes=4", FABRICS[0])], "all_gather", [1000], Searches(assumptions="published"))
    assert [one.reason for one in found.left_out] == list(found.sweeps[0].failures)
    assert "algorithm failing: step 0 raised ZeroDivisionError" in found.left_out[0].reason
    sizes = tmp_path / "job.toml"
    sizes.write_text('name = "job"\n[[calls]]\ncollective = "all_gather"\nsize = 1000\n')
    (row,) = train(load_job(sizes, num_ranks=4), FABRICS[0], assumptions="published").rows
    assert any("left out: algorithm failing: step 0 raised" in remark for remark in row.remarks)
