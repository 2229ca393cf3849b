"""opticcl trace: what is in a trace, as text, record, picture, page and table of calls."""

import json

import numpy as np
import polars
import pytest
from tests.optional import shared_file
from tests.training.test_gain import COMPUTE, NCCL, STEP, profile

from opticcl.traces import load_steps, load_workload
from opticcl.training.iteration import replay

LATER = [(stream, launch + 10_000, start + 10_000, took) for stream, launch, start, took in STEP]
MARKS = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": 1e4 * i, "dur": 1e4} for i in (0, 1)]


@pytest.fixture
def two_steps(tmp_path):
    """A trace of one of two ranks, of two steps."""
    trace = json.loads(profile([*STEP, *LATER]))
    path = tmp_path / "two.json"
    path.write_text(json.dumps(trace | {"traceEvents": [*trace["traceEvents"], *MARKS]}))
    return path


def test_the_first_line_says_what_is_in_it(two_steps, opticcl, answer):
    """Ranks, steps, calls, bytes and exposed time, as `train` has them; then tables, and what was left out."""
    found, code = answer("trace", two_steps)
    assert code == 0
    said = "2 ranks, 1 of them recorded, 2 steps, 2 calls (all_reduce 2), 8 MB; about 2 of "
    assert found["headline"].startswith(said)
    shown = opticcl("trace", two_steps).stdout
    assert " ".join(shown.split()).startswith(found["headline"])
    assert [heading in shown for heading in ("\nCalls\n", "\nGroups\n", "\nSteps\n", "\nRanks\n")] == [True] * 4
    trained, _ = answer("train", "-w", two_steps, "-f", "ideal")
    part = trained["headline"].partition(" is exposed")[0]
    assert part.lower() in found["headline"]
    assert found["notes"] == trained["job"]["notes"]


def test_every_table_adds_up_to_the_file(tmp_path, answer):
    """By hand: bytes and calls by kind, by group and by rank, durations, and what is left out."""
    lines = [
        "AR;8000;0,1,2,3|2",
        "AR;400;0,1|1",
        "AR;400;2,3|1",
        "L2L;50;1;0;0;3|0.5",
        "L2L;50;1;0;2;2|0.5",
        "AR;4;1|0",
    ]
    (tmp_path / "a.log").write_text("\n".join(lines) + "\n")
    found, _ = answer("trace", tmp_path / "a.log")
    assert (found["num_ranks"], found["calls"], found["bytes"]) == (4, 4, 8_850)
    kinds = {(row["collective"], row["ranks"]): row for row in found["kinds"]}
    expected = {("all_reduce", 4): (1, 8000, 2e-3), ("all_reduce", 2): (2, 800, 2e-3), ("transfer", 2): (1, 50, 5e-4)}
    assert {key: (row["calls"], row["bytes"]) for key, row in kinds.items()} == {k: v[:2] for k, v in expected.items()}
    for key, (_, size, took_s) in expected.items():
        assert kinds[key]["measured_s"] == pytest.approx(took_s)
        assert kinds[key]["rate_bits_per_s"] == pytest.approx(8 * size / took_s)
    groups = {tuple(row["members"]): (row["calls"], row["bytes"]) for row in found["groups"]}
    assert groups == {(0, 1, 2, 3): (1, 8000), (0, 1): (1, 400), (2, 3): (1, 400), (): (1, 50)}
    assert sorted((row["calls"], row["bytes"]) for row in found["left_out"]) == [(1, 4), (1, 50)]
    assert found["headline"].endswith("communication only, 4.5 ms in all.")


def test_ranks_have_their_own_times(tmp_path, answer):
    """Of the step that stands for all: exposed, idle and the whole, by hand."""
    late = [(COMPUTE, 10, 20, 4_500), (NCCL, 30, 4_520, 500), (COMPUTE, 40, 5_020, 980)]
    for rank, kernels in enumerate((STEP, late)):
        (tmp_path / f"rank{rank}.json").write_text(profile(kernels, rank))
    found, _ = answer("trace", tmp_path)
    parts = [[row[name] for name in ("compute_s", "exposed_s", "idle_s", "iteration_s")] for row in found["ranks"]]
    assert np.array(parts) == pytest.approx(np.array([[4e-3, 2e-3, 1e-3, 7e-3], [5.48e-3, 0.5e-3, 0.0, 5.98e-3]]))
    assert found["headline"].startswith("2 ranks, 1 step, 1 call (all_reduce 1), 4 MB; ")


