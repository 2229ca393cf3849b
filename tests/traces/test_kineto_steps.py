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
