"""Nsight Systems reports as SQLite, written here by Python's sqlite3."""

import json
import sqlite3
from contextlib import closing

import pytest

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_steps, load_workload

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
WAITS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
COLUMNS = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    KERNEL: "start INT, end INT, deviceId INT, streamId INT, correlationId INT, demangledName INT, shortName INT",
    RUNTIME: "start INT, end INT, globalTid INT, correlationId INT, nameId INT",
    "NVTX_EVENTS": "start INT, end INT, text TEXT, textId INT, globalTid INT, jsonText TEXT",
    WAITS: "start INT, end INT, streamId INT, correlationId INT, syncType INT, eventId INT",
    EVENTS: "correlationId INT, streamId INT, eventId INT",
}


class Report:
    """A report of one rank: kernels of 100 us that compute, and calls of NCCL on a stream of their own."""

    def __init__(self, waits=True):
        self.rows = {name: [] for name in COLUMNS if waits or name not in (WAITS, EVENTS)}
        self.texts, self.host, self.number = {}, 0, 0
        self.device = {7: 0, 20: 0}
        self.recorded = {}

    def text(self, value):
        """The number of a text."""
        return self.texts.setdefault(value, len(self.texts))

    def runtime(self, name):
        """A call of the host."""
        self.host, self.number = self.host + 2_000, self.number + 1
        self.rows[RUNTIME].append((self.host, self.host + 1_000, 99, self.number, self.text(name)))
        return self.number

    def kernel(self, name, stream, ns, device=0):
        """A kernel, launched now."""
        number = self.runtime("cudaLaunchKernel_v7000")
        start = max(self.device[stream], self.host + 3_000)
        self.device[stream] = start + ns
        self.rows[KERNEL].append((start, start + ns, device, stream, number, self.text(name), self.text(name)))

    def wait(self, stream, of):
        """A stream waits for what another has done so far."""
        number = self.runtime("cudaEventRecord_v3020")
        self.device[stream] = max(self.device[stream], self.device[of])
        correlation = self.runtime("cudaStreamWaitEvent_v3020")
        if WAITS in self.rows:
            self.rows[EVENTS].append((number, of, 4))
            self.rows[WAITS].append((self.host, self.host, stream, correlation, 3, 4))

    def call(self, name, size, ns=50_000, **payload):
        """A call of NCCL after what is computed so far; the computation waits for it."""
        start = self.host + 1_000
        self.wait(20, 7)
        self.kernel("ncclDevKernel_X", 20, ns)
        self.host += 2_000
        values = {"Message size [bytes]": size, **payload} if size is not None else {}
        self.rows["NVTX_EVENTS"].append((start, self.host, None, self.text(name), 99, json.dumps(values)))

    def step(self, name, start):
        """A range from a time to now."""
        self.rows["NVTX_EVENTS"].append((start, self.host + 1_500, name, None, 99, None))

    def write(self, path):
        """The file."""
        with closing(sqlite3.connect(path)) as file:
            for name, rows in self.rows.items():
                rows = [(i, text) for text, i in self.texts.items()] if name == "StringIds" else rows
                columns = COLUMNS[name]
                file.execute(f"CREATE TABLE {name} ({columns})")
                places = ", ".join("?" * len(columns.split(", ")))
                file.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
            file.commit()
        return path


def training(waits=True):
    """Two steps: forward, all_reduce beside backward, wait, optimizer."""
    report = Report(waits)
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclCommInitRank", None, 99, json.dumps({"No. of ranks": 4})))
    for i in range(2):
        start = report.host + 500
        report.kernel("forward", 7, 100_000)
        report.call("ncclAllReduce", 4_000_000)
        report.kernel("backward", 7, 200_000)
        report.wait(7, 20)
        report.kernel("optimizer", 7, 50_000)
        report.step(f"ProfilerStep#{i}", start)
        report.host = max(report.device.values())
    return report


