"""Which events of a profiler's file are of one rank, on small examples."""

import json

import pytest
from tests.traces.test_kineto_calls import batch, graph, send, swap
from tests.traces.test_kineto_forms import event, kernel, launch, record, write

from opticcl.errors import WorkloadError
from opticcl.traces import load_steps, load_workload
from opticcl.traces.loading import load_traces


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("parts") / "a.json"


PAIR = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]"}


def call(ts, **more):
    """A record of a collective of two ranks."""
    return record("allreduce", 8, ts=ts, dur=5, group=PAIR, **more)


def nccl(number, ts, device, name="ncclDevKernel_AllReduce(x)", **more):
    """A kernel of a device, 5 us long."""
    return kernel(name, ts, correlation=number, device=device, **more)


def loaded(path, events, info, **options):
    """The calls of a file."""
    path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    return load_workload(path, **options)


def measured(path):
    """What each rank measured of its calls."""
    return [call.measured_s for trace in load_traces(path) for call in trace.calls]


def said(read, *words):
    """Notes with any of these words."""
    return [note for note in read.notes if any(word in note for word in words)]


# one thread launches on both devices, at the end of a record on the first; the launches are not in order
DEVICES = [
    *(launch(1, 12), launch(0, 5), launch(7, 40)),
    *(call(0), call(10), nccl(0, 20, 0), nccl(1, 20, 1)),
]


def test_one_thread_that_launches_on_two_devices(path):
    """A record is of the device of the first launch within it; those without one, or without a size, are of none."""
    read = loaded(path, DEVICES, {"world_size": 2})
    assert [call.measured_s for call in read.calls] == [pytest.approx(5e-6)]
    assert said(read, "left out", "counterpart") == []
    assert said(read, "are not recorded") == [
        "ranks of devices are not recorded, taken in the order of their numbers: 2"
    ]
    assert measured(path) == [pytest.approx(5e-6)] * 2
    more = [call(30), launch(None, 31), record("allreduce", "x", ts=37), launch(2, 50)]
    more += [nccl(2, 60, 0, "gemm"), nccl(-1, 60, 1, "gemm")]
    read = loaded(path, [*DEVICES, *more], {"world_size": 2})
    assert said(read, "launches on") == [
        "left out: 1 allreduce of a thread that launches on no device, or on several, 8 bytes in all"
    ]


def test_a_kernel_on_an_unknown_device(path):
    """Is computation of none of them."""
    alone = nccl(7, 60, 0, "gemm")
    del alone["args"]["device"]
    loaded(path, [*DEVICES, alone], {"world_size": 2})
    for trace in load_traces(path):
        assert (trace.compute_s, trace.after.count("kernels without a device, left out: 1")) == (0, 1)


