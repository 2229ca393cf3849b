"""The tool of the golden records: what is a difference, what needs a reason, what is written, what enters a digest."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

import opticcl
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import Circuits, Op, Transfers
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.programme import StepRuns
from opticcl.operations.faults import answers
from opticcl.plans.plan import read as read_plan
from tests.records import file as file_module
from tests.records.__main__ import main
from tests.records.cells import record_of as record_of_cell
from tests.records.commands import Command
from tests.records.differences import GONE, Difference, differences, needing_reason
from tests.records.file import changed, read, write
from tests.records.listing import digest_of_plan, digest_of_programme
from tests.records.meaning import ALGORITHMS, RULES, Rule, algorithm_of, command_of
from tests.records.running import answer_of, record_of

OLD = {
    "id": "simulate/x",
    "command": ["simulate", "-f", "x"],
    "code": 0,
    "answer": {
        "algorithm": "ring",
        "total_s": 2e-6,
        "latency_s": 1e-6,
        "ok": True,
        "steps": [{"total_s": 1e-6}, {"total_s": 1e-6}],
    },
    "apart": {"checked": {"how": "every chunk"}},
}


def with_answer(**fields):
    """The record with other fields of its answer."""
    return {**OLD, "answer": {**OLD["answer"], **fields}}


def where(old, new):
    """Paths that differ."""
    return [one.where for one in differences(old, new)]


def test_equal_records_do_not_differ():
    """Nor do times to 1e-9, fields that are added, and how a verdict was reached."""
    assert where(OLD, OLD) == []
    assert where(OLD, with_answer(total_s=2e-6 * (1 + 5e-10), further=3)) == []
    assert where(OLD, {**OLD, "apart": {"checked": {"how": "classes of chunks"}}, "changes": [{"reason": "x"}]}) == []
    assert where({"a": 0.0}, {"a": 1e-17}) == []
    assert where({"a": 3}, {"a": 3.0}) == []


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"total_s": 2.00000001e-6}, ["answer.total_s"]),
        ({"algorithm": "tree"}, ["answer.algorithm"]),
        ({"ok": False}, ["answer.ok"]),
        ({"ok": 1}, ["answer.ok"]),
        ({"steps": [{"total_s": 1e-6}, {"total_s": 3e-6}]}, ["answer.steps[1].total_s"]),
        ({"steps": [{"total_s": 1e-6}]}, ["answer.steps"]),
        ({"steps": None}, ["answer.steps"]),
        ({"total_s": None}, ["answer.total_s"]),
    ],
)
def test_what_differs(fields, paths):
    """By its path: times, texts, verdicts, rows."""
    assert where(OLD, with_answer(**fields)) == paths


def test_a_field_that_is_gone_differs():
    """As does a whole number by one, an answer in place of a refusal, and a refusal in place of an answer."""
    less = {**OLD, "answer": {k: v for k, v in OLD["answer"].items() if k != "latency_s"}}
    assert list(differences(OLD, less)) == [Difference("answer.latency_s", 1e-6, GONE)]
    assert where({"n": 10**12}, {"n": 10**12 + 1}) == ["n"]
    refused = {"command": OLD["command"], "code": 2, "refusal": "opticcl: no"}
    assert where(OLD, refused) == ["code", "answer", "refusal"]
    assert where(refused, OLD) == ["code", "refusal"]
    assert where(refused, {**refused, "refusal": "opticcl: never"}) == ["refusal"]


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (with_answer(total_s=3e-6), "slower"),
        (with_answer(latency_s=2e-6), "slower"),
        (with_answer(ok=False), "another verdict"),
        ({**OLD, "code": 1}, "another verdict"),
        ({**OLD, "refusal": "opticcl: no"}, "another refusal"),
        ({**OLD, "command": ["simulate", "-f", "y"]}, "another command"),
        (with_answer(steps=[]), "gone or moved"),
        ({"code": 0, "answer": {}}, "gone or moved"),
    ],
)
def test_what_needs_a_reason(new, what):
    """Slower times, other verdicts, refusals and commands, and what is gone; with a reason, it is kept beside both values."""
    (line, *_) = [line for line in needing_reason(list(differences(OLD, new))) if line.startswith(what)]
    with pytest.raises(ValueError, match="^.*" + what):
        changed(OLD, new, "  ")
    kept = changed(OLD, new, "issue 40: a reason")["changes"][-1]
    assert kept["reason"] == "issue 40: a reason"
    assert line.split(": ")[1] in kept["values"]


@pytest.mark.parametrize(
    "new",
    [
        with_answer(total_s=1e-6),
        with_answer(algorithm="tree", total_s=1e-6, latency_s=2e-6),
        with_answer(algorithm="tree"),
    ],
)
def test_what_is_only_faster_needs_none(new):
    """Whatever its parts are; old and new value are kept all the same."""
    found = changed(OLD, new, "")
    assert found["answer"] == new["answer"]
    (kept,) = found["changes"]
    assert kept["reason"] == ""
    assert all(list(one[1:]) == kept["values"][one.where] for one in differences(OLD, new))


def test_a_cell_needs_a_reason_for_another_plan_and_a_slower_time():
    """Not for a faster one of equal content."""
    old = {"digests": {"8": "aa"}, "total_s": {"8": [1e-6, 2e-6]}, "programmes": {"flow": ["bb", 2e-6, 9e-6]}}
    faster = {**old, "total_s": {"8": [1e-6, 1e-6]}, "programmes": {"flow": ["bb", 1e-6, 8e-6]}}
    assert changed(old, faster, "")["changes"]
    for slower in (
        {**old, "digests": {"8": "ab"}}, {**old, "total_s": {"8": [1e-6, 3e-6]}}, {**old, "total_s": {}},
        {**old, "programmes": {"flow": ["bb", 3e-6, 9e-6]}}, {**old, "programmes": {"flow": "no programme"}},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"slower|another plan|gone"):
            changed(old, slower, "")
    assert not list(differences(old, {**old, "digests": {"8": "aa", "9": "cc"}}))


def test_changes_add_up():
    """Earlier ones stay; a record that is the same gets none."""
    once = changed(OLD, with_answer(total_s=1e-6), "")
    twice = changed(once, with_answer(total_s=3e-6), "found wrong")
    assert [one["reason"] for one in twice["changes"]] == ["", "found wrong"]
    again = {key: value for key, value in twice.items() if key != "changes"}
    assert changed(twice, again, "")["changes"] == twice["changes"]
    assert "changes" not in changed(OLD, OLD, "no need")


# ----------------------------------------------------------------------------------------------------------- make golden


@pytest.fixture
def golden(monkeypatch, tmp_path, capsys):
    """Function that runs `make golden` on a file of its own, with two records whose answers a test sets."""
    answers = {"a/1": {"total_s": 2e-6}, "b/2": {"total_s": 5e-6}}
    asked = []

    def made(id):
        asked.append(id)
        return {"command": [id], "code": 0, "answer": dict(answers[id])}

    for module in ("tests.records.__main__", "tests.records.file"):
        monkeypatch.setattr(f"{module}.made", made)
        monkeypatch.setattr(f"{module}.names", lambda: sorted(answers))

    def run(*words):
        asked.clear()
        code = main(list(words), tmp_path / "records.jsonl")
        return code, list(asked), capsys.readouterr()

    run.answers, run.file = answers, tmp_path / "records.jsonl"
    return run


def test_records_are_written_once(golden):
    """All where there is no file, then those that it lacks; a line a record, sorted."""
    assert golden()[:2] == (0, ["a/1", "b/2"])
    golden.answers["a/0"] = {"total_s": 1e-6}
    golden.answers["a/1"] = {"total_s": 9e-6}
    assert golden()[:2] == (0, ["a/0"])
    lines = [json.loads(line) for line in golden.file.read_text().splitlines()]
    assert [line["id"] for line in lines] == ["a/0", "a/1", "b/2"]
    assert lines[1]["answer"] == {"total_s": 2e-6}
    assert golden()[:2] == (0, [])


def test_a_record_changes_alone(golden):
    """Faster without a reason, slower with one; the others stay, whatever they would be."""
    golden()
    golden.answers.update({"a/1": {"total_s": 1e-6}, "b/2": {"total_s": 7e-6}})
    assert golden("--only", "a/1")[:2] == (0, ["a/1"])
    before = golden.file.read_bytes()
    code, _, printed = golden("--only", "b/2")
    assert code == 1
    assert "b/2: slower: answer.total_s: 5e-06 -> 7e-06; give REASON='...'" in printed.err
    assert golden.file.read_bytes() == before
    assert golden("--only", "b/2", "--reason", "issue 39, item 5")[0] == 0
    found = read(golden.file)
    assert found["a/1"]["answer"] == {"total_s": 1e-6}
    assert found["b/2"]["changes"] == [{"reason": "issue 39, item 5", "values": {"answer.total_s": [5e-6, 7e-6]}}]


@pytest.mark.parametrize("only", ["a/1,b/2", "a/1 b/2", "a/1, b/2"])
def test_one_reason_for_a_list(golden, only):
    """With commas or spaces; without the reason none of them is written."""
    golden()
    golden.answers.update({"a/1": {"total_s": 3e-6}, "b/2": {"total_s": 1e-6}})
    before = golden.file.read_bytes()
    assert golden("--only", only)[0] == 1
    assert golden.file.read_bytes() == before
    assert golden("--only", only, "--reason", "reworded")[0] == 0
    assert [one["changes"][0]["reason"] for one in read(golden.file).values()] == ["reworded"] * 2


def test_names_that_are_unknown_are_refused(golden):
    """As is a reason without a record; nothing runs."""
    code, asked, printed = golden("--only", "a/1,c/3")
    assert (code, asked) == (2, [])
    assert "no record 'c/3'" in printed.err
    code, asked, printed = golden("--reason", "all of them")
    assert (code, asked) == (2, [])
    assert not golden.file.exists()


def test_the_file_is_read_as_it_was_written(tmp_path):
    """Letters of any alphabet, numbers to the last digit."""
    records = {"b": {"answer": {"x": 0.1 + 0.2, "text": "µs → done"}}, "a": {"code": 2, "refusal": "no\nway"}}
    write(records, tmp_path / "r.jsonl")
    assert read(tmp_path / "r.jsonl") == {id: {"id": id, **one} for id, one in records.items()}
    assert read(tmp_path / "none.jsonl") == {}


# -------------------------------------------------------------------------------------------------------------- commands


def test_a_command_in_words_of_today():
    """A rule gives an old command an option of the old meaning, once, and leaves other verbs and commands that have it."""
    rules = (
        Rule(("faults",), ("faults", "--as-built"), unless=("--as-built",)),
        Rule(("--emulate",), ("--emulate", "always")),
    )
    assert command_of(("faults", "-f", "x"), rules) == ("faults", "--as-built", "-f", "x")
    assert command_of(("faults", "-f", "x", "--as-built"), rules) == ("faults", "-f", "x", "--as-built")
    assert command_of(("verify", "--emulate", "--json"), rules) == ("verify", "--emulate", "always", "--json")
    assert command_of(("train", "-f", "x"), rules) == ("train", "-f", "x")
    assert command_of(("train", "-f", "x")) == ("train", "-f", "x") or RULES


def test_an_algorithm_in_words_of_today():
    """Names of the matrix stay what they are, but for those in the table."""
    assert algorithm_of("ring") == ALGORITHMS.get("ring", "ring")


def test_an_answer_is_recorded():
    """With the exit code; what a clock measured is left out, how a verdict was reached stands apart; 11 digits."""
    answer = {"ok": True, "seconds": 0.3, "checked": {"how": "all"}, "notes": ["n"], "rows": [{"total_s": 1 / 3}]}
    assert record_of(1, json.dumps(answer), "progress") == {
        "code": 1,
        "answer": {"ok": True, "rows": [{"total_s": 0.33333333333}]},
        "apart": {"checked": {"how": "all"}, "notes": ["n"]},
    }
    assert record_of(2, "", "opticcl: no") == {"code": 2, "refusal": "opticcl: no"}
    assert record_of(0, "two\nlines\n", "") == {"code": 0, "answer": ["two", "lines"]}
    assert record_of(0, '{"notes": ["kept"]}', "")["answer"] == {"notes": ["kept"]}


def test_commands_run_in_a_folder_of_their_own(tmp_path, monkeypatch):
    """With what runs before them, the files that they read, and nothing of the user's settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPTICCL_PLUGINS", "nothing.py")
    saved = Command(
        "x", ("verify", "p.csv", "--json"), (("compile", "-f", "ideal:nodes=3", "-s", "1KB", "-o", "p.csv"),)
    )
    assert answer_of(saved)["answer"]["ok"]
    listed = Command(
        "y", ("compare", "-f", "ideal", "-n", "4", "-w", "sizes.toml", "--jobs", "1", "--json"), (), ("sizes.toml",)
    )
    assert answer_of(listed)["code"] == 0
    refused = answer_of(Command("z", ("verify", "p.csv")))
    assert refused == {"code": 2, "refusal": "opticcl: p.csv: there is no such file"}
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match=r"z: opticcl verify p\.csv ended with 2"):
        answer_of(Command("z", ("list", "ring"), (("verify", "p.csv"),)))


