"""Rows of Nsight Systems reports: what each says, those that say nothing, and which processes and devices are ranks."""

import json
import sqlite3
from contextlib import closing

import pytest
from tests.traces.test_nsys import (
    BYTES,
    EVENTS,
    ID,
    KERNEL,
    RUNTIME,
    SIZE,
    WAITS,
    begin,
    training,
    write_report,
)

from opticcl.errors import WorkloadError
from opticcl.traces import load_steps, load_workload, nsys
from opticcl.traces.loading import load_traces
from opticcl.traces.recording import GroupEnds, GroupPlace

COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
CALL = ("ncclAllReduce", {BYTES: 8})


def change(path, *statements):
    """Execute SQL in a report."""
    with closing(sqlite3.connect(path)) as file:
        for statement in statements:
            file.execute(statement)
        file.commit()
    return path


def row(table, **values):
    """The SQL that adds a row."""
    shown = ", ".join("NULL" if value is None else repr(value) for value in values.values())
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({shown})"


def only(path, **options):
    """The one trace of a report."""
    (trace,) = load_traces(path, **options)
    return trace


@pytest.mark.parametrize(
    ("name", "values", "found"),
    [
        ("ncclSend", {"Bytes": 8, "Peer rank": 1}, {"ends": GroupEnds(-1, 1), "group": ""}),
        ("ncclRecv", {"Bytes": 8, "Peer rank": 1}, {"ends": GroupEnds(1, -1)}),
        ("ncclSend", {"Bytes": 8, "Peer rank": -7}, {"ends": GroupEnds(-1, -1)}),
        ("ncclSend", {"Bytes": 8, "Peer rank": "x"}, {"ends": GroupEnds(-1, -1)}),
        ("ncclSend", {ID: 1, "Bytes": "8", "Peer rank": "1"}, {"ends": GroupEnds(0, 1), "size_bytes": 8}),
        ("ncclRecv", {ID: 1, "Bytes": 8, "Peer rank": 1}, {"ends": GroupEnds(1, 0), "group_size": 0}),
        ("ncclAllGather", {ID: 1, BYTES: 8}, {"ends": None, "group": "communicator 1", "group_size": 2}),
        ("ncclAllReduce", {ID: "0xab", BYTES: 0}, {"group": "communicator 0xab", "size_bytes": 0, "group_size": 0}),
        ("ncclAllReduce", {ID: "", BYTES: 8}, {"group": ""}),
        ("ncclAllReduce", {ID: [1], BYTES: 8}, {"group": ""}),
        ("ncclAllReduce", {SIZE: 0, BYTES: 8}, {"size_bytes": 8}),
        ("ncclAllReduce", {SIZE: -3, BYTES: 8}, {"size_bytes": 8}),
        ("rcclAllReduce", {BYTES: 8}, {"name": "rcclAllReduce"}),
        ("demoAllReduce", {BYTES: 8}, None),
    ],
)
def test_what_a_range_says(tmp_path, name, values, found):
    """Ends within the communicator, of which the own number is known once it is made; names, sizes and members."""
    trace = only(write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), (name, values)]}))
    assert [{key: getattr(call, key) for key in found} for call in trace.calls] == ([found] if found else [])
    assert trace.places["communicator 1"] == GroupPlace(0, 2)


def test_places_and_ranks_of_a_report(tmp_path):
    """A communicator of one rank is one; a number that it has not is none; the name of the file says the rank."""
    made = [begin(1, 4, 3), begin(2, 1, 0), begin(3, 2, 2)]
    places = {"communicator 1": GroupPlace(3, 4), "communicator 2": GroupPlace(0, 1), "communicator 3": None}
    for name, rank in (("a.sqlite", 3), ("a.rank0.sqlite", 0)):
        trace = only(write_report(tmp_path / name, {5: [*made, CALL]}))
        assert (trace.places, trace.rank) == (places, rank)
    trace = only(write_report(tmp_path / "b.sqlite", {5: [CALL]}))
    assert (trace.places, trace.rank) == ({}, -1)


