"""Which records of a trace of the PyTorch profiler are its calls, and which kernels are theirs."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.test_kineto_forms import FLOATS, Read, event, kernel, launch, record, write

from opticcl.traces import load_steps
from opticcl.traces.loading import load_traces


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("calls") / "a.json"


def shaped(name, size, ts, **more):
    """An annotation or an operator of bytes; without a size none are recorded."""
    shapes = {"Input Dims": [[size]], "Input type": ["byte"]} if size else {}
    return event(name, ts=ts, **{**shapes, **more})


PLACES = {
    "record_param_comms": lambda size, ts: record("scatter", size or "x", ts=ts),
    "communication kernels": lambda size, ts: record(
        "gather", size or "x", name="ncclDev", cat="kernel", ts=ts, device=0
    ),
    "nccl: annotations": lambda size, ts: shaped("nccl:all_reduce", size, ts),
    "gloo: annotations": lambda size, ts: shaped("gloo:reduce", size, ts),
    "c10d:: operators": lambda size, ts: shaped("c10d::broadcast_", size, ts),
    "kernels whose sizes are listed": lambda size, ts: kernel("void mscclpp::x(y)" if size else "gemm", ts, 1),
}
RECORD, KERNEL, NCCL, GLOO, OPERATOR, SIZED = PLACES


@examples(80)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6), st.lists(st.integers(1, 3), min_size=6, max_size=6)
)
def test_which_records_count(path, states, numbers):
    """The first of record, kernel and annotation with sizes; Gloo's beside them; operators if there is nothing else."""
    events, sizes, draw = [], {}, random.Random(sum(states) + sum(numbers))
    numbers = {place: n if state else 0 for place, state, n in zip(PLACES, states, numbers, strict=True)}
    known = {
        place: numbers[place] for place, state in zip(PLACES, states, strict=True) if state == 2 and numbers[place]
    }
    for place, n in numbers.items():
        for i in range(n):
            size = 100 * (1 + list(PLACES).index(place)) + i if place in known else 0
            ts = draw.randint(0, 10**6)
            events.append(PLACES[place](size, ts))
            if size:
                sizes.setdefault(place, []).append((ts, 64 if place == SIZED else size))
    first = [place for place in (RECORD, KERNEL, NCCL) if place in known][:1]
    of_gloo = GLOO in known and (first != [RECORD] or numbers[NCCL] or numbers[KERNEL])
    kinds = first + [GLOO] * bool(of_gloo)
    kinds = kinds or [OPERATOR] * (OPERATOR in known)
    kinds += [SIZED] * (SIZED in known)
    listed = path.parent / "sizes.toml"
    listed.write_text('[[kernels]]\nname = "mscclpp"\ncollective = "all_reduce"\nsize = 64\n')
    read = Read(path, [*events, kernel("gemm")], kernel_sizes=listed)
    assert [size for _, size, _ in read.calls] == [size for _, size in sorted(s for kind in kinds for s in sizes[kind])]
    assert f"calls recorded by: {' and '.join(kinds) or 'nothing with a size'}" in read.notes
    lost = numbers[KERNEL] if KERNEL not in kinds else 0
    repeated = {place: n for place, n in numbers.items() if place not in kinds and n}
    repeated = {place: n - lost * (place == KERNEL) for place, n in repeated.items() if kinds and place != SIZED}
    said = [note.partition("not counted: ")[2] for note in read.notes if note.startswith("repeated records")]
    assert sorted(said) == sorted(f"{n} {place}" for place, n in repeated.items() if n)
    without = [note for note in read.left_out() if "without a record of their launch" in note]
    assert [int(note.split()[0]) for note in without] == [lost] * bool(lost)


def around(start, end, name="c10d::allreduce_", tid=1, **more):
    """An operator without shapes."""
    return event(name, ts=start, dur=end - start, tid=tid, **more)


def nccl(number, start, took, **more):
    """A kernel of a collective."""
    return kernel(
        "ncclDevKernel_AllReduce(x)", start, took, **({"correlation": number} if number is not None else {}), **more
    )


CALL = shaped("nccl:all_reduce", 8, 10, tid=1)
OTHER = shaped("nccl:all_reduce", 9, 30, tid=1)
GEMM = [launch(90, 40), kernel("gemm", ts=45, dur=5, correlation=90)]
INSIDE, EARLIER, ABSENT = (
    "outside of any record of a call",
    "launched before the recording began",
    "whose launch is not in the file",
)


