"""Forms of single events of the PyTorch profiler: what each says, and how what cannot be used is counted."""

import json

import pytest

from opticcl.errors import WorkloadError
from opticcl.traces import load_steps, load_workload
from opticcl.traces.loading import load_traces

INFO = {"rank": 0, "world_size": 4}
GROUP = {"Group size": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]"}
FLOATS = {"Input Dims": [[25]], "Input type": ["float"]}


def event(name, cat="cpu_op", ts=0, dur=1, pid=1, tid=1, ph="X", **args):
    """An event; a double underscore in the name of an argument is a space."""
    about = {"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**about, "args": {key.replace("__", " "): value for key, value in args.items()}}


def record(
    said, sent, received=None, *, group=GROUP, name="record_param_comms", cat="cpu_op", ts=0, dur=1, tid=1, **more
):
    """A record of a collective of bytes."""
    made = event(name, cat, ts, dur, tid=tid, **more)
    about = {"Collective name": said, "dtype": "Byte", "In msg nelems": sent, **group}
    made["args"] = {**about, "Out msg nelems": sent if received is None else received, **made["args"]}
    return made


def kernel(name="gemm", ts=50, dur=5, **args):
    """A kernel."""
    return event(name, "kernel", ts, dur, pid=0, tid=7, **{"device": 0, "stream": 7, **args})


def launch(number, ts, name="cudaLaunchKernel", **more):
    """A launch."""
    return event(name, "cuda_runtime", ts, correlation=number, **more)


ANCHOR = record("allreduce", 100, ts=1)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("forms") / "a.json"


class Read:
    """What is read of events, or the notes of the refusal."""

    def __init__(self, path, events, info=INFO, **options):
        path.write_text(
            json.dumps({"distributedInfo": info, "traceEvents": events, "more": {"rank": 3, "world_size": 9}})
        )
        try:
            found = load_workload(path, **options)
        except WorkloadError as error:
            notes = str(error).partition("in this trace; ")[2]
            self.calls, self.notes, self.compute_us, self.source = [], notes.split("; "), None, ""
            return
        self.notes, self.compute_us, self.source = list(found.notes), round(found.compute_s * 1e6, 3), found.source
        self.calls = [(call.collective, call.size_bytes, tuple(call.ranks)) for call in found.calls]
        self.measured_us = [round(call.measured_s * 1e6, 3) for call in found.calls]
        self.groups = [call.group for call in found.calls]
        self.matrices = [call.matrix_bytes for call in found.calls]

    def left_out(self):
        """What is counted."""
        return sorted(note.removeprefix("left out: ") for note in self.notes if note.startswith("left out: "))


ALL = (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("one", "calls"),
    [
        # which side is the message
        (record("allreduce", 8, 12), [("all_reduce", 12, ALL)]),
        (record("_allgather_base", 5, 20), [("all_gather", 20, ALL)]),
        (record("all_to_allv", 12, 9), [("all_to_all", 12, ALL)]),
        (record("gather", 8, 0), [("gather", 8, ALL)]),
        (record("allreduce", 8, None, Out__msg__nelems="x"), [("all_reduce", 8, ALL)]),
        # groups: by ranks, by start and stride, by nothing
        (
            record("allreduce", 8, group={"Process Group Ranks": [1, 3], "Process Group ID": 5}),
            [("all_reduce", 8, (1, 3))],
        ),
        (
            record("allreduce", 8, group={"Global rank start": 0, "Global rank stride": 2, "Group size": 2}),
            [("all_reduce", 8, (0, 2))],
        ),
        (
            record("allreduce", 8, group={**GROUP, "Global rank start": 5, "Global rank stride": 1}),
            [("all_reduce", 8, ALL)],
        ),
        (
            record(
                "allreduce", 8, group={"Process Group Ranks": "[1, 3, ...]", "Global rank start": 1, "Group size": 2}
            ),
            [("all_reduce", 8, (0, 1))],
        ),
        (
            record("allreduce", 8, group={"Process Group Ranks": {"1": 3}, "Global rank stride": 2, "Group size": 3}),
            [("all_reduce", 8, (0, 1, 2))],
        ),
        (record("allreduce", 8, group={"Process Group Ranks": [1.5, 3]}), [("all_reduce", 8, ())]),
        (record("_allgather_base", 5, 10, group={}), [("all_gather", 10, (0, 1))]),
        (record("_reduce_scatter_base", 10, 5, group={}), [("reduce_scatter", 10, (0, 1))]),
        (record("_allgather_base", 5, 10, group={"Group size": 4}), [("all_gather", 10, ())]),
        (record("_allgather_base", 5, 20, group={"Process Group Ranks": "[2, 3]"}), [("all_gather", 20, (2, 3))]),
        (record("broadcast", 5, 10, group={}), [("broadcast", 10, ())]),
        # ends of transfers: of the job, or of the group
        (record("send", 8, Dst__Rank=2, Src__Rank=0, Rank=1), [("send_recv", 8, (0, 2))]),
        (record("recv", 8, Src__Rank=2, Rank=1), [("send_recv", 8, (2, 0))]),
        (record("send", 8, Rank=1, group={"Process Group Ranks": "[0, 3]"}), [("send_recv", 8, (0, 3))]),
        (record("recv", 8, Rank=1, group={"Process Group Ranks": "[0, 3]"}), [("send_recv", 8, (3, 0))]),
        (record("recv", 8, Rank=0, group={"Process Group Ranks": "[2, 0]"}), [("send_recv", 8, (2, 0))]),
        (record("send", 8), [("send_recv", 8, (0, -1))]),
        # kernels that say what they are
        (record("allreduce", 8, name="my_kernel", cat="kernel"), [("all_reduce", 8, ALL)]),
        (record("allreduce", 8, name="ncclDevKernel_AllReduce(x)", cat="Kernel"), [("all_reduce", 8, ALL)]),
        # annotations: the inputs of one rank
        (event("nccl:all_reduce", "user_annotation", **FLOATS), [("all_reduce", 100, ())]),
        (
            event("nccl:all_reduce", **{"Input Dims": [[2], [3]], "Input type": ["int", "int"]}),
            [("all_reduce", 20, ())],
        ),
        (event("nccl:gather", **FLOATS), [("gather", 400, ())]),
        (event("nccl:all_gather", **FLOATS), [("all_gather", 400, ())]),
        (
            event("nccl:all_gather", **{"Input Dims": [[2], [4]], "Input type": ["int", "int"]}),
            [("all_gather", 24, ())],
        ),
        (event("nccl:scatter", **FLOATS), [("scatter", 100, ())]),
        (event("gloo:barrier"), [("barrier", 0, ())]),
        (event("c10d::barrier"), [("barrier", 0, ())]),
        (event("nccl:send 0->2", **FLOATS), [("send_recv", 100, (0, 2))]),
        (event("nccl:recv 0<-2", **FLOATS), [("send_recv", 100, (2, 0))]),
        # operators: all tensors, outputs first
        (
            event("c10d::allreduce_", **{"Input Dims": [[2], [4]], "Input type": ["int", "int"]}),
            [("all_reduce", 16, ())],
        ),
        (
            event("c10d::_allgather_base_", **{"Input Dims": [[8], [4]], "Input type": ["int"] * 2}),
            [("all_gather", 32, (0, 1))],
        ),
        (
            event("c10d::_reduce_scatter_base_", **{"Input Dims": [[4], [8]], "Input type": ["int"] * 2}),
            [("reduce_scatter", 32, (0, 1))],
        ),
        (
            event("c10d::gather_", **{"Input Dims": [[6], [2]], "Input type": ["int"] * 2}),
            [("gather", 24, (0, 1, 2))],
        ),
        (event("c10d::gather_", **{"Input Dims": [[6], [4]], "Input type": ["int"] * 2}), [("gather", 64, ())]),
        (event("c10d::scatter_", **{"Input Dims": [[4], [6]], "Input type": ["int"] * 2}), [("scatter", 64, ())]),
        (
            event("c10d::scatter_", **{"Input Dims": [[2], [4]], "Input type": ["int"] * 2}),
            [("scatter", 16, (0, 1))],
        ),
        (event("c10d::allgather_", **{"Input Dims": [[8]], "Input type": ["int"]}), [("all_gather", 128, ())]),
        # ends and tags among the values of operators
        (event("c10d::send", **FLOATS, Concrete__Inputs=["", "", "2", "0"]), [("send_recv", 100, (0, 2))]),
        (event("c10d::recv_", **FLOATS, Concrete__Inputs=["", "", "2", "0"]), [("send_recv", 100, (2, 0))]),
        (event("c10d::recv_any_source_", **FLOATS, Concrete__Inputs=["", "", "2", "0"]), [("send_recv", 100, (-1, 0))]),
        (event("c10d::send", **FLOATS, Concrete__Inputs=["", "", "2"]), [("send_recv", 100, (0, -1))]),
        (event("c10d::send", **FLOATS, Concrete__Inputs=["", "", "two", "0"]), [("send_recv", 100, (0, -1))]),
        (event("c10d::send", **FLOATS, Concrete__Inputs="x"), [("send_recv", 100, (0, -1))]),
        # collectives of Ascend, by bytes or by elements
        (event("hcom_allReduce__950_0", "", **{"size(Byte)": 64}), [("all_reduce", 64, ())]),
        (event("hcom_allGather__950_0", "", count=8, data_type="fp16"), [("all_gather", 16, ())]),
        (event("hcom_allReduce__950_0", "", **{"size(Byte)": 3 << 31}), [("all_reduce", 3 << 31, ())]),
        (event("hcom_allReduce__950_0", "", count=3 << 31, data_type="fp16"), [("all_reduce", 3 << 32, ())]),
        (event("hcom_broadcast_", None, **{"Task Type": "HCCL", "size(Byte)": 64}), [("broadcast", 64, ())]),
        (event("hcom_other__950_0", "", **{"size(Byte)": 64}), []),
    ],
)
def test_the_call_of_an_event(path, one, calls):
    """Collective, bytes and ranks; where a group is not recorded the ranks are those of its size, or none."""
    assert Read(path, [one]).calls == calls


SIDES = {"Input Dims": [[6], [4]], "Input type": ["int"] * 2}
LISTS = {"Input Dims": [[[1], [5]], [[2], [0]]], "Input type": ["int"] * 2}


@pytest.mark.parametrize(
    ("one", "sent", "received"),
    [
        (record("all_to_allv", 9, 12, dtype="Float"), (36,), (48,)),
        (record("all_to_allv", 9, Out__msg__nelems="x"), (9,), (9,)),
        (
            record("all_to_allv", 8, 6, In__split__size="[1, 0, 2, 1]", Out__split__size="[3, 0, 0, 0]"),
            (8, 2, 0, 4, 2),
            (6, 6, 0, 0, 0),
        ),
        (record("all_to_allv", 8, Out__msg__nelems="x", Out__split__size=[1, 0, 0, 0]), (8,), (8, 8, 0, 0, 0)),
        (event("c10d::alltoall_base_", **SIDES), (16,), (24,)),
        (event("c10d::alltoall_base_", **SIDES, Concrete__Inputs=["", "", "", "[1, 2]"]), (16,), (24,)),
        (
            event("c10d::alltoall_base_", **SIDES, Concrete__Inputs=["", "", "", [1, 2], [3, 1]]),
            (16, 12, 4),
            (24, 8, 16),
        ),
        (event("c10d::alltoall_", **LISTS), (8, 8, 0), (24, 4, 20)),
    ],
)
def test_both_sides_of_an_exchange(path, one, sent, received):
    """What a rank sends and receives, each with its parts if they are recorded."""
    (trace,) = load_traces(write(path, [one]))
    (call,) = trace.calls
    assert (call.size_bytes, *call.sent_splits) == sent
    assert (call.received_bytes, *call.received_splits) == received


SHAPED = "without shapes of a known type"


@pytest.mark.parametrize(
    ("one", "said", "missing"),
    [
        (record("wait", 8), "1 record_param_comms of wait, which moves no data itself", False),
        (
            record("allreduce", 8, dtype="odd"),
            "1 record_param_comms of allreduce without elements of a known type",
            True,
        ),
        (record("allreduce", True, "x"), "1 record_param_comms of allreduce without elements of a known type", True),
        (event("record_param_comms"), "1 record_param_comms without a collective's name", False),
        (event("nccl:all_reduce"), "1 nccl:all_reduce without shapes", True),
        (event("nccl:all_reduce", **{"Input Dims": [[2]], "Input type": ["odd"]}), f"1 nccl:all_reduce {SHAPED}", True),
        (event("nccl:all_reduce", **{"Input Dims": "x", "Input type": []}), f"1 nccl:all_reduce {SHAPED}", True),
        (event("gloo:all_reduce"), "1 gloo:all_reduce without shapes", True),
        (
            event(
                "c10d::alltoall_base_",
                Concrete__Inputs=["", "", "", "[1, 2]", "[]"],
                **{**FLOATS, "Input Dims": [[4], [4]], "Input type": ["int"] * 2},
            ),
            "1 out split sizes that do not fit, not used: the list has 3 rows in all for 16 elements",
            False,
        ),
        (
            record("all_to_allv", 4, In__split__size="[1, 2]"),
            "1 in split sizes that do not fit, not used: the list has 3 rows in all for 4 elements",
            False,
        ),
        (event("nccl:coalesced"), "1 nccl:coalesced, which moves no data itself", False),
        (event("hcom_allReduce__1"), "1 communication kernels of allReduce without a size", True),
    ],
)
def test_a_record_without_a_size(path, one, said, missing):
    """Is counted; if it takes time on the network, no bound stays an upper one."""
    assert said in Read(path, [one]).left_out()
    others = {"record": ANCHOR, "nccl:": event("nccl:all_reduce", **FLOATS)}
    others["hcom_"] = event("hcom_allReduce__2", **{"size(Byte)": 8})
    for other in (other for name, other in others.items() if one["name"].startswith(name)):
        (step,) = load_steps(write(path, [one, other, kernel()]))
        left = {left.missing for left in load_workload(path).omitted if said in f"{left.calls} {left.what}"}
        assert (left, step.bound in ("lower", "estimate")) == ({missing}, missing)
        assert any(said in note for note in step.notes)


@pytest.mark.parametrize(
    ("events", "compute_us", "said"),
    [
        ([kernel()], 5, []),
        ([kernel(dur="5.5")], 5.5, []),
        ([kernel(dur=1e13)], 1e13, []),
        ([kernel(dur=1.1e13)], 0, ["times out of range, taken as 0: 1"]),
        ([kernel(dur=10**400)], 0, ["times out of range, taken as 0: 1"]),
        ([kernel(dur=[1])], 0, ["times out of range, taken as 0: 1"]),
        ([kernel(dur=None)], 0, []),
        ([kernel(ts=1e18)], 5, []),
        ([kernel(ts=1.1e18)], 5, ["times out of range, taken as 0: 1"]),
        ([kernel(ts=-1)], 5, ["times out of range, taken as 0: 1"]),
        ([kernel(dur=True)], 1, []),
        ([kernel("nothing", dur=3, ph="i")], 3, []),
        ([{"name": "gemm", "cat": "kernel", "dur": 4}], 4, []),
        ([5, "x", None, {}, {"name": 5, "cat": "kernel", "dur": 4}], 0, ["events without a name: 5"]),
        ([{"ph": "B", "cat": "kernel"}], 0, ["events without a name: 1"]),
        ([event("gemm", "gpu_memset")], 0, []),
        ([event("nccl:all_reduce", "gpu_user_annotation", **FLOATS)], 0, []),
        ([event("Memcpy HtoD", "gpu_memcpy")], 0, []),
        (
            [event("Memcpy PtoP", "gpu_memcpy", dur=3, bytes=70), event("Peer copy", "gpu_memcpy", dur=2, bytes=7)],
            0,
            [
                "left out: 2 copies between devices without a size, 5 us, 77 B: Memcpy PtoP (1), Peer copy (1); "
                "--kernel-sizes gives their sizes"
            ],
        ),
        (
            [kernel("void mscclpp::x(y)", dur=3)],
            0,
            [
                "left out: 1 kernels of MSCCL++ without a size, 3 us: void mscclpp::x(y) (1); --kernel-sizes gives their sizes"
            ],
        ),
        # other makers
        ([event("MatMul", "", dur=3, **{"Task Type": "AI_CORE", "Stream Id": 4})], 3, []),
        ([event("MatMul", "cpu_op", dur=3, **{"Task Type": "AIV"})], 3, []),
        (
            [event("wait", "", dur=3, **{"Task Type": "EVENT"}), event("odd", "mtia", dur=4)],
            0,
            ["left out: 2 device events of an unknown kind, 7 us: odd (1), wait (1)"],
        ),
        (
            [event("even", "mtia", dur=3), event("odd", "mtia", dur=4)],
            0,
            ["left out: 2 device events of an unknown kind, 7 us: odd (1), even (1)"],
        ),
        ([event("odd", "mtia", dur=4, ph="i")], 0, []),
        (
            [event("hcom_other__1", "", dur=4)],
            0,
            [
                "left out: 1 kernels of collectives, 4 us, without a record of their launch: they belong to no call of "
                "the trace"
            ],
        ),
        (
            [event("odd", "", dur=4, **{"Task Type": ["AIV"]})],
            0,
            ["left out: 1 device events of an unknown kind, 4 us: odd (1)"],
        ),
        (
            [event("nvshmemi_x", "mtia", dur=4)],
            0,
            ["left out: 1 device events of an unknown kind, 4 us: nvshmemi_x (1)"],
        ),
        ([event("aten::mm", word, dur=4) for word in ("cpu_op", "ac2g", "Python_function", "user_defined", "")], 0, []),
        # waits of streams
        ([event("Event Sync", "cuda_sync", stream=1)], 0, []),
        ([event("Stream Wait Event", "cuda_sync", stream=1)], 0, ["stream waits without an event, ignored: 1"]),
    ],
)
def test_what_an_event_is(path, events, compute_us, said):
    """Computation, nothing, or counted."""
    read = Read(path, [ANCHOR, *events])
    assert read.calls == [("all_reduce", 100, ALL)]
    assert read.compute_us == compute_us
    usual = ("events: ", "calls recorded", "computation: ", "4 ranks")
    assert [note for note in read.notes if not note.startswith(usual)] == said
    assert f"events: {1 + len(events):,}" in read.notes


WAIT = {"stream": 0, "wait_on_stream": 0, "correlation": 0, "wait_on_cuda_event_record_corr_id": 0}


@pytest.mark.parametrize("missing", [*WAIT, ""])
def test_a_stream_wait_has_four_numbers(path, missing):
    """From 0 on; one that lacks any is counted."""
    about = {key: value for key, value in WAIT.items() if key != missing}
    read = Read(path, [ANCHOR, event("Stream Wait Event", "cuda_sync", **about)])
    assert ("stream waits without an event, ignored: 1" in read.notes) == bool(missing)


@pytest.mark.parametrize(
    ("one", "rank"),
    [
        (record("allreduce", 8, Rank=1, group={"Process Group Ranks": "[2, 3]"}), 3),
        (record("allreduce", 8, Rank=0, group={"Process Group Ranks": "[2, 3]"}), 2),
        (record("allreduce", 8, Rank=2, group={"Process Group Ranks": "[2, 3]"}), None),
        (record("allreduce", 8, group={"Process Group Ranks": "[2, 3]"}), None),
        (record("broadcast", 8, Rank=1, group={"Process Group Ranks": "[2, 3]"}), None),
        (record("gather", 8, Rank=1, group={"Process Group Ranks": "[2, 3]"}), None),
        (record("send", 8, Rank=1, group={"Process Group Ranks": "[2, 3]"}), None),
        (record("send", 8, Rank=1, Dst__Rank=3, Src__Rank=2), None),
    ],
)
def test_the_rank_of_a_record(path, one, rank):
    """The number in the group, of collectives without a root; that of the file counts before it."""
    source = "PyTorch profiler trace a.json"
    assert Read(path, [one], {"world_size": 4}).source == (source if rank is None else f"{source}, rank {rank}")
    assert Read(path, [one], {"world_size": 4, "rank": 1}).source == f"{source}, rank 1"


def test_the_rank_that_some_records_say(path):
    """Is that of a file in which others do not."""
    about = [("allreduce", 1), ("allreduce", 2), ("broadcast", 0)]
    made = [record(said, 8, ts=i, Rank=n, group={"Process Group Ranks": "[2, 3]"}) for i, (said, n) in enumerate(about)]
    assert Read(path, made, {"world_size": 4}).source == "PyTorch profiler trace a.json, rank 3"


def test_ends_that_operators_say_without_a_rank(path):
    """The own end is unknown."""
    for word, ranks in (("send", (-1, 2)), ("recv_", (2, -1))):
        one = event(f"c10d::{word}", **FLOATS, Concrete__Inputs=["", "", "2", "0"])
        assert Read(path, [one], {"world_size": 4}).calls == [("send_recv", 100, ranks)]


def test_a_list_of_events_has_no_rank(path):
    """Nor a number of ranks but that of its largest group."""
    path.write_text(json.dumps([ANCHOR]))
    read = load_workload(path)
    assert (read.source, read.num_ranks) == ("PyTorch profiler trace a.json", 4)


def test_arguments_may_be_written_in_any_way(path):
    """With escapes; an event with a value that is nested too deeply is left out."""
    write(path, [event("MatMul", dur=3, **{"Task Type": "AIV"}), ANCHOR])
    path.write_text(path.read_text().replace("Task Type", "Task\\u0020Type"))
    assert load_workload(path).compute_s == pytest.approx(3e-6)
    write(path, [ANCHOR, kernel(odd="?"), kernel(dur=3)])
    path.write_text(path.read_text().replace('"?"', 5_000 * "[" + 5_000 * "]"))
    read = load_workload(path)
    assert read.compute_s == pytest.approx(3e-6)
    assert sum(note.startswith("events that are not JSON, left out") and note.endswith(": 1") for note in read.notes)


def test_tasks_without_a_size(path):
    """Are missing if they are collectives."""
    one = event("hcom_allReduce__2", "", **{"size(Byte)": 8})
    said = "1 communication kernels of allReduce without a size"
    assert Read(path, [event("hcom_other__1", ""), one]).left_out() == []
    assert Read(path, [event("hcom_allReduce__1", ""), one]).left_out() == [said]


def test_groups_of_the_file(path):
    """By name, for records that have only that; what is no group is passed over."""
    groups = [
        5,
        "x",
        {"pg_name": "a", "ranks": [1, 3]},
        {"pg_name": "b", "ranks": "x"},
        {"ranks": [0, 2]},
        {"pg_name": 7},
    ]
    named = [record("allreduce", 8, group={"Process Group Name": name}, ts=i) for i, name in enumerate("ab")]
    assert [ranks for *_, ranks in Read(path, named, {**INFO, "pg_config": groups}).calls] == [(1, 3), ()]
    assert [ranks for *_, ranks in Read(path, named, {**INFO, "pg_config": "x"}).calls] == [(), ()]
    assert [ranks for *_, ranks in Read(path, named, [INFO]).calls] == [(), ()]
    numbered = record("allreduce", 8, group={"Process Group ID": 7, "Group size": 4})
    assert Read(path, [numbered], INFO).groups == ["7"]


def test_calls_without_a_number_are_matched_in_order(path):
    """Of two ranks in one file, the first call of one is the first of the other."""
    made = [record("allreduce", 8 + i, ts=i, rank=rank) for rank in (0, 1) for i in range(2)]
    assert Read(path, made, {"world_size": 4}).calls == [("all_reduce", 8, ALL), ("all_reduce", 9, ALL)]
    made = [record("allreduce", 8, ts=i, rank=rank, Seq=i) for rank, i in ((0, 0), (0, 1), (1, 1), (1, 2))]
    assert len(Read(path, made, {"world_size": 4}).calls) == 3
    made = [record("allreduce", size, ts=size, rank=rank) for rank, size in ((0, 8), (0, 9), (1, 9))]
    assert len(Read(path, made, {"world_size": 4}).calls) == 2


@pytest.mark.parametrize(("about", "streams"), [({}, [0]), ({"stream": 0}, [1]), ({"stream": "x"}, [0])])
def test_streams_of_kernels_whose_sizes_are_listed(path, about, streams):
    """Are numbered from 1; 0 where none is recorded."""
    listed = path.parent / "sizes.toml"
    listed.write_text('[[kernels]]\nname = "mscclpp"\ncollective = "all_reduce"\nsize = 64\n')
    task = {"size(Byte)": 8, "Stream Id": about.get("stream")}
    for one in (event("void mscclpp::x(y)", "kernel", **about), event("hcom_allReduce__1", "", **task)):
        (read,) = load_traces(write(path, [one]), kernel_sizes=listed)
        assert [call.stream for call in read.calls] == streams


@pytest.mark.parametrize("info", [{}, {"rank": 0}, {"world_size": "4"}, {"world_size": -4}, None])
def test_the_number_of_ranks_may_be_missing(path, info):
    """Then it is that of the largest group."""
    write(path, [ANCHOR])
    path.write_text(path.read_text().replace(json.dumps(INFO), json.dumps(info)))
    assert load_workload(path).num_ranks == 4


@pytest.mark.parametrize("size", [{"pg_size": 4}, {"group_size": 4}, {"pg_size": "4"}, {}, {"pg_size": 2**20 + 1}])
def test_a_group_of_all_ranks_has_an_empty_list(path, size):
    """Beside its size; numbers within the group are then ranks of the job."""
    info = {"rank": 1, "world_size": 4, "pg_config": [{"pg_name": "0", "ranks": [], **size}, {"pg_name": "1"}, 5]}
    sent = record("send", 8, Rank=3, group={"Process Group Name": "0", "Process Group Ranks": "[0, 1, ...]"})
    known = 4 in size.values()
    read = Read(path, [sent], info)
    assert read.calls == [("send_recv", 8, (1, 3))]
    assert any("count within a group that is not recorded" in note for note in read.notes) != known


def test_records_with_sizes_make_other_sizes_unneeded(path):
    """Kernels and annotations behind a record with a size only give times: their sizes are not read."""
    odd = record("allreduce", -5, name="ncclDevKernel_X(x)", cat="kernel", ts=9, External__id=3)
    note = event("nccl:all_reduce", **{"Input Dims": [[-5]], "Input type": ["int"]})
    first = record("allreduce", 8, External__id=3)
    assert Read(path, [first, odd, note]).measured_us == [1]
    part = event("nccl:all_reduce", **{"Input Dims": [[-5], [9]], "Input type": ["int", "int"]})
    for one in (odd, note, part, record("allreduce", -5, 9)):
        with pytest.raises(WorkloadError, match="bytes, not 0 to"):
            load_workload(write(path, [one, first]))


def write(path, events):
    """The path, with events."""
    path.write_text(json.dumps({"distributedInfo": INFO, "traceEvents": events}))
    return path


@pytest.mark.parametrize("index", [0, 3, 7])
@pytest.mark.parametrize("odd", ["", '"s": NaN, '])
def test_a_size_is_refused_with_the_place_of_its_event(path, index, odd):
    """Events that are decoded together have the same places as those that are decoded one by one."""
    events = [json.dumps(event(f"aten::é{i}")).replace('{"ph"', "{" + odd * (i == 8) + '"ph"') for i in range(9)]
    events[index] = json.dumps(record("allreduce", -5))
    text = '{"traceEvents": [' + ",\n ".join(events) + "]}"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=f"character {text.index(events[index])}: allreduce"):
        load_workload(path)


