"""Messages of several streams share the rate of the nodes that they have in common."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import BoundError, ParameterError, WorkloadError
from opticcl.fabrics import fabric_at_scale
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.plans.search import Searches
from opticcl.traces import load_job
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import COMPUTE, MessageTimes, Runtime, replay, simulate_iteration
from opticcl.training.partition import partition
from opticcl.training.train import train

SHARES = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "all_to_all": 1.0,
}  # x (n - 1) / n of the message
SYSTEMS = ("ideal", "oddl", "terarack", "ramp", "fat_tree", "torus", "sipac", "superpod")
PLANNER = Searches()


class Affine(MessageTimes):
    """Messages that take a latency, and their bytes over a rate of one byte a second."""

    def __init__(self, latency_s=0.0, faster=1.0):
        self.latency_s, self.faster = latency_s, faster

    def __call__(self, collective, group, size_bytes):
        """The latency, then the data."""
        return self.latency_s + self.moving_s(collective, group, size_bytes)

    def moving_s(self, collective, group, size_bytes):
        """The bytes, perhaps faster than the rate."""
        return self.least_s(collective, group, size_bytes) / self.faster

    def least_s(self, collective, group, size_bytes):
        """The bytes at the rate."""
        return float(moved(collective, len(group.ranks), size_bytes))


def moved(collective, ranks, size):
    """Bytes that a rank sends or receives at least, by hand."""
    return size if collective == "send_recv" else SHARES[collective] * (ranks - 1) / ranks * size


def ways(job, task):
    """Which nodes a message is sent from and received on: (rank, "out" or "in"); the only device of a job is in all."""
    group = job.groups[task.group]
    if task.collective == "send_recv":
        return {(group.ranks[0], "out"), (group.ranks[1], "in")}
    ranks = {
        *group.ranks,
        *((job.device_ranks[device] for device in task.devices) if job.device_ranks else ("device",)),
    }
    return {(rank, way) for rank in ranks for way in ("out", "in")}


def bytes_of_nodes(job):
    """Bytes of each node and direction."""
    found = defaultdict(float)
    for task in job.tasks:
        if task.communicates:
            for way in ways(job, task):
                found[way] += moved(task.collective, len(job.groups[task.group].ranks), task.size_bytes)
    return found


@st.composite
def task_graphs(draw, most_devices=4):
    """Jobs of one or several devices, some ranks without tasks, in groups that overlap."""
    count, ranks = draw(st.integers(1, most_devices)), 6
    owners = tuple(range(count)) if count > 1 else ()
    groups: dict[str, ProcessGroup] = {}
    tasks: list[Task] = []
    for i in range(draw(st.integers(1, 12))):
        after = tuple(j for j in range(i) if draw(st.integers(0, 4)) == 0)
        if draw(st.integers(0, 3)) == 0:
            device = draw(st.integers(0, count - 1))
            tasks.append(Task(f"t{i}", draw(st.integers(0, 9)), after=after, devices=(device,)))
            continue
        pair = draw(st.booleans())
        first = draw(st.integers(0, count - 1)) if count > 1 else 0
        rest = [rank for rank in range(ranks) if rank != first]
        others = draw(st.lists(st.sampled_from(rest), min_size=1, max_size=1 if pair else 4, unique=True))
        members = [first, *others] if draw(st.booleans()) else [*others, first]
        name = "-".join(map(str, members))
        groups[name] = ProcessGroup(name, tuple(members))
        devices = tuple(sorted(rank for rank in members if rank < count)) if count > 1 else (0,)
        collective = "send_recv" if pair else draw(st.sampled_from(sorted(SHARES)))
        tasks.append(Task(f"t{i}", 0.0, collective, draw(st.integers(0, 40)), name, after, devices=devices))
    return TaskGraph("job", "drawn", ranks, tuple(tasks), groups, device_ranks=owners)


@examples(200)
@given(
    job=task_graphs(),
    streams=st.integers(1, 8),
    order=st.sampled_from(["transfers_first", "ready"]),
    latency=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_no_node_moves_more_than_its_rate(job, streams, order, latency):
    """At any time, by the durations of the messages alone; and no message is faster than by itself."""
    times = Affine(latency)
    iteration = simulate_iteration(job, times, Runtime(fusion="none", order=order, streams=streams))
    assert iteration.total_s >= max(bytes_of_nodes(job).values(), default=0.0) * (1 - 1e-9)
    spans = [span for span in iteration.spans if span.queue != COMPUTE]
    users = defaultdict(list)
    for span in spans:
        task = job.tasks[span.tasks[0]]
        alone = times(task.collective, job.groups[task.group], task.size_bytes)
        assert span.end_s - span.start_s >= alone - 1e-9
        for way in ways(job, task):
            users[way].append((span.start_s + latency, span.end_s, alone - latency))
    for of_node in users.values():  # what starts and ends within an interval moves in it
        for begin in {start for start, *_ in of_node}:
            for end in {end for _, end, _ in of_node}:
                inside = sum(took for start, until, took in of_node if start >= begin and until <= end)
                assert inside <= max(0.0, end - begin) + 1e-9
    path = [iteration.spans[row] for row in iteration.critical_path()]
    assert all(a.end_s == b.start_s for a, b in pairwise(path))


@examples(60)
@given(job=task_graphs(most_devices=1), order=st.sampled_from(["transfers_first", "ready", "job"]))
def test_one_stream_is_one_message_at_a_time(job, order):
    """Each as fast as alone, so that parts of a time make no difference."""
    times, runtime = Affine(0.3), Runtime(fusion="none", order=order, streams=1)
    assert simulate_iteration(job, times, runtime) == simulate_iteration(job, lambda *message: times(*message), runtime)


def messages(*rows, groups=None):
    """A job of messages that are ready at once: collective, bytes and group of each."""
    tasks = [Task(f"m{i}", 0.0, *row) for i, row in enumerate(rows)]
    known = groups or {"all": ProcessGroup("all", (0, 1))}
    return TaskGraph("job", "", 4, tuple(tasks), known)


def ends(job, times, streams=2):
    """(start, end) of every message, in order of start."""
    found = simulate_iteration(job, times, Runtime(fusion="none", order="ready", streams=streams))
    return [(span.start_s, span.end_s) for span in found.spans if span.queue != COMPUTE]


def test_two_messages_take_turns_by_the_byte():
    """6 s alone from 0 on, 2 s alone from 2 on: the second ends at 6 after four seconds at half speed, the first at 8."""
    tasks = (
        Task("long", 0.0, "all_reduce", 6, "all"),
        Task("compute", 2.0),
        Task("short", 0.0, "all_reduce", 2, "all", (1,)),
    )
    job = TaskGraph("job", "", 2, tasks, {"all": ProcessGroup("all", (0, 1))})
    assert ends(job, Affine()) == [(0, 8), (2, 6)]
    assert ends(job, Affine(), 1) == [(0, 6), (6, 8)]


def test_latency_is_not_shared():
    """Two messages of 1 s latency and 4 s of data: 1 + 8 s together, 10 s in turn; without parts all of it is shared."""
    job = messages(("all_reduce", 4, "all"), ("all_reduce", 4, "all"))
    assert ends(job, Affine(1.0)) == [(0, 9), (0, 9)]
    assert ends(job, Affine(1.0), 1) == [(0, 5), (5, 10)]
    assert ends(job, lambda *message: Affine(1.0)(*message)) == [(0, 10), (0, 10)]
    # The second moves its data while the first waits.
    later = messages(("all_reduce", 4, "all"), ("all_gather", 4, "all"))
    assert ends(later, Affine(1.0)) == [(0, 7), (0, 5)]


def test_negotiation_is_not_shared():
    """Of gradients, as latency."""
    gradients = [Task(f"g{i}", 0.0, "all_reduce", 4, "all", (), "backward", True) for i in range(2)]
    job = TaskGraph("job", "", 2, tuple(gradients), {"all": ProcessGroup("all", (0, 1))})
    runtime = Runtime(fusion="none", streams=2, latency_s=1.0)
    assert simulate_iteration(job, Affine(), runtime).total_s == 9


PAIRS = {f"{a}{b}": ProcessGroup(f"{a}{b}", (a, b)) for a in range(4) for b in range(4) if a != b}


@pytest.mark.parametrize(
    ("first", "second", "until"),
    [("01", "10", 4), ("01", "20", 4), ("01", "02", 8), ("10", "20", 8), ("12", "12", 8)],
)
def test_a_node_sends_while_it_receives(first, second, until):
    """Of rank 0's transfers only those of one direction share its rate."""
    job = messages(("send_recv", 4, first), ("send_recv", 4, second), groups=PAIRS)
    assert ends(job, Affine()) == [(0, until), (0, until)]
    iteration = simulate_iteration(job, Affine(), Runtime(fusion="none", streams=2))
    assert (iteration.communication_s, iteration.messages_s) == (until, 2 * until)
    assert iteration.duplex_s == (4 if until == 4 else 0)


