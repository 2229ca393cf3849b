"""Jobs of traces: nothing that goes over the network is lost, and computation stands where the trace has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.test_chakra import COMP, RECV, SEND, attribute, coll, field, node, packed, trace
from tests.traces.test_kineto import event, record, text
from tests.traces.test_topoopt import ALL_REDUCE, BACKWARD, DEVICES, FORWARD, GOOD, TRANSFER, graph, task

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import Omission, RecordedTimes, Workload
from opticcl.traces import CollectiveCall, builtin, load_job, load_workload
from opticcl.traces.graphs import disjoint_batches, job_of, task_graphs
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.training.iteration import Runtime, simulate_iteration

ON_DEVICE, ON_HOST = attribute("is_cpu_op", 0, 27), attribute("is_cpu_op", 1, 27)
LAYERS = "DATA\n2\na -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 100 1\nb -1 11 ALLGATHER 8 21 NONE 0 31 ALLREDUCE 200 1\n"


def written(folder, name, content):
    """A file with that content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def shape(job):
    """Tasks in short: seconds or (collective, bytes), and what they wait for."""
    return [((t.collective, t.size_bytes) if t.communicates else t.compute_s, t.after) for t in job.tasks]


# --- Chakra -----------------------------------------------------------------------------------------------------------


def kernel(number, us, *needs):
    """A kernel on the device."""
    return node(number, COMP, ON_DEVICE, needs=packed(*needs) if needs else b"", duration_us=us)


def test_kernels_run_in_order_and_collectives_beside_them(tmp_path):
    """Kernels between collectives are one task; those behind the last wait for all, one with a data dependency for its own."""
    content = trace(
        node(1, COMP, ON_HOST),
        kernel(2, 10, 1, 99),
        kernel(3, 20, 1),
        node(4, 7, ON_HOST),
        coll(5, 4096, 0, ON_DEVICE, needs=packed(4), duration_us=7),
        kernel(6, 30, 1),
        coll(7, 64, 2, ON_DEVICE),
        kernel(8, 40, 4),
        coll(9, 32, 0, ON_DEVICE),
        kernel(10, 50),
    )
    job = load_job(written(tmp_path, "job.et", content), num_ranks=8)
    us = pytest.approx
    assert shape(job) == [
        (us(30e-6), ()),
        (("all_reduce", 4096), (0,)),
        (us(30e-6), ()),
        (("all_gather", 8 * 64), (2,)),  # a share of eight
        (us(40e-6), (1,)),
        (("all_reduce", 32), (4,)),
        (us(50e-6), (1, 3, 5)),
    ]
    assert (job.network_bytes, job.num_calls, job.num_ranks) == (4096 + 8 * 64 + 32, 3, 8)
    assert {tuple(group.ranks) for group in job.groups.values()} == {tuple(range(8))}
    assert any("the kernel after the last collective depends" in note for note in job.notes)


def test_what_kernels_wait_for(tmp_path):
    """For what a node of the host issues, once it has run; not for other nodes that the call needs, nor by control."""
    content = trace(
        node(1, COMP, ON_HOST),
        node(2, 7, ON_HOST),
        kernel(3, 10, 1, 2),
        coll(4, 64, 0, ON_DEVICE, needs=field(4, 2) + packed(1)),
        node(5, COMP, ON_DEVICE, needs=packed(1) + field(4, bytes([4])), duration_us=20),
        kernel(6, 30, 2),
        kernel(7, 40, 4),
        coll(8, 128, 0, ON_DEVICE),
    )
    job = load_job(written(tmp_path, "job.et", content), num_ranks=2)
    us = pytest.approx
    assert shape(job) == [
        (us(10e-6), ()),
        (("all_reduce", 64), (0,)),
        (us(20e-6), ()),
        (us(70e-6), (1,)),
        (("all_reduce", 128), (3,)),
    ]
    assert [task.name for task in job.tasks if not task.communicates] == ["1 kernel", "1 kernel", "2 kernels"]
    assert [note for note in job.notes if note.startswith("order")] == [
        "order: kernels run in the order of the file; a collective depends on those before it"
    ]