# --- pairs of B and E -------------------------------------------------------------------------------------------------


def pair(ph, name="gemm", ts=0, tid=7, **args):
    """Half of a kernel."""
    return {"ph": ph, "cat": "kernel", "name": name, "pid": 0, "tid": tid, "ts": ts, "args": {"device": 0, **args}}


NAMELESS = {"ph": "E", "pid": 0, "tid": 7, "ts": 9}


@pytest.mark.parametrize(
    ("events", "compute_us", "said"),
    [
        ([pair("B", ts=5), pair("E", ts=9)], 4, ""),
        ([pair("B", ts=5), NAMELESS], 4, ""),
        ([pair("B", ts=5), pair("B", ts=6), pair("E", ts=7), pair("E", ts=17)], 13, ""),
        ([pair("B", "a", 1), pair("B", "b", 2), pair("E", "a", 5), pair("E", "b", 9)], 11, ""),
        ([pair("B", ts=5), pair("E", ts=3)], 0, ""),
        ([pair("B", ts=5), NAMELESS, pair("E", ts=12)], 4, "end and did not begin 1"),
        ([pair("B", ts=5), NAMELESS, pair("B", ts=20), pair("E", ts=30)], 14, ""),
        ([pair("B", "a", 1), pair("B", "b", 2), pair("E", "a", 5), NAMELESS, NAMELESS], 11, "end and did not begin 1"),
        ([pair("B", ts=5), {**NAMELESS, "name": ["gemm"]}], 0, "end and did not begin 1, begin and do not end 1"),
        ([pair("B", ts=5), pair("E", ts=9, tid=8)], 0, "end and did not begin 1, begin and do not end 1"),
        ([pair("B", ts=5), {**pair("E", ts=9), "pid": 1}], 0, "end and did not begin 1, begin and do not end 1"),
        ([pair("B", ts=5), {**NAMELESS, "tid": 8}], 0, "end and did not begin 1, begin and do not end 1"),
        ([pair("E", ts=9), pair("B", ts=5)], 0, "end and did not begin 1, begin and do not end 1"),
        ([pair("B"), pair("B"), pair("E", ts=3)], 3, "begin and do not end 1"),
        ([pair("E"), pair("E", "b")], 0, "end and did not begin 2"),
        ([{"ph": "E"}], 0, "end and did not begin 1"),
    ],
)
def test_events_that_begin_and_end(path, events, compute_us, said):
    """The last of the thread and the name that has begun; halves are counted."""
    read = Read(path, [ANCHOR, *events])
    assert read.compute_us == compute_us
    words = "end and did not begin", "begin and do not end"
    found = [f"{word} {note.rpartition(': ')[2]}" for word in words for note in read.notes if word in note]
    assert ", ".join(found) == said


