"""Tables of calls: what is written is read again, and a table of another form is refused by its column."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.drawn_job import drawn_job, information, kineto, record
from tests.traces.test_astra import GOOD
from tests.traces.test_drawn_pytorch import files, found

from opticcl.errors import WorkloadError
from opticcl.traces import call_file, load_job, load_workload
from opticcl.traces.loading import load_traces
from opticcl.traces.reader import TRACES, ReadOptions

CALL = {"rank": [0], "collective": ["all_reduce"], "size_bytes": [64]}


def write(path, columns, **types):
    """A table with these columns."""
    import polars  # a process that runs it cannot be divided

    polars.DataFrame(columns, schema_overrides=types).write_parquet(path)
    return path


@examples(5)
@given(seed=st.integers(0, 2**32))
def test_a_job_is_what_was_written(tmp_path_factory, seed):
    """Calls, bytes, ranks, parts, times and streams of every rank of a drawn job."""
    folder = tmp_path_factory.mktemp("calls")
    job = drawn_job(seed)
    (folder / "in").mkdir()
    texts = {f"{r}.json": kineto(record(job, r).events, information(job, r)) for r in range(job.world)}
    source = files(folder / "in", texts)
    traces = load_traces(source)
    model = load_workload(source)
    rows = call_file.write_calls(folder / "calls.parquet", traces, model.num_ranks)
    assert rows == sum(len(trace.calls) for trace in traces)
    read = load_workload(folder / "calls.parquet")
    assert found(read) == found(model)
    about = [(c.name, c.collective, c.size_bytes, c.group, c.measured_s, c.matrix_bytes) for c in model.calls]
    assert [(c.name, c.collective, c.size_bytes, c.group, c.measured_s, c.matrix_bytes) for c in read.calls] == about
    assert load_job(folder / "calls.parquet").num_calls == load_job(source).num_calls
    again = load_traces(folder / "calls.parquet")
    assert [[(c.start_s, c.end_s, c.stream, c.sequence) for c in trace.calls] for trace in again] == [
        [(c.start_s, c.end_s, c.stream, c.sequence) for c in trace.calls] for trace in traces
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lumorph", "AR;8000;0,1,2,3|2\nL2L;50;1;0;0;3|0.5\nL2L;60;2;1;3;0\nAR;4;0,1\n"),
        ("htsim", "Nodes 4\nConnections 2\n0->1 start 0 size 8\n2->3 start 1 size 16\n"),
        ("astra", f"HYBRID model_parallel_NPU_group: 2 ep: 1 pp: 1\n1\n{GOOD}"),
    ],
)
def test_a_log_is_what_was_written(tmp_path, name, text):
    """Columns of calls, whose names, sizes, groups and ends are those of the rows; the first are those that matter most."""
    (tmp_path / "a").write_text(text)
    model = load_workload(tmp_path / "a", num_ranks=4)
    traces = TRACES.get(name).reader.read_ranks(tmp_path / "a", ReadOptions(4), tasks=False)
    assert call_file.write_calls(tmp_path / "c.parquet", traces, 4) == len(model.calls) > 0
    read = load_workload(tmp_path / "c.parquet")
    import polars

    columns = polars.read_parquet(tmp_path / "c.parquet").columns
    first = "rank", "step", "group", "collective", "name", "size_bytes", "ranks", "start_s", "end_s", "measured_s"
    assert (tuple(columns[:10]), len(columns), len(set(columns))) == (first, 23, 23)
    read = load_workload(tmp_path / "c.parquet")
    assert [(c.name, c.collective, c.size_bytes, c.group, c.ranks, c.measured_s) for c in read.calls] == [
        (c.name, c.collective, c.size_bytes, c.group, c.ranks or (0, 1, 2, 3) * (name == "lumorph"), c.measured_s)
        for c in model.calls
    ]
    assert read.num_ranks == 4


def test_what_is_missing_is_not_recorded(tmp_path):
    """Three columns are enough; empty cells and lists count as missing columns do; -1 as a time is none."""
    more = {"measured_s": [-1.0], "ranks": [[0, 1]], "group": [None], "group_size": [None], "stream": [None]}
    more |= {"sent_splits": [[None]], "counts": [None], "step": [""], "unknown": ["x"], "num_ranks": [2.0][:0] or [2]}
    (call,) = load_workload(write(tmp_path / "a.parquet", CALL | more)).calls
    assert (call.collective, call.size_bytes, call.measured_s, call.name) == ("all_reduce", 64, 0, "all_reduce")
    shares = CALL | {"collective": ["all_gather"], "counts": ["share"]}
    assert load_workload(write(tmp_path / "a.parquet", shares), num_ranks=4).calls[0].size_bytes == 4 * 64
    (call,) = load_workload(write(tmp_path / "a.parquet", CALL), num_ranks=4).calls
    assert (call.ranks, call.group_source) == ((), "assumed: all ranks")
    (trace,) = load_traces(write(tmp_path / "a.parquet", CALL | {"measured_s": [3]}))
    (one,) = trace.calls
    assert (one.start_s, one.end_s, one.measured_s, one.received_bytes, one.sequence) == (-1, -1, 3, -1, -1)
    assert (one.group_stride, one.counts, one.stream, trace.steps, trace.rank) == (1, "message", 0, [], 0)


@pytest.mark.parametrize(("rank", "num_ranks"), [(-1, 4), (1, 0)])
def test_the_ranks_that_occur_in_a_table_of_all(tmp_path, rank, num_ranks):
    """Are all ranks; in that of one rank others may be missing."""
    columns = {"rank": [rank] * 2, "collective": ["send"] * 2, "size_bytes": [8] * 2, "ranks": [[1, 3], [1, 0]]}
    assert load_workload(write(tmp_path / "a.parquet", columns)).num_ranks == num_ranks


@pytest.mark.parametrize("tasks", [True, False])
def test_steps_of_a_table(tmp_path, tasks):
    """Calls follow each other within a step, in the order in which the steps begin; without a step they are in none.

    Args: tasks: whether steps are wanted; else there are none.
    """
    columns = {"rank": [0] * 5, "collective": ["all_reduce"] * 5, "size_bytes": [1, 2, 3, 4, 5], "num_ranks": [2] * 5}
    columns |= {"step": ["b", "a", "", "b", "a"], "measured_s": [0.0, 1.0, 8.0, 0.0, 2.0]}
    path = write(tmp_path / "a.parquet", columns)
    (trace,) = TRACES.get("calls").reader.read_ranks(path, ReadOptions(), tasks=tasks)
    if not tasks:
        assert trace.steps == []
        return
    assert [(s.name, [(t.calls[0].size_bytes, t.after) for t in s.tasks]) for s in trace.steps] == [
        ("b", [(1, ()), (4, (0,))]),
        ("a", [(2, ()), (5, (0,))]),
    ]
    assert [s.recorded and s.recorded.communication_s for s in trace.steps] == [None, 3.0]
    whole = columns | {"step": [""] * 5}
    assert load_traces(write(tmp_path / "b.parquet", whole))[0].steps == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rank": ["x"]}, "column rank: String is not whole numbers"),
        ({"size_bytes": [None]}, "column size_bytes: row 0 has no value"),
        ({"measured_s": ["x"]}, "column measured_s: String is not numbers"),
        ({"group": [5]}, "column group: Int64 is not texts"),
        ({"ranks": [["x"]]}, r"column ranks: List\(String\) is not lists of whole numbers"),
        ({"ranks": [5]}, "column ranks: Int64 is not lists of whole numbers"),
        ({"size_bytes": [-1]}, "column size_bytes: -1 in row 0 is not 0 to"),
        ({"group_stride": [0]}, "column group_stride: 0 in row 0 is not 1 to"),
        ({"received_bytes": [-2]}, "column received_bytes: -2 in row 0 is not -1 to"),
        ({"start_s": [-2.0]}, r"column start_s: -2.0 in row 0 is not -1.0 to"),
        ({"end_s": [float("nan")]}, "column end_s: nan in row 0"),
        ({"ranks": [[0, -2]]}, "column ranks: -2 in row 0 is not -1 to"),
        ({"group_ranks": [[0, 2**31]]}, "column group_ranks: 2147483648 in row 0 is not 0 to"),
        ({"collective": ["gossip"]}, "column collective: "),
        ({"counts": ["all"]}, "column counts: 'all' is not message or share"),
        ({"ranks": [[0, 0]]}, r"column ranks: \[0, 0\] of a all_reduce are not distinct ranks"),
        ({"ranks": [[0, -1]]}, r"column ranks: \[0, -1\] of a all_reduce are not distinct ranks"),
        ({"collective": ["send"]}, r"column ranks: \[\] of a send are not sender and receiver"),
        ({"collective": ["recv"], "ranks": [[0, 1, 2]]}, r"column ranks: \[0, 1, 2\] of a recv are not sender"),
    ],
)
def test_a_wrong_cell_is_refused(tmp_path, more, said):
    """By column, row and value."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load_workload(write(tmp_path / "a.parquet", CALL | more))
    assert str(caught.value).isprintable()