def test_devices_in_the_order_of_the_ranks_that_their_records_say(path):
    """Device 0 is rank 1, which computes longer."""
    events = [{**one, "args": {**one["args"], "Rank": 1 - one["ts"] // 10}} for one in DEVICES]
    read = loaded(path, [*events, launch(8, 50), kernel("gemm", 60, 7, correlation=8, device=0)], {"world_size": 2})
    assert said(read, "are not recorded") == []
    (step,) = load_steps(path)
    assert [task.devices for task in step.tasks if not task.communicates] == [(1,)]


@pytest.mark.parametrize(
    ("info", "fits"),
    [
        ({}, True),
        ({"world_size": 2}, True),
        ({"world_size": 4}, False),
        ({"world_size": 4, "pg_config": [{"pg_name": "x", "ranks": [0, 1]}]}, False),
        ({"pg_config": [{"pg_name": "x", "ranks": [0, 1]}]}, True),
        ({"pg_config": [{"pg_name": "x", "ranks": [0, 1]}, {"pg_name": "y", "ranks": [0, 1, 2]}]}, False),
    ],
)
@pytest.mark.parametrize("pids", [None, (3, 4), ("a", "b")])
def test_devices_and_processes_that_are_all_ranks(path, info, fits, pids):
    """Of the job, or of its largest group, if their ids are numbers."""
    events = DEVICES
    if pids:
        first, second = ({"pid": pid} for pid in pids)
        events = [{**one, **(second if one["ts"] in (10, 12) else first)} for one in DEVICES if one["cat"] != "kernel"]
        events += [one for one in DEVICES if one["cat"] == "kernel"]
    if fits and pids != ("a", "b"):
        assert len(loaded(path, events, info).calls) == 1
    else:
        with pytest.raises(WorkloadError, match="whose ranks are not recorded; give a file for each"):
            loaded(path, events, info)


@pytest.mark.parametrize("known", [True, False])
def test_devices_of_processes_by_the_kernels_of_their_calls(path, known):
    """The process with the higher id launched on the first device, which may be known by its place alone."""
    events = []
    for number, pid in enumerate((9, 5)):
        events += [{**one, "pid": pid} for one in (call(number), launch(number, number + 1))]
        events.append({**nccl(number, 20, number), "pid": 70 + number})
        if not known:
            del events[-1]["args"]["device"]
    assert len(loaded(path, events, {"world_size": 2}).calls) == 1
    assert measured(path) == [pytest.approx(5e-6)] * 2


def test_devices_on_which_kernels_of_a_list_run(path):
    """Are ranks as those with records are."""
    listed = path.parent / "sizes.toml"
    listed.write_text('[[kernels]]\nname = "mscclpp"\ncollective = "all_reduce"\nsize = 64\n')
    events = [nccl(-1, 20, device, "mscclpp::x") for device in (0, 1)]
    read = loaded(path, events, {"world_size": 2}, kernel_sizes=listed)
    assert [call.size_bytes for call in read.calls] == [64]


def test_records_without_a_process(path):
    """Are of the only rank."""
    without = {key: value for key, value in call(10).items() if key != "pid"}
    assert len(loaded(path, [call(0), without], {"world_size": 2}).calls) == 2


def test_a_kernel_that_was_launched_before_the_recording_began(path):
    """Has a number below those of the launches on its own device."""
    events = [launch(2, 5), launch(4, 12), call(0), call(10), nccl(2, 20, 0), nccl(4, 20, 1), nccl(3, 30, 1)]
    path.write_text(json.dumps({"distributedInfo": {"world_size": 2}, "traceEvents": events}))
    first, second = load_traces(path)
    assert not [note for note in first.after if note.startswith("left out")]
    assert any("5 us, launched before the recording began" in note for note in second.after)


RANK = [
    *(event(f"ProfilerStep#{n}", "user_annotation", ts=100 * n, dur=100) for n in range(2)),
    *(send(10, 10), send(20, 12), batch(15), launch(1, 16), swap(1, 20)),
    *(record("broadcast", 8, ts=40), record("allreduce", "x", ts=50)),
    *(launch(5, 60), kernel("gemm", 61, correlation=5), event("cudaStreamWaitEvent", "cuda_runtime", 70)),
    *(launch(6, 80), kernel("gemm", 85, correlation=6)),
    *(*graph(9, 120, "Broadcast"), launch(7, 150), kernel("gemm", 160, correlation=7)),
]


@pytest.mark.parametrize("kind", sorted({one["name"] for one in RANK if one["cat"] != "kernel"}))
def test_events_of_the_host_without_a_process(path, kind):
    """Are of the process that has calls: threads have their numbers in both."""
    found = []
    for events in (RANK, [{**one, "pid": None} if one["name"] == kind else one for one in RANK]):
        found.append((load_steps(write(path, events)), load_workload(path)))
    assert found[0] == found[1]
    assert [step.num_calls for step in found[0][0]] == [2, 1]


def test_waits_alone(path):
    """Are of the only rank, whatever device or process they name."""
    wait = {"stream": 7, "wait_on_stream": 20, "correlation": 3, "wait_on_cuda_event_record_corr_id": 2}
    events = [call(0), launch(1, 2), nccl(1, 20, 0, stream=20), launch(4, 9), nccl(4, 30, 0, "gemm")]
    events.append(event("Stream Wait Event", "cuda_sync", 25, pid=77, **wait))
    (step,) = load_steps(write(path, events))
    assert "order: kernels depend on collectives by 1 recorded stream waits" in step.notes
