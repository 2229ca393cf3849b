"""Drawn steps of one rank: dependencies, bound and recorded times are those of a second reading of the rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.drawn_steps import DrawnSteps
from tests.traces.kineto_rules import Trace
from tests.traces.test_kineto_forms import event, kernel, launch, record, write

from opticcl.errors import WorkloadError
from opticcl.traces import load_steps
from opticcl.traces.kineto import KinetoReader
from opticcl.traces.reader import ReadOptions


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every example writes anew."""
    return tmp_path_factory.mktemp("steps") / "a.json"


def dependencies(graph, step):
    """Of each call by its size the kernels before it and the first that waits for it, as the tasks of a graph have them."""
    opens, holds, done = {}, {call.size: len(step.kernels) for call in step.calls}, [0]
    for task in graph.tasks:
        if task.collective:
            opens[task.size_bytes] = done[task.after[0] + 1] if task.after else 0
            done.append(done[-1])
            continue
        count = int(task.name.split()[0])
        took = sum(kernel.took for kernel in step.kernels[done[-1] : done[-1] + count])
        assert task.compute_s == pytest.approx(took * 1e-6)
        for i in task.after:
            holds[graph.tasks[i].size_bytes] = min(holds[graph.tasks[i].size_bytes], done[-1])
        done.append(done[-1] + count)
    assert done[-1] == len(step.kernels)
    return opens, holds


@examples(400)
@given(st.integers(0, 2**32))
def test_steps_follow_the_rules(path, seed):
    """Dependencies of all calls and kernels, bounds, and what the device did, in every microsecond."""
    drawn = DrawnSteps(seed)
    path.write_text(drawn.text)
    steps = Trace(drawn.text).steps()
    if not steps:  # nothing happens within a step: the calls, one after the other
        (graph,) = load_steps(path)
        assert [task.size_bytes for task in graph.tasks if task.collective] == [
            call.size for call in Trace(drawn.text).calls
        ]
        return
    if not any(step.calls for step in steps):
        with pytest.raises(WorkloadError, match="no collective"):
            load_steps(path)
        return
    graphs = load_steps(path)
    assert [graph.step for graph in graphs] == [step.name for step in steps]
    for graph, step in zip(graphs, steps, strict=True):
        assert graph.bound == step.bound
        assert sum(step.said in note for note in graph.notes) == 1
        if step.in_order:
            sizes = [call.size for call in step.calls]
            opens, holds = dependencies(graph, step)
            assert opens == dict(zip(sizes, step.opens, strict=True))
            assert holds == dict(zip(sizes, step.holds, strict=True))
            held = sum(hold < len(step.kernels) for hold in step.holds)
            assert f"order: computation depends on {held} of {len(step.calls)} calls" in graph.notes
        measured = {call.size: sum(kernel.took for kernel in call.kernels) for call in step.calls}
        assert {t.size_bytes: round(t.measured_s * 1e6) for t in graph.tasks if t.collective} == measured
        assert (graph.recorded is None) == (step.recorded is None)
        for name, value in (step.recorded or {}).items():
            found = getattr(graph.recorded, name)
            assert found is value if value is None else found == pytest.approx(value * 1e-6), name


@pytest.mark.parametrize("stream", [0, 7])
def test_a_wait_is_of_the_stream_on_which_its_thread_launched_last(path, stream):
    """Of two streams: the next kernel of that one depends on the call; the other one's are behind all calls."""
    launches = [(1, 4, 7, 61, 9), (2, 5, 7, 30, 30), (3, 10, 0, 11, 2), (5, 62, stream, 71, 9), (7, 90, 7, 95, 3)]
    events = [record("allreduce", 4, ts=20, dur=10), record("allreduce", 8, ts=64, dur=4)]
    events += [kernel("ncclX", 25, 15, correlation=4, stream=20), kernel("ncclX", 75, 9, correlation=6, stream=21)]
    events += [launch(4, 22), launch(6, 65), event("cudaStreamWaitEvent", "cuda_runtime", 50, correlation=99)]
    for number, at, on, start, took in launches:
        events += [launch(number, at), kernel("gemm", start, took, correlation=number, stream=on)]
    write(path, events)
    (graph,), (step,) = load_steps(path), Trace(path.read_text()).steps()
    _, holds = dependencies(graph, step)
    assert holds[4] == (3 if stream == 0 else 4)
    assert holds == {call.size: hold for call, hold in zip(step.calls, step.holds, strict=True)}


