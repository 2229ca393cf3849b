"""Logs as columns: the compiled scan gives what the lines give one by one, in little memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import counted_calls, highest_rank
from opticcl.traces import line_scan, load_job, load_workload
from opticcl.traces.call_rows import CallRows, kinds_of
from opticcl.traces.graphs import job_of

number = st.sampled_from(["0", "1", "7", "12", "007", "+3", "-1", " 5", "9" * 18, "9" * 19, "2.5", "x", "", "٣"])
group = st.sampled_from(["0", "0,1", "3,1,2", "0,0", "1,", "0, 2", "x"])
took = st.sampled_from(["", "", "|2.5", "|1e-3", "|0.1", "|123456789012345.5", "| 3", "|soon", "|-1", "|.5", "|5."])
ending = st.sampled_from(["\n", "\n", "\r\n", "\n\n", " \n"])
transfer = st.builds(
    lambda *f: f"L2L;{';'.join(f[:5])}{f[5]}{f[6]}",
    number,
    number,
    st.sampled_from("012"),
    number,
    number,
    took,
    ending,
)
reduce = st.builds(lambda size, ranks, ms, end: f"AR;{size};{ranks}{ms}{end}", number, group, took, ending)
flow = st.builds(
    lambda a, b, c, d, by, end: by.join((a, b, c, d)) + end,
    number,
    number,
    number,
    number,
    st.sampled_from(", "),
    ending,
)
GOOD = "AR;4096;0,1,2,3\nAR;9;2\nL2L;64;7;0;1;2|0.25\nL2L;64;7;0;1;2\nL2L;5;x;1;3;0\n"


def outcome(path, text):
    """The calls and notes of a file, or its refusal."""
    path.write_bytes(text.encode())
    try:
        read = load_workload(path)
    except WorkloadError as error:
        return str(error)
    return tuple(read.calls), read.notes, read.num_ranks, read.omitted, read.total_bytes


@examples(60)
@given(rows=st.lists(st.one_of(transfer, reduce), max_size=6), size=st.sampled_from([7, 40, 10**6]))
def test_the_scan_of_a_log_is_its_lines(tmp_path_factory, rows, size):
    """With and without the compiled scan, in blocks of any size."""
    path = tmp_path_factory.mktemp("scan") / "a.log"
    text = GOOD + "".join(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_scan, "SMALL", 10**9)
        expected = outcome(path, text)
        patch.setattr(line_scan, "SMALL", 0)
        patch.setattr(line_scan, "BLOCK", size)
        assert outcome(path, text) == expected


@examples(60)
@given(rows=st.lists(flow, max_size=5), first=st.sampled_from(["0,4,2,9\n", "4 2 9 0\n", "# flows\n0,1,2,3\n"]))
def test_the_scan_of_flows_is_its_lines(tmp_path_factory, rows, first):
    """The same for lists of flows, in both orders of columns."""
    path = tmp_path_factory.mktemp("scan") / "a.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_scan, "SMALL", 10**9)
        expected = outcome(path, first + "".join(rows))
        patch.setattr(line_scan, "SMALL", 0)
        assert outcome(path, first + "".join(rows)) == expected


def test_a_table_is_a_sequence_of_calls(tmp_path):
    """Length, indices, slices, equality, pickling; sums and the highest rank without making the calls."""
    (tmp_path / "a.log").write_text(GOOD)
    read = load_workload(tmp_path / "a.log")
    calls = tuple(read.calls)
    assert len(read.calls) == len(calls) == 4
    assert [read.calls[i] for i in (0, 1, -1)] == [calls[0], calls[1], calls[-1]]
    assert read.calls[1:3] == calls[1:3] != calls[:2]
    assert (read.calls == calls, calls[::-1] == tuple(reversed(read.calls)), hash(read.calls)) == (
        True,
        True,
        hash(calls),
    )
    assert pickle.loads(pickle.dumps(read)) == read
    assert sum(size for _, _, size in counted_calls(read.calls)) == read.total_bytes == 4096 + 64 + 64 + 5
    assert sum(number for _, number, _ in counted_calls(read.calls)) == 4
    assert highest_rank(read.calls) == highest_rank(calls) == 3
    assert [call.name for call in calls] == ["line 1", "layer 7 forward", "layer 7 forward", "layer x backward"]
    assert job_of(read).tasks == load_job(tmp_path / "a.log").tasks


def test_rows_of_several_kinds():
    """A kind is a collective with all that is said of it; a row has its own size, ends, time, and group if it is named."""
    rows = CallRows()
    both = {"group": "tp", "group_size": 2}, {"group": "dp", "group_size": 2}
    kinds = [rows.kind(name, **more) for name in ("all_reduce", "all_gather") for more in both]
    kinds += [rows.kind("all_reduce", (0, 5)), rows.kind("send"), rows.kind("send"), rows.kind("all_gather", **both[0])]
    assert kinds == [0, 1, 2, 3, 4, 5, 5, 2]
    src, dst = [-1] * 5 + [1, 3, -1], [-1] * 5 + [7, 4, -1]
    size, took, group = [8 * i for i in range(8)], [0.0, 2.0] * 4, [0, 0, 0, 0, 1, 1, 0, 1]
    rows.add(*map(np.array, (kinds, size, src, dst, took, range(8), group)))
    table = rows.table("row {}".format, ["", "turn 1"])
    found = [(c.name, c.collective, c.size_bytes, c.group, c.ranks, c.group_size, c.measured_s) for c in table]
    assert found == [
        ("row 0", "all_reduce", 0, "tp", (), 2, 0),
        ("row 1", "all_reduce", 8, "dp", (), 2, 2),
        ("row 2", "all_gather", 16, "tp", (), 2, 0),
        ("row 3", "all_gather", 24, "dp", (), 2, 2),
        ("row 4", "all_reduce", 32, "turn 1", (0, 5), 0, 0),
        ("row 5", "send", 40, "turn 1", (1, 7), 0, 2),
        ("row 6", "send", 48, "", (3, 4), 0, 0),
        ("row 7", "all_gather", 56, "turn 1", (), 2, 2),
    ]


@pytest.mark.parametrize("transfers", [[(0, 1), (0, 7), (5, 6)], [(0, 1), (7, 0), (5, 6)], [(0, 2)]])
def test_calls_that_stand_for_all_of_their_kind(transfers):
    """With the highest rank; calls that are no table stand for themselves."""
    rows = CallRows()
    kinds = [rows.kind("all_reduce", (0, 3)), *[rows.kind("send")] * len(transfers)]
    src, dst = zip((-1, -1), *transfers, strict=True)
    zeros = [0] * len(kinds)
    rows.add(*map(np.array, (kinds, zeros, src, dst, zeros, zeros, zeros)))
    table = rows.table(str)
    found = kinds_of(table)
    assert {call.collective for call in found} == {"all_reduce", "send"}
    assert len(found) <= 3
    assert max(max(call.ranks) for call in found) == max(3, *map(max, transfers))
    assert kinds_of(listed := list(table)) is listed
    assert len(kinds_of(table[:0])) == 0


def test_a_large_log_takes_little_memory(tmp_path):
    """120,000 transfers of 40 bytes take less than 200 bytes each at their peak."""
    path, count = tmp_path / "a.log", 120_000
    path.write_text("".join(f"L2L;{10**9 + i};{i % 200};0;{i % 256};{(i + 1) % 256}|0.125\n" for i in range(count)))
    load_workload(path)  # compiled code is loaded
    tracemalloc.start()
    read = load_workload(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(read.calls) == count
    assert peak < 200 * count + 4 * line_scan.BLOCK


@pytest.mark.parametrize("small", [0, 10**9])
def test_the_first_wrong_line_is_refused(tmp_path, small, monkeypatch):
    """Also behind a block, and a line that is longer than any log has."""
    monkeypatch.setattr(line_scan, "SMALL", small)
    monkeypatch.setattr(line_scan, "BLOCK", 64)
    path = tmp_path / "a.log"
    for wrong, said in (("AR;8;0,0", "line 9: '0,0' is not a list"), ("AR;" + "1" * 2**21, "line 9: a line of more")):
        path.write_text("L2L;8;0;0;0;1\n" * 8 + wrong + "\nL2L;x\n")
        with pytest.raises(WorkloadError, match=said):
            load_workload(path)


def test_transfers_between_one_pair_again_and_again(tmp_path):
    """10,000 equal transfers are as many tasks, found in linear time."""
    (tmp_path / "a.log").write_text("L2L;8;0;0;0;1\n" * 10_000)
    job = load_job(tmp_path / "a.log")
    assert (len(job.tasks), job.num_calls, len(job.groups)) == (10_000, 10_000, 1)
