"""Playing a job on the queues of a device: conservation, order, fusion, stragglers."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.training.iteration import COMPUTE, Runtime, simulate_iteration, slowdown_of

GROUPS = {"data": ProcessGroup("data", range(4)), "tensor": ProcessGroup("tensor", (0, 1), 2)}
WAYS = [
    Runtime(overlap=overlap, fusion=fusion, threshold_bytes=threshold, order=order, streams=streams)
    for overlap in (True, False)
    for fusion, threshold in (("greedy", 30), ("greedy", 0), ("static", 30), ("none", 30))
    for order, streams in (("transfers_first", 1), ("ready", 1), ("job", 1), ("transfers_first", 2))
]


def affine(alpha, beta):
    """Messages that take alpha and beta a byte."""
    return lambda collective, group, size: alpha + beta * size


@st.composite
def jobs(draw, blocking=True):
    """Jobs of any shape; without `blocking` nothing waits for a message."""
    tasks = []
    for i in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(("compute", "gradient", "transfer") if blocking else ("compute", "gradient")))
        before = [j for j in range(i) if blocking or not tasks[j].communicates]
        chosen = draw(st.integers(0, 2**i - 1)) & draw(st.integers(0, 2**i - 1))
        after = tuple(j for j in before if chosen >> j & 1)
        if kind == "compute":
            tasks.append(Task(f"t{i}", compute_s=draw(st.integers(0, 9)), after=after))
        elif kind == "gradient":
            size = draw(st.integers(0, 40))
            tasks.append(Task(f"t{i}", 0.0, "all_reduce", size, "data", after, "backward", True))
        else:
            size = draw(st.integers(0, 40))
            tasks.append(Task(f"t{i}", 0.0, "all_gather", size, "tensor", after))
    return TaskGraph("job", "drawn", 4, tuple(tasks), GROUPS)


def check(job, iteration, runtime):
    """What holds of any iteration."""
    spans = iteration.spans
    played = sorted(i for span in spans for i in span.tasks)
    assert played == list(range(len(job.tasks)))
    end = {i: span.end_s for span in spans for i in span.tasks}
    for span in spans:
        assert all(end[j] <= span.start_s for i in span.tasks for j in job.tasks[i].after)
        assert span.size_bytes == sum(job.tasks[i].size_bytes for i in span.tasks)
        if len(span.tasks) > 1:
            first = job.tasks[span.tasks[0]]
            assert span.size_bytes <= runtime.threshold_bytes
            assert all(job.tasks[i].fusible and job.tasks[i].group == first.group for i in span.tasks)
    assert sum(span.size_bytes for span in spans) == job.total_bytes
    queues = {span.queue for span in spans}
    for queue in queues if runtime.overlap else ({*queues},):
        mine = [s for s in spans if s.queue == queue or (not runtime.overlap)]
        assert all(a.end_s <= b.start_s for a, b in pairwise(mine))
    computed = [s.tasks[0] for s in spans if s.queue == COMPUTE]
    assert computed == sorted(computed)


def longest_chain_s(job, time_of):
    """Length of the longest chain of dependent tasks, without queues and fusion."""
    ends = []
    for task in job.tasks:
        took = time_of(task.collective, job.groups[task.group], task.size_bytes) if task.communicates else 0.0
        ends.append(max((ends[i] for i in task.after), default=0.0) + took + task.compute_s)
    return max(ends, default=0.0)


@examples(50)
@given(job=jobs(), runtime=st.sampled_from(WAYS), alpha=st.integers(0, 3), beta=st.integers(0, 2))
def test_nothing_is_lost_and_nothing_runs_too_early(job, runtime, alpha, beta):
    """Every task once, behind what it waits for, one at a time on each queue; bytes stay; never below any bound."""
    time_of = affine(alpha, beta)
    iteration = simulate_iteration(job, time_of, runtime)
    check(job, iteration, runtime)
    total = iteration.total_s
    assert total >= job.compute_s
    assert total >= iteration.communication_s / runtime.streams
    assert total >= longest_chain_s(job, time_of)
    assert total <= iteration.compute_s + iteration.communication_s
    assert iteration.exposed_s == total - iteration.compute_s
    if not runtime.overlap:
        assert total == iteration.compute_s + iteration.communication_s
    assert simulate_iteration(job, time_of, runtime) == iteration


@examples(40)
@given(job=jobs(), runtime=st.sampled_from(WAYS), alpha=st.integers(0, 3), beta=st.integers(0, 2))
def test_the_critical_path_fills_the_iteration(job, runtime, alpha, beta):
    """It leads from the start to the end without a gap, each span from the end of the one before."""
    iteration = simulate_iteration(job, affine(alpha, beta), runtime)
    path = [iteration.spans[row] for row in iteration.critical_path()]
    if not path:
        assert not job.tasks
        return
    assert path[0].start_s == 0
    assert path[-1].end_s == iteration.total_s
    assert all(a.end_s == b.start_s for a, b in pairwise(path))


@examples(50)
@given(
    job=jobs(blocking=False),
    fusion=st.sampled_from(["static", "none"]),
    order=st.sampled_from(["ready", "job"]),
    overlap=st.booleans(),
    alpha=st.integers(0, 3),
    beta=st.integers(0, 3),
    slower=st.integers(0, 3),
)
def test_a_faster_network_never_makes_it_longer(job, fusion, order, overlap, alpha, beta, slower):
    """Where messages are known beforehand and nothing that computes waits for them: their order is then always the same."""
    runtime = Runtime(overlap=overlap, fusion=fusion, threshold_bytes=30, order=order)
    fast = simulate_iteration(job, affine(alpha, beta), runtime).total_s
    assert fast <= simulate_iteration(job, affine(alpha + slower, beta), runtime).total_s
    assert fast <= simulate_iteration(job, affine(alpha, beta + slower), runtime).total_s


@examples(50)
@given(job=jobs(), static=st.booleans(), alpha=st.integers(0, 3), beta=st.integers(0, 3), slower=st.integers(0, 3))
def test_in_the_order_of_the_job_it_never_makes_any_job_longer(job, static, alpha, beta, slower):
    """With order="job" and messages known beforehand every start is a maximum of sums: it grows with each of them."""
    runtime = Runtime(fusion="static" if static else "none", threshold_bytes=30, order="job")
    fast = simulate_iteration(job, affine(alpha, beta), runtime).total_s
    assert fast <= simulate_iteration(job, affine(alpha + slower, beta), runtime).total_s
    assert fast <= simulate_iteration(job, affine(alpha, beta + slower), runtime).total_s


def test_greedy_fusion_can_gain_from_a_slower_network():
    """Why the two tests above leave it out: while a slow first message is under way, more gradients fuse behind it."""
    sizes = ((1, 10), (1, 10), (5, 10))
    tasks = []
    for i, (seconds, size) in enumerate(sizes):
        tasks.append(Task(f"b{i}", float(seconds)))
        tasks.append(Task(f"g{i}", 0.0, "all_reduce", size, "data", (2 * i,), fusible=True))
    job = TaskGraph("job", "", 4, tuple(tasks), GROUPS)
    takes = {10: 5.5, 20: 5.6, 30: 5.7}
    slow = simulate_iteration(
        job, lambda c, g, size: takes[size] + (0.6 if size == 10 else 0), Runtime(threshold_bytes=30)
    )
    fast = simulate_iteration(job, lambda c, g, size: takes[size], Runtime(threshold_bytes=30))
    assert slow.total_s < fast.total_s


def test_more_computation_takes_longer_by_as_much_without_overlap():
    """A straggler stretches all computation and no message."""
    job = TaskGraph(
        "job",
        "",
        4,
        (Task("f", 2.0), Task("b", 4.0, after=(0,)), Task("g", 0.0, "all_reduce", 10, "data", (1,), fusible=True)),
        GROUPS,
    )
    runtime = Runtime(overlap=False)
    usual = simulate_iteration(job, affine(1, 1), runtime)
    late = simulate_iteration(job, affine(1, 1), runtime, {3: 1.5})
    assert usual.total_s == 17
    assert late.total_s == 20
    assert (late.slowdown, late.compute_s, late.communication_s) == (1.5, 9, 11)


@examples(30)
@given(job=jobs(blocking=False), factor=st.floats(1, 4), rank=st.integers(0, 3))
def test_a_straggler_never_helps(job, factor, rank):
    """With messages known beforehand, and the same whichever device it is."""
    runtime = Runtime(fusion="static", threshold_bytes=30, order="ready")
    late = simulate_iteration(job, affine(1, 1), runtime, {rank: factor})
    assert late.total_s >= simulate_iteration(job, affine(1, 1), runtime).total_s
    assert late.total_s == simulate_iteration(job, affine(1, 1), runtime, {0: factor}).total_s


@pytest.mark.parametrize("factors", [{4: 1.2}, {-1: 1.2}, {0: 0.0}, {0: -1.0}, {0: float("inf")}, {0: float("nan")}])
def test_wrong_stragglers_are_refused(factors):
    """No such device, or no such factor."""
    with pytest.raises(ParameterError, match="straggler"):
        slowdown_of(factors, 4)


@pytest.mark.parametrize(
    "wrong", [{"threshold_bytes": -1}, {"cycle_s": -1.0}, {"latency_s": float("nan")}, {"streams": 0}]
)
def test_wrong_runtimes_are_refused(wrong):
    """One line that names the field."""
    with pytest.raises(ParameterError, match=next(iter(wrong)).removesuffix("_s")):
        Runtime(**wrong)


def gradients(*pairs, group="data"):
    """Backward computations of so many seconds, each with a gradient of so many bytes."""
    tasks = []
    for seconds, size in pairs:
        tasks.append(Task("backward", float(seconds)))
        tasks.append(Task("gradient", 0.0, "all_reduce", size, group, (len(tasks) - 1,), "backward", True))
    return TaskGraph("job", "", 4, tuple(tasks), GROUPS)


def sent(iteration):
    """(start, bytes) of every message."""
    return [(span.start_s, span.size_bytes) for span in iteration.spans if span.queue]


def test_greedy_fuses_what_is_ready_when_the_network_falls_idle():
    """The first gradient goes alone, those that came meanwhile go together up to the threshold, a large one alone."""
    job = gradients((1, 10), (1, 10), (1, 10), (1, 10), (1, 90))
    assert sent(simulate_iteration(job, affine(3, 0), Runtime(threshold_bytes=20))) == [
        (1, 10),
        (4, 20),
        (7, 10),
        (10, 90),
    ]
    assert sent(simulate_iteration(job, affine(3, 0), Runtime(threshold_bytes=25))) == [
        (1, 10),
        (4, 20),
        (7, 10),
        (10, 90),
    ]


def test_static_buffers_leave_when_they_would_overflow():
    """They are filled in the order of the gradients, and are ready with the last of them."""
    job = gradients((1, 10), (1, 10), (1, 10), (1, 90), (1, 5))
    runtime = Runtime(fusion="static", threshold_bytes=20)
    assert sent(simulate_iteration(job, affine(1, 0), runtime)) == [(2, 20), (3, 10), (4, 90), (5, 5)]


def test_a_static_buffer_leaves_before_something_waits_for_it():
    """An update between two gradients needs the first: the buffer does not wait for the second."""
    tasks = list(gradients((1, 5)).tasks)
    tasks += [Task("update", 1.0, after=(1,)), Task("backward", 1.0)]
    tasks.append(Task("gradient", 0.0, "all_reduce", 5, "data", (3,), fusible=True))
    for order in ("transfers_first", "ready", "job"):
        runtime = Runtime(fusion="static", threshold_bytes=20, order=order)
        job = TaskGraph("job", "", 4, tuple(tasks), GROUPS)
        assert sent(simulate_iteration(job, affine(1, 0), runtime)) == [(1, 5), (4, 5)]


def test_cycle_and_latency_of_a_message():
    """Gradients leave at ticks, and every message of them costs the agreement."""
    job = gradients((1, 10), (1, 10), (1, 10))
    assert sent(simulate_iteration(job, affine(1, 0), Runtime(cycle_s=2.5))) == [(2.5, 20), (5.0, 10)]
    assert simulate_iteration(job, affine(1, 0), Runtime(cycle_s=2.5, latency_s=0.25)).total_s == 6.25
    assert simulate_iteration(job, affine(1, 0), Runtime(cycle_s=2.5, overlap=False)).total_s == 4


def test_transfers_go_first():
    """A transfer that computation waits for passes gradients that have waited longer, unless they go by age."""
    tasks = [
        *gradients((1, 10), (0, 10)).tasks,
        Task("forward", 1.0),
        Task("activations", 0.0, "all_gather", 5, "tensor", (4,)),
        Task("next", 1.0, after=(5,)),
    ]
    job = TaskGraph("job", "", 4, tuple(tasks), GROUPS)
    first = Runtime(fusion="none", order="transfers_first")
    assert [size for _, size in sent(simulate_iteration(job, affine(4, 0), first))] == [10, 5, 10]
    assert [size for _, size in sent(simulate_iteration(job, affine(4, 0), replace(first, order="ready")))] == [
        10,
        10,
        5,
    ]


def test_in_the_order_of_the_job_a_message_waits_for_those_before_it():
    """Though it is ready and the network idle; by age it goes at once."""
    tasks = (*gradients((5, 10)).tasks, Task("activations", 0.0, "all_gather", 7, "tensor"))
    job = TaskGraph("job", "", 4, tasks, GROUPS)
    assert sent(simulate_iteration(job, affine(1, 0), Runtime(order="job"))) == [(5, 10), (6, 7)]
    assert sent(simulate_iteration(job, affine(1, 0), Runtime(order="ready"))) == [(0, 7), (5, 10)]


def test_groups_are_not_fused_with_each_other():
    """Gradients of experts and of the rest travel apart."""
    both = gradients((0, 5), (0, 5)).tasks + tuple(
        replace(task, after=tuple(j + 4 for j in task.after))
        for task in gradients((0, 5), (0, 5), group="tensor").tasks
    )
    job = TaskGraph("job", "", 4, both, GROUPS)
    assert [size for _, size in sent(simulate_iteration(job, affine(1, 0), Runtime()))] == [5, 5, 10]


def test_an_empty_job_takes_no_time():
    """And uses the device fully."""
    iteration = simulate_iteration(TaskGraph("job", "", 1, ()), affine(1, 1))
    assert (iteration.total_s, iteration.utilisation, iteration.critical_path()) == (0.0, 1.0, ())
    assert {len(column) for column in iteration.columns().values()} == {0}


def test_columns_tell_every_span():
    """A row a span: its first task, start, end and queue."""
    iteration = simulate_iteration(gradients((1, 10), (2, 10)), affine(3, 0))
    columns = iteration.columns()
    assert columns["task"].tolist() == [0, 2, 1, 3]
    assert columns["start_s"].tolist() == [0, 1, 1, 4]
    assert columns["end_s"].tolist() == [1, 3, 4, 7]
    assert columns["queue"].tolist() == [0, 0, 1, 1]


def test_work_of_other_stages_is_no_work_of_this_device():
    """A pipeline's wait is told apart from computation and from waiting for messages."""
    tasks = (
        Task("wait: stage 1", 2.0),
        Task("to the next stage", 0.0, "send_recv", 4, "tensor", (0,)),
        Task("own", 3.0, after=(1,)),
    )
    iteration = simulate_iteration(TaskGraph("job", "", 4, tasks, GROUPS), affine(1, 0))
    assert (iteration.total_s, iteration.compute_s, iteration.bubble_s, iteration.exposed_s) == (6, 3, 2, 1)
    assert iteration.utilisation == 0.5


def test_many_tasks_take_little_time():
    """The cost is that of sorting: 10,000 tasks in a second or two of any machine."""
    import time

    job = gradients(*[(1, 10)] * 5_000)
    started = time.process_time()
    assert simulate_iteration(job, affine(0.5, 0), Runtime(threshold_bytes=0)).num_messages == 5_000
    assert time.process_time() - started < 3


def test_buckets_of_the_notes():
    """Messages of an iteration with static fusion at 16 and 32 MB: 12 and 6 of VGG16, 14 and 7 of VGG19, 8 and 4 of ResNet-50.

    Source: the checked notes on ODDL, section 1.7.
    """
    from opticcl.training.partition import partition

    assert read_toml("opticcl.training", "training.toml")  # the device's efficiency; times do not matter here
    found = []
    for model in ("vgg16", "vgg19", "resnet50"):
        job = partition(model, 1024, device="2080_ti")
        for threshold in (16_000_000, 32_000_000):
            runtime = Runtime(fusion="static", threshold_bytes=threshold)
            found.append(simulate_iteration(job, affine(0, 1e-12), runtime).num_messages)
    assert found == [12, 6, 14, 7, 8, 4]