@examples(60)
@given(st.integers(0, 2**32))
def test_times_and_streams_of_calls_and_kernels(path, seed):
    """From the start of a call's first kernel to the end of its last, on the stream of the first; kernels by their start."""
    drawn = DrawnSteps(seed)
    path.write_text(drawn.text)
    rules = Trace(drawn.text)
    (read,) = KinetoReader().read_ranks(path, ReadOptions(), tasks=True)
    streams = {-1: 0}
    for call, found in zip(rules.calls, read.calls, strict=True):
        assert found.size_bytes == call.size
        if call.kernels:
            times = call.kernels[0].start, max(kernel.end for kernel in call.kernels)
            assert (found.start_s, found.end_s) == pytest.approx([us * 1e-6 for us in times])
            assert found.stream == streams.setdefault(call.kernels[0].stream, len(streams))
    for column, name in (("start_s", "start"), ("end_s", "end")):
        expected = [getattr(kernel, name) * 1e-6 for kernel in rules.kernels]
        assert getattr(read.kernels, column).tolist() == pytest.approx(expected)
    assert read.kernels.stream.tolist() == [kernel.stream for kernel in rules.kernels]
    assert read.compute_s == pytest.approx(sum(kernel.took for kernel in rules.kernels) * 1e-6)
    said = [note for note in read.after if note.startswith("computation: ")]
    assert [int(note.split()[-3]) for note in said] == [len(rules.kernels)] * bool(read.compute_s)
    lost = [kernel for kernel in rules.kernels if kernel.launch is None] if rules.launches else []
    left = [note for note in read.after if "they belong to no step" in note]
    assert [int(note.split()[2]) for note in left] == [len(lost)] * bool(lost)
    outside = [call for call in rules.calls if not any(call in step.calls for step in rules.steps())]
    left = [note for note in read.after if "outside of the profiler's steps" in note]
    assert [int(note.split()[2]) for note in left] == [len(outside)] * bool(outside)


def waits_for_its_call(path, *kernels, waits=()):
    """Whether a kernel waits for the call that ends at 40 before another one."""
    names = "stream", "wait_on_stream", "correlation", "wait_on_cuda_event_record_corr_id"
    events = [record("allreduce", 8, ts=10, dur=2), launch(100, 11), record("allreduce", 9, ts=70, dur=2)]
    events += [launch(200, 71), kernel("ncclX", 80, 9, correlation=200, stream=0)]
    for number, (at, start, end, stream) in enumerate(kernels, 101):
        events += [launch(number, at), kernel(ts=start, dur=end - start, correlation=number, stream=stream)]
    for wait in waits:
        events.append(event("Stream Wait Event", "cuda_sync", **dict(zip(names, wait, strict=True))))
    call = kernel("ncclX", 20, 20, correlation=100, stream=0)
    (step,) = load_steps(write(path, [*events, call]))
    done = [task.communicates for task in step.tasks].index(True)
    return any(done in task.after for task in step.tasks)


@pytest.mark.parametrize(
    ("launched", "before", "start", "waits"),
    [
        (2, 38, 41, True),
        (2, 39, 41, False),
        (2, 40, 41, False),
        (2, 38, 59, True),
        (2, 38, 60, False),
        (19, 38, 41, True),
        (20, 38, 41, False),
    ],
)
def test_a_kernel_that_was_queued(path, launched, before, start, waits):
    """Launched 20 us before the end of a call, and begun within 20 us of it on an idle device: it waited for the call."""
    kernels = (1, 5, before, 7), (launched, start, start + 5, 7)
    assert waits_for_its_call(path, *kernels, waits=[(98, 99, 0, 0)]) == waits


@pytest.mark.parametrize(("stream", "start", "waits"), [(0, 39, True), (0, 40, True), (0, 38, False), (7, 40, False)])
def test_a_kernel_behind_a_call_on_its_stream(path, stream, start, waits):
    """Waits for it, rounded to microseconds."""
    assert waits_for_its_call(path, (1, 5, 60, 7), (25, start, 70, stream)) == waits


@pytest.mark.parametrize(
    ("waits", "waited"),
    [
        ([], False),
        ([(7, 0, 101, 100)], True),
        ([(7, 0, 101, 99)], False),
        ([(7, 8, 101, 100)], False),
        ([(8, 0, 101, 100), (7, 8, 103, 102)], True),
        ([(8, 0, 101, 100), (7, 8, 103, 100)], False),
    ],
)
def test_waits_of_one_stream_for_another(path, waits, waited):
    """Pass on what the other one had waited for when its event was recorded."""
    idle = [(2, 5, 60, 9), (3, 5, 60, 9), (4, 5, 60, 9), (25, 61, 70, 7)]
    assert waits_for_its_call(path, *idle, waits=[*waits, (98, 99, 0, 0)]) == waited


def test_times_of_calls_without_records_of_their_kernels(path):
    """Kernels of a list are communication as others are; of calls of the host the times are added."""
    listed = path.parent / "sizes.toml"
    listed.write_text('[[kernels]]\nname = "mscclpp"\ncollective = "all_reduce"\nsize = 64\n')
    write(path, [kernel(ts=5, dur=10), kernel("void mscclpp::x(y)", 20, 10)])
    (step,) = load_steps(path, kernel_sizes=listed)
    times = step.recorded.compute_s, step.recorded.communication_s, step.recorded.exposed_s, step.recorded.total_s
    assert times == pytest.approx((10e-6, 10e-6, 10e-6, 25e-6))
    floats = {"Input Dims": [[25]], "Input type": ["float"]}
    host = [event("gloo:all_reduce", ts=at, dur=90, **floats) for at in (10, 200)]
    (step,) = load_steps(write(path, [*host, kernel(ts=5, dur=40), event("gloo:all_reduce", ts=400, dur=0, **floats)]))
    assert (step.recorded.compute_s, step.recorded.communication_s) == pytest.approx((40e-6, 180e-6))