def test_transfers_of_unknown_ends_share():
    """Whichever way they go; so do those of several pairs at once."""
    for about in ((1, "assumed"), (2, "")):
        groups = {"a": ProcessGroup("a", (0, 1), *about), "b": ProcessGroup("b", (1, 0), *about), "01": PAIRS["01"]}
        job = messages(("send_recv", 4, "a"), ("send_recv", 4, "b"), ("send_recv", 0, "01"), groups=groups)
        assert ends(job, Affine())[:2] == [(0, 8), (0, 8)]


def test_the_slowest_node_of_a_message_counts():
    """Devices 0 and 1 in one message, 1 and 2 in another, 2 and 3 in a third: the one in the middle shares with both."""
    groups = {name: ProcessGroup(name, tuple(map(int, name))) for name in ("01", "12", "23", "13")}
    tasks = [
        Task(name, 0.0, "all_reduce", size, name, devices=tuple(map(int, name)))
        for name, size in (("01", 4), ("12", 4), ("23", 12))
    ]
    job = TaskGraph("job", "", 4, tuple(tasks), groups, device_ranks=(0, 1, 2, 3))
    assert ends(job, Affine()) == [(0, 8), (0, 8), (0, 16)]
    assert ends(job, Affine(), 1) == [(0, 4), (0, 12), (12, 16)]
    # Three on device 1: a third each.
    tasks = [Task(name, 0.0, "all_reduce", 4, name, devices=tuple(map(int, name))) for name in ("01", "12", "13", "23")]
    job = TaskGraph("job", "", 4, tuple(tasks), groups, device_ranks=(0, 1, 2, 3))
    assert ends(job, Affine(), 3)[:3] == [(0, 12), (0, 12), (0, 12)]


