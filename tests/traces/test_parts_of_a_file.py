"""Files of several ranks, devices or processes whose ranks are not all recorded; files beside a trace that are none."""

import json
import random
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.drawn_job import COMPUTE, Call, Job, drawn_job, information, kineto, record

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

PAIR = {"0": (0, 1)}


def job(*kinds, world=2):
    """Calls of all ranks, with a kernel that computes."""
    ranks = tuple(range(world))
    calls = [Call(kind, "0", ranks, "Byte", 8 * world, number=n) for n, kind in enumerate(kinds, 1)]
    return Job(world, {"0": ranks}, [40, *calls])


def merged(made, hosts, devices, change=lambda event: None):
    """One file of all ranks."""
    events = []
    for rank, (host, device) in enumerate(zip(hosts, devices, strict=True)):
        events += record(made, rank, host=host, device=device).events
    for event in events:
        change(event)
    return events


def without_ranks(event):
    """Take the number within the group from a record."""
    event["args"].pop("Rank", None)


@pytest.mark.parametrize(("hosts", "what"), [((9, 9), "devices"), ((9, 10), "processes")])
def test_ranks_that_no_record_has_are_those_of_the_order(tmp_path, hosts, what):
    """If there are as many devices or processes as ranks; a note says so."""
    made = job("all_reduce")
    (tmp_path / "a.json").write_text(kineto(merged(made, hosts, (0, 1), without_ranks), information(made, -1)))
    read = load_workload(tmp_path / "a.json")
    assert [(call.collective, call.size_bytes) for call in read.calls] == [("all_reduce", 16)]
    assert f"ranks of {what} are not recorded, taken in the order of their numbers: 2" in read.notes


@pytest.mark.parametrize("lone", [0, 1, 2])
def test_records_that_launch_on_no_device_are_counted(tmp_path, lone):
    """Those of a thread that launches nothing, in a process with two devices."""
    made = job("all_reduce")
    events = merged(made, (9, 9), (0, 1))
    said = next(event for event in events if event["name"] == "record_param_comms")
    events += [{**said, "tid": 777, "ts": said["ts"] + n} for n in range(lone)]
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    read = load_workload(tmp_path / "a.json")
    assert [call.size_bytes for call in read.calls] == [16]
    assert [(one.what, one.calls, one.missing) for one in read.omitted] == [
        ("allreduce of a thread that launches on no device, or on several", lone, True)
    ] * bool(lone)


def test_a_record_is_of_the_device_on_which_its_thread_computes(tmp_path):
    """If nothing is launched within it."""
    made = job("all_reduce")
    events = merged(made, (9, 9), (0, 1))
    records = [event for event in events if event["name"] == "record_param_comms"]
    for rank, said in enumerate(records):
        about = {"Collective name": "_allgather_base", "In msg nelems": 5, "Out msg nelems": 10, "Seq": 7}
        events.append({**said, "tid": 70 + rank, "args": {**said["args"], **about}})
        launched = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": said["ts"] + 900, "tid": 70 + rank}
        events.append({**said, **launched, "args": {"correlation": 90_000 + rank}})
        kernel = {"cat": "kernel", "name": "gemm", "ts": said["ts"] + 950, "pid": rank, "tid": COMPUTE}
        events.append({**said, **kernel, "args": {"correlation": 90_000 + rank, "device": rank, "stream": COMPUTE}})
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    read = load_workload(tmp_path / "a.json")
    assert [(call.collective, call.size_bytes) for call in read.calls] == [("all_reduce", 16), ("all_gather", 10)]
    assert (read.omitted, any("counterpart" in note for note in read.notes)) == ((), False)


def test_a_thread_that_launches_on_several_devices(tmp_path):
    """A record is of the device on which the first kernel within it is launched."""
    made = job("all_reduce", "all_gather", "broadcast")
    events = merged(made, (9, 9), (0, 1))
    for event in events:
        rank = event["args"]["device"] if event["cat"] == "kernel" else event["tid"] - 1
        event["ts"] += 10**5 * rank
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    apart = load_workload(tmp_path / "a.json")
    for event in events:
        event["tid"] = 1 if event["cat"] != "kernel" else event["tid"]
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    read = load_workload(tmp_path / "a.json")
    assert (read.calls, read.omitted, len(read.calls)) == (apart.calls, (), 3)


