"""Runs and claims in the header of a plan file: written once, read back, bounded, and checked like any other claim."""

import dataclasses
import json

import numpy as np
import pytest

import opticcl
from opticcl.errors import PlanFileError
from opticcl.formats.plan_file import read_plan_file, write_plan_file
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.symmetry import Bundles, Digits, Run, RunSteps, Symmetry, Table, Through, Xor
from opticcl.plans.plan import read
from opticcl.verify import data, verify

RUNS = [
    ("ideal:nodes=9", "all_reduce", "ring"),
    ("oddl:shape=3x3", "all_gather", "ring"),
    ("ideal:nodes=8", "all_reduce", "two_sided_ring"),
    ("torus:shape=5x7", "reduce_scatter", "torus_all_ports"),
    ("ideal:nodes=12", "all_reduce", "torus2d"),
]
CLAIMS = [
    ("ideal:nodes=8", "all_to_all", "ring"),  # every step is written, since it differs in size
    ("ideal:nodes=8", "all_reduce", "halving_doubling"),
    ("ramp:groups=4,racks=4,wavelengths=8", "all_reduce", "ramp"),
    ("sipac:radix=3,levels=2", "all_gather", "sipco"),
]


@pytest.fixture(autouse=True)
def symmetry_at_every_size(monkeypatch):
    """Also where following all chunks is quicker."""
    monkeypatch.setattr(data, "SYMMETRY_FROM", 0)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
@pytest.mark.parametrize(("specification", "collective", "algorithm"), [*RUNS, *CLAIMS])
def test_steps_and_claims_come_back(specification, collective, algorithm, ending, tmp_path):
    """Every step of every run, its circuits, the time and the proof."""
    plan = opticcl.compile(specification, collective, "1 MB", algorithm=algorithm)
    rows = plan.save(path := tmp_path / f"plan.{ending}")
    again = opticcl.load(path)
    assert again.schedule.num_steps == plan.schedule.num_steps
    for i in range(plan.schedule.num_steps):
        one, other = plan.schedule.step(i), again.schedule.step(i)
        for column in ("src", "dst", "chunk_lo", "chunk_n", "op"):
            assert np.array_equal(getattr(one, column), getattr(other, column)), (i, column)
        assert len(plan.circuits.rounds(i)) == len(again.circuits.rounds(i))
    assert again.simulate(assumptions="published").total_s == pytest.approx(
        plan.simulate(assumptions="published").total_s
    )
    assert again.verify().how == plan.verify().how
    assert again.verify().how.startswith("symmetry of order")
    assert not any("refused" in note for note in again.verify().notes)
    if (specification, collective, algorithm) in RUNS:
        assert rows < again.verify().circuits


def test_a_ring_of_4096_is_two_steps(tmp_path):
    """8,192 rows for 33 million circuits, proven when they are read."""
    plan = opticcl.compile("ideal:nodes=4096", "all_reduce", "1 GB", algorithm="ring")
    path = tmp_path / "ring.parquet"
    assert plan.save(path) == 2 * 4096
    assert path.stat().st_size < 2**20
    verdict = opticcl.load(path).verify()
    assert verdict.how == "symmetry of order 4,096, checked"
    assert verdict.circuits == 8190 * 4096


def test_every_kind_of_permutation_comes_back(tmp_path):
    """Digits, exclusive or, tables, labels, bundles; written again, the file is the same."""
    claims = (
        Symmetry(Digits((2, 4), 1, -1), Digits((8,), 0, 3)),
        Symmetry(Xor(5), Table(np.array([1, 0, 3, 2, 5, 4, 7, 6]))),
        Symmetry(Through(np.array([3, 1, 0, 2, 7, 6, 5, 4]), Xor(1)), Through(np.arange(8), Digits((8,), 0, 1))),
        Symmetry(Xor(1), Bundles(Xor(1), ((2, 3), (2, 1)), turn=2)),
    )
    plan = opticcl.compile("ideal:nodes=8", "all_reduce", "1 MB", algorithm="ring")
    claiming = dataclasses.replace(plan.schedule, symmetries=claims)
    write_plan_file(tmp_path / "a.json", dataclasses.replace(plan.circuits, schedule=claiming), 8, "x")
    found = read_plan_file(tmp_path / "a.json").plan
    for one, other in zip(claims, found.schedule.symmetries, strict=True):
        assert np.array_equal(one.ranks.images(8), other.ranks.images(8))
        assert np.array_equal(one.chunks.images(8), other.chunks.images(8))
    write_plan_file(tmp_path / "b.json", found, 8, "x")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_file_without_runs_and_claims_is_of_version_1(tmp_path):
    """Earlier programs read it."""
    opticcl.compile("ideal:nodes=4", "broadcast", "1 MB", algorithm="tree").save(path := tmp_path / "a.json")
    header = json.loads(path.read_text())["header"]
    assert header["version"] == 1
    assert not {"runs", "symmetries"} & header.keys()