def test_no_time_of_a_clock_is_recorded():
    """Planning takes none while a command runs, and its time again afterwards."""
    machine = ("-f", "terarack:nodes=4,wavelengths=2", "-a", "ring", "-s", "1MB")
    command = Command("x", ("faults", *machine, "--fail", "comb_laser:0", "--json"))
    (row,) = answer_of(command)["answer"]["rows"]
    assert row["plan_s"] == 0.0
    assert row["recovery_s"] > row["detect_s"]
    before = time.process_time()
    sum(range(1_000_000))
    assert time.process_time() > before
    assert answers.process_time is time.process_time


# --------------------------------------------------------------------------------------------------------------- digests


def listed(transfers, *rounds, fabric="ocs:nodes=4", chunks=4):
    """A plan of one step with these rows."""
    plan = opticcl.compile(fabric, "all_gather", "1KB", algorithm="ring").circuits
    collective = replace(plan.schedule.collective, num_chunks=chunks)
    schedule = replace(plan.schedule, collective=collective, num_steps=1, step=lambda i: transfers, classes=())
    return replace(plan, schedule=schedule, rounds=lambda i: rounds)


@pytest.mark.parametrize("suffix", ["json", "parquet", "csv"])
@pytest.mark.parametrize(
    ("fabric", "algorithm"),
    [
        ("lightpath:shape=2x4,waveguides=1", "lumorph"),
        ("ramp:groups=2,racks=2,wavelengths=4", "ramp"),
        ("oddl:shape=2x4", "ring"),
    ],
)
def test_a_saved_plan_has_the_digest(tmp_path, fabric, algorithm, suffix):
    """Whatever the file calls its rows and classes of steps."""
    plan = opticcl.compile(fabric, "all_reduce", "1MB", algorithm=algorithm)
    plan.save(tmp_path / f"plan.{suffix}")
    assert digest_of_plan(read_plan(tmp_path / f"plan.{suffix}").circuits) == digest_of_plan(plan.circuits)
    assert digest_of_plan(listed_plan(plan.circuits)) == digest_of_plan(plan.circuits)