@pytest.mark.parametrize(
    ("events", "measured_us", "why"),
    [
        # launched within the record, its borders included
        ([CALL, launch(1, 10), nccl(1, 20, 7)], [7], ""),
        ([CALL, launch(1, 11), nccl(1, 20, 7)], [7], ""),
        ([CALL, launch(1, 12), nccl(1, 20, 7)], [0], INSIDE),
        ([CALL, launch(1, 9), nccl(1, 20, 7)], [0], INSIDE),
        ([CALL, OTHER, launch(1, 10), launch(2, 30), nccl(2, 40, 3), nccl(1, 20, 7)], [7, 3], ""),
        ([CALL, launch(1, 10), launch(2, 11), nccl(2, 30, 5), nccl(1, 20, 7)], [12], ""),
        ([CALL, launch(0, 10), nccl(0, 20, 7)], [7], ""),
        ([CALL, {**launch(1, 10), "cat": "runtime"}, nccl(1, 20, 7)], [7], ""),
        ([CALL, {**launch(1, 10), "cat": "hip_driver"}, nccl(1, 20, 7)], [7], ""),
        ([CALL, launch(2**40, 10), nccl(2**40, 20, 7)], [7], ""),
        ([CALL, launch(2**63, 10), nccl(2**63, 20, 7)], [0], ABSENT),
        ([CALL, launch(None, 10), nccl(None, 20, 7)], [0], ABSENT),
        ([CALL, launch(1, 10), nccl(None, 20, 7)], [0], ABSENT),
        # or within the operator around the record
        ([CALL, around(5, 20), launch(1, 18), nccl(1, 20, 7)], [7], ""),
        ([CALL, around(5, 20), launch(1, 20), nccl(1, 20, 7)], [7], ""),
        ([CALL, around(5, 11), launch(1, 7), nccl(1, 20, 7)], [7], ""),
        ([record("allreduce", 8, ts=10), around(5, 20, "nccl:all_reduce"), launch(1, 18), nccl(1, 20, 7)], [7], ""),
        ([CALL, around(5, 20), launch(1, 21), nccl(1, 20, 7)], [0], INSIDE),
        ([CALL, around(10, 20), launch(1, 20), nccl(1, 20, 7)], [7], ""),
        ([CALL, around(5, 10), launch(1, 9), nccl(1, 20, 7)], [0], "within a record without a size"),
        ([CALL, around(5, 20, tid=2), launch(1, 18), nccl(1, 20, 7)], [0], INSIDE),
        ([CALL, around(1, 40), around(5, 20), launch(1, 35), nccl(1, 50, 7)], [7], ""),
        ([CALL, record("allreduce", "x", ts=5, dur=15), launch(1, 18), nccl(1, 20, 7)], [7], ""),
        ([CALL, around(0, 4), around(5, 20), launch(1, 19), nccl(1, 50, 7)], [7], ""),
        # by the id of the operation, of host records
        ([record("allreduce", 8, ts=10, External__id=3), nccl(1, 20, 7, External__id=3)], [7], ""),
        (
            [
                record("allreduce", 8, ts=10, External__id=3),
                record("allreduce", 9, ts=15, External__id=4),
                launch(1, 10),
                nccl(1, 20, 7, External__id=4),
            ],
            [7, 0],
            "",
        ),
        ([record("allreduce", 8, ts=10, External__id="a"), nccl(1, 20, 7, External__id="a")], [7], ""),
        (
            [record("allreduce", 8, ts=10, External__id=[3]), nccl(1, 20, 7, External__id=[3])],
            [0],
            "without a record of their launch",
        ),
        ([record("allreduce", 8, ts=10), nccl(1, 20, 7)], [0], "without a record of their launch"),
        ([record("allreduce", 8, ts=0, dur=5), nccl(1, 20, 7)], [0], "without a record of their launch"),
        # by the only call that another thread issued at that time
        ([CALL, launch(1, 10, tid=2), nccl(1, 20, 7)], [7], ""),
        ([CALL, launch(1, 11, tid=2), nccl(1, 20, 7)], [7], ""),
        ([CALL, launch(1, 12, tid=2), nccl(1, 20, 7)], [0], INSIDE),
        ([CALL, shaped("nccl:all_reduce", 9, 10, tid=3), launch(1, 10, tid=2), nccl(1, 20, 7)], [0, 0], INSIDE),
        ([CALL, launch(2, 10), nccl(2, 15, 4), launch(1, 10, tid=2), nccl(1, 20, 7)], [4], INSIDE),
        ([event("gloo:all_reduce", ts=10, dur=6, **FLOATS), launch(1, 12, tid=2), nccl(1, 20, 7)], [6], INSIDE),
        # why not
        (
            [CALL, event("nccl:wait", ts=30, dur=5), launch(1, 33), nccl(1, 40, 7)],
            [0],
            "within a record without a size",
        ),
        (
            [CALL, event("nccl:wait", ts=30, dur=5), launch(1, 35), nccl(1, 40, 7)],
            [0],
            "within a record without a size",
        ),
        ([CALL, event("nccl:wait", ts=30, dur=5), launch(1, 36), nccl(1, 40, 7)], [0], INSIDE),
        (
            [CALL, record("allreduce", "x", ts=30, dur=5), launch(1, 33), nccl(1, 40, 7)],
            [0],
            "within a record without a size",
        ),
        ([CALL, *GEMM, nccl(1, 39, 7)], [0], EARLIER),
        ([CALL, *GEMM, nccl(91, 39, 7)], [0], EARLIER),
        ([CALL, *GEMM, nccl(91, 40, 7)], [0], ABSENT),
        ([CALL, *GEMM, nccl(89, 60, 7)], [0], EARLIER),
        ([CALL, *GEMM, nccl(0, 60, 7)], [0], EARLIER),
        ([CALL, *GEMM, nccl(None, 60, 7)], [0], ABSENT),
        ([CALL, *GEMM, launch(95, 60), nccl(91, 50, 7)], [0], ABSENT),
        ([CALL, launch(0, 40), launch(5, 50), nccl(3, 60, 7)], [0], ABSENT),
        ([CALL, launch(None, 40), nccl(0, 60, 7)], [0], ABSENT),
        ([CALL, launch(1, 60, "cudaGraphLaunch"), nccl(1, 70, 7), nccl(1, 80, 7)], [0], "launched by a graph"),
        (
            [record("broadcast", 8, ts=10), launch(1, 10, "cudaGraphLaunch", tid=2), nccl(1, 70, 7)],
            [0],
            "launched by a graph",
        ),
        ([CALL, launch(None, 60, "cudaGraphLaunch"), nccl(None, 70, 7)], [0], ABSENT),
    ],
)
def test_whose_a_kernel_is(path, events, measured_us, why):
    """The call within which it was launched, or the reason why it is of none, with its time."""
    read = Read(path, events)
    assert read.measured_us == measured_us
    left = [note for note in read.left_out() if "kernels of collectives" in note]
    assert len(left) == bool(why)
    assert all(why in note for note in left)
    assert not any(note.startswith("graphs: ") for note in read.notes)
    took = sum(one["dur"] for one in events if one["name"].startswith("ncclDev"))
    on_host = sum(one["dur"] for one in events if one["name"].startswith("gloo"))
    assert all(f", {took - sum(measured_us) + on_host} us, " in note for note in left)