def test_calls_of_the_host_alone(tmp_path):
    """They are the calls where there are no kernels, a transfer as well as a collective."""
    sent = [attribute("comm_size", 6), attribute("comm_src", 0), attribute("comm_dst", 3)]
    content = trace(coll(1, 64, 0, ON_HOST), kernel(2, 5), node(3, SEND, ON_HOST, *sent))
    assert shape(load_job(written(tmp_path, "job.et", content), num_ranks=4)) == [
        (("all_reduce", 64), ()),
        (pytest.approx(5e-6), ()),
        (("send_recv", 6), (1,)),
    ]


def test_a_host_that_only_issues_calls_is_one(tmp_path):
    """The kernel behind the last collective depends on it, whatever its dependencies are."""
    content = trace(node(1, 7, ON_HOST), coll(2, 64, 0, ON_DEVICE, needs=packed(1)), kernel(3, 5))
    assert shape(load_job(written(tmp_path, "job.et", content), num_ranks=2)) == [
        (("all_reduce", 64), ()),
        (pytest.approx(5e-6), (0,)),
    ]


def test_circles_among_the_host_do_not_matter(tmp_path):
    """Real traces have them; the order of the device is that of the file."""
    content = trace(
        node(1, COMP, ON_HOST, needs=packed(2)),
        node(2, COMP, ON_HOST, needs=packed(1)),
        kernel(3, 10, 2),
        coll(4, 8, 0, ON_DEVICE),
    )
    job = load_job(written(tmp_path, "job.et", content), num_ranks=2)
    assert shape(job) == [(pytest.approx(1e-5), ()), (("all_reduce", 8), (0,))]
    assert any("cycle" in note for note in job.notes)


def test_without_a_host_dependencies_decide(tmp_path):
    """The feeder's form: a receive is waited for; nodes without a duration pass dependencies on; dangling ones are counted."""
    content = trace(
        coll(1, 8, 0, ON_DEVICE, needs=packed(3, 77)),
        kernel(2, 5),
        node(3, RECV, ON_DEVICE, attribute("comm_size", 6), needs=packed(2)),
        node(4, SEND, ON_DEVICE, attribute("comm_size", 6), attribute("comm_src", 0), attribute("comm_dst", 3)),
        kernel(5, 9, 1, 4),
    )
    job = load_job(written(tmp_path, "job.et", content), num_ranks=4)
    assert shape(job) == [
        (pytest.approx(5e-6), ()),
        (("send_recv", 6), ()),
        (("send_recv", 6), (0,)),
        (("all_reduce", 8), (2,)),
        (pytest.approx(9e-6), (1, 3)),
    ]
    assert tuple(job.groups[job.tasks[1].group].ranks) == (0, 3)
    assert any("dangling dependencies, ignored: 1" in note for note in job.notes)


def test_a_circle_without_a_host_is_refused(tmp_path):
    """One line that names the nodes."""
    content = trace(
        coll(1, 8, 0, ON_DEVICE, needs=packed(3)),
        kernel(2, 5, 1),
        node(3, COMP, ON_DEVICE, needs=field(4, 2), duration_us=1),
    )
    with pytest.raises(WorkloadError, match=r"dependencies: (1 needs 3 needs 2 needs 1)") as caught:
        load_job(written(tmp_path, "job.et", content), num_ranks=2)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("many", "shown"), [(8, "1 8 7 6 5 4 3 2 1"), (9, "1 9 8 7 6 5 4 3 1")])
def test_a_long_circle_without_a_host_is_shortened(tmp_path, many, shown):
    """Of nine ids all, of ten the first eight and the last."""
    nodes = [kernel(i, 5, (i - 2) % many + 1) for i in range(1, many + 1)]
    path = written(tmp_path, "job.et", trace(*nodes, coll(99, 8)))
    with pytest.raises(WorkloadError, match=f"cyclic dependencies: {' needs '.join(shown.split())}; no order"):
        load_job(path, num_ranks=2)


def test_transfers_whose_ranks_are_not_told_are_noted(tmp_path):
    """They are taken as between the first two ranks, and a rank beyond the job is refused."""
    known = node(2, SEND, ON_DEVICE, attribute("comm_size", 6), attribute("comm_src", 0), attribute("comm_dst", 9))
    unknown = node(1, SEND, ON_DEVICE, attribute("comm_size", 6))
    job = load_job(written(tmp_path, "job.et", trace(unknown)), num_ranks=4)
    assert tuple(job.groups[job.tasks[0].group].ranks) == (0, 1)
    assert any("without recorded ranks: 1" in note for note in job.notes)
    with pytest.raises(
        WorkloadError, match="the given number is 4 ranks, but a send of 'n' has rank 9; give 10 or more"
    ):
        load_job(written(tmp_path, "job.et", trace(known)), num_ranks=4)