def test_sizes_and_missing_sizes(tmp_path):
    """What is no known collective counts if it moves data, and a call without a size takes time."""
    puts = [("ncclPut", {"Bytes": size}) for size in (0, 1, 64)]
    read = load_workload(
        write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), CALL, ("ncclReduce", {"Peer rank": 0}), *puts]})
    )
    assert {(one.what.split()[0], one.calls, one.size_bytes, one.missing) for one in read.omitted} == {
        ("ncclPut,", 2, 65, True),
        ("ncclReduce", 1, 0, True),
    }


SIZED = '[[kernels]]\nname = "deep_ep"\ncollective = "all_to_all"\nsize = 8\n'


@pytest.mark.parametrize(
    ("rows", "ranks"),
    [
        ([], 1),
        ([row(KERNEL, start=5, end=9, deviceId=1, streamId=7, shortName=3, globalPid=6 << 24)], 1),
        ([row(KERNEL, start=5, end=9, deviceId=1, streamId=7, shortName=1, globalPid=6 << 24)], 2),
        ([row(KERNEL, start=5, end=9, deviceId=1, streamId=7, shortName="deep_ep::x", globalPid=6 << 24)], 2),
        ([row("NVTX_EVENTS", start=5, end=9, text="ncclReduce", globalTid=6 << 24, jsonText=json.dumps({BYTES: 4}))], 2),
        ([row("NVTX_EVENTS", start=5, end=9, text="ncclInit", globalTid=6 << 24, jsonText=json.dumps({ID: 2, SIZE: 1}))], 2),
        ([row("NVTX_EVENTS", start=5, end=9, text="ncclReduce", globalTid=6 << 24, binaryData="x")], 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shared", [False, True])
def test_which_processes_and_devices_are_ranks(tmp_path, rows, ranks, shared):
    """Those that call NCCL: by a kernel, a range, a communicator; else their kernels are passed over.

    Args:
        rows: of a second process, or of the second device of the first.
        ranks: of the report; 0 if its values are packed.
        shared: whether it is the same process.
    """
    path = write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), CALL], 6: []})
    device = "UPDATE {} SET {} = {} WHERE {} >> 24 = 6"
    both = [
        device.format(KERNEL, "globalPid", 5 << 24, "globalPid"),
        device.format("NVTX_EVENTS", "globalTid", 5 << 24, "globalTid"),
        """UPDATE NVTX_EVENTS SET jsonText = json_set(jsonText, '$."CUDA device"', 1) WHERE globalTid >> 24 = 6""",
    ]
    change(path, *rows, *reversed(both * shared))
    (tmp_path / "sizes.toml").write_text(SIZED)
    if shared and rows and "NVTX" in rows[0] and "Init" not in rows[0]:
        assert len(load_traces(path, kernel_sizes=tmp_path / "sizes.toml")) == 1  # of the one device of its thread
    elif ranks == 1:
        trace = only(path, kernel_sizes=tmp_path / "sizes.toml")
        assert [call.collective for call in trace.calls] == ["all_reduce"]
        assert "sizes of sizes.toml: 0 kernels of deep_ep" in trace.after
    else:
        said = "has calls of 2 ranks" if ranks else "1 call of NCCL are only in a packed form"
        with pytest.raises(WorkloadError, match=said):
            load_traces(path, kernel_sizes=tmp_path / "sizes.toml")


def test_a_report_without_calls(tmp_path):
    """Has the computation of its devices."""
    trace = only(write_report(tmp_path / "a.sqlite", {0: [], 1: []}, shared="threads"))
    assert (list(trace.calls), trace.compute_s) == ([], pytest.approx(800e-9))
    assert not any("packed" in note or "device" in note for note in trace.after)


def test_values_that_are_packed_beside_others(tmp_path):
    """Those calls are left out, with a note."""
    path = write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), CALL, CALL]})
    said = "calls whose values are only in a packed form, left out: 1"
    assert said not in only(path).after
    trace = only(change(path, "UPDATE NVTX_EVENTS SET jsonText = NULL WHERE start = 3000"))
    assert (len(trace.calls), said in trace.after) == (1, True)


def test_sizes_of_communicators_without_a_name(tmp_path):
    """The largest is compared with the number of devices, which then have the ranks of their order."""
    for sizes, fits in (((2,), True), ((2, 3), False), ((), True)):
        made = [("ncclCommInitRank", {SIZE: size}) for size in sizes]
        path = write_report(tmp_path / f"{len(sizes)}.sqlite", {0: [*made, CALL], 1: [CALL]}, shared="threads")
        if fits:
            assert [trace.rank for trace in load_traces(path)] == [0, 1]
        else:
            with pytest.raises(WorkloadError, match="has calls of 2 ranks"):
                load_traces(path)