def test_a_rank_without_a_trace_has_a_rate_too():
    """Rank 3 receives from devices 0 and 1 at once; what it sends is another direction."""
    groups = {f"{a}{b}": ProcessGroup(f"{a}{b}", (a, b)) for a, b in ((0, 3), (1, 3), (3, 1))}
    for second, until in (((1, 3), 8), ((3, 1), 4)):
        tasks = [
            Task("m", 0.0, "send_recv", 4, f"{a}{b}", devices=(device,))
            for device, (a, b) in enumerate(((0, 3), second))
        ]
        job = TaskGraph("job", "", 4, tuple(tasks), groups, device_ranks=(0, 1))
        assert ends(job, Affine(), 1) == [(0, until), (0, until)]


def test_a_rank_that_recorded_no_call_has_a_rate_too():
    """Rank 2 is in a group of devices 0 and 1 whose call it did not record, and in a call of its own."""
    groups = {"a": ProcessGroup("a", (0, 1, 2)), "b": ProcessGroup("b", (2, 3))}
    tasks = [Task("a", 0.0, "all_gather", 6, "a", devices=(0, 1)), Task("b", 0.0, "all_gather", 8, "b", devices=(2,))]
    job = TaskGraph("job", "", 4, tuple(tasks), groups, device_ranks=(0, 1, 2))
    assert ends(job, Affine(), 1) == [(0, 8), (0, 8)]


def test_an_iteration_below_the_rate_is_refused():
    """Where the parts of the times of messages are wrong; what times may leave out, the iteration may."""
    job = messages(("all_reduce", 4, "all"), ("all_reduce", 4, "all"))
    with pytest.raises(BoundError, match=r"an iteration of job: 4 s is below the lower bound of 8 s"):
        simulate_iteration(job, Affine(faster=2.0), Runtime(fusion="none", streams=2))
    with pytest.raises(BoundError):
        simulate_iteration(job, Affine(faster=2.0), Runtime(fusion="none"))
    for pairs in (("01", "02"), ("10", "20")):
        transfers = messages(*(("send_recv", 4, pair) for pair in pairs), groups=PAIRS)
        with pytest.raises(BoundError, match=r"4 s is below the lower bound of 8 s"):
            simulate_iteration(transfers, Affine(faster=2.0), Runtime(fusion="none", streams=2))
    tolerant = Affine(faster=1.1)
    tolerant.tolerance = 0.1
    assert simulate_iteration(job, tolerant, Runtime(fusion="none", streams=2)).total_s == pytest.approx(8 / 1.1)


# --- on fabrics -------------------------------------------------------------------------------------------------------