# --- TopoOpt ----------------------------------------------------------------------------------------------------------


def test_a_graph_as_its_busiest_device_does_it(tmp_path):
    """The transfer waits for the forward pass, the backward pass for the transfer, the gradient for the backward pass."""
    job = load_job(written(tmp_path, "graph.fbuf", GOOD))
    assert shape(job) == [
        (pytest.approx(2e-3), ()),
        (("send_recv", 64), (0,)),
        (pytest.approx(3e-3), (1,)),
        (("all_reduce", 4096), (2,)),
    ]
    assert [(t.phase, t.fusible) for t in job.tasks if t.phase] == [
        ("forward", False),
        ("backward", False),
        ("backward", True),
    ]
    assert (job.network_bytes, job.num_calls, job.num_ranks) == (4160, 2, 4)


def test_groups_without_a_rank_in_common_go_at_once(tmp_path):
    """Two pairs sum gradients of one size beside each other; the third has another size."""
    content = graph(
        [
            task(BACKWARD, 1, device=53, run_ms=1, following=(2, 3, 4)),
            task(ALL_REDUCE, 2, size=8, following=(0, 1)),
            task(ALL_REDUCE, 3, size=8, following=(2, 3)),
            task(ALL_REDUCE, 4, size=16, following=(2, 3)),
        ],
        DEVICES,
    )
    job = load_job(written(tmp_path, "graph.fbuf", content))
    calls = [(t.size_bytes, job.groups[t.group].num_groups, t.after) for t in job.tasks if t.communicates]
    assert calls == [(8, 2, (0,)), (16, 1, (0,))]
    assert (job.network_bytes, job.num_calls) == (32, 3)


def test_a_graph_that_runs_in_a_circle_is_refused(tmp_path):
    """The workload tolerates it; there is no job without an order."""
    tasks = [
        task(FORWARD, 1, device=53, run_ms=1, following=(2,)),
        task(TRANSFER, 2, device=50, size=8, following=(1,)),
    ]
    path = written(tmp_path, "graph.fbuf", graph(tasks, DEVICES))
    assert load_workload(path).total_bytes == 8
    with pytest.raises(WorkloadError, match="2 tasks can never start, such as task 1"):
        load_job(path)


# --- ASTRA-sim and lists of calls -------------------------------------------------------------------------------------


def test_layers_forward_and_back(tmp_path):
    """Gradients may wait, activations may not; without a clock computation takes no time."""
    path = written(tmp_path, "layers.txt", LAYERS)
    job = load_job(path, num_ranks=4, clock_hz=1e9)
    ns = pytest.approx
    assert shape(job) == [
        (ns(10e-9), ()),
        (ns(11e-9), ()),
        (("all_gather", 32), (1,)),
        (ns(21e-9), (2,)),
        (ns(31e-9), ()),
        (("all_reduce", 200), (4,)),
        (ns(20e-9), ()),
        (ns(30e-9), ()),
        (("all_reduce", 100), (7,)),
    ]
    assert [t.fusible for t in job.tasks if t.communicates] == [False, True, True]
    assert job.compute_s == pytest.approx(load_workload(path, clock_hz=1e9).compute_s)
    assert load_job(path, num_ranks=4).compute_s == 0


def test_a_log_groups_what_goes_at_once(tmp_path):
    """Transfers of one size between different pairs are one task with many groups."""
    log = "L2L;64;7;0;0;1\nL2L;64;7;0;2;3\nL2L;64;7;0;0;2\nAR;8;0,1,2,3\nAR;9;2\nL2L;5;7;1;3;3\n"
    job = load_job(written(tmp_path, "comms.log", log))
    assert [(t.size_bytes, job.groups[t.group].num_groups) for t in job.tasks] == [(64, 2), (64, 1), (8, 1)]
    assert (job.network_bytes, job.num_calls, job.num_ranks) == (200, 4, 4)
    assert sum(note.startswith("left out: 1") for note in job.notes) == 2