def test_a_digest_is_of_content_alone():
    """Neither the order of rows, nor their number for one message, nor the number of chunks enters it."""
    once = Transfers.of([0, 1], [1, 2], [0, 1], 2, Op.COPY)
    light = Circuits.of([0, 1], np.array([0, 1]), np.array([1, 2]))
    digest = digest_of_plan(listed(once, light))
    turned = Circuits.of([0, 1], np.array([1, 0]), np.array([2, 1]))
    assert digest_of_plan(listed(once.take([1, 0]), turned)) == digest
    finer = Transfers.of([0, 1], [1, 2], [0, 2], 4, Op.COPY)
    assert digest_of_plan(listed(finer, light, chunks=8)) == digest
    twice = Transfers.of([0, 0, 1], [1, 1, 2], [0, 1, 1], [1, 1, 2], Op.COPY)
    same = Circuits.of([0, 1, 2], np.array([0, 0, 1]), np.array([1, 1, 2]))
    assert digest_of_plan(listed(twice, same)) == digest
    run = replace(listed(once, light).schedule, num_steps=2, classes=(range(2),))
    apart = replace(run, classes=())
    assert digest_of_plan(replace(listed(once, light), schedule=run)) == digest_of_plan(
        replace(listed(once, light), schedule=apart)
    )