def test_halves_share_their_arguments(path):
    """Those of the end beside those of the begin."""
    whole = record("allreduce", 8)
    begin = {**whole, "ph": "B", "args": {key: whole["args"][key] for key in ("dtype", "Collective name")}}
    end = {**whole, "ph": "E", "args": {key: whole["args"][key] for key in whole["args"] if key != "dtype"}}
    assert Read(path, [begin, end]).calls == [("all_reduce", 8, ALL)]
    assert Read(path, [{**begin, "args": 5}, {**whole, "ph": "E"}]).calls == [("all_reduce", 8, ALL)]


def test_open_events_are_bounded(path):
    """Of 100,001 that begin the last is not kept."""
    text = ",".join(
        ['{"ph": "B", "name": "a", "cat": "kernel"}'] * 100_001
        + ['{"ph": "E", "name": "a"}'] * 50_000
        + ['{"ph": "E"}'] * 50_001
    )
    path.write_text('{"traceEvents": [' + json.dumps(ANCHOR) + "," + text + "]}")
    notes = load_workload(path, num_ranks=4).notes
    assert "events that begin and do not end, left out: 1" in notes
    assert "events that end and did not begin, left out: 1" in notes


def test_profiler_steps_are_bounded(path):
    """Of 10,001 the last is not kept."""
    steps = [event(f"ProfilerStep#{i}", "user_annotation", ts=i) for i in range(10_001)]
    assert "profiler steps: 10,000; the calls of all of them are kept" in Read(path, [ANCHOR, *steps]).notes
    assert "profiler steps: 2; the calls of all of them are kept" in Read(path, [ANCHOR, *steps[:2]]).notes
    assert not any("profiler steps" in note for note in Read(path, [ANCHOR, steps[0]]).notes)