def test_a_list_of_calls_needs_the_number_of_devices():
    """And takes it from the workload where that tells it."""
    work = builtin("resnet50_ddp")
    with pytest.raises(WorkloadError, match="does not record the number of devices"):
        job_of(work)
    job = job_of(work, num_ranks=16)
    assert job.network_bytes == work.total_bytes == 102_228_128
    assert load_job("resnet50_ddp", num_ranks=16).tasks == job.tasks
    assert job.ranks_source == "the given number"


calls = st.lists(
    st.builds(
        lambda pair, size, transfer: CollectiveCall(
            "c", "send_recv" if transfer else "all_reduce", size, ranks=tuple(pair)
        ),
        st.permutations(range(6)).map(lambda p: p[:2]),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=20,
)


def made(*kinds):
    """Calls (collective, bytes, group, ranks)."""
    return tuple(
        CollectiveCall(f"call {i}", kind, size, group, ranks=ranks)
        for i, (kind, size, group, ranks) in enumerate(kinds)
    )


@pytest.mark.parametrize(
    ("recorded", "given", "said"),
    [
        ((4, "the header"), 0, ("the header", 4)),
        ((4, "the header"), 4, ("the given number", 4)),
        ((4, "the header"), 8, "w: 8 ranks are given, but the header has 4"),
        ((8, ""), 4, "w: 4 ranks are given, but the workload has 8"),
        ((0, ""), 3, "w: 3 ranks are given, but the workload has 4"),
        ((0, ""), 5, ("the given number", 5)),
        ((0, ""), 0, "w: the file does not record the number of devices; give it with --nodes"),
    ],
)
def test_the_number_of_ranks_of_a_list_of_calls(recorded, given, said):
    """As recorded or given, which must not contradict each other, nor the ranks of calls; the highest here is 3."""
    workload = Workload("w", "", made(("all_reduce", 8, "", (0, 3))), num_ranks=recorded[0], ranks_source=recorded[1])
    if isinstance(said, str):
        with pytest.raises(WorkloadError, match=f"^{said}$"):
            job_of(workload, num_ranks=given)
    else:
        job = job_of(workload, num_ranks=given)
        assert (job.ranks_source, job.num_ranks) == said


@pytest.mark.parametrize("computed", [0, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_a_list_of_calls_has_no_order(computed, missing):
    """All calls behind all computation: an upper bound, unless calls are left out; calls wait for nothing else."""
    calls = tuple(CollectiveCall("c", "all_reduce", size, measured_s=size / 2) for size in (2, 6))
    omitted = (Omission("late", 1, 8, missing),)
    job = job_of(Workload("w", "", calls, ("first",), 4, computed, omitted=omitted))
    assert job.bound == {(0, 0): "", (3, 0): "upper", (0, 1): "lower", (3, 1): "estimate"}[computed, missing]
    assert shape(job) == [
        *([(3, ())] if computed else []),
        *((("all_reduce", n), (0,) * bool(computed)) for n in (2, 6)),
    ]
    assert [task.measured_s for task in job.tasks if task.communicates] == [1, 3]
    assert job.recorded == RecordedTimes(computed, 4)
    said = "all computation precedes all communication: the format does not record when calls start"
    assert job.notes == ("first", *([said] if computed else []))


def test_names_of_groups():
    """By the trace, or as all, a part or a pair; with a number where another group has the name."""
    groups = [
        ("tp", (0, 1)),
        ("tp", (0, 1)),
        ("tp", (2, 3)),
        ("tp", (1, 2)),
        ("dp", (0, 1)),
        ("", ()),
        ("", (3, 2, 1, 0)),
    ]
    groups += [("", (0, 1, 2)), ("", (1, 2, 3))]
    calls = made(*(("all_reduce", size, *group) for size, group in enumerate(groups)), ("send_recv", 9, "", (0, 1)))
    calls += made(("all_reduce", 10, "dp", (0, 1)), ("all_reduce", 10, "dp", (2, 3)))
    job = job_of(Workload("w", "", calls), num_ranks=4)
    names = ["tp", "tp", "tp 2", "tp 3", "dp", "all", "all", "part", "part 2", "pair", "dp 2"]
    assert [task.group for task in job.tasks] == names
    assert [(*job.groups[name].ranks,) for name in names[5:]] == [(0, 1, 2, 3)] * 2 + [
        (0, 1, 2),
        (1, 2, 3),
        (0, 1),
        (0, 1),
    ]
    assert [job.groups[name].num_groups for name in names] == [1] * 10 + [2]
    assert (list(job.groups), job.notes) == (["tp", "tp 2", "tp 3", "dp", "all", "part", "part 2", "pair", "dp 2"], ())


@pytest.mark.parametrize(
    ("ranks", "matrix"), [((), ((0, 1), (2, 0))), ((0, 1), ((0, 1), (2, 0))), ((1, 0), ((0, 2), (1, 0)))]
)
def test_parts_of_an_exchange_in_the_order_of_its_group(ranks, matrix):
    """Of all ranks in theirs, whatever the order in which the call has them."""
    call = CollectiveCall("c", "all_to_all", 4, ranks=ranks, matrix_bytes=((0, 1), (2, 0)))
    (task,) = job_of(Workload("w", "", (call,)), num_ranks=2).tasks
    assert task.matrix_bytes == matrix


@pytest.mark.parametrize("receives", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_a_step_of_one_rank(receives, missing):
    """What a call that is left out waits for is waited for; receives and calls that are missing lower the bound."""
    calls = [RankCall("self", "send", 64, ranks=(1, 1)), RankCall("sum", "all_reduce", 8, stream=3)]
    calls += [RankCall("from 0", "recv" if receives else "send", 16, ranks=(0, 1))]
    tasks = [RankTask("a", 1), RankTask("self", 0, calls[:1], (0,)), RankTask("b", 2, after=(1,))]
    tasks += [RankTask("sum", 0, calls[1:2], (2,)), RankTask("from 0", 0, calls[2:], (2,))]
    times = RecordedTimes(3, 1, 1, 4)
    trace = RankTrace("job", "file", "f", calls, [RecordedStep("step 3", tasks, ["as drawn"], "upper", recorded=times)])
    trace.world_size, trace.world_source, trace.before, trace.after = 4, "the header", ["before"], ["after"]
    trace.omissions.add("late", 8, missing=missing)
    (job,) = task_graphs(trace)
    assert shape(job) == [(1, ()), (2, (0,)), (("all_reduce", 8), (1,)), (("send_recv", 16), (1,))]
    assert [(task.size_bytes, task.streams) for task in job.tasks] == [(0, ()), (0, ()), (8, (3,)), (16, ())]
    assert (job.step, job.bound, job.recorded) == ("step 3", "estimate" if receives or missing else "upper", times)
    waits = [note for note in job.notes if "1 receives start as early as the order of this rank allows" in note]
    assert len(waits) == receives
    assert {"before", "after", "as drawn", "left out: 1 late, 8 bytes in all"} <= set(job.notes)
    assert "left out: 1 send from a rank to itself, 64 bytes in all" in job.notes


def test_a_step_needs_the_number_of_devices(tmp_path):
    """Which a trace of one rank may not record."""
    with pytest.raises(
        WorkloadError, match="job: the file does not record the number of devices; give it with --nodes"
    ):
        load_job(written(tmp_path, "job.et", trace(coll(1, 8))))


@pytest.mark.parametrize(
    ("kinds", "batches"),
    [
        ([("all_reduce", 8, "", (0, 1)), ("all_gather", 8, "", (2, 3))], 2),
        ([("all_reduce", 8, "", (0, 1)), ("all_reduce", 9, "", (2, 3))], 2),
        ([("all_reduce", 8, "a", (0, 1)), ("all_reduce", 8, "b", (2, 3))], 2),
        ([("all_reduce", 8, "", (0, 1)), ("all_reduce", 8, "", (2, 3, 4))], 2),
        ([("all_reduce", 8, "", (0, 1)), ("all_reduce", 8, "", (2, 3))], 1),
        ([("all_reduce", 8, "", ()), ("all_reduce", 8, "", ())], 2),
        ([("send_recv", 8, "", (0, 1)), ("send_recv", 8, "", (1, 0))], 1),
        ([("send_recv", 8, "", (0, 1)), ("send_recv", 8, "", (2, 1))], 2),
        ([("send_recv", 8, "", (2, 3)), ("send_recv", 8, "", (-1, -1))], 2),
        ([("send_recv", 8, "", (-1, 3)), ("send_recv", 8, "", (2, -1))], 2),
        ([("send_recv", 8, "", (2, -1)), ("send_recv", 8, "", (0, 1))], 2),
    ],
)
def test_what_shares_a_batch(kinds, batches):
    """Of one collective, size, group and number of ranks, with no rank in common; a pair that is not known is alone."""
    assert len(list(disjoint_batches(made(*kinds)))) == batches


def test_pairs_that_are_not_known_are_counted():
    """Each of them, also beside others of their size."""
    calls = made(*(("send_recv", 8, "", ranks) for ranks in ((2, 3), (-1, -1), (1, -1))))
    job = job_of(Workload("w", "", calls), num_ranks=4)
    assert [(job.groups[task.group].ranks, job.groups[task.group].num_groups) for task in job.tasks] == [
        ((2, 3), 1)
    ] + [((0, 1), 1)] * 2
    assert job.notes == ("transfers without recorded ranks: 2, assumed from rank 0 to rank 1",)


def test_batches_are_bounded(monkeypatch):
    """Behind as many of one pair as may be open none joins an earlier one."""
    monkeypatch.setattr("opticcl.traces.graphs.MAX_BATCHES", 2)
    pairs = [(0, 1), (0, 1), (0, 1), (2, 3), (0, 1)]
    batches = disjoint_batches(made(*(("send_recv", 8, "", ranks) for ranks in pairs)))
    assert [[call.ranks for call in batch] for batch in batches] == [[(0, 1)], [(0, 1)], [(0, 1), (2, 3)], [(0, 1)]]


def test_a_batch_takes_as_long_as_its_longest_call():
    """Of those that go at once."""
    calls = tuple(CollectiveCall("c", "all_reduce", 8, "", took, ranks) for took, ranks in ((1, (0, 1)), (2, (2, 3))))
    assert [task.measured_s for task in job_of(Workload("w", "", calls), num_ranks=4).tasks] == [2]


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)])
def test_a_transfer_between_all_ranks_keeps_its_direction(ends):
    """Its group is that pair, where the group of a collective is all ranks, in whatever order."""
    calls = [CollectiveCall("t", "send_recv", 8, ranks=ends), CollectiveCall("a", "all_reduce", 8, ranks=ends)]
    job = job_of(Workload("w", "", tuple(calls)), num_ranks=2)
    assert [tuple(job.groups[task.group].ranks) for task in job.tasks] == [ends, (0, 1)]


def test_a_rank_that_begins_in_a_later_batch_is_free_in_the_first():
    """The third transfer goes beside the first; the second, of the same sender as the first, is alone."""
    pairs = [CollectiveCall("t", "send_recv", 8, ranks=ranks) for ranks in ((0, 1), (0, 2), (3, 2))]
    assert [[c.ranks for c in batch] for batch in disjoint_batches(pairs)] == [[(0, 1), (3, 2)], [(0, 2)]]


@examples(60)
@given(calls)
def test_what_goes_at_once_shares_no_rank(drawn):
    """Every call once, in batches of one kind; a transfer may send and receive at once."""
    batches = list(disjoint_batches(drawn))
    assert sorted(map(repr, (call for batch in batches for call in batch))) == sorted(map(repr, drawn))
    for batch in batches:
        assert len({(call.collective, call.size_bytes) for call in batch}) == 1
        for role in (0, 1):
            ends = [call.ranks[role] for call in batch]
            assert len(set(ends)) == len(ends)
        if batch[0].collective == "all_reduce":
            ranks = [rank for call in batch for rank in call.ranks]
            assert len(set(ranks)) == len(ranks)


# --- traces of the PyTorch profiler -----------------------------------------------------------------------------------


def profiled(kernels, calls):
    """A trace of kernels (start, us) and all_reduces (start, us, elements); the host issues them as they are given."""
    issued = [("gemm", *row) for row in kernels] + [("", *row) for row in calls]
    issued.sort(key=lambda row: row[1])
    events = []
    for number, (name, ts, dur, *elements) in enumerate(issued):
        if name:
            events.append(event(name, "kernel", ts, dur, correlation=number))
        else:
            more = {"External_id": number, "correlation": number}
            events.append(record("allreduce", elements[0], ts=ts, External_id=number))
            events.append(record("allreduce", elements[0], ts=ts, cat="kernel", name="ncclDevKernel", dur=dur, **more))
    return text(*events)


def test_kernels_and_calls_by_their_times(tmp_path):
    """The first all_reduce is hidden, computation stands still for the second, and the last kernel reads all."""
    content = profiled(
        [(0, 10), (10, 10), (20, 10), (50, 5), (80, 1)], [(10, 15, 100), (30, 20, 200), (55, 5, 300), (60, 5, 400)]
    )
    job = load_job(written(tmp_path, "a.json", content))
    assert shape(job) == [
        (pytest.approx(10e-6), ()),
        (("all_reduce", 400), (0,)),
        (pytest.approx(20e-6), ()),
        (("all_reduce", 800), (2,)),
        (pytest.approx(5e-6), (3,)),
        (("all_reduce", 1200), (4,)),
        (("all_reduce", 1600), (4,)),
        (pytest.approx(1e-6), (1, 5, 6)),
    ]
    assert any("computation depends on 4 of 4 calls" in note for note in job.notes)


def test_a_call_that_queued_waits_only_for_what_was_issued_before_it(tmp_path):
    """The second all_reduce was issued before the second kernel, but had to let the first one end."""
    events = [event("gemm", "kernel", ts, 10, correlation=n) for ts, n in ((0, 1), (10, 4))]
    for ts, number in ((10, 2), (25, 3)):
        events.append(record("allreduce", 100, ts=number, External_id=number))
        more = {"External_id": number, "correlation": number}
        events.append(record("allreduce", 100, ts=ts, cat="kernel", name="ncclDevKernel", dur=15, **more))
    job = load_job(written(tmp_path, "a.json", text(*events)))
    assert [task.after for task in job.tasks if task.communicates] == [(0,), (0,)]


def test_calls_without_kernels_stand_behind_all_computation(tmp_path):
    """Gloo's annotations are times of the host: how they lie among the kernels is not known."""
    content = text(
        event("gemm", "kernel", 0, 10),
        event("gloo:all_reduce", "user_annotation", 5, 3, **{"Input Dims": [[100]], "Input type": ["float"]}),
    )
    job = load_job(written(tmp_path, "a.json", content))
    assert shape(job) == [(pytest.approx(10e-6), ()), (("all_reduce", 400), (0,))]


spans = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=8)