def custom(ts, took, **more):
    """A kernel of a library whose calls have no records."""
    return kernel("void aiter::cross_device_reduce_2stage<float>(x)", ts, took, **more)


def copy(number, ts, took, **more):
    """A copy between devices."""
    made = {"device": 0, "stream": 7, "correlation": number, "bytes": 64, **more}
    return event("Memcpy PtoP (Device -> Device)", "gpu_memcpy", ts, took, pid=0, tid=7, **made)


@pytest.mark.parametrize(
    ("events", "measured_us", "left"),
    [
        ([CALL, launch(1, 10), custom(20, 7, correlation=1)], 7, []),
        ([CALL, launch(1, 10), custom(20, 7, correlation=1), launch(2, 11), nccl(2, 30, 5)], 12, []),
        ([CALL, launch(1, 12), custom(20, 7, correlation=1)], 0, ["1 kernels of custom all-reduces", "7 us: "]),
        ([CALL, launch(1, 10, "cudaMemcpyPeerAsync"), copy(1, 20, 7)], 7, []),
        ([CALL, launch(1, 10, "cudaMemcpyBatchAsync"), copy(1, 20, 7), copy(1, 27, 2)], 9, []),
        ([CALL, launch(1, 12, "cudaMemcpyPeerAsync"), copy(1, 20, 7)], 0, ["1 copies between devices", "7 us, 64 B: "]),
        ([record("allreduce", 8, ts=10, External__id=3), copy(1, 20, 7, External__id=3)], 7, []),
        ([CALL, around(5, 20), launch(1, 18), kernel("oneccl_reduce_base<float, 2>", 20, 7, correlation=1)], 7, []),
    ],
)
def test_a_kernel_without_a_record_of_its_own(path, events, measured_us, left):
    """Of the call within which it or the copy was launched, as any other; else left out with its time and bytes."""
    read = Read(path, events)
    assert read.measured_us == [measured_us]
    assert len(read.left_out()) == bool(left)
    assert all(text in note for text in left for note in read.left_out())
    linked = sum(one["cat"] in ("kernel", "gpu_memcpy") for one in events) * (not left)
    said = f"repeated records of the same calls, not counted: {linked} communication kernels"
    assert (said in read.notes) == (not left)


def test_the_times_of_a_call(path):
    """From the start of its first kernel to the end of the one that ends last, on the stream of the first."""
    kernels = [nccl(2, 30, 5, stream=9), nccl(1, 20, 25, stream=8), nccl(3, 60, 4, stream=9)]
    write(path, [CALL, OTHER, launch(1, 10), launch(2, 11), launch(3, 30), *kernels])
    (trace,) = load_traces(path)
    assert [(call.start_s, call.end_s, call.stream) for call in trace.calls] == [
        (pytest.approx(20e-6), pytest.approx(45e-6), 1),
        (pytest.approx(60e-6), pytest.approx(64e-6), 2),
    ]


