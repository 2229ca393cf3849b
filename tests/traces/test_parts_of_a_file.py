"""Files of several ranks, devices or processes whose ranks are not all recorded; files beside a trace that are none."""

import json
import tarfile

import pytest
from tests.traces.drawn_job import COMPUTE, Call, Job, information, kineto, record

from opticcl.errors import WorkloadError
from opticcl.traces import load_workload

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
    (tmp_path / "a.json").write_text(kineto(one.events, information(made, 0)))
    read = load_workload(tmp_path / "a.json")
    assert read.compute_s == pytest.approx(40e-6)
    assert "left out: kernels of device 5, 700 us; the calls are on another: 1" in read.notes


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
        assert read.notes[0] == "ignored: 2 files of no known format, such as config.json"