def test_other_tables_are_refused(tmp_path, monkeypatch):
    """Without the columns, without a row, damaged, with all ranks beside one, or too large."""
    path = tmp_path / "a.parquet"
    two = {name: values * 2 for name, values in CALL.items()}
    for columns, said in (
        ({"rank": [0], "collective": ["all_reduce"]}, "is not a table of calls, .*: size_bytes is missing"),
        ({name: values[:0] for name, values in CALL.items()}, "is a table of calls without a row"),
        (two | {"rank": [-1, 0]}, "column rank: calls of all ranks"),
        (CALL | {"sequence": [2**63]}, "has a value that is too large"),
    ):
        with pytest.raises(WorkloadError, match=said):
            load_workload(write(path, columns))
    assert len(load_workload(write(path, two | {"rank": [-1, -1]}), num_ranks=2).calls) == 2
    content = io.BytesIO(write(path, two).read_bytes()).getvalue()
    path.write_bytes(content[:-9])
    with pytest.raises(WorkloadError, match="is not a readable Parquet file"):
        load_workload(path)
    path.write_bytes(content)
    for name, fits, fails, said in (
        ("MAX_CALLS", 2, 1, "2 calls are more than 1; divide it by rank"),
        ("MAX_FILE_BYTES", len(content), len(content) - 1, "bytes; divide it by rank"),
    ):
        monkeypatch.setattr(call_file, name, fits)
        assert load_workload(path, num_ranks=2).calls
        monkeypatch.setattr(call_file, name, fails)
        with pytest.raises(WorkloadError, match=said):
            load_workload(path)
        monkeypatch.undo()