@pytest.mark.parametrize("at", [0, 100])
def test_a_call_is_issued_when_its_first_kernel_is_launched(path, at):
    """It does not depend on a kernel that the host launched between its two, though that had ended; only waits are waits."""
    between = [launch(5, at + 4), kernel("gemm", ts=at + 21, dur=5, correlation=5)]
    kernels = [nccl(1, at + 30, 5), nccl(2, at + 40, 5)]
    more = event("cudaEventRecord", "cuda_runtime", at + 15)
    write(path, [{**CALL, "ts": at, "dur": 9}, launch(2, at + 8), launch(1, at), *kernels, *between, more])
    (step,) = load_steps(path)
    assert any("no stream waits are recorded" in note for note in step.notes)
    assert [task.after for task in step.tasks if task.communicates] == [()]


def batch(ts, tid=1):
    """The annotation in which a batch is launched."""
    return event("nccl:coalesced", ts=ts, dur=4, tid=tid)


def send(size, ts, tid=1):
    """A record of a transfer."""
    return record("send", size, ts=ts, tid=tid, Dst__Rank=1, Src__Rank=0)


def swap(number, ts, took=30):
    """The kernel of transfers."""
    return kernel("ncclDevKernel_SendRecv(x)", ts, took, correlation=number)


@pytest.mark.parametrize(
    ("events", "measured_us", "remark"),
    [
        ([send(10, 0), send(20, 2), batch(5), launch(1, 6), swap(1, 20)], [10, 20], "1 kernel of 2 calls"),
        ([send(10, 0), send(20, 2), batch(5), launch(1, 5), swap(1, 20)], [10, 20], "1 kernel of 2 calls"),
        ([send(10, 0), send(20, 2), batch(5), launch(1, 9), swap(1, 20)], [10, 20], "1 kernel of 2 calls"),
        ([send(10, 0), send(20, 2), batch(5), launch(1, 10), swap(1, 20)], [0, 0], ""),
        ([send(10, 0), send(20, 2), batch(5), launch(1, 6, tid=2), swap(1, 20)], [0, 0], ""),
        ([send(10, 0, 2), send(20, 2), batch(5), launch(1, 6), swap(1, 20)], [0, 30], "1 kernel of 1 call"),
        ([send(10, 0), send(0, 2), batch(5), launch(1, 6), swap(1, 20, 22)], [20, 2], "1 kernel of 2 calls"),
        # two kernels of one batch, and two batches
        (
            [send(10, 0), send(20, 2), batch(5), launch(1, 6), launch(2, 7), swap(2, 60), swap(1, 20)],
            [20, 40],
            "2 kernels of 2 calls",
        ),
        (
            [send(10, 0), batch(5), launch(1, 6), send(20, 10), batch(12), launch(2, 13), swap(1, 20), swap(2, 60, 5)],
            [30, 5],
            "2 kernels of 2 calls",
        ),
        ([send(10, 0), batch(5), send(20, 9), batch(12), launch(2, 13), swap(2, 60, 5)], [0, 5], "1 kernel of 1 call"),
        ([send(10, 0), batch(5), send(20, 10), batch(12), launch(2, 13), swap(2, 60, 5)], [0, 5], "1 kernel of 1 call"),
        # a call with a kernel of its own ends the batch
        (
            [send(10, 0), launch(3, 0), swap(3, 10, 4), send(20, 2), batch(5), launch(1, 6), swap(1, 20)],
            [4, 30],
            "1 kernel of 1 call",
        ),
        ([send(10, 0), launch(3, 0), swap(3, 10, 4), batch(5), launch(1, 6), swap(1, 20)], [4], ""),
        ([batch(5), launch(1, 6), swap(1, 20), send(10, 30)], [0], ""),
    ],
)
def test_the_kernel_of_a_batch(path, events, measured_us, remark):
    """Is of the calls of its thread before the annotation, back to the last one; they share its time by bytes."""
    read = Read(path, events)
    assert read.measured_us == measured_us
    said = [note for note in read.notes if note.startswith("batches: ")]
    assert said == ([f"batches: {remark}, which share their time by bytes"] if remark else [])
    assert any("kernels of collectives" in note for note in read.left_out()) == (not remark)


def graph(number, ts, *words, at=None):
    """The launch of a graph and its kernels, in another order than they run in."""
    rows = [
        kernel(f"ncclDevKernel_{word}_RING(x)", (at or ts + 10) + 10 * i, 5 + i, correlation=number)
        for i, word in enumerate(words)
    ]
    return [launch(number, ts, "cudaGraphLaunch"), *reversed(rows)]


REDUCE, GATHER, SEND = "AllReduce", "AllGather", "SendRecv"
AG = record("_allgather_base", 4, 16, ts=4)
AR, AR2, SENT = record("allreduce", 8, ts=2), record("allreduce", 12, ts=6), send(6, 8)
TAKEN = record("recv", 6, ts=8, Dst__Rank=0, Src__Rank=1)