def test_files_of_every_kind_are_written(two_steps, tmp_path, opticcl, answer):
    """The picture and the page name each stream, the record is what --json prints; an input is never replaced."""
    outs = [tmp_path / name for name in ("a.svg", "a.html", "a.json", "a.parquet")]
    shown = opticcl("trace", two_steps, *(word for out in outs for word in ("-o", out))).stdout
    assert all(f": {out}" in shown for out in outs)
    for out in outs[:2]:
        assert "rank 0, stream 7" in out.read_text()
        assert "rank 0, messages 1" in out.read_text()
    found, _ = answer("trace", two_steps)
    assert json.loads(outs[2].read_text()) == found
    assert found["headline"] in outs[1].read_text()
    refused = opticcl("trace", outs[3], "-o", outs[3])
    assert (refused.returncode, "it is the input file" in refused.stderr) == (2, True)


def test_a_picture_needs_starts(tmp_path, opticcl):
    """Nothing is written without them; the page has the tables alone."""
    (tmp_path / "a.log").write_text("AR;8;0,1|2\n")
    done = opticcl("trace", tmp_path / "a.log", "-o", tmp_path / "a.svg", "-o", tmp_path / "a.parquet")
    assert (done.returncode, "no call or kernel has a recorded start" in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
    assert opticcl("trace", tmp_path / "a.log", "-o", tmp_path / "a.html").returncode == 0
    assert "<svg" not in (tmp_path / "a.html").read_text()


def test_the_number_of_ranks_may_be_unknown(tmp_path, answer):
    """What can be known without it is shown; with --nodes the rest."""
    (tmp_path / "a.toml").write_text('name = "job"\n[[calls]]\ncollective = "all_reduce"\nsize = "1 MB"\ncount = 3\n')
    found, _ = answer("trace", tmp_path / "a.toml")
    assert found["headline"].startswith("an unknown number of ranks (--nodes gives it), 3 calls (all_reduce 3), 3 MB; ")
    assert (found["num_ranks"], found["kinds"][0]["ranks"]) == (None, None)
    found, _ = answer("trace", tmp_path / "a.toml", "-n", "64")
    assert found["notes"] == ["64 ranks (from --nodes)"]
    assert found["kinds"][0]["ranks"] == 64


# --- the table of calls -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "kineto/nccl-data.json.gz", "kineto/dlrm-8ranks.tar.gz", "kineto/timeline-rank0.json.gz",
        "pytorch-et/resnet-2gpu.json.gz",
        "chakra/llama-dp2-tp4-pp2", "lumorph/ncf-8.log", "topoopt/100vgg_16.fbuf", "cases/traces/03-splits-in-rows",
        "cases/traces/06-nsys-communicators.rank5.sqlite", "cases/traces/09-flight-recorder-windows",
        "cases/traces/15-goal.goal", "cases/traces/17-gloo-send-recv", "cases/traces/23-ends-within-the-group",
    ],
)  # fmt: skip
def test_a_table_of_calls_has_the_calls_of_the_trace(name, tmp_path, opticcl):
    """Every call with its group, size, ends and duration, whichever reader they came from."""
    path = shared_file(name)
    assert opticcl("trace", path, "-o", tmp_path / "calls.parquet").returncode == 0
    original, again = load_workload(path), load_workload(tmp_path / "calls.parquet")
    assert list(again.calls) == list(original.calls)
    assert again.num_ranks == original.num_ranks


