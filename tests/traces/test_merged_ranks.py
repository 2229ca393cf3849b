"""Several ranks as one job: ends of transfers that only one side has, what waits for what, the order of tasks, notes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import RecordedTimes
from opticcl.traces import merge
from opticcl.traces.merge import merged_graphs, merged_workload, order_ranks
from opticcl.traces.recording import GroupEnds, RankCall, RankTask, RankTrace, RecordedStep


def trace_of(rank, calls=(), tasks=None, *, step="", bound="", recorded=None, **more):
    """A trace, with a step of tasks if there are any."""
    found = RankTrace("job", "s", f"f{rank}", list(calls), rank=rank, **more)
    if tasks is not None:
        found.steps = [RecordedStep(step, tasks, bound=bound, recorded=recorded)]
        found.calls = [call for task in tasks for call in task.calls]
    return found


def call(kind, *ranks, size=8, **more):
    """A call of ranks."""
    return RankCall(kind, kind, size, ranks=ranks, **more)


def ends_of(read):
    """Bytes and ends of the transfers."""
    return sorted((c.size_bytes, c.ranks) for c in read.calls)


# --- ends -------------------------------------------------------------------------------------------------------------

PAIRS = {"a": (0, 1), "b": (0, 2), "c": (3, 2)}


def test_the_other_side_decides_between_groups():
    """Of the groups in which a transfer may be, that in which the other rank has its counterpart."""
    send = RankCall("send", "send", 8, ranks=(-1, -1), ends=GroupEnds(0, 1))  # 0 to 1, or 0 to 2
    for rank, other in ((2, 1), (1, 2)):
        traces = [trace_of(0, [send], groups=PAIRS), trace_of(rank, [call("recv", 0, rank)], groups=PAIRS)]
        send.ends, send.options, send.ranks = GroupEnds(0, 1), (), (-1, -1)
        read = merged_workload([*traces, trace_of(other)], 4)
        assert ends_of(read) == [(8, (0, rank))]
        assert not any("counterpart" in note for note in read.notes)


def test_both_sides_share_one_pair():
    """0 sends to 1 or to 2, 2 receives from 0 or from 3: the pair that both may be."""
    send = RankCall("send", "send", 8, ranks=(-1, -1), ends=GroupEnds(0, 1))
    receive = RankCall("recv", "recv", 8, ranks=(-1, -1), ends=GroupEnds(0, 1))
    read = merged_workload([trace_of(0, [send], groups=PAIRS), trace_of(2, [receive], groups=PAIRS)], 4)
    assert ends_of(read) == [(8, (0, 2))]
    sizes = [RankCall("send", "send", size, ranks=(-1, -1), ends=GroupEnds(0, 1)) for size in (8, 9)]
    receive = RankCall("recv", "recv", 9, ranks=(-1, -1), ends=GroupEnds(0, 1))
    read = merged_workload([trace_of(0, sizes, groups=PAIRS), trace_of(2, [receive], groups=PAIRS)], 4)
    assert ends_of(read) == [(8, (0, 1)), (9, (0, 2))]


def test_each_transfer_is_the_other_side_of_one():
    """Two sends of 1, each to 2 or to 3, which receive from 1 or from 4: one pair takes nothing from the other."""
    groups = {"b": (1, 3), "a": (1, 2), "c": (4, 2), "d": (4, 3)}
    sends = [RankCall("send", "send", 8, ranks=(-1, -1), ends=GroupEnds(0, 1)) for _ in range(2)]
    traces = [trace_of(1, sends, groups=groups)]
    for rank in (2, 3):
        receive = RankCall("recv", "recv", 8, ranks=(-1, -1), ends=GroupEnds(0, 1))
        traces.append(trace_of(rank, [receive], groups=groups))
    read = merged_workload(traces, 5)
    assert ends_of(read) == [(8, (1, 2)), (8, (1, 3))]
    assert not any("counterpart" in note for note in read.notes)


def test_several_of_one_size_are_taken_once():
    """Two sends that may go to either, of which one rank received one each."""
    sends = [RankCall("send", "send", 8, ranks=(-1, -1), ends=GroupEnds(0, 1)) for _ in range(3)]
    others = [trace_of(1, [call("recv", 0, 1)]), trace_of(2, [call("recv", 0, 2), call("recv", 0, 2)])]
    read = merged_workload([trace_of(0, sends, groups=PAIRS), *others], 4)
    assert ends_of(read) == [(8, (0, 1)), (8, (0, 2)), (8, (0, 2))]
    assert not any("counterpart" in note for note in read.notes)


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=8))
def test_a_side_without_the_other_end_joins_one_that_has_both(drawn):
    """By kind, bytes and its own end, each once; the others stay alone."""
    calls, due = [[], [], []], []
    for src, dst, size, known in drawn:
        if src != dst:
            calls[src].append(call("send", src, dst, size=size))
            calls[dst].append(call("recv", src if known else -1, dst, size=size))
            due.append((size, (src, dst)))
    if not due:
        return
    read = merged_workload([trace_of(rank, mine) for rank, mine in enumerate(calls)], 3)
    found = ends_of(read)
    whole = [one for one in found if -1 not in one[1]]
    # A receive of known ends takes the first send of its pair, whatever its bytes.
    mixed = {(src, dst) for src, dst, _, known in drawn if known and src != dst}
    if not mixed:
        assert found == sorted(due)
    else:
        assert len(whole) == len(due) or any("counterpart" in note for note in read.notes)


def test_the_order_is_that_of_the_lowest_rank():
    """Of two groups that two ranks call in another order; then of the next rank, of calls without the lowest."""
    names = [["p", "q"], ["q", "p"]]
    traces = [
        trace_of(rank, [RankCall(name, "all_reduce", 8, group=name) for name in mine])
        for rank, mine in enumerate(names)
    ]
    traces[1].calls.insert(0, call("broadcast", 1, 2))
    read = merged_workload([traces[1], traces[0]], 4)
    assert [c.name for c in read.calls] == ["p", "broadcast", "q"]


# --- graphs -----------------------------------------------------------------------------------------------------------


def test_calls_that_are_left_out_pass_their_dependencies_on():
    """A group of one rank between a call and computation."""
    pair, alone = call("all_reduce", 0, 1), call("all_reduce", 0)
    tasks = [RankTask("x", 0.0, (pair,)), RankTask("y", 0.0, (alone,), (0,)), RankTask("z", 2.0, (), (1,))]
    other = [RankTask("x", 0.0, (call("all_reduce", 0, 1),))]
    (job,) = merged_graphs([trace_of(0, tasks=tasks), trace_of(1, tasks=other)], 2)
    assert [(t.name, t.after, t.devices) for t in job.tasks] == [("all_reduce", (), (0, 1)), ("z", (0,), (0,))]
    assert "left out: 1 all_reduce in a group of one rank, 8 bytes in all" in job.notes
    assert job.device_ranks == (0, 1)


def test_tasks_are_in_the_order_in_which_they_start():
    """Computation of two devices by its times, of one device in its order; a call when all that it waits for has ended."""
    mine = call("all_reduce", 0, 1), call("all_reduce", 0, 1)
    first = [RankTask("a", 3.0), RankTask("b", 1.0), RankTask("c", 0.0, (mine[0],), (0,)), RankTask("d", 1.0, (), (2,))]
    second = [RankTask("e", 1.0), RankTask("f", 1.0), RankTask("g", 0.0, (mine[1],), (1,)), RankTask("h", 4.0)]
    (job,) = merged_graphs([trace_of(0, tasks=first), trace_of(1, tasks=second)], 2)
    assert [t.name for t in job.tasks] == ["a", "e", "f", "h", "all_reduce", "b", "d"]
    place = {t.name: i for i, t in enumerate(job.tasks)}
    assert {t.name: tuple(job.tasks[i].name for i in t.after) for t in job.tasks} == {
        "a": (),
        "e": (),
        "f": ("e",),
        "h": ("f",),
        "all_reduce": ("a", "f"),
        "b": ("a",),
        "d": ("all_reduce", "b"),
    }
    assert place["all_reduce"] == 4


def test_a_device_computes_one_thing_at_a_time():
    """Where the order is not recorded the first in the file of those that are ready; the next when it has ended."""
    first = [RankTask("a", 3.0, place=1), RankTask("b", 1.0, place=2), RankTask("c", 1.0, place=0, after=(0,))]
    second = [RankTask("d", 2.0), RankTask("e", 9.0), RankTask("f", 1.0)]
    traces = [trace_of(rank, tasks=tasks) for rank, tasks in enumerate((first, second))]
    traces[0].steps[0].ordered = False
    (job,) = merged_graphs(traces, 2)
    assert [t.name for t in job.tasks] == ["a", "d", "e", "c", "b", "f"]
    assert [t.after for t in job.tasks] == [(), (), (1,), (0,), (), (2,)]


def test_a_receive_alone_waits_for_what_its_rank_does_before():
    """Also where other transfers start when their sender is ready."""
    tasks = [
        [RankTask("s", 0.0, (call("send", rank, 1 - rank),)), RankTask("r", 0.0, (call("recv", 1 - rank, rank),), (0,))]
        for rank in range(2)
    ]
    tasks[0] += [RankTask("a", 1.0), RankTask("alone", 0.0, (RankCall("alone", "recv", 9, ranks=(2, 0)),), (2,))]
    (job,) = merged_graphs([trace_of(rank, tasks=mine) for rank, mine in enumerate(tasks)], 3)
    assert job.notes[0] == "files: 2, ranks 0 to 1"
    assert any(note.startswith("transfers start when their sender is ready") for note in job.notes)
    assert [job.tasks[i].name for t in job.tasks if t.name == "alone" for i in t.after] == ["a"]


def test_work_without_times_is_ordered_by_operations_and_bytes():
    """1e14 operations or 1e12 bytes take a second, for the order alone."""
    first = [RankTask("a", operations=3e14), RankTask("b", memory_bytes=1e12)]
    second = [RankTask("c", memory_bytes=2e12, operations=1e14), RankTask("d", 2.0), RankTask("e", 1.0)]
    traces = [trace_of(rank, tasks=tasks) for rank, tasks in enumerate((first, second))]
    for trace in traces:
        trace.steps[0].tasks.append(RankTask("x", 0.0, (call("all_reduce", 0, 1),)))
    (job,) = merged_graphs(traces, 2)
    assert [t.name for t in job.tasks] == ["all_reduce", "a", "c", "d", "b", "e"]
    assert [(t.operations, t.memory_bytes, t.compute_s) for t in job.tasks if t.name in "ac"] == [
        (3e14, 0, 0),
        (1e14, 2e12, 0),
    ]


@pytest.mark.parametrize(
    ("bounds", "missing", "alone", "bound"),
    [
        (("", ""), False, False, ""),
        (("upper", ""), False, False, "upper"),
        (("upper", "lower"), False, False, "estimate"),
        (("", ""), True, False, "lower"),
        (("upper", "upper"), False, True, "estimate"),
        (("lower", ""), False, True, "lower"),
    ],
)
def test_the_bound_of_several_ranks(bounds, missing, alone, bound):
    """The weakest of all; lowered by calls that are left out, and by a receive whose sender is not recorded."""
    traces = []
    for rank, one in enumerate(bounds):
        tasks = [RankTask("x", 0.0, (call("all_reduce", 0, 1),))]
        if alone and rank:
            tasks.append(RankTask("r", 0.0, (call("recv", 2, 1),)))
        traces.append(trace_of(rank, tasks=tasks, bound=one))
    traces[0].omissions.add("a call", missing=missing)
    (job,) = merged_graphs(traces, 3)
    assert job.bound == bound


@pytest.mark.parametrize(
    ("sent", "received", "bound"),
    [((0, -1), (0, 1), ""), ((0, 1), (-1, 1), ""), ((0, 2), None, ""), (None, (2, 1), "lower")],
)
def test_a_receive_whose_sender_is_not_recorded_lowers_the_bound(sent, received, bound):
    """Not one that has a sender, nor a send alone."""
    traces = []
    for rank, (word, ends) in enumerate((("send", sent), ("recv", received))):
        tasks = [RankTask("x", 0.0, (call("all_reduce", 0, 1),))]
        traces.append(trace_of(rank, tasks=[*tasks, *([RankTask("t", 0.0, (call(word, *ends),))] if ends else [])]))
    assert merged_graphs(traces, 3)[0].bound == bound


def test_recorded_times_are_those_of_the_longest_rank():
    """The longest step, of equal ones the most computation; its skew is what its calls waited for."""
    times = [RecordedTimes(5.0, 1.0, 1.0, 7.0, 5.0), RecordedTimes(2.0, 3.0, 3.0, 9.0, 2.0), None]
    traces = []
    for rank, recorded in enumerate(times):
        one = call("all_reduce", 0, 1, 2, measured_s=1.0 + rank)
        traces.append(trace_of(rank, tasks=[RankTask("x", 0.0, (one,))], recorded=recorded))
    (job,) = merged_graphs(traces, 3)
    assert (job.recorded.total_s, job.recorded.skew_s) == (9.0, 1.0)
    assert [t.measured_s for t in job.tasks] == [1.0]
    traces[1].steps[0].recorded = RecordedTimes(6.0, 3.0)
    assert merged_graphs(traces, 3)[0].recorded.total_s == 7.0
    traces[0].steps[0].recorded = RecordedTimes(5.0, 1.0)
    assert merged_graphs(traces, 3)[0].recorded.compute_s == 6.0


def test_steps_that_all_ranks_have():
    """In the order of the first; none in common, or a trace without a step, are refused."""
    traces = []
    for rank, names in enumerate((["a", "b", "c"], ["c", "b", "x"])):
        trace = trace_of(rank)
        trace.steps = [RecordedStep(name, [RankTask(name, 0.0, (call("all_reduce", 0, 1),))]) for name in names]
        traces.append(trace)
    assert [step.step for step in merged_graphs(traces, 2)] == ["b", "c"]
    traces[1].steps = traces[1].steps[2:]
    with pytest.raises(
        WorkloadError, match="have no step in common: f0 has a, b, c; f1 has x; give recordings of the same"
    ):
        merged_graphs(traces, 2)
    traces[1].steps = []
    traces[1].after.append("last words")
    with pytest.raises(WorkloadError, match="f1: no collective with a size in this trace; last words"):
        merged_graphs(traces, 2)
    traces[1].after.clear()
    with pytest.raises(WorkloadError, match="f1: no collective with a size in this trace; leave it out"):
        merged_graphs(traces, 2)
    traces[1].omissions.add("of a kind")
    with pytest.raises(WorkloadError, match="f1: no collective with a size in this trace; left out: 1 of a kind"):
        merged_graphs(traces, 2)


@pytest.mark.parametrize(("number", "more"), [(3, ""), (4, "; ...")])
def test_of_many_traces_without_a_common_step_three_are_named(number, more):
    """With their steps."""
    traces = [trace_of(rank, tasks=[RankTask("a", 1.0)], step=f"s{rank}") for rank in range(number)]
    with pytest.raises(WorkloadError) as refused:
        merged_graphs(traces, number)
    assert f"in common: f0 has s0; f1 has s1; f2 has s2{more}; give" in str(refused.value)


def test_a_job_needs_the_number_of_its_ranks():
    """Recorded or given; without steps its calls are the job."""
    traces = [trace_of(rank, tasks=[RankTask("x", 0.0, (RankCall("x", "all_reduce", 8),))]) for rank in (0, 2)]
    traces[1].name = "other"
    with pytest.raises(WorkloadError, match="job: the file does not record the number of devices"):
        merged_graphs(traces)
    traces[1].world_size = 4
    assert [job.num_ranks for job in merged_graphs(traces)] == [4]
    for trace in traces:
        trace.steps = []
    (job,) = merged_graphs(traces)
    assert [(task.name, task.after) for task in job.tasks] == [("x", ())]


@pytest.mark.parametrize(
    ("names", "name"), [(("job.0", "job.1"), "job"), (("job_a", "job_b"), "job"), (("left", "right"), "left")]
)
def test_the_name_and_the_notes_of_a_job(names, name):
    """What the names have in common, else the first; notes of a step and of all files stand once, as in the first."""
    traces = [trace_of(rank, tasks=[RankTask("x", 0.0, (call("all_reduce", 0, 1, measured_s=2),))]) for rank in (0, 1)]
    for trace, own in zip(traces, names, strict=True):
        trace.name, trace.source = own, f"trace {own}"
        trace.steps[0].notes = ["of the step"]
        trace.after = ["x", "y"] if own == names[0] else ["y", "x"]
    (job,) = merged_graphs(traces, 2)
    assert (job.name, job.source) == (name, f"trace {names[0]} and 1 other file")
    assert job.notes[1:] == ("measured: 2 s in all for 1 of 1 calls", "2 ranks (from --nodes)", "x", "y", "of the step")


def test_more_tasks_than_a_job_may_have(monkeypatch):
    """Are refused; as many are not."""
    traces = [trace_of(rank, tasks=[RankTask("a", 1.0), RankTask("b", 1.0)]) for rank in (0, 1)]
    monkeypatch.setattr(merge, "MAX_TASKS", 4)
    assert len(merged_graphs(traces, 2)[0].tasks) == 4
    monkeypatch.setattr(merge, "MAX_TASKS", 3)
    with pytest.raises(WorkloadError, match="job: 4 tasks of 2 ranks are more than 3"):
        merged_graphs(traces, 2)


def test_notes_of_all_ranks_stand_once():
    """What all say; the others are counted. Files, ranks without a trace, and what is left out."""
    traces = [
        trace_of(rank, [RankCall("x", "all_reduce", 8)], after=["same", f"only {rank}", f"and {rank}"])
        for rank in (0, 2)
    ]
    read = merged_workload(traces, 11)
    assert read.notes == (
        "files: 2, ranks 0 to 2",
        "without a trace: 9 of 11 ranks (1, 3, 4, 5, 6, 7, 8, 9, ...); they are taken to keep up",
        "11 ranks (from --nodes)",
        "groups assumed: 1 of 1 calls without a group: taken to be all ranks",
        "same",
        "notes on single files: 4; read a file alone to see them",
    )
    assert (read.name, read.source) == ("job", "s and 1 other file")
    eleven = merged_workload([trace_of(rank, [RankCall("x", "all_reduce", 8)]) for rank in (0, 1, 2)], 11)
    assert "without a trace: 8 of 11 ranks (3, 4, 5, 6, 7, 8, 9, 10); they are taken to keep up" in eleven.notes
    assert not any("single files" in note for note in eleven.notes)
    whole = merged_workload([trace_of(rank, [RankCall("x", "all_reduce", 8)]) for rank in (0, 1)])
    assert whole.notes[0] == "files: 2, ranks 0 to 1"
    assert not any(note.startswith("without a trace") for note in whole.notes)


def test_ranks_in_order():
    """Each once, and each known."""
    assert [one.rank for one in order_ranks([trace_of(2), trace_of(0)])] == [0, 2]
    with pytest.raises(WorkloadError, match="f0 and f0 are both of rank 0"):
        order_ranks([trace_of(0), trace_of(0)])
    with pytest.raises(WorkloadError, match="f-1: the rank of this trace is not recorded"):
        order_ranks([trace_of(0), trace_of(-1)])