def named(one, key, value):
    """A later record with another argument."""
    return {**one, "ts": 9, "args": {**one["args"], key: value}}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([AR, AG, *graph(1, 20, REDUCE, GATHER)], [(8, 5), (16, 6)]),
        ([AG, AR, *graph(1, 20, REDUCE, GATHER), *graph(2, 90, REDUCE, GATHER)], [(8, 5), (16, 6)] * 2),
        ([AR, AG, *graph(1, 20, GATHER, REDUCE)], [(8, 0), (16, 0)]),
        ([AR, AG, *graph(1, 20, REDUCE)], [(8, 0), (16, 0)]),
        ([AR, SENT, *graph(1, 20, REDUCE, SEND)], [(8, 5), (6, 6)]),
        ([AR, TAKEN, *graph(1, 20, REDUCE, SEND)], [(8, 5), (6, 6)]),
        ([SENT, *graph(1, 20, REDUCE)], [(6, 0)]),
        ([AR, AR2, *graph(1, 20, REDUCE, SEND)], [(8, 0), (12, 0)]),
        ([AR, AG, *graph(1, 20, "X", GATHER)], [(8, 5), (16, 6)]),
        # captured twice, the same or not
        ([AR, {**AR, "ts": 9}, *graph(1, 20, REDUCE)], [(8, 5)]),
        ([AR, AR2, *graph(1, 20, REDUCE)], [(8, 0), (12, 0)]),
        ([AR, record("broadcast", 8, ts=6), *graph(1, 20, "X")], [(8, 0), (8, 0)]),
        ([AR, named(AR, "Process Group Name", "1"), *graph(1, 20, REDUCE)], [(8, 0), (8, 0)]),
        ([AR, named(AR, "Process Group Ranks", "[3, 2, 1, 0]"), *graph(1, 20, REDUCE)], [(8, 0), (8, 0)]),
        # two graphs in the order of their captures
        ([AR, AG, *graph(1, 20, REDUCE), *graph(2, 50, GATHER)], [(8, 5), (16, 5)]),
        ([AR, AG, *graph(1, 50, REDUCE), *graph(2, 20, GATHER)], [(16, 5), (8, 5)]),
        ([AR, AR2, AG, *graph(1, 20, REDUCE, GATHER), *graph(2, 50, REDUCE)], [(8, 0), (16, 0), (12, 0)]),
        ([AR, {**AR, "ts": 9}, *graph(1, 20, REDUCE), *graph(2, 50, "X")], [(8, 5), (8, 5)]),
        ([AR, AG, SENT, *graph(1, 20, REDUCE, GATHER), *graph(2, 50, SEND)], [(8, 5), (16, 6), (6, 5)]),
        (
            [
                *(AR, AG, SENT, record("_allgather_base", 5, 20, ts=9), record("_allgather_base", 6, 24, ts=11)),
                *(*graph(1, 20, GATHER), *graph(2, 50, REDUCE, GATHER), *graph(3, 90, SEND, GATHER)),
            ],
            [(24, 5), (8, 5), (16, 6), (6, 5), (20, 6)],
        ),
        # a launch in which the recording begins or ends, and one between others
        ([AR, AG, *graph(1, 20, GATHER), *graph(2, 50, REDUCE, GATHER)], [(16, 5), (8, 5), (16, 6)]),
        ([AR, AG, *graph(1, 20, REDUCE, GATHER), *graph(2, 50, REDUCE)], [(8, 5), (16, 6), (8, 5)]),
        ([AR, AG, *graph(1, 20, REDUCE), *graph(2, 50, REDUCE, GATHER)], [(8, 5), (16, 6)]),
        ([AR, AG, *graph(1, 20, REDUCE, GATHER), *graph(2, 50, GATHER)], [(8, 5), (16, 6)]),
        (
            [AR, AG, *graph(1, 20, REDUCE, GATHER), *graph(2, 50, REDUCE), *graph(3, 90, REDUCE, GATHER)],
            [(8, 5), (16, 6), (8, 5), (16, 6)],
        ),
        # a call that ran when it was issued was not captured; nor was one of the host
        ([AR, launch(5, 2), nccl(5, 12, 3), AG, *graph(1, 20, GATHER)], [(8, 3), (16, 5)]),
        ([AR, nccl(1, 30, 3), *graph(1, 20, REDUCE)[:1]], [(8, 3)]),
        (
            [
                AR,
                nccl(1, 30, 3, External__id=4),
                *graph(1, 20, REDUCE)[:1],
                {**AG, "args": {**AG["args"], "External id": 4}},
            ],
            [(8, 0), (16, 0)],
        ),
    ],
)
def test_the_kernels_of_a_graph(path, events, found):
    """Are the calls that were recorded while it was captured, if their number and collectives agree in one way only."""
    read = Read(path, events)
    assert list(zip([size for _, size, _ in read.calls], read.measured_us, strict=True)) == found
    linked = sum(bool(took) for took in read.measured_us)
    replays = sum("GraphLaunch" in one["name"] for one in events)
    said = [note for note in read.notes if note.startswith("graphs: ")]
    assert bool(said) == bool(linked)
    assert all(f"launched {replays} times" in note for note in said)
    lost = sum(one["name"].startswith("ncclDev") for one in events) - linked
    left = [int(note.split()[0]) for note in read.left_out() if "launched by a graph" in note]
    assert left == [lost] * bool(lost)