@pytest.mark.parametrize("waits", [True, False], ids=["events", "runtime"])
def test_calls_steps_and_order(tmp_path, waits):
    """Sizes by the ranges, ranks by ncclCommInitRank; the call runs beside the second kernel and the third waits for it."""
    path = training(waits).write(tmp_path / "report.rank2.sqlite")
    found = load_workload(path)
    assert [(c.collective, c.size_bytes) for c in found.calls] == [("all_reduce", 4_000_000)] * 2
    assert found.num_ranks == 4
    assert "rank 2" in found.source
    steps = load_steps(path)
    assert [step.step for step in steps] == ["ProfilerStep#0", "ProfilerStep#1"]
    job = load_job(path)
    assert job.compute_s == pytest.approx(350e-6)
    (call,) = [i for i, task in enumerate(job.tasks) if task.communicates]
    assert sum(job.tasks[i].compute_s for i in job.tasks[call].after) == pytest.approx(100e-6)
    assert call in job.tasks[-1].after
    assert job.tasks[-1].compute_s == pytest.approx(50e-6)


def test_sizes_of_one_rank_become_those_of_all(tmp_path):
    """NCCL records the share of an all_gather and a reduce_scatter; the other end of a transfer is Peer rank."""
    report = Report()
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclCommInitRank", None, 99, json.dumps({"No. of ranks": 4})))
    report.call("ncclAllGather", 100)
    report.call("ncclReduceScatter", 100)
    report.call("ncclSend", 30, **{"Peer rank": 3})
    report.call("ncclGroupStart", None)
    report.call("ncclBroadcast", None)
    path = report.write(tmp_path / "report.rank1.sqlite")
    found = load_workload(path)
    assert [(c.collective, c.size_bytes) for c in found.calls] == [
        ("all_gather", 400),
        ("reduce_scatter", 400),
        ("send_recv", 30),
    ]
    assert found.calls[2].ranks == (1, 3)
    assert any("ncclBroadcast without a message size" in note for note in found.notes)


def test_reports_of_all_ranks_are_one_job(tmp_path):
    """One device for each."""
    for rank in range(4):
        training().write(tmp_path / f"report.rank{rank}.sqlite")
    job = load_job(tmp_path)
    assert job.device_ranks == (0, 1, 2, 3)
    assert len(load_workload(tmp_path).calls) == 2


def test_the_file_is_not_changed(tmp_path):
    """It is opened for reading; no journal is left beside it."""
    path = training().write(tmp_path / "report.sqlite")
    content = path.read_bytes()
    path.chmod(0o444)
    load_workload(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_not_such_a_report_is_refused(tmp_path):
    """Other SQLite files, reports of several devices or without kernels, damage."""
    report = training()
    report.kernel("forward", 7, 1_000, device=1)
    several = report.write(tmp_path / "several.sqlite")
    none = Report().write(tmp_path / "none.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as file:
        file.execute("CREATE TABLE t (a INT)")
        file.commit()
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(none.read_bytes()[:5_000])
    fake = tmp_path / "fake.sqlite"
    fake.write_bytes(b"")
    for path, said in (
        (several, "kernels of 2 devices; record one report for each rank"),
        (none, "has no kernels; record the report with nsys profile"),
        (tmp_path / "other.sqlite", "no export of Nsight Systems"),
        (damaged, "cannot be read as SQLite"),
        (fake, "is not an SQLite file"),
    ):
        with pytest.raises(WorkloadError, match=said) as caught:
            load_workload(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "payload", ["[" * 100_000, "{", "5", '{"Message size [bytes]": "x"}', '{"Message size [bytes]": -1}']
)
def test_a_payload_of_another_form_is_left_out(tmp_path, payload):
    """And counted."""
    report = training()
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclAllReduce", None, 99, payload))
    found = load_workload(report.write(tmp_path / "report.sqlite"))
    assert len(found.calls) == 2
    assert any("ncclAllReduce without a message size" in note for note in found.notes)