MODELS = {
    "alexnet": {},
    "dlrm": {},
    "transformer:layers=2,hidden=64,heads=4,sequence=32,vocabulary=128": {"tensor": 2},
    "transformer:layers=4,hidden=64,heads=4,sequence=32,vocabulary=128": {"tensor": 2, "pipeline": 2, "zero": 3},
    "transformer:layers=4,hidden=64,heads=8,sequence=32,vocabulary=96": {"pipeline": 2, "schedule": "zero_bubble"},
}


@pytest.fixture(scope="module")
def jobs():
    """Models divided among 8 devices, with computation that is quick beside the messages."""
    return [partition(model, 8, local_batch=4, efficiency=1.0, **divided) for model, divided in MODELS.items()]


@examples(30)
@given(
    number=st.integers(0, len(MODELS) - 1),
    system=st.sampled_from(SYSTEMS),
    streams=st.integers(1, 8),
    groups=st.sampled_from(["scaled", "machine"]),
    fusion=st.sampled_from(["none", "greedy", "static"]),
    order=st.sampled_from(["transfers_first", "ready", "job"]),
)
def test_models_never_beat_the_rate(jobs, number, system, streams, groups, fusion, order):
    """For 1 to 8 streams: bytes over rate of any node, of the messages themselves and of the row that says so."""
    machine = fabric_at_scale(system, 8, 100e9)
    runtime = Runtime(fusion=fusion, order=order, streams=streams, threshold_bytes=100_000)
    (row,) = train(jobs[number], machine, groups=groups, runtime=runtime, planner=PLANNER, compute_scale=1e6).rows
    due = max(bytes_of_nodes(jobs[number]).values()) * 8 / 100e9
    assert row.iteration.total_s >= due * (1 - 1e-9)
    assert 0 < row.bandwidth_utilisation <= 1 + 1e-9
    assert row.iteration.communication_s <= row.iteration.total_s * (1 + 1e-9)


@pytest.mark.parametrize("engine", ["flow", "flow:tolerance=0.05", "packet"])
@pytest.mark.parametrize("size", [1000, 10**7])
def test_other_engines_never_beat_the_rate(engine, size):
    """Also where they hide a part of the transfers behind latency."""
    job = messages(*(("all_reduce", size, "all"),) * 3, groups={"all": ProcessGroup("all", range(16))})
    times = CommunicationTimes(fabric_at_scale("torus", 16, 100e9), Searches(engine=engine))
    least_s, took_s = 2 * 15 / 16 * size * 8 / 100e9, times("all_reduce", ProcessGroup("all", range(16)), size)
    assert times.tolerance == (0.05 if "tolerance" in engine else 0)
    assert least_s * (1 - 1e-9) <= times.moving_s("all_reduce", ProcessGroup("all", range(16)), size) <= took_s
    iteration = simulate_iteration(job, times, Runtime(fusion="none", streams=3))
    assert iteration.total_s >= 3 * least_s * (1 - times.tolerance - 1e-9)
    assert iteration.total_s >= took_s


# --- recordings -------------------------------------------------------------------------------------------------------