def test_parts_that_grow_in_a_run(tmp_path):
    """An all-to-all around a ring whose steps have the same circuits by definition."""
    n = 5
    plan = opticcl.compile(f"ideal:nodes={n}", "all_to_all", "1 MB", algorithm="ring")
    (run,) = plan.schedule.step.runs
    step = RunSteps((run,), n)
    schedule = dataclasses.replace(plan.schedule, step=step)
    circuits = CircuitPlan(plan.fabric, schedule, ClassRounds((range(n - 1),), plan.circuits.rounds))
    assert write_plan_file(tmp_path / "a.csv", circuits, 100, "ring") == n
    again = read_plan_file(tmp_path / "a.csv").plan
    assert verify(again).ok
    assert [int(again.schedule.step(i).parts[0]) for i in range(n - 1)] == [1, 2, 3, 4]


# --- claims and plans that are false ----------------------------------------------------------------------------------


def changed(tmp_path, edit, algorithm="ring"):
    """A plan file of a ring of 8 with a changed header."""
    path = tmp_path / "plan.json"
    opticcl.compile("ideal:nodes=8", "all_reduce", "1 MB", algorithm=algorithm).save(path)
    whole = json.loads(path.read_text())
    edit(whole["header"], whole["columns"])
    path.write_text(json.dumps(whole))
    return path


def test_a_false_claim_on_a_right_plan_is_accepted_with_a_note(tmp_path):
    """The verdict does not rest on it."""

    def edit(header, columns):
        header["symmetries"] = [{"ranks": {"kind": "xor", "mask": 1}, "chunks": {"kind": "xor", "mask": 1}}]

    verdict = opticcl.load(changed(tmp_path, edit)).verify()
    assert verdict.ok
    assert verdict.how == "every chunk followed"
    assert any("claim refused" in note for note in verdict.notes)


def test_a_true_claim_on_a_wrong_plan_is_refused(tmp_path):
    """A ring whose first run stops one step early, and one that copies where it should add, as symmetric as ever."""

    def short(header, columns):
        header["runs"][0]["count"] -= 1
        header["num_steps"] -= 1

    def copies(header, columns):
        columns["op"] = [0] * len(columns["op"])

    for edit in (short, copies):
        verdict = read(changed(tmp_path, edit)).verify()
        assert not verdict.ok
        assert verdict.how == "symmetry of order 8, checked"
        assert {v.rule for v in verdict.violations} == {"contribution_missing"}