@pytest.mark.parametrize("number", [6, 7])
def test_as_many_graphs_as_are_told_apart(path, number):
    """Six different ones; of seven no call is known."""
    words = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "broadcast": "Broadcast", "reduce": "Reduce"}
    words |= {"_reduce_scatter_base": "ReduceScatter", "gather": "Gather", "scatter": "Scatter"}
    events = []
    for i, (said, word) in enumerate([*words.items()][:number]):
        events += [record(said, 8 + i, ts=i), *graph(i, 100 + 50 * i, word)]
    assert Read(path, events).measured_us == [5 * (number < 7)] * number


def test_calls_of_the_host_beside_a_graph(path):
    """They ran, and are no calls that were captured."""
    read = Read(path, [AR, event("gloo:all_reduce", ts=12, dur=6, **FLOATS), *graph(1, 20, REDUCE)])
    assert [(kind, took) for (kind, _, _), took in zip(read.calls, read.measured_us, strict=True)] == [
        ("all_reduce", 6),
        ("all_reduce", 5),
    ]


def test_a_graph_opens_what_was_launched_with_it(path):
    """Its call depends on the kernels of the same launch before it, and those behind it on the call."""
    rows = [kernel("gemm", ts, 5, correlation=1) for ts in (30, 36, 60)]
    path.write_text("")
    read = Read(path, [AR, *graph(1, 20, REDUCE, at=45), *rows])
    assert read.measured_us == [5]
    (step,) = load_steps(path)
    assert [(task.name, task.after) for task in step.tasks] == [
        ("2 kernels", ()),
        ("allreduce", (0,)),
        ("1 kernel", (1,)),
    ]


def test_numbers_of_kernels_of_which_one_is_unknown(path):
    """Say nothing: a call depends on a kernel that had ended, though its number is higher."""
    for known, after in ((True, ()), (False, (0,))):
        last = nccl(9 if known else None, 40, 5, External__id=4)
        events = [record("allreduce", 8, External__id=3), nccl(1, 20, 5, External__id=3), kernel(ts=9, correlation=5)]
        (step,) = load_steps(write(path, [*events, record("allreduce", 9, ts=30, External__id=4), last]))
        assert next(task.after for task in step.tasks if task.communicates) == after


@pytest.mark.parametrize(
    ("word", "held"), [("allreduce", False), ("send", False), ("reduce", False), ("barrier", False), ("recv", True)]
)
def test_what_waits_for_a_hidden_call(path, word, held):
    """Without stream waits: the next kernel, if the call brings data; else those behind the last call."""
    one = record(word, 8, External__id=3, Dst__Rank=1, Src__Rank=0)
    events = [one, nccl(None, 10, 5, External__id=3, stream=20), kernel(ts=9, dur=20), kernel(ts=30)]
    events += [record("allreduce", 9, ts=50, External__id=4), nccl(None, 70, 5, External__id=4, stream=20)]
    (step,) = load_steps(write(path, events))
    done = [task.communicates for task in step.tasks].index(True)
    assert any(done in task.after for task in step.tasks) == held


def sends(size, ts, peer):
    """The operator of a transfer."""
    return shaped("c10d::send", size, ts, Concrete__Inputs=["", "", str(peer), "0"])


def test_kernels_that_are_calls(path):
    """Come in the order of their launches, or of their starts; of a graph each depends on the kernels before it."""
    first, second = (
        record("allreduce", n, name="ncclDev", cat="kernel", ts=ts, correlation=n) for n, ts in ((8, 20), (9, 30))
    )
    assert [size for _, size, _ in Read(path, [first, second]).calls] == [8, 9]
    assert [size for _, size, _ in Read(path, [first, second, launch(8, 10), launch(9, 5)]).calls] == [9, 8]
    assert [size for _, size, _ in Read(path, [first, second, launch(8, 25)]).calls] == [8, 9]
    assert [size for _, size, _ in Read(path, [first, second, launch(8, 31)]).calls] == [9, 8]
    listed = path.parent / "sizes.toml"
    listed.write_text(
        "".join(f'[[kernels]]\nname = "mscclpp{n}"\ncollective = "all_reduce"\nsize = {n}\n' for n in (8, 9))
    )
    sized = [kernel(f"mscclpp{n}", ts, 1, correlation=n) for n, ts in ((8, 20), (9, 30))]
    assert [size for _, size, _ in Read(path, [*sized, launch(8, 31)], kernel_sizes=listed).calls] == [9, 8]
    rows = [kernel("gemm", ts, 3, correlation=8) for ts in (12, 16, 40)]
    for name, before in (("cudaGraphLaunch", 2), ("cudaLaunchKernel", 0)):
        Read(path, [first, launch(8, 10, name), *rows])
        (step,) = load_steps(path)
        done = [task.name for task in step.tasks].index("allreduce")
        assert sum(int(task.name.split()[0]) for task in step.tasks[:done]) == before


