"""The reader of PyTorch profiler traces, on traces written here; those of others are no part of the repository."""

import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.damage import one_line
from tests.traces.fsdp import fsdp_step
from tests.traces.independent import kineto

from opticcl.errors import WorkloadError
from opticcl.fabrics import fabric_at_scale
from opticcl.formats.encoding import json_stream as _json
from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.plans.search import Searches
from opticcl.traces import load_job, load_steps, load_workload
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import Runtime, simulate_iteration
from opticcl.training.train import train

INFO = {"rank": 0, "world_size": 4, "backend": "nccl", "pg_config": [{"pg_name": "9", "pg_size": 2, "ranks": [1, 3]}]}


def event(name, cat="cpu_op", ts=0.0, dur=1.0, **args):
    """A complete event."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def record(said, elements, out=None, ts=0.0, cat="cpu_op", name="record_param_comms", dur=1.0, **more):
    """What the host, or with another category the kernel, tells about a collective of float32."""
    args = {"Collective name": said, "In msg nelems": elements, "Out msg nelems": elements if out is None else out}
    args |= {"dtype": "Float", "Group size": 4, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]"}
    return event(name, cat, ts, dur, **{**args, **{key.replace("_", " "): value for key, value in more.items()}})


def text(*events, info=INFO, **more):
    """A whole trace."""
    return json.dumps({"schemaVersion": 1, "distributedInfo": info, "traceEvents": events, **more}, indent=1)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("kineto") / "rank0.pt.trace.json"


def load(path, content):
    """What the reader makes of a file with that content."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_workload(path)


# --- NCCL -------------------------------------------------------------------------------------------------------------


def test_calls_come_by_their_start_with_the_time_of_their_kernels(path):
    """The host's record is the call, the kernel with its external id tells the time; "wait" is counted."""
    events = [
        record("allreduce", 100, ts=20, External_id=7),
        record("broadcast", 5, ts=10, External_id=8),
        record("wait", 0, ts=30),
        record("allreduce", 100, ts=25, cat="kernel", name="ncclDevKernel_AllReduce", dur=250, External_id=7),
        event("nccl:all_reduce", "gpu_user_annotation"),
        event("gemm", "kernel", dur=40),
        event("ProfilerStep#3", "user_annotation"),
        event("ProfilerStep#4", "user_annotation"),
    ]
    read = load(path, text(*events))
    assert [(c.name, c.collective, c.size_bytes, c.group, c.ranks) for c in read.calls] == [
        ("broadcast", "broadcast", 20, "0", (0, 1, 2, 3)),
        ("allreduce", "all_reduce", 400, "0", (0, 1, 2, 3)),
    ]
    assert [c.measured_s for c in read.calls] == [0, pytest.approx(250e-6)]
    assert (read.name, read.num_ranks, read.compute_s) == ("rank0.pt.trace", 4, pytest.approx(40e-6))
    for note in (
        "left out: 1 record_param_comms of wait, which moves no data itself",
        "repeated records of the same calls, not counted: 1 communication kernels",
        "profiler steps: 2; the calls of all of them are kept",
    ):
        assert note in read.notes


@pytest.mark.parametrize(
    ("said", "elements", "out", "collective", "size"),
    [
        ("_allgather_base", 5, 20, "all_gather", 80),
        ("all_gather_into_tensor_coalesced", 5, 20, "all_gather", 80),
        ("_reduce_scatter_base", 20, 5, "reduce_scatter", 80),
        ("all_to_allv", 12, 9, "all_to_all", 48),
        ("_reduce_oop", 3, 3, "reduce", 12),
        ("gather", 3, 12, "gather", 48),
        ("scatter", 12, 3, "scatter", 48),
        ("barrier", 1, 1, "barrier", 4),
    ],
)
def test_the_whole_message_counts(path, said, elements, out, collective, size):
    """Of an all_gather what it makes, of a reduce_scatter what it starts from, of an all_to_all what is sent."""
    (call,) = load(path, text(record(said, elements, out))).calls
    assert (call.collective, call.size_bytes) == (collective, size)


@pytest.mark.parametrize(
    ("dtype", "width"), [("Half", 2), ("BFloat16", 2), ("Byte", 1), ("Long", 8), ("c10::Float8_e4m3fn", 1)]
)
def test_types_have_their_width(path, dtype, width):
    """Elements times bytes an element."""
    assert load(path, text(record("allreduce", 10, dtype=dtype))).total_bytes == 10 * width