def test_devices_that_call_a_communicator_made_before(tmp_path):
    """Are its members, in order; the others are not."""
    calls = [("ncclAllReduce", {ID: 9, BYTES: 8}), CALL]
    ranges = {rank: [begin(1, 3, rank), *calls[rank == 1 :]] for rank in range(3)}
    traces = load_traces(write_report(tmp_path / "a.sqlite", ranges, shared="threads"))
    assert [sorted(trace.places) for trace in traces] == [
        ["communicator 1", "communicator 9"], ["communicator 1"], ["communicator 1", "communicator 9"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("short", "long", "known"),
    [
        (1, 3, True),
        (None, 1, True),
        (99, 1, True),
        ("ncclDevKernel_X", None, True),
        (None, "ncclDevKernel_X", True),
        ("gemm", 99, False),
        (None, None, False),
    ],
)
def test_names_of_kernels(tmp_path, short, long, known):
    """Numbers of texts or texts: the short name, else the long one. A kernel without a name computes."""
    path = change(
        write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), CALL]}),
        f"ALTER TABLE {KERNEL} ADD COLUMN demangledName",
        row(
            KERNEL,
            start=50_000,
            end=50_300,
            deviceId=0,
            streamId=7,
            shortName=short,
            demangledName=long,
            globalPid=5 << 24,
        ),
    )
    notes = "; ".join(only(path).after)
    assert ("1 kernels of collectives, 300 ns" in notes, only(path).compute_s) == (
        known,
        pytest.approx(400e-9 + 300e-9 * (not known)),
    )


def test_kernels_without_times_streams_and_launches(tmp_path):
    """One that took no time is one; a time below 0 is none, and what is not recorded is of no stream and no launch."""
    path = training().write(tmp_path / "a.sqlite")
    before = only(path)
    change(
        path,
        row(KERNEL, start=-5, end=9, deviceId=0),
        row(KERNEL, start=7, end=None, deviceId=0),
        row(KERNEL, start=5, end=5, deviceId=0, streamId=None, correlationId=None),
        row(KERNEL, start=6, end=6, deviceId=0, streamId=7, correlationId=-1),
    )
    trace = only(path)
    assert "kernels without a time: 2" in trace.after
    assert sorted(trace.kernels.stream.tolist()) == [-1, 7, *sorted(before.kernels.stream.tolist())]
    assert any("left out: 2 kernels, 0 s, launched before the recording began" in note for note in trace.after)


def test_copies_between_devices(tmp_path):
    """Count with their bytes if they have a time, and lower the bound of the step in which they were launched, or began."""
    path = training().write(tmp_path / "a.sqlite")
    first, second = load_steps(path)
    columns = "start INT, end INT, streamId INT, correlationId INT, copyKind INT, bytes INT"
    change(path, f"CREATE TABLE {COPIES} ({columns})")
    with closing(sqlite3.connect(path)) as file:
        (started,) = file.execute("SELECT start + 1 FROM NVTX_EVENTS WHERE text = 'ProfilerStep#1'").fetchone()
    rows = [(started, started + 10, None), (started, None, 1), (None, started, 1), (started, started - 1, 1)]
    for start, end, number in rows:
        change(path, row(COPIES, start=start, end=end, streamId=None, correlationId=number, copyKind=10, bytes=None))
    assert any("1 copies between devices without a size, 10 ns: Memcpy" in note for note in only(path).after)
    assert [one.bound for one in load_steps(path)] == [first.bound, "lower"] != [first.bound, second.bound]
    change(path, row(COPIES, start=started, end=started, streamId=20, correlationId=1, copyKind=10, bytes=5))
    assert any("2 copies between devices without a size, 10 ns, 5 B: Memcpy" in note for note in only(path).after)
    assert [one.bound for one in load_steps(path)] == ["lower", "lower"]


def order_of(path):
    """Tasks of the steps of a report, and notes on their order."""
    return [
        (step.step, step.tasks, [note for note in step.notes if note.startswith("order")]) for step in load_steps(path)
    ]