def sending(start, end, peer, name="c10d::send"):
    """The operator of a transfer without shapes."""
    return around(start, end, name, Concrete__Inputs=["", "", str(peer), "0"])


def sided(name, output, entry, **more):
    """The operator around a call at 5, with the bytes of both sides."""
    return around(4, 9, f"c10d::{name}", **{"Input Dims": [[output], [entry]], "Input type": ["byte"] * 2, **more})


@pytest.mark.parametrize(
    ("events", "calls", "matrices"),
    [
        # the operator has the whole message and the size of the group
        (
            [
                shaped("nccl:_all_gather_base", 4, 5),
                around(4, 9, "c10d::_allgather_base_", **{"Input Dims": [[8], [4]], "Input type": ["byte"] * 2}),
            ],
            [("all_gather", 8, (0, 1))],
            [()],
        ),
        (
            [
                shaped("nccl:_reduce_scatter_base", 8, 5),
                around(4, 9, "c10d::_reduce_scatter_base_", **{"Input Dims": [[4], [8]], "Input type": ["byte"] * 2}),
            ],
            [("reduce_scatter", 8, (0, 1))],
            [()],
        ),
        # not of another collective, thread or time
        (
            [
                shaped("nccl:_all_gather_base", 4, 5),
                around(4, 9, "c10d::_reduce_scatter_base_", **{"Input Dims": [[4], [8]], "Input type": ["byte"] * 2}),
            ],
            [("all_gather", 16, ())],
            [()],
        ),
        (
            [
                shaped("nccl:_all_gather_base", 4, 5),
                around(6, 9, "c10d::_allgather_base_", **{"Input Dims": [[8], [4]], "Input type": ["byte"] * 2}),
            ],
            [("all_gather", 16, ())],
            [()],
        ),
        # ends that the operator records, where the annotation has none
        (
            [shaped("nccl:send", 4, 5), sending(4, 9, 2)],
            [("send_recv", 4, (0, 2))],
            [()],
        ),
        (
            [shaped("nccl:send 0->3", 4, 5), sending(4, 9, 2)],
            [("send_recv", 4, (0, 3))],
            [()],
        ),
        (
            [
                record("send", 4, ts=5, Src__Rank=0, Dst__Rank=3),
                sending(4, 9, 2),
            ],
            [("send_recv", 4, (0, 3))],
            [()],
        ),
        (
            [record("send", 4, ts=5), sending(4, 9, 2)],
            [("send_recv", 4, (0, 2))],
            [()],
        ),
        # not of a kernel, nor of an annotation that is longer
        (
            [
                record("send", 4, ts=5, cat="kernel", name="ncclDev", device=0, stream=0),
                sending(4, 9, 2),
            ],
            [("send_recv", 4, (0, -1))],
            [()],
        ),
        (
            [
                shaped("nccl:send", 4, 5, dur=9),
                sending(4, 9, 2),
                event("gloo:barrier", ts=50),
            ],
            [("send_recv", 4, (0, -1)), ("barrier", 0, ())],
            [(), ()],
        ),
        # the innermost; of many each its own
        (
            [
                shaped("nccl:send", 4, 5),
                sending(4, 9, 2),
                sending(4, 20, 3),
            ],
            [("send_recv", 4, (0, 2))],
            [()],
        ),
        (
            [
                one
                for at in range(9)
                for one in (
                    shaped("nccl:send", 4, 10 * at + 5),
                    sending(10 * at + 4, 10 * at + 9, 1 + at % 3),
                )
            ],
            [("send_recv", 4, (0, 1 + at % 3)) for at in range(9)],
            [()] * 9,
        ),
        # the size of the group, where it follows from the operator, and what is received
        ([shaped("nccl:_all_gather_base", 4, 5), sided("_allgather_base_", 6, 4)], [("all_gather", 16, ())], [()]),
        ([shaped("nccl:gather", 4, 5), sided("gather_", 8, 4)], [("gather", 16, ())], [()]),
        (
            [
                event("nccl:all_reduce", ts=5, **{"Input Dims": [[4], [4]], "Input type": ["byte"] * 2}),
                sided("allreduce_", 4, 4),
            ],
            [("all_reduce", 8, ())],
            [()],
        ),
        ([shaped("nccl:all_to_all", 8, 5), sided("alltoall_base_", 12, 8)], [("all_to_all", 12, ())], [()]),
        # Gloo starts calls later: the first operator of that size which no call has
        (
            [sends(4, 0, 1), sends(8, 2, 2), shaped("gloo:send", 8, 50, tid=5), shaped("gloo:send", 4, 60, tid=5)],
            [("send_recv", 8, (0, 2)), ("send_recv", 4, (0, 1))],
            [(), ()],
        ),
        (
            [sends(4, 0, 1), sends(4, 2, 2), shaped("gloo:send", 4, 50, tid=5), shaped("gloo:send", 4, 60, tid=5)],
            [("send_recv", 4, (0, 1)), ("send_recv", 4, (0, 2))],
            [(), ()],
        ),
        (
            [
                sending(0, 30, 2),
                sends(4, 1, 3),
                shaped("gloo:send", 4, 5, tid=1),
                shaped("gloo:send", 4, 9, tid=1),
            ],
            [("send_recv", 4, (0, 2)), ("send_recv", 4, (0, 3))],
            [(), ()],
        ),
        ([sends(4, 70, 1), shaped("gloo:send", 4, 50, tid=5)], [("send_recv", 4, (0, -1))], [()]),
        ([sends(4, 50, 1), shaped("gloo:send", 4, 50, tid=5)], [("send_recv", 4, (0, 1))], [()]),
        (
            [sending(0, 2, 2), shaped("gloo:send", 4, 50, tid=5)],
            [("send_recv", 4, (0, 2))],
            [()],
        ),
        (
            [
                sends(4, 0, 1),
                sends(8, 2, 2),
                sends(8, 4, 3),
                shaped("gloo:send", 8, 50, tid=5),
                shaped("gloo:send", 8, 60, tid=5),
            ],
            [("send_recv", 8, (0, 2)), ("send_recv", 8, (0, 3))],
            [(), ()],
        ),
        (
            [sends(4, 0, 1), sending(3, 30, 2), shaped("gloo:send", 4, 5), shaped("gloo:send", 4, 40, tid=5)],
            [("send_recv", 4, (0, 2)), ("send_recv", 4, (0, 1))],
            [(), ()],
        ),
        (
            [sends(4, 0, 1), sending(3, 30, 2, "c10d::recv_"), shaped("gloo:send", 4, 5)],
            [("send_recv", 4, (0, 1))],
            [()],
        ),
        (
            [sends(4, at, 1 + at % 3) for at in range(70)]
            + [shaped("gloo:send", 4, 100 + at, tid=5) for at in range(70)],
            [("send_recv", 4, (0, 1 + at % 3)) for at in range(70)],
            [()] * 70,
        ),
        # a record keeps its own size
        (
            [
                record("_allgather_base", 4, 16, ts=5),
                around(4, 9, "c10d::_allgather_base_", **{"Input Dims": [[8], [4]], "Input type": ["byte"] * 2}),
            ],
            [("all_gather", 16, (0, 1, 2, 3))],
            [()],
        ),
    ],
)
def test_the_operator_around_a_call(path, events, calls, matrices):
    """Completes what its annotation or record does not say."""
    read = Read(path, events)
    assert read.calls == calls
    assert read.matrices == matrices