@given(kernels=spans.filter(bool), calls=spans.filter(bool))
@examples(100)
def test_played_as_recorded_a_trace_takes_no_longer_than_it_did(tmp_path_factory, kernels, calls):
    """Whatever a task waits for had ended when it started; so without idle times nothing ends later."""

    def laid_out(rows):
        at, found = 0, []
        for gap, took in rows:
            found.append((at + gap, took))
            at += gap + took
        return found

    kernels, calls = laid_out(kernels), laid_out(calls)
    content = profiled(kernels, [(*row, 1 + i) for i, row in enumerate(calls)])
    job = load_job(written(tmp_path_factory.mktemp("times"), "a.json", content))
    assert job.network_bytes == 4 * sum(range(1, len(calls) + 1))
    assert job.compute_s == pytest.approx(sum(took for _, took in kernels) * 1e-6)
    took_s = {4 * (1 + i): took * 1e-6 for i, (_, took) in enumerate(calls)}
    played = simulate_iteration(job, lambda _, group, size: took_s[size], Runtime(fusion="none", order="job"))
    assert played.total_s <= max(at + took for at, took in kernels + calls) * 1e-6 + 1e-12


# --- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "num_bytes", "count", "compute_s"),
    [
        ("chakra/resnet50-ddp.rank0.et", 102_228_128 + 212_480 + 424, 7, 0.292828),
        ("topoopt/100vgg_16.fbuf", 1_157_409_952, 32, 0.100477),
        ("topoopt/100candle_16.fbuf", 23_274_733_580, 596, 0.113806),
        ("lumorph/ncf-8.log", 713_170_952, 1809, 0.0),
        ("astra-sim/resnet50-data-parallel.txt", 102_011_648, 54, 1.095314e-3),
        ("astra-sim/dlrm-hybrid-parallel.txt", 3_388_416, 9, 51.678e-6),
    ],
)
def test_real_files_to_the_byte(name, num_bytes, count, compute_s):
    """The bytes on the network are those of the file, the computation too."""
    path = shared_file(name)
    told = load_workload(path, clock_hz=1e9 if path.suffix == ".txt" else None)
    job = load_job(path, num_ranks=16, clock_hz=1e9)
    assert (job.network_bytes, job.num_calls) == (told.total_bytes, len(told.calls)) == (num_bytes, count)
    assert job.compute_s == pytest.approx(compute_s, rel=1e-5)
    assert job.compute_s == pytest.approx(told.compute_s)