def test_groups_of_one_and_odd_records_are_counted(path):
    """Nothing disappears: each has its line, with bytes where they are known."""
    alone = record("allreduce", 10, Group_size=1, Process_Group_Ranks="[0]")
    strange = [record("warp", 3), record("allreduce", 3, dtype="Quaternion"), event("record_param_comms"), "x", 5]
    uneven = record("all_to_allv", 4, 4, In_split_size="[1, 0, 0, 3]")
    read = load(path, text(alone, *strange, uneven))
    assert read.total_bytes == 16
    for note in (
        "left out: 1 all_reduce in a group of one rank, 40 bytes in all",
        "left out: 1 record_param_comms of warp, which moves no data itself",
        "left out: 1 record_param_comms of allreduce without elements of a known type",
        "left out: 1 record_param_comms without a collective's name",
        "events without a name: 2",
        "uneven all_to_all: 1, each taken as the larger of what the rank sends to others and receives from them",
    ):
        assert note in read.notes


def test_ranks_of_a_group_by_all_the_ways_they_are_told(path):
    """As a text, cut with start and stride, by the name in distributedInfo, or not at all."""
    cut = {"Process_Group_Ranks": "[1, 2, ...]", "Global_rank_start": 1, "Global_rank_stride": 1, "Group_size": 3}
    named = {"Process_Group_Name": "9", "Process_Group_Ranks": "[]", "Group_size": 2}
    unknown = {"Process_Group_Name": "11", "Process_Group_Ranks": "", "Group_size": 2}
    read = load(path, text(*(record("allreduce", 1, **more) for more in ({}, cut, named, unknown))))
    assert [c.ranks for c in read.calls] == [(0, 1, 2, 3), (1, 2, 3), (1, 3), (0, 1)]
    assert [c.group_source for c in read.calls[:3]] == ["recorded"] * 3
    assert read.calls[3].group_source == "assumed: a block of the recorded group size"


def test_sends_are_transfers(path):
    """With both ranks if recorded; receives are calls too, and transfers from a rank to itself are counted."""
    events = [
        record("send", 2, ts=1, Dst_Rank=3, Src_Rank=0),
        record("send", 2, ts=2),
        record("recv", 5, ts=3, Src_Rank=2),
        record("send", 1, Dst_Rank=0),
    ]
    read = load(path, text(*events))
    assert [(c.collective, c.ranks, c.is_transfer) for c in read.calls] == [
        ("send_recv", (0, 3), True),
        ("send_recv", (0, -1), True),
        ("send_recv", (2, 0), True),
    ]
    assert "left out: 1 send from a rank to itself, 4 bytes in all" in read.notes


@pytest.mark.parametrize("count", [0, 1, 2])
def test_several_steps_are_noted(path, count):
    """One is the whole recording."""
    steps = [event(f"ProfilerStep#{i}", "user_annotation", ts=10 * i, dur=10) for i in range(count)]
    notes = load(path, text(record("allreduce", 4, ts=1), *steps)).notes
    assert [note for note in notes if note.startswith("profiler steps")] == [
        "profiler steps: 2; the calls of all of them are kept"
    ] * (count == 2)


@pytest.mark.parametrize("first", [0, 1])
def test_kernels_in_the_order_of_their_numbers(path, first):
    """Without launches: a call does not depend on what was issued after it, though that ended before it started."""
    kernel = record("allreduce", 4, cat="kernel", name="ncclKernel", ts=10, correlation=first, stream=20, External_id=7)
    computes = event("gemm", "kernel", ts=0, dur=5, correlation=first + 1, stream=7)
    load(path, text(record("allreduce", 4, ts=1, External_id=7), kernel, computes))
    assert [(task.name, task.after) for task in load_job(path).tasks if task.communicates] == [("allreduce", ())]


@pytest.mark.parametrize(("word", "ranks"), [("send", (-1, 3)), ("recv", (3, -1))])
def test_the_other_end_of_a_transfer_alone(path, word, ranks):
    """Without a rank of the trace and without a group the own end is unknown."""
    one = record(word, 2, ts=2, Rank=3)
    del one["args"]["Process Group Ranks"]
    read = load(path, text(record("allreduce", 4), one, info={"world_size": 8}))
    assert [call.ranks for call in read.calls] == [(0, 1, 2, 3), ranks]