EXCHANGE = {"In split size": "[1, 1, 1, 1]", "Out split size": "[2, 0, 2, 0]"}
VALUES = {"Concrete Inputs": ["", "", "", "[0, 3, 1, 0]", "[3, 0, 0, 1]"]}
NOTHING = {"Concrete Inputs": ["", "", "", "[0, 0, 0, 0]", "[3, 0, 0, 1]"]}


@pytest.mark.parametrize(
    ("events", "parts", "left"),
    [
        ([shaped("nccl:all_to_all", 4, 5), sided("alltoall_base_", 4, 4, **VALUES)], 1, []),
        ([record("all_to_allv", 4, ts=5, **EXCHANGE), around(4, 9, "c10d::alltoall_base_", **VALUES)], 0, []),
        ([record("all_to_allv", 4, ts=5), around(4, 9, "c10d::alltoall_base_", **VALUES)], 1, []),
        ([shaped("nccl:all_to_all", 4, 5), around(4, 9, "c10d::alltoall_base_", **VALUES)], 1, []),
        (
            [shaped("nccl:all_to_all", 7, 5), around(4, 9, "c10d::alltoall_base_", **VALUES)],
            None,
            [
                f"1 {side} split sizes that do not fit, not used: the list has 4 rows in all for 7 elements"
                for side in ("in", "out")
            ],
        ),
        ([shaped("gloo:all_to_all", 4, 50, tid=5), sided("alltoall_base_", 4, 8, **VALUES)], 1, []),
        ([shaped("nccl:all_to_all", 4, 5), sided("alltoall_base_", 0, 4, **NOTHING)], 2, []),
    ],
)
def test_the_parts_of_an_exchange(path, events, parts, left):
    """Are those of its record, else of the operator around it, if they fit."""
    read = Read(path, events)
    assert read.left_out() == left
    (trace,) = load_traces(path)
    due = {
        None: ((), ()),
        0: ((1, 1, 1, 1), (2, 0, 2, 0)),
        1: ((3, 0, 0, 1), (0, 3, 1, 0)),
        2: ((3, 0, 0, 1), (0, 0, 0, 0)),
    }
    assert [(call.sent_splits, call.received_splits) for call in trace.calls] == [due[parts]]