@pytest.mark.parametrize(
    "other",
    [
        (Transfers.of([0, 1], [1, 2], [0, 1], [2, 1], Op.COPY), {}),
        (Transfers.of([0, 1], [1, 2], [0, 1], 2, [Op.COPY, Op.REDUCE]), {}),
        (Transfers.of([0, 1], [1, 3], [0, 1], 2, Op.COPY), {"dst": [1, 3]}),
        (None, {"port": 1}),
        (None, {"wavelength_lo": [0, 3]}),
        (None, {"wavelength_n": [1, 2]}),
        (None, {"wavelength_n": 2, "wavelength_step": 2}),
        (None, {"path": [[4], [5]]}),
        (None, {"waveguide": [0, 1]}),
    ],
    ids=["share", "operation", "receiver", "port", "wavelength", "wavelengths", "distance", "path", "waveguide"],
)
def test_what_changes_a_digest(other):
    """Shares, operations, ends, and all that makes a circuit."""
    transfers, changes = other
    plain = Transfers.of([0, 1], [1, 2], [0, 1], 2, Op.COPY)
    light = {
        "transfer": [0, 1],
        "src": np.array([0, 1]),
        "dst": np.array([1, 2]),
        "path": [[4], [4]],
        "wavelength_n": 1,
    }
    if "wavelength_step" in changes:
        light["wavelength_n"] = 2
    before = listed(plain, Circuits.of(**light))
    after = listed(plain if transfers is None else transfers, Circuits.of(**{**light, **changes}))
    assert digest_of_plan(before) != digest_of_plan(after)