def recorded(path, calls, ranks=4):
    """A profiler's trace of all_gathers: (start [us], duration [us], stream, bytes) of each."""
    events = []
    group = {"Process Group Name": "0", "Group size": ranks, "Process Group Ranks": str(list(range(ranks)))}
    for i, (start, took, stream, size) in enumerate(calls):
        args = {"Collective name": "_allgather_base", "dtype": "Byte", "In msg nelems": size // ranks}
        args |= {"Out msg nelems": size, **group}
        issue = {"ph": "X", "tid": 1, "ts": 10 * i + 1, "dur": 8}
        launch = {"ph": "X", "tid": 1, "ts": 10 * i + 2, "dur": 1, "args": {"correlation": i + 1}}
        events.append({**issue, "cat": "cpu_op", "name": "record_param_comms", "args": args})
        events.append({**launch, "cat": "cuda_runtime", "name": "cudaLaunchKernel"})
        kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather", "ts": start, "dur": took}
        events.append({**kernel, "args": {"stream": stream, "correlation": i + 1}})
    info = {"rank": 0, "world_size": ranks}
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    return load_job(path)


CALLS = [(1_000, 6_000, 20, 10**8), (1_000, 6_000, 21, 10**8), (7_000, 3_000, 20, 5 * 10**7)]


def test_a_replay_keeps_the_recorded_streams(tmp_path):
    """Two at once for 6 ms, then 3 ms more on the first; in turn 15 ms; with streams that are given, these."""
    job = recorded(tmp_path / "a.json", CALLS)
    assert [task.streams for task in job.tasks if task.communicates] == [(1,), (2,), (1,)]
    assert replay(job).total_s == pytest.approx(9e-3)
    assert replay(job, 1).total_s == pytest.approx(15e-3)
    assert replay(job, 2).total_s == pytest.approx(9e-3)
    assert replay(job, 3).total_s == pytest.approx(6e-3)
    assert [span.queue for span in replay(job).spans] == [1, 2, 1]


def test_a_simulation_keeps_the_recorded_streams(tmp_path, answer):
    """And the rate of the nodes, unless --streams says otherwise; all of it is in the answer."""
    recorded(tmp_path / "a.json", CALLS)
    due_s = 0.75 * 2.5e8 * 8 / 100e9
    for options, streams, again_s in (([], 2, 9e-3), (["--streams", "1"], 1, 15e-3), (["--streams", "8"], 8, 6e-3)):
        found, code = answer("train", "-w", tmp_path / "a.json", "-f", "ideal:rate=100Gb/s", "--as-built", *options)
        assert (code, found["job"]["streams"]) == (0, streams)
        assert due_s <= found["rows"][0]["iteration_s"] <= due_s + 20e-6
        assert found["recorded"]["replay"]["iteration_s"] == pytest.approx(again_s)


def test_text_names_the_streams(tmp_path, opticcl):
    """Those of the recording and those that were given; a job of one stream has no such words."""
    recorded(tmp_path / "a.json", CALLS)
    recorded(tmp_path / "b.json", CALLS[:1])
    asked = ["train", "-f", "ideal:rate=100Gb/s", "-w"]
    assert "2 streams as recorded share the rate of a node" in " ".join(
        opticcl(*asked, tmp_path / "a.json").stdout.split()
    )
    assert "8 streams share the rate of a node" in " ".join(
        opticcl(*asked, tmp_path / "a.json", "--streams", "8").stdout.split()
    )
    assert "streams" not in opticcl(*asked, tmp_path / "b.json").stdout


def test_ranks_keep_streams_of_their_own(tmp_path):
    """One rank numbers its streams otherwise; a call is on the queue of each."""
    for rank, streams in enumerate(((20, 21), (31, 30))):
        recorded(tmp_path / f"rank{rank}.json", [(1_000, 6_000, streams[0], 400), (1_000, 6_000, streams[1], 800)], 2)
        text = json.loads((tmp_path / f"rank{rank}.json").read_text())
        text["distributedInfo"]["rank"] = rank
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(text))
    job = load_job([tmp_path / "rank0.json", tmp_path / "rank1.json"])
    assert [task.streams for task in job.tasks if task.communicates] == [(1, 1), (2, 2)]
    assert replay(job).total_s == pytest.approx(6e-3)


def test_many_calls_of_one_stream_beside_another_take_little_time():
    """All are ready at once and wait for a queue that is busy."""
    import time

    tasks = [Task("m", 0.0, "all_gather", 4, "all", streams=(1 + (i == 7),)) for i in range(20_000)]
    job = TaskGraph("job", "", 2, tuple(tasks), {"all": ProcessGroup("all", (0, 1))})
    started = time.process_time()
    assert simulate_iteration(job, Affine(1.0), Runtime(fusion="none")).num_messages == 20_000
    assert time.process_time() - started < 6


def test_streams_that_are_no_numbers_of_queues_are_refused():
    """One for each device, and a positive number of them in all."""
    for streams in ((1, 2), (-1,)):
        with pytest.raises(WorkloadError, match="streams"):
            TaskGraph("j", "", 2, (Task("m", 0.0, "all_gather", 4, "all", streams=streams),), {"all": PAIRS["01"]})
    with pytest.raises(ParameterError, match="streams=0"):
        Runtime(streams=0)


def test_without_overlap_there_is_one_queue():
    """However many streams are given: the device does one thing at a time."""
    job = messages(("all_reduce", 4, "all"), ("all_reduce", 4, "all"))
    iteration = simulate_iteration(job, Affine(1.0), Runtime(fusion="none", overlap=False, streams=2))
    assert iteration.total_s == 10
    (row,) = train(job, "ideal:nodes=4", runtime=Runtime(overlap=False, streams=2), together=True).rows
    assert (row.together is not None, row.remarks) == (True, ())