def test_light_in_the_first_step_of_each_run_only(tmp_path):
    """Circuits of later steps are those of the first by definition in a file; a plan that has others is refused by name."""
    plan = opticcl.compile("ideal:nodes=8", "all_reduce", "1 MB", algorithm="ring")
    starts = {steps.start for steps in plan.schedule.step_classes()}
    dark = dataclasses.replace(plan.circuits, rounds=lambda i: plan.circuits.rounds(i) if i in starts else ())
    assert {v.rule for v in verify(dark).violations} == {"steps_unequal"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (lambda h: h["runs"][0].update(count=0), "runs[0].count=0 is not 1 to 16"),
        (lambda h: h["runs"][0].update(count=10**15), "runs[0].count=1000000000000000 is not 1 to 16"),
        (lambda h: h["runs"][1].update(step=0), "runs[1].step=0 does not follow 0"),
        (lambda h: h["runs"][1].update(step=7), "runs[1].step=7"),
        (lambda h: h.update(num_steps=3), "leave -9 steps"),
        (lambda h: h["runs"][0].update(members=[]), "runs[0].members has 0 entries"),
        (lambda h: h["runs"][0]["members"][0].update(first_transfer=4), "first_transfer=[4]"),
        (lambda h: h["runs"][0]["members"][0].update(parts_step=1), "runs[0].members[0].parts_step=1"),
        (lambda h: h["runs"][0]["members"][0]["shift"].update(radices=[9]), "runs[0].members[0].shift: "),
        (lambda h: h["runs"][0]["members"][0]["shift"].update(radices=[1] * 65), "1 to 64 numbers"),
        (lambda h: h["runs"][0]["members"][0]["shift"].update(digit=1), "digit 1 of (8,)"),
        (lambda h: h["runs"][0]["members"][0].update(shift={"kind": "xor", "mask": 8}), "mask=8 is not 0 to 7"),
        (lambda h: h["runs"][0]["members"][0].update(shift={"kind": "table", "values": "AAAA"}), "shift: "),
        (lambda h: h["runs"][0]["members"][0].update(shift={"kind": "turn"}), "turn"),
        (
            lambda h: h["symmetries"][0].update(ranks={"kind": "digits", "radices": [7], "digit": 0, "add": 1}),
            "symmetries[0].ranks",
        ),
        (
            lambda h: h["symmetries"][0].update(chunks={"kind": "digits", "radices": [2**70], "digit": 0, "add": 1}),
            "symmetries[0]",
        ),
        (
            lambda h: h["symmetries"][0].update(chunks={"kind": "digits", "radices": [8], "digit": 0, "add": 2**40}),
            "beyond 32 bits",
        ),
        (lambda h: h.update(symmetries=h["symmetries"] * 257), "symmetries has 257 entries; at most 256"),
    ],
)
def test_what_no_plan_has_is_refused_by_field(tmp_path, fields, words):
    """In one line, before anything of that size is allocated."""
    with pytest.raises(PlanFileError) as caught:
        read(changed(tmp_path, lambda header, columns: fields(header)))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_that_is_no_permutation_is_refused(tmp_path):
    """Of the right length, with an image twice."""
    twice = Schedule(
        "x", opticcl.compile("ideal:nodes=4", "all_gather", "4 B", algorithm="ring").schedule.collective, 1, _one
    )
    claim = Symmetry(Table(np.array([0, 1, 2, 2])), Digits((4,), 0, 1))
    plan = CircuitPlan(opticcl.fabric("ideal:nodes=4"), dataclasses.replace(twice, symmetries=(claim,)), lambda i: ())
    write_plan_file(
        tmp_path / "a.csv", dataclasses.replace(plan, schedule=dataclasses.replace(plan.schedule, num_steps=0)), 4, "x"
    )
    with pytest.raises(PlanFileError, match=r"symmetries\[0\].ranks: .* does not permute 4 elements"):
        read(tmp_path / "a.csv")


def _one(i):
    return Transfers.of([0], [1], [0], [1], [int(Op.COPY)])


def test_members_are_found_by_the_numbers_of_transfers(tmp_path):
    """Rows of a round in another order."""
    path = tmp_path / "plan.csv"
    opticcl.compile("ideal:nodes=7", "all_gather", "1 MB", algorithm="two_sided_ring").save(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], *reversed(lines[2:])]) + "\n")
    assert opticcl.load(path).verify().ok


def test_a_run_of_one_member_with_its_step(tmp_path):
    """`Run` of the library and of the file are the same thing."""
    base = Transfers.of(np.arange(4), np.roll(np.arange(4), -1), np.arange(4), 1, Op.COPY)
    step = RunSteps((Run(lambda: base, 3, Digits((4,), 0, -1)),), 4)
    made = opticcl.compile("ideal:nodes=4", "all_gather", "4 B", algorithm="ring")
    schedule = dataclasses.replace(made.schedule, step=step, classes=step.classes)
    plan = opticcl.Plan(dataclasses.replace(made.circuits, schedule=schedule), 4)
    assert plan.save(tmp_path / "a.csv") == 4
    assert opticcl.load(tmp_path / "a.csv").verify().ok