@pytest.mark.parametrize(("hosts", "what"), [((9, 9), "2 device"), ((9, 10), "2 process")])
def test_too_few_devices_or_processes_for_their_order_are_refused(tmp_path, hosts, what):
    """Two of four ranks; with what to give instead."""
    made = job("all_reduce", world=4)
    events = merged(made, hosts, (0, 1), without_ranks)
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    with pytest.raises(WorkloadError, match=what) as refused:
        load_workload(tmp_path / "a.json")
    assert "give a file for each" in str(refused.value)


def test_two_processes_on_one_device_are_refused(tmp_path):
    """Where their launches have the same ids, so that a kernel may be of either."""
    made = job("all_reduce")

    def same(event):
        if "correlation" in event["args"]:
            event["args"]["correlation"] %= 10_000

    (tmp_path / "a.json").write_text(kineto(merged(made, (9, 10), (0, 0), same), information(made, -1)))
    with pytest.raises(WorkloadError, match="device 0 may be of several processes"):
        load_workload(tmp_path / "a.json")


def test_kernels_on_another_device_than_the_calls_are_left_out(tmp_path):
    """A process that computes on a device without calls is one rank."""
    made = job("all_reduce")
    one = record(made, 0)
    one.device = 5
    one.launch("gemm", COMPUTE, 700, {})
    one.launch("void deep_ep::intranode::combine(x)", COMPUTE, 20, {})
    one.device = 6
    one.launch("void deep_ep::intranode::combine(x)", COMPUTE, 30, {})
    (tmp_path / "a.json").write_text(kineto(one.events, information(made, 0)))
    read = load_workload(tmp_path / "a.json")
    assert read.compute_s == pytest.approx(40e-6)
    assert "left out: kernels of device 5, 720 us; the calls are on another: 2" in read.notes
    assert "left out: kernels of device 6, 30 us; the calls are on another: 1" in read.notes


def test_a_trace_without_a_rank_beside_other_files(tmp_path):
    """In a folder or an archive; JSON of another kind is no trace where a file surely is one."""
    made = job("all_reduce")
    events = record(made, 0).events
    for event in events:
        without_ranks(event)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "step.json").write_text(kineto(events))
    (folder / "config.json").write_text(json.dumps({"layers": 3}))
    (folder / "train.py").write_text("print(1)\n")
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
        archive.add(folder, "run")
    for path in (folder, tmp_path / "run.tar.gz"):
        read = load_workload(path)
        assert (read.num_ranks, [call.size_bytes for call in read.calls]) == (2, [16])
        assert read.notes[0] == "ignored: 2 files beside the traces, such as config.json"


class Ranks:
    """Events of each rank of a drawn job, whose kernels take longer on higher ranks; some kernels of calls are lost."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.job = drawn_job(seed)
        self.events = {}
        for rank in range(self.job.world):
            events = record(self.job, rank, device=rank, host=900 + rank).events
            lost = {
                one["args"]["correlation"]
                for one in events
                if one["name"].startswith("nccl") and self.draw.random() < 0.2
            }
            self.events[rank] = [
                {**one, "args": dict(one["args"]), "dur": one["dur"] * (1 + rank * (one["name"] == "gemm"))}
                for one in events
                if one["args"].get("correlation") not in lost
            ]

    def apart(self, folder):
        """The job from a file a rank."""
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for rank, events in self.events.items():
            (folder / f"rank{rank}.json").write_text(kineto(events, information(self.job, rank)))
        return load_job(folder)

    def together(self, path, by, more=()):
        """The job from one file."""
        merged = []
        for rank, events in self.events.items():
            for one in events:
                args, on_device = dict(one["args"]), one["cat"] == "kernel"
                if by == "rank":
                    args = {**args, "rank": rank, "device": 0}
                elif by == "places" or (by == "processes" and rank == 0 and self.draw.random() < 0.3):
                    args.pop("device", None)
                host = 900 if by in ("devices", "rank") else one["pid"]
                merged.append({**one, "pid": one["pid"] if on_device and by != "rank" else host, "args": args})
        path.write_text(kineto([*merged, *more], {**information(self.job, 0), "rank": -1}))
        return load_job(path)


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from(["rank", "devices", "processes", "places"]))
def test_one_file_is_a_file_a_rank(tmp_path_factory, seed, by):
    """Each rank's calls, kernels, times and order, whichever way the events say whose they are."""
    folder, ranks = tmp_path_factory.mktemp("parts"), Ranks(seed)
    launching = [any(one["cat"] == "cuda_runtime" for one in events) for events in ranks.events.values()]
    calling = [any(one["name"] == "record_param_comms" for one in events) for events in ranks.events.values()]
    with_kernel = [any(one["name"].startswith("nccl") for one in events) for events in ranks.events.values()]
    if not all(calling) or (by == "devices" and not all(with_kernel)):
        return  # a device or a process without a call has no rank
    assert all(launching)
    apart, together = ranks.apart(folder / "apart"), ranks.together(folder / "all.json", by)
    assert together.tasks == apart.tasks
    assert (together.recorded, together.bound) == (apart.recorded, apart.bound)