PID, VALUES = "globalPid INT", json.dumps({BYTES: 8})


@pytest.mark.parametrize(
    "statements",
    [
        [row("NVTX_EVENTS", start=5, end=None, text="ncclAllReduce", globalTid=1 << 24 | 99, jsonText=VALUES)],
        [row("NVTX_EVENTS", start=5, end=9, text="ncclAllReduce", globalTid=77 << 24, jsonText=VALUES)],
        [row(RUNTIME, start=5, end=9, globalTid=77 << 24, correlationId=3, nameId=0)],
        [row(RUNTIME, start=None, end=9, globalTid=1 << 24, correlationId=3, nameId=0)],
        [row(RUNTIME, start=5, end=9, globalTid=1 << 24, correlationId=None, nameId=0)],
        [row(EVENTS, correlationId=None, streamId=7, eventId=4, globalPid=1 << 24)],
        [row(EVENTS, correlationId=3, streamId=None, eventId=4, globalPid=1 << 24)],
        [row(EVENTS, correlationId=3, streamId=7, eventId=None, globalPid=1 << 24)],
        [row(WAITS, streamId=7, correlationId=None, syncType=3, eventId=4, globalPid=1 << 24)],
        [row(WAITS, streamId=None, correlationId=90, syncType=3, eventId=4, globalPid=1 << 24)],
        [row(WAITS, streamId=7, correlationId=90, syncType=3, eventId=5, globalPid=1 << 24)],
        [row(WAITS, streamId=7, correlationId=90, syncType=1, eventId=4, globalPid=1 << 24)],
        [row(WAITS, streamId=7, correlationId=1, syncType=3, eventId=4, globalPid=1 << 24)],
        [
            row(WAITS, streamId=7, correlationId=90, syncType=3, eventId=4, globalPid=77 << 24),
            row(EVENTS, correlationId=1, streamId=20, eventId=4, globalPid=77 << 24),
        ],
        [
            f"CREATE TABLE x AS SELECT * FROM {EVENTS} ORDER BY correlationId DESC",
            f"DELETE FROM {EVENTS}",
            f"INSERT INTO {EVENTS} SELECT * FROM x",
        ],
    ],
)  # fmt: skip
def test_rows_that_change_nothing(tmp_path, statements):
    """Without a time, a number, an event or a process; of another kind; and the order of the rows."""
    path = training().write(tmp_path / "a.sqlite")
    change(
        path,
        *(f"ALTER TABLE {table} ADD COLUMN {PID}" for table in (KERNEL, WAITS, EVENTS)),
        *(f"UPDATE {table} SET globalPid = 1 << 24" for table in (KERNEL, WAITS, EVENTS)),
        *(f"UPDATE {table} SET globalTid = 1 << 24 | 99" for table in (RUNTIME, "NVTX_EVENTS")),
    )
    before = order_of(path)
    assert before[0][2][1] == "order: kernels depend on collectives by 4 recorded stream waits"
    assert order_of(change(path, *statements)) == before


@pytest.mark.parametrize(
    ("waits", "statements", "said"),
    [
        (False, [], "1 of 1 stream waits without a recorded stream were matched in issue order"),
        (True, [f"DELETE FROM {WAITS}"], "no stream waits are recorded"),
        (True, [f"DELETE FROM {WAITS} WHERE rowid > 1"], "by 1 recorded stream waits"),
    ],
)
def test_waits_of_the_host(tmp_path, waits, statements, said):
    """Count where the report has no events, in their steps; those within a call order the call itself."""
    path = change(training(waits).write(tmp_path / "a.sqlite"), *statements)
    assert [said in notes[1] for _, _, notes in order_of(path)] == [True, True]


def test_ends_and_numbers_of_steps(tmp_path, monkeypatch):
    """What is behind a step is in none; of very many steps the first are read."""
    report = training()
    report.call("ncclAllReduce", 16)
    path = report.write(tmp_path / "a.sqlite")
    assert [step.num_calls for step in load_steps(path)] == [1, 1]
    for most in (1, 2):
        monkeypatch.setattr(nsys, "MAX_STEPS", most)
        assert len(load_steps(path)) == most