def test_kernels_alone_and_annotations_alone(path):
    """Without records the kernels tell sizes; older traces have them in the annotations."""
    kernel = record("allreduce", 10, cat="kernel", name="ncclKernel_AllReduce", dur=5)
    read = load(path, text(event("record_param_comms"), kernel))
    assert (read.sizes("all_reduce"), read.calls[0].measured_s) == ((40,), pytest.approx(5e-6))
    shapes = {"Input Dims": [[2, 3]], "Input type": ["c10::Half"]}
    old = [event("nccl:all_to_all", "user_annotation", **shapes), event("nccl:send 0->2", "user_annotation", **shapes)]
    read = load(path, text(event("record_param_comms"), *old))
    assert [(c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        ("all_to_all", 12, ()),
        ("send_recv", 12, (0, 2)),
    ]
    assert "repeated records of the same calls, not counted: 1 record_param_comms" in read.notes


# --- Gloo -------------------------------------------------------------------------------------------------------------

SHAPES = {"Input Dims": [[25]], "Input type": ["float"]}


def test_gloo_annotations_are_calls_with_times(path):
    """The operator around them is the same call; an all_gather's input is one rank's share of the message."""
    events = [
        event("c10d::allreduce_", **{"Input Dims": [[[25]]], "Input type": ["TensorList"]}),
        event("gloo:all_reduce", "user_annotation", ts=1, dur=90, **SHAPES),
        event("gloo:all_gather", "user_annotation", ts=2, **SHAPES),
        event("gloo:barrier", "user_annotation", ts=3),
    ]
    read = load(path, text(*events))
    assert [(c.collective, c.size_bytes) for c in read.calls] == [
        ("all_reduce", 100),
        ("all_gather", 400),
        ("barrier", 0),
    ]
    assert read.calls[0].measured_s == pytest.approx(90e-6)
    assert "repeated records of the same calls, not counted: 1 c10d:: operators" in read.notes


def test_gloo_beside_nccl_and_gloo_with_records(path):
    """Where both back ends work both count; records without any NCCL beside them are Gloo's own and count once."""
    gloo = event("gloo:all_reduce", "user_annotation", ts=5, **SHAPES)
    both = [record("allreduce", 1), event("nccl:all_reduce", "user_annotation"), gloo]
    assert load(path, text(*both)).sizes("all_reduce") == (4, 100)
    assert load(path, text(record("allreduce", 25), gloo)).sizes("all_reduce") == (100,)


def test_operators_alone(path):
    """Of output and input the larger is the message."""
    shapes = {"Input Dims": [[40], [10], []], "Input type": ["float", "float", "Scalar"]}
    assert load(path, text(event("c10d::_allgather_base_", **shapes))).sizes("all_gather") == (160,)


def test_a_share_without_a_number_of_ranks_is_left_out(path):
    """How much all ranks gather is then unknown."""
    events = [event(f"gloo:{name}", "user_annotation", **SHAPES) for name in ("all_gather", "all_reduce")]
    read = load(path, text(*events, info=None))
    assert read.total_bytes == 100
    assert any(note.startswith("left out: 1 all_gather of a share") for note in read.notes)


def test_a_job_of_one_rank_is_refused_with_its_counts(path):
    """There is no network to ask."""
    content = text(event("gloo:all_reduce", "user_annotation", **SHAPES), info={"world_size": 1})
    with pytest.raises(WorkloadError, match="1 all_reduce in a group of one rank, 100 bytes"):
        load(path, content)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_gzip_lists_and_odd_texts(path, tmp_path):
    """Packed; a bare list of events; a byte order mark; newlines inside texts; other members before and after."""
    one = record("allreduce", 1)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text(one).encode()))
    assert load_workload(tmp_path / "a.json.gz").name == "a"
    assert load(path, json.dumps([one])).total_bytes == 4
    assert load(path, b"\xef\xbb\xbf" + text(one).encode()).total_bytes == 4
    assert load(path, text(one, {**one, "name": "a\nb"}).replace("\\n", "\n")).total_bytes == 4
    assert load(path, text(one, meta={"a": [1, {"b": []}]}, more=[], last={})).total_bytes == 4


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "character 0: expected '{', the file ends"),
        ("hello", "character 0: expected '{', found 'h'"),
        ("{}", "there are no traceEvents"),
        ('{"nodes": []}', "there are no traceEvents"),
        ('[{"capture": 1}]', "there are no traceEvents"),
        ('{"traceEvents": {}}', "character 16: expected '\\['"),
        ('{"traceEvents": []} x', "character 20: more text"),
        ('{"traceEvents": [{"a": 1} {"b": 2}]}', "expected ','"),
        ('{"traceEvents": [' + "[" * 100_000, "nested too deeply|no JSON"),
        ('{"traceEvents": [' + "9" * 9_000 + "]}", "too many digits"),
        ('{1: 2, "traceEvents": []}', "a name in an object"),
        ('{"traceEvents": []}', "no collective with a size among several ranks"),
        (text(record("allreduce", -1)), "-1 bytes"),
        (text(record("allreduce", 2**60)), r"2\*\*60"),
        (text(record("allreduce", 10**4000)), "more than 20 digits"),
        (text(event("gloo:all_reduce", **{"Input Dims": [[2**40] * 9], "Input type": ["float"]})), r"2\*\*60"),
        (text(event("gloo:all_reduce", **{"Input Dims": [[-2]], "Input type": ["float"]})), "-8 bytes"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_character(path, content, said):
    """One printable line."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, content)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


def test_every_cut_is_refused(path):
    """A trace without its end is never taken for a whole one; every third place is tried."""
    whole = text(record("allreduce", 5), INFO=["a"])
    for end in range(0, len(whole), 3):
        with pytest.raises(WorkloadError):
            load(path, whole[:end])
    assert load(path, whole).total_bytes == 20


def test_pieces_of_any_length_give_the_same(monkeypatch):
    """Texts, numbers, escapes and letters of several bytes may be cut anywhere between two readings."""
    document = {"a": [1, -2.5e3, 'é\\"\n\u20ac\U0001f600', None, True], "b": {}, "c": [], "d": 12345}
    content = json.dumps(document, ensure_ascii=False, indent=1).encode()
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(_json, "CHUNK", size)
        stream = JsonStream(io.BytesIO(content))
        found = {}
        for key in stream.members():
            found[key] = [stream.value() for _ in stream.elements()] if key == "a" else stream.value()
        stream.finish()
        assert found == document


def test_memory_is_bounded(path, monkeypatch):
    """A trace of 20 MB of other events is read in a few MB."""
    monkeypatch.setattr(_json, "CHUNK", 2**16)
    filler = json.dumps(event("aten::mm", **{"Call stack": "x" * 20_000})) + ","
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents": [')
        for _ in range(1_000):
            file.write(filler)
        file.write(json.dumps(record("allreduce", 5)) + "]}")
    tracemalloc.start()
    try:
        assert load_workload(path).total_bytes == 20
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()
        path.unlink()


def test_an_endless_value_is_refused(path, monkeypatch):
    """A text without an end does not fill the memory."""
    monkeypatch.setattr(_json, "CHUNK", 2**10)
    monkeypatch.setattr(_json, "MAX_VALUE", 2**14)
    with pytest.raises(WorkloadError, match="more than 16,384 characters"):
        load(path, '{"traceEvents": ["' + "a" * 2**17)


# --- order ------------------------------------------------------------------------------------------------------------


def iterations(path, rate, **more):
    """Simulated steps of a trace on an ideal network [s]."""
    made = load_steps(path, **more)
    times = CommunicationTimes(
        fabric_at_scale("ideal", made[0].num_ranks, rate), Searches("auto", assumptions="published")
    )
    return [simulate_iteration(step, times, Runtime(fusion="none")) for step in made]


SEND = {"Collective name": "send", "In msg nelems": 1, "dtype": "Half", "Src Rank": 0, "Dst Rank": 1}


@pytest.mark.parametrize(("rate", "total_ms"), [(200e9, 154.69), (400e9, 117.94)])
@pytest.mark.parametrize("waits", ["cuda_sync", "runtime", "none"])
@pytest.mark.parametrize("send", [False, True])
def test_a_hidden_all_gather_that_becomes_slower_holds_up_what_needs_it(path, rate, total_ms, waits, send):
    """20 layers of 100 MB, prefetched one ahead, and a call of 2 bytes without a kernel, which changes nothing else."""
    extra = [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "tid": 9, "ts": 1, "dur": 1, "args": SEND}]
    path.write_text(fsdp_step(waits=waits, extra=extra * send))
    (step,) = load_steps(path)
    assert step.bound == {"cuda_sync": "", "runtime": "upper", "none": "estimate"}[waits]
    (iteration,) = iterations(path, rate)
    assert iteration.total_s * 1e3 == pytest.approx(total_ms, abs=0.3)
    assert iteration.compute_s == pytest.approx(0.1)
    assert step.num_calls == 40 + send


def test_kernels_belong_to_the_call_during_which_they_were_launched(path):
    """By correlation id and thread; one launched before the recording began belongs to no call and is counted."""
    shapes = {"Input Dims": [[25]], "Input type": ["float"]}
    events = [
        event("nccl:all_reduce", "user_annotation", ts=10, dur=10, **shapes),
        event("nccl:all_reduce", "user_annotation", ts=40, dur=10, **shapes),
        event("cudaLaunchKernel", "cuda_runtime", ts=15, correlation=7),
        event("cudaLaunchKernel", "cuda_runtime", ts=45, correlation=8),
        event("ncclKernel_AllReduce", "kernel", ts=90, dur=30, correlation=8),
        event("ncclKernel_AllReduce", "kernel", ts=60, dur=20, correlation=7),
        event("ncclKernel_AllReduce", "kernel", ts=5, dur=2, correlation=1),
        event("gemm", "kernel", ts=4, dur=3, correlation=2),
    ]
    read = load(path, text(*events))
    assert [call.measured_s for call in read.calls] == [pytest.approx(20e-6), pytest.approx(30e-6)]
    left = "left out: 1 kernels of collectives, 2 us, launched before the recording began: they belong to no call of the trace"
    assert left in read.notes
    (step,) = load_steps(path)
    assert step.compute_s == 0
    assert "left out: 1 kernels, 3 us, launched before the recording began: they belong to no step" in step.notes


def test_steps_split_a_trace(path):
    """A call and a kernel belong to the step in which the host issued them; the median step is the job."""
    events = []
    for number, (start, dur) in enumerate([(0, 10), (100, 30), (200, 20)]):
        events.append(event(f"ProfilerStep#{number}", "user_annotation", ts=start, dur=90))
        events.append(event("cudaLaunchKernel", "cuda_runtime", ts=start + 1, correlation=10 * number + 1))
        events.append(event("gemm", "kernel", ts=start + 80, dur=dur, correlation=10 * number + 1))
        events.append(record("allreduce", 1 + number, ts=start + 20, dur=5))
    events.append(record("allreduce", 50, ts=95, dur=1))
    read = load(path, text(*events))
    assert len(read.calls) == 4
    steps = load_steps(path)
    assert [(step.step, step.num_calls, step.network_bytes) for step in steps] == [
        ("ProfilerStep#0", 1, 4),
        ("ProfilerStep#1", 1, 8),
        ("ProfilerStep#2", 1, 12),
    ]
    assert [step.compute_s for step in steps] == [pytest.approx(us * 1e-6) for us in (10, 30, 20)]
    assert load_job(path) == steps[2]
    assert "left out: 1 calls outside of the profiler's steps" in steps[0].notes


def test_the_real_steps_expose_what_they_do_with_or_without_the_last_kernel(tmp_path):
    """Three steps of DDP on an ideal network of 100 Gb/s: 17.7 ms in all, also if a collective has no timed kernel."""
    real = shared_file("kineto/nccl-data.json.gz")
    whole = kineto(real)
    kernels = [e for e in whole["traceEvents"] if e.get("cat") == "kernel" and "nccl" in e["name"]]
    whole["traceEvents"].remove(max(kernels, key=lambda e: e["ts"]))
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps(whole))
    for path in (real, cut):
        steps = iterations(path, 100e9)
        assert [step.job.step for step in steps] == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]
        assert sum(step.exposed_s for step in steps) == pytest.approx(17.703e-3, abs=1e-6)
        assert {step.job.bound for step in steps} == {"upper"}
    row = train(
        load_steps(real), [fabric_at_scale("ideal", 2, 100e9)], runtime=Runtime(fusion="none"), assumptions="published"
    ).rows[0]
    assert row.iteration.total_s == sorted(step.total_s for step in row.steps)[1]
    assert row.verified


@pytest.mark.parametrize(("name", "linked"), [("kineto/nccl-data.json.gz", 21), ("kineto/timeline-rank0.json.gz", 10)])
def test_kernels_of_real_traces_are_linked_to_their_calls(name, linked):
    """Every one, by an independent walk from kernel to launch to the operator around it."""
    path = shared_file(name)
    events = [e for e in kineto(path)["traceEvents"] if e.get("ph") == "X"]
    launches = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime" and "aunch" in e["name"]}
    operators = [e for e in events if e["name"].startswith("c10d::")]
    measured = {}
    for kernel in events:
        if kernel.get("cat") == "kernel" and kernel["name"].lower().startswith("nccl"):
            launch = launches[kernel["args"]["correlation"]]
            (around,) = [
                o for o in operators if o["tid"] == launch["tid"] and o["ts"] <= launch["ts"] <= o["ts"] + o["dur"]
            ]
            measured[around["ts"]] = kernel["dur"] * 1e-6
    read = load_workload(path)
    assert len(measured) == len(read.calls) == linked
    assert [c.measured_s for c in read.calls] == [pytest.approx(s, abs=1e-9) for _, s in sorted(measured.items())]


# --- fuzzing ----------------------------------------------------------------------------------------------------------

RICH = text(
    record("allreduce", 100, External_id=7, In_split_size="[1, 2]"),
    record("send", 10, cat="kernel", name="ncclSend", Dst_Rank=1),
    event("nccl:all_gather", "user_annotation", **SHAPES),
    event("gloo:scatter", "user_annotation", **SHAPES),
    event("c10d::reduce_", **SHAPES),
).encode()


def survives(path, content):
    """Only a workload or one line of refusal may come out."""
    assert one_line(load, path, content).isprintable()


@examples(60)
@given(
    flips=st.lists(st.tuples(st.integers(0, len(RICH) - 1), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, len(RICH)),
)
def test_flipped_and_cut_bytes_raise_nothing_else(path, flips, cut):
    """A good trace with a few bytes changed, whole and with its end lost."""
    content = bytearray(RICH)
    for at, value in flips:
        content[at] = value
    survives(path, bytes(content))
    survives(path, bytes(content[:cut]))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
KEYS = ["In msg nelems", "Out msg nelems", "dtype", "Group size", "Process Group Name", "Process Group Ranks"]
KEYS += ["Global rank start", "Global rank stride", "In split size", "Src Rank", "Dst Rank", "External id"]
KEYS += ["Input Dims", "Input type", "Collective name"]


@examples(25)
@given(args=st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=4), info=JUNK, junk=JUNK, ts=JUNK)
def test_values_of_every_kind_raise_nothing_else(path, args, info, junk, ts):
    """Any value at any place of an event."""
    base = record("allreduce", 10)["args"] | SHAPES
    names = [
        ("record_param_comms", "cpu_op"),
        ("nccl", "kernel"),
        ("gloo:gather", ""),
        ("c10d::send", ""),
        (junk, junk),
    ]
    events = [{"name": name, "cat": cat, "ts": ts, "dur": junk, "args": {**base, **args}} for name, cat in names]
    told = {"rank": junk, "world_size": info, "pg_config": [{"pg_name": junk, "ranks": info}, junk]}
    for one in events:
        survives(path, text(one, junk, info=told))
    survives(path, text(*events, info=info))


@pytest.mark.parametrize("value", [-5, 1e30, 10**400, float("inf"), "soon", [1], "1e9999"])
def test_times_out_of_range_are_counted(path, value):
    """A duration that no clock has is not computation."""
    good = event("gemm", "kernel", ts=50, dur=3)
    bad = {**event("gemm", "kernel", ts=60), "dur": value}
    read = load(path, text(record("allreduce", 25, ts=1, dur=1), good, bad))
    assert read.compute_s == pytest.approx(3e-6)
    assert "times out of range, taken as 0: 1" in read.notes