def test_a_table_of_calls_is_divided_into_steps(two_steps, tmp_path, opticcl, answer):
    """Rows have rank, step, group, collective, bytes, start and end; `train` takes a step of them."""
    calls = tmp_path / "calls.parquet"
    opticcl("trace", two_steps, "-o", calls)
    frame = polars.read_parquet(calls)
    assert frame["step"].to_list() == ["ProfilerStep#0", "ProfilerStep#1"]
    assert frame["start_s"].to_list() == pytest.approx([3.02e-3, 13.02e-3])
    assert (frame["end_s"] - frame["start_s"]).to_list() == pytest.approx([2e-3, 2e-3])
    assert frame["ranks"].to_list() == [[0, 1], [0, 1]]
    steps = load_steps(calls)
    assert [(step.step, step.num_calls, step.network_bytes) for step in steps] == [
        ("ProfilerStep#0", 1, 4_000_000), ("ProfilerStep#1", 1, 4_000_000),
    ]  # fmt: skip
    assert replay(steps[0]).total_s == pytest.approx(2e-3)
    found, code = answer("train", "-w", calls, "-f", "ideal")
    assert (code, found["job"]["calls"], found["headline"].startswith("Communication only")) == (0, 1, True)


def test_a_table_needs_few_columns(tmp_path):
    """Rank, collective and bytes, as another program may write them; the others have a value that stands for "not recorded"."""
    frame = polars.DataFrame({"rank": [0, 1, 0, 1], "collective": ["all_reduce"] * 4, "size_bytes": [80, 80, 16, 16]})
    frame.write_parquet(tmp_path / "mine.parquet")
    work = load_workload(tmp_path / "mine.parquet")
    assert [(call.collective, call.size_bytes, call.ranks) for call in work.calls] == [
        ("all_reduce", 80, ()), ("all_reduce", 16, ()),
    ]  # fmt: skip
    assert work.num_ranks == 2


GOOD = {"rank": [0, 1], "collective": ["all_reduce", "all_reduce"], "size_bytes": [8, 8]}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            {"rank": None},
            "is not a table of calls, which has the columns rank, collective, size_bytes: rank is missing",
        ),
        ({"rank": [0.5, 1.0]}, "column rank: Float64 is not whole numbers"),
        ({"rank": [0, None]}, "column rank: row 1 has no value"),
        ({"rank": [0, -2]}, "column rank: -2 in row 1 is not -1 to"),
        ({"rank": [-1, 0]}, "column rank: calls of all ranks (-1) beside those of one"),
        ({"size_bytes": [8, -8]}, "column size_bytes: -8 in row 1 is not 0 to"),
        ({"size_bytes": [8, 2**63]}, "too large"),
        ({"collective": ["all_reduce", "all_redcue"]}, "column collective: "),
        ({"collective": ["send", "recv"]}, "column ranks: [] of a send are not sender and receiver"),
        ({"ranks": [[0, 0], [0, 1]]}, "column ranks: [0, 0] of a all_reduce are not distinct ranks"),
        ({"ranks": ["0,1", "0,1"]}, "column ranks: String is not lists of whole numbers"),
        ({"counts": ["message", "half"]}, "column counts: 'half' is not message or share"),
        ({"measured_s": [1.0, float("nan")]}, "column measured_s: nan in row 1 is not"),
        ({"start_s": ["now", "then"]}, "column start_s: String is not numbers"),
    ],
)
def test_a_wrong_table_is_refused_by_its_column(tmp_path, opticcl, wrong, reason):
    """With the row and what it should be; no traceback."""
    columns = {name: values for name, values in (GOOD | wrong).items() if values is not None}
    polars.DataFrame(columns, strict=False).write_parquet(tmp_path / "a.parquet")
    for verb in (("trace",), ("train", "-f", "ideal", "-w")):
        done = opticcl(*verb, tmp_path / "a.parquet")
        assert done.returncode == 2
        assert reason in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_a_damaged_table_is_refused(tmp_path, opticcl):
    """Wherever it is cut, and without rows."""
    polars.DataFrame(GOOD).write_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for at in (4, 20, len(whole) // 2, len(whole) - 1):
        (tmp_path / "b.parquet").write_bytes(whole[:at])
        done = opticcl("trace", tmp_path / "b.parquet")
        assert (done.returncode, "is not a readable Parquet file" in done.stderr) == (2, True), at
    many = polars.DataFrame(GOOD)[np.zeros(2**24 + 1, np.int64)]
    many.write_parquet(tmp_path / "many.parquet")
    assert "16,777,217 calls are more than 16,777,216" in opticcl("trace", tmp_path / "many.parquet").stderr
    polars.DataFrame(GOOD).head(0).write_parquet(tmp_path / "c.parquet")
    assert "a table of calls without a row" in opticcl("trace", tmp_path / "c.parquet").stderr