def test_rounds_and_idle_circuits_enter_a_digest():
    """A step in two rounds, a circuit that only stands, and a transfer without a circuit are other content."""
    plain = Transfers.of([0, 1], [1, 2], [0, 1], 2, Op.COPY)
    light = Circuits.of([0, 1], np.array([0, 1]), np.array([1, 2]))
    idle = Circuits.of([0, 1, -1], np.array([0, 1, 2]), np.array([1, 2, 3]))
    plans = [
        (light,),
        (light.take([0]), light.take([1])),
        (light.take([1]), light.take([0])),
        (idle,),
        (light.take([0]),),
    ]
    assert len({digest_of_plan(listed(plain, *rounds)) for rounds in plans}) == len(plans)


@pytest.mark.parametrize("engine", ["closed_form", "flow:mode=asynchronous", "device"])
def test_runs_of_a_programme_do_not_enter_its_digest(engine):
    """Each step by itself has the digest and the sum of a run; other times have another sum, an exchange of times too."""
    plan = opticcl.compile("oddl:shape=8", "all_reduce", "1MB", algorithm="ring")
    made = plan.programme(engine)
    digest, sum_s = digest_of_programme(plan.circuits, made)
    assert digest_of_programme(plan.circuits, unrolled(made)) == (digest, pytest.approx(sum_s, rel=1e-12))
    later = replace(made, circuits=replace(made.circuits, start_s=made.circuits.start_s + 1e-9))
    assert digest_of_programme(plan.circuits, later)[1] > sum_s * (1 + 1e-9)
    start_s = made.circuits.start_s.copy()
    start_s[[0, -1]] = start_s[[-1, 0]]
    exchanged = replace(made, circuits=replace(made.circuits, start_s=start_s))
    if start_s[0] != start_s[-1]:
        assert digest_of_programme(plan.circuits, exchanged)[1] != pytest.approx(sum_s, rel=1e-9)
    fewer = replace(made, data=made.data.take(slice(1, None)))
    assert digest_of_programme(plan.circuits, fewer)[0] != digest


def unrolled(made):
    """A programme whose steps are runs of their own."""
    runs = list(zip(made.runs.first.tolist(), made.runs.repeats.tolist(), made.runs.period_s.tolist(), strict=True))
    num_steps = sum(repeats for _, repeats, _ in runs)

    def moved(table, times):
        parts = [table.take(table.step < 0)] if len(table) else []
        for first, repeats, period_s in runs:
            mine = table.take(table.step == first)
            for k in range(repeats):
                later = {name: getattr(mine, name) + k * period_s for name in times}
                parts.append(replace(mine, step=mine.step + np.int32(k), **later))
        return type(table).of(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in table.KINDS})

    return replace(
        made,
        runs=StepRuns.single(num_steps),
        circuits=moved(made.circuits, ("start_s", "end_s")),
        data=moved(made.data, ("arrived_s", "summed_s")),
        devices=moved(made.devices, ("begin_s", "done_s")) if len(made.devices) else made.devices,
        control=moved(made.control, ("begin_s", "end_s")) if len(made.control) else made.control,
    )


def test_a_record_of_a_cell():
    """Digests for every number of nodes, three times three totals, and a programme of every engine."""
    found = record_of_cell("oddl", "halving_doubling", "all_reduce")
    assert len(found["digests"]) > 3
    assert [len(times) for times in found["total_s"].values()] == [3, 3, 3]
    plan = opticcl.compile(fabric_at_scale("oddl", 32), "all_reduce", "1MB", algorithm="halving_doubling")
    assert digest_of_plan(plan.circuits) in found["digests"].values()
    assert all(total_s > 0 for _, total_s, _ in found["programmes"].values())
    assert len(found["programmes"]) == 6
    assert "programmes" not in record_of_cell("ideal", "ring", "all_gather")
    assert file_module.made("plans/ideal/ring/all_gather")["digests"]