def test_what_belongs_to_no_rank(tmp_path):
    """Kernels without a rank among those with one; a process without calls; records on a thread that launches nowhere."""
    ranks = Ranks(3)
    ranks.job = job("all_reduce", "all_gather")
    ranks.events = {rank: record(ranks.job, rank, device=rank, host=900 + rank).events for rank in (0, 1)}
    alone = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 9, "dur": 5, "pid": 7, "tid": 7, "args": {"stream": 7}}
    whole = ranks.apart(tmp_path / "apart")
    found = ranks.together(tmp_path / "a.json", "rank", [alone, alone, alone])
    assert found.tasks == whole.tasks
    read = load_workload(tmp_path / "a.json")
    assert "kernels without a rank, left out: 3" in read.notes
    assert read.compute_s == pytest.approx(40e-6)
    idle = [{**one, "pid": 5000, "tid": 44} for one in ranks.events[0] if one["cat"] == "cuda_runtime"]
    for one in idle:
        one["args"] = {"correlation": one["args"]["correlation"] + 500_000}
    assert ranks.together(tmp_path / "a.json", "processes", idle).tasks == whole.tasks
    lost = [{**one, "pid": 900, "tid": 45} for one in ranks.events[1] if one["name"] == "record_param_comms"]
    assert ranks.together(tmp_path / "a.json", "devices", lost).tasks == whole.tasks


@pytest.mark.parametrize(
    ("info", "tags", "rank"),
    [
        ({"rank": 0}, {}, 0),
        ({"rank": 2}, {}, 2),
        ({}, {}, 1),
        ({}, {"Rank": 7}, None),
        ({"rank": 2}, {"rank": 0}, 0),
        ({}, {"rank": 3}, 3),
        ({"rank": 2}, {"rank": -1}, 2),
        ({"rank": 2}, {"rank": "0"}, 2),
    ],
)
def test_the_rank_of_a_file(tmp_path, info, tags, rank):
    """That of its events, else that of the file, else the one that its records say."""
    made = job("all_reduce", "all_reduce", world=4)
    events = record(made, 1).events
    for one in events:
        one["args"] |= tags
    (tmp_path / "a.json").write_text(kineto(events, {"world_size": 4, **info}))
    said = "" if rank is None else f", rank {rank}"
    assert load_workload(tmp_path / "a.json").source == f"PyTorch profiler trace a.json{said}"
    other = [one for one in record(made, 2).events if one["name"] == "record_param_comms"]
    (tmp_path / "a.json").write_text(kineto([*record(made, 1).events, *other], {"world_size": 4}))
    assert load_workload(tmp_path / "a.json").source == "PyTorch profiler trace a.json"


def test_a_device_of_two_processes(tmp_path):
    """Is that of the process that launched more of its kernels; of another device's nothing is taken."""
    made = job("all_reduce")
    first, second = (record(made, rank, host=900 + rank, device=rank) for rank in (0, 1))
    for took in (30, 31, 32):
        second.compute(took)
    first.device = 1  # its own kernel runs beside those of the other process
    first.compute(100)
    (tmp_path / "a.json").write_text(kineto(first.events + second.events, information(made, -1)))
    found = load_job(tmp_path / "a.json")
    took = {rank: sum(t.compute_s for t in found.tasks if t.devices == (rank,)) for rank in (0, 1)}
    assert took == {0: pytest.approx(40e-6), 1: pytest.approx((40 + 93) * 1e-6)}


def test_kernels_of_no_process_go_to_the_first(tmp_path):
    """A device on which no process of the file launched does not stop the others."""
    made = job("all_reduce")
    events = merged(made, (900, 901), (0, 1))
    alone = {"device": 5, "stream": 7, "correlation": 77}
    events.append({**events[-1], "cat": "kernel", "name": "gemm", "ts": 1, "dur": 3, "pid": 5, "tid": 7, "args": alone})
    (tmp_path / "a.json").write_text(kineto(events, information(made, -1)))
    read = load_workload(tmp_path / "a.json")
    assert [call.size_bytes for call in read.calls] == [16]
