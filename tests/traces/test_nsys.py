"""Nsight Systems reports as SQLite, written here by Python's sqlite3."""

import bz2
import gzip
import json
import lzma
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import one_line

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


def test_values_of_calls_may_be_numbered_texts(tmp_path):
    """A number of StringIds in jsonTextId in place of a text in jsonText."""
    path = training().write(tmp_path / "a.sqlite")
    steps, calls = load_steps(path), load_workload(path).calls
    assert [call.size_bytes for call in calls] == [4_000_000] * 2
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE NVTX_EVENTS ADD COLUMN jsonTextId INT")
        file.execute("INSERT INTO StringIds SELECT 1000 + rowid, jsonText FROM NVTX_EVENTS WHERE jsonText IS NOT NULL")
        file.execute("UPDATE NVTX_EVENTS SET jsonTextId = 1000 + rowid, jsonText = NULL WHERE jsonText IS NOT NULL")
        file.commit()
    assert (load_steps(path), load_workload(path).calls) == (steps, calls)


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
    report.call("ncclAllToAll", 5)
    report.call("ncclGroupStart", None)
    report.call("ncclBroadcast", None)
    path = report.write(tmp_path / "report.rank1.sqlite")
    found = load_workload(path)
    assert [(c.collective, c.size_bytes) for c in found.calls] == [
        ("all_gather", 400),
        ("reduce_scatter", 400),
        ("send_recv", 30),
        ("all_to_all", 20),
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


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_report(tmp_path, pack):
    """It is unpacked for the time of reading; damage is one line."""
    path = training().write(tmp_path / "report.rank2.sqlite")
    packed = tmp_path / "packed.rank2.sqlite.x"
    packed.write_bytes(pack(path.read_bytes()))
    assert load_workload(packed).calls == load_workload(path).calls
    packed.write_bytes(pack(path.read_bytes())[:-200])
    with pytest.raises(WorkloadError, match=r"cannot be read|is not an SQLite file|no trace that opticcl reads"):
        load_workload(packed)


def test_what_is_not_such_a_report_is_refused(tmp_path):
    """Other SQLite files, reports without kernels, damage; not kernels of a device without calls."""
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
    assert any(
        "kernels of device 1, 1 us; the calls are on another: 1" in note for note in load_workload(several).notes
    )
    for path, said in (
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


def test_puts_are_counted(tmp_path):
    """They move data and are no collective; a signal moves none."""
    report = training()
    put = json.dumps({"Message size [bytes]": 64, "Peer rank": 1})
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclPutSignal", None, 99, put))
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclSignal", None, 99, json.dumps({"Peer rank": 1})))
    found = load_workload(report.write(tmp_path / "report.sqlite"))
    (left_out,) = (one for one in found.omitted if one.missing)
    assert (left_out.what, left_out.calls) == ("ncclPutSignal, which is not a known collective", 1)
    assert "left out: 1 ncclPutSignal, which is not a known collective, 64 bytes in all" in found.notes


# --- communicators ----------------------------------------------------------------------------------------------------

ID, SIZE, NUMBER, BYTES = "NCCL communicator ID", "No. of ranks", "Rank", "Message size [bytes]"
TABLES = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT",
    KERNEL: "start INT, end INT, deviceId INT, streamId INT, correlationId INT, shortName INT, globalPid INT",
    RUNTIME: "start INT, end INT, globalTid INT, correlationId INT, nameId INT",
    "NVTX_EVENTS": "start INT, end INT, text TEXT, globalTid INT, jsonText TEXT, binaryData BLOB",
}


def write_report(path, processes, packed=False, shared=""):
    """A report of processes: the ranges of each, (name, values), of which those of calls launch a kernel.

    Args:
        path: of the file.
        processes: ranges by number of the process.
        packed: whether values are only in a packed form.
        shared: "threads" or "thread": all of them are devices of one process, driven by a thread each or by one.
    """
    rows = {name: [] for name in TABLES}
    rows["StringIds"] = [(1, "ncclDevKernel_X"), (2, "cudaLaunchKernel_v7000"), (3, "gemm")]
    for device, (pid, ranges) in enumerate(processes.items()):
        own, first, begun = (1 if shared else pid), 1_000 * device * bool(shared), 1_000
        thread = own << 24 | 7 + device * (shared == "threads")
        at = begun + 100_000 * device * (shared == "thread")
        rows[KERNEL].append((500, 900, device, 7, first + 1, 3, own << 24))
        for number, (name, values) in enumerate(ranges, first + 2):
            values = {**values, "CUDA device": device} if shared and SIZE in values else values
            text = None if packed else json.dumps(values)
            rows["NVTX_EVENTS"].append((at, at + 500, name, thread, text, b"x"))
            if SIZE not in values:
                rows[RUNTIME].append((at + 100, at + 200, thread, number, 2))
                rows[KERNEL].append((at + 300, at + 900, device, 20, number, 1, own << 24))
            at += 1_000
    with closing(sqlite3.connect(path)) as file:
        for name, columns in TABLES.items():
            file.execute(f"CREATE TABLE {name} ({columns})")
            places = ", ".join("?" * len(columns.split(", ")))
            file.executemany(f"INSERT INTO {name} VALUES ({places})", rows[name])
        file.commit()
    return path


def begin(id, size, number):
    """The range in which a communicator is made."""
    return "ncclCommInitRankConfig", {ID: id, SIZE: size, NUMBER: number, "CUDA device": 0}


def test_transfers_count_within_their_communicator(tmp_path):
    """Four stages in pairs of communicators: 0 to 2 and 1 to 3, whichever of the files are given."""
    for rank in range(4):
        pair, number = rank % 2, rank // 2
        call = ("ncclSend" if number == 0 else "ncclRecv", {ID: pair, "Bytes": 4_000, "Peer rank": 1 - number})
        write_report(tmp_path / f"r.rank{rank}.sqlite", {5: [begin(pair, 2, number), call]})
    read = load_workload(tmp_path)
    assert sorted((c.collective, c.size_bytes, c.ranks) for c in read.calls) == [
        ("send_recv", 4_000, (0, 2)),
        ("send_recv", 4_000, (1, 3)),
    ]
    assert read.num_ranks == 4
    (call,) = load_workload(tmp_path / "r.rank2.sqlite", num_ranks=4).calls
    assert call.ranks == (-1, 2)


def test_communicators_that_were_made_before_the_recording(tmp_path):
    """Those who call them, in their order, and a note."""
    for rank in (0, 1, 2, 3):
        call = ("ncclSend" if rank < 2 else "ncclRecv", {ID: rank % 2, "Bytes": 8, "Peer rank": int(rank < 2)})
        write_report(tmp_path / f"r.rank{rank}.sqlite", {5: [call, ("ncclAllReduce", {ID: 9, BYTES: 4})]})
    read = load_workload(tmp_path)
    assert sorted((c.collective, c.ranks) for c in read.calls) == [
        ("all_reduce", (0, 1, 2, 3)),
        ("send_recv", (0, 2)),
        ("send_recv", (1, 3)),
    ]
    assert any(note.startswith("communicators whose size is not recorded") for note in read.notes)


def test_values_that_the_export_left_out(tmp_path):
    """The command that keeps them."""
    write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), ("ncclAllReduce", {ID: 1, BYTES: 8})]}, packed=True)
    with pytest.raises(
        WorkloadError, match=r"1 call of NCCL are only .* nsys export --type sqlite --include-json true"
    ):
        load_workload(tmp_path / "a.sqlite")


def test_processes_without_a_rank_are_refused(tmp_path):
    """One of several in a report; one without calls is none."""
    calls = [("ncclAllReduce", {ID: 1, BYTES: 8})]
    write_report(tmp_path / "a.sqlite", {5: [begin(1, 2, 0), *calls], 6: [begin(1, 2, 1), *calls], 7: calls})
    with pytest.raises(
        WorkloadError, match=r"3 ranks \(process 5, process 6, process 7\), .* the number of process 7;"
    ):
        load_workload(tmp_path / "a.sqlite")
    late = [("ncclAllReduce", {ID: 1, BYTES: 8})]
    write_report(tmp_path / "b.sqlite", {5: [begin(1, 4, 0), *late], 6: [begin(1, 4, 0), *late]}, shared="threads")
    with pytest.raises(WorkloadError, match="no communicator records the number of device 1 of process 1;"):
        load_workload(tmp_path / "b.sqlite")


@pytest.mark.parametrize("shared", ["threads", "thread"])
def test_devices_whose_ranks_are_not_recorded(tmp_path, shared):
    """Those of one process, in the order of their numbers, with a note; a device without calls is none of them."""
    calls = [("ncclAllReduce", {BYTES: 8}), ("ncclSend", {"Bytes": 40, "Peer rank": 1})]
    ranges = {0: calls, 1: [calls[0], ("ncclRecv", {"Bytes": 40, "Peer rank": 0})], 2: []}
    path = write_report(tmp_path / "node.sqlite", ranges, shared=shared)
    read = load_workload(path)
    assert [(c.collective, c.size_bytes, c.ranks or (0, 1)) for c in read.calls] == [
        ("all_reduce", 8, (0, 1)),
        ("send_recv", 40, (0, 1)),
    ]
    assert read.num_ranks == 2
    assert read.notes.count("ranks of devices are not recorded, taken in the order of their numbers: 2") == 1
    assert load_job(path).device_ranks == (0, 1)


@pytest.mark.parametrize("shared", ["threads", "thread"])
def test_calls_in_whose_range_nothing_is_launched(tmp_path, shared):
    """They are of the only device of their thread; of a thread with several devices they are left out, and counted."""
    path = write_report(
        tmp_path / "node.sqlite",
        {0: [("ncclAllReduce", {BYTES: 8})] * 2, 1: [("ncclAllReduce", {BYTES: 8})] * 2},
        shared=shared,
    )
    with closing(sqlite3.connect(path)) as file:
        first = file.execute(
            f"SELECT min(start), max(start) FROM NVTX_EVENTS WHERE globalTid = {1 << 24 | 7}"
        ).fetchone()
        file.execute(f"UPDATE NVTX_EVENTS SET end = start + 10 WHERE globalTid = {1 << 24 | 7} AND start = {first[0]}")
        file.commit()
    read = load_workload(path)
    assert len(read.calls) == 2
    assert any("1 all_reduce" in note for note in read.notes if note.startswith("without a counterpart")) == (
        shared == "thread"
    )


KINDS = {
    "ncclAllReduce": ("all_reduce", False),
    "ncclBroadcast": ("broadcast", False),
    "ncclAllGather": ("all_gather", True),
    "ncclReduceScatter": ("reduce_scatter", True),
    "ncclAllToAll": ("all_to_all", True),
}


@st.composite
def jobs(draw):
    """Ranges of each rank of a job with communicators of all, of blocks and of every n-th rank."""
    block, blocks = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([2, 3]))
    everyone = block * blocks
    groups = [tuple(range(everyone)), *(tuple(range(i * block, (i + 1) * block)) for i in range(blocks))]
    groups += [tuple(range(i, everyone, block)) for i in range(block)]
    groups = [group for group in groups if len(group) > 1]
    ids = draw(st.lists(st.integers(1, 2**63 - 1), min_size=len(groups), max_size=len(groups), unique=True))
    ranks = {rank: [] for rank in range(everyone)}
    for id, group in zip(ids, groups, strict=True):
        for number, rank in enumerate(group):
            ranks[rank].append(begin(id, len(group), number))
    for _ in range(draw(st.integers(1, 8))):
        id, group = draw(st.sampled_from(list(zip(ids, groups, strict=True))))
        size = draw(st.integers(1, 10**9))
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(KINDS)))
            for rank in group:
                ranks[rank].append((name, {ID: id, BYTES: size}))
        else:
            src, dst = draw(st.permutations(range(len(group))))[:2]
            ranks[group[src]].append(("ncclSend", {ID: str(id), "Bytes": size, "Peer rank": dst}))
            ranks[group[dst]].append(("ncclRecv", {ID: id, "Bytes": str(size), "Peer rank": src}))
    return ranks


def by_sql(paths):
    """Places of ranks, which are devices, in communicators, and calls, of reports, by SQL."""
    here, calls = {}, []
    same_process = "k.globalPid / 16777216 = r.globalTid / 16777216"
    launched = f"""SELECT max(k.deviceId) FROM {RUNTIME} r JOIN {KERNEL} k ON k.correlationId = r.correlationId
        AND {same_process} WHERE r.globalTid = n.globalTid AND r.start BETWEEN n.start AND n.end"""
    devices = f"SELECT max(deviceId) - min(deviceId) FROM {KERNEL} WHERE globalPid / 16777216 = n.globalTid / 16777216"
    made = """CAST(json_extract(jsonText, '$."CUDA device"') AS INT)"""
    for path in paths:
        with closing(sqlite3.connect(path)) as file:
            value = "CAST(json_extract(jsonText, '$.\"{}\"') AS TEXT)".format
            columns = ", ".join(map(value, (ID, SIZE, NUMBER, BYTES, "Bytes", "Peer rank")))
            device = f"CASE WHEN ({devices}) = 0 THEN 0 ELSE coalesce(({launched}), {made}) END"
            rows = file.execute(
                f"SELECT text, (globalTid / 16777216) || ' ' || ({device}), {columns} FROM NVTX_EVENTS n"
            ).fetchall()
        for name, pid, id, size, number, message, transfer, peer in rows:
            if size is not None:
                here.setdefault((path, pid), {})[id] = int(size), int(number)
            else:
                calls.append(((path, pid), name.removeprefix("nccl"), id, int(message or transfer), int(peer or 0)))
    return here, calls


def whole_calls(here, calls):
    """Calls (collective, whole bytes, ranks) of a job; the rank of a process is its number in the largest communicator.

    Args:
        here: process -> communicator -> (size, number).
        calls: process, NCCL's name, communicator, bytes and peer of each.
    """
    members, found = {}, Counter()
    for places in here.values():
        for id, (_, number) in places.items():
            members.setdefault(id, {})[number] = max(places.values())[1]
    for process, name, id, size, peer in calls:
        n, number = here[process][id]
        ranks = tuple(members[id][i] for i in range(n))
        if name == "Send":
            found["send_recv", size, (ranks[number], ranks[peer])] += 1
        elif name != "Recv" and number == 0:
            kind, share = KINDS[f"nccl{name}"]
            found[kind, size * n if share else size, ranks] += 1
    return found


@examples(24)
@given(ranks=jobs(), form=st.sampled_from(["reports", "processes", "threads", "thread"]))
def test_drawn_reports_by_an_independent_parser(tmp_path_factory, ranks, form):
    """A report a rank, one of all processes, or one process with all devices: every call once, with the ranks that call it."""
    folder = tmp_path_factory.mktemp("reports")
    if form == "reports":
        paths = [write_report(folder / f"r{rank}.sqlite", {9: ranges}) for rank, ranges in ranks.items()]
    else:
        processes = {100 + rank: ranges for rank, ranges in ranks.items()}
        paths = [write_report(folder / "node.sqlite", processes, shared=form.removesuffix("processes"))]
    read = load_workload(folder)
    everyone = tuple(range(len(ranks)))
    found = Counter((c.collective, c.size_bytes, c.ranks or everyone) for c in read.calls)
    assert found == whole_calls(*by_sql(paths))
    assert read.num_ranks == len(ranks)
    assert load_job(folder).num_calls == sum(found.values())


def test_kernels_without_a_record(tmp_path):
    """Copies between devices and kernels of DeepEP are counted, or have sizes of a list; other copies and kernels are none."""
    report = Report()
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclCommInitRank", None, 99, json.dumps({"No. of ranks": 2})))
    report.call("ncclAllReduce", 100)
    report.kernel("deep_ep::internode::dispatch", 7, 40_000)
    report.kernel("gemm", 7, 10_000)
    path = report.write(tmp_path / "report.rank0.sqlite")
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, streamId INT, copyKind INT, bytes INT)"
        )
        file.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?)",
            [(0, 5_000, 7, 10, 4_096), (0, 9_000, 7, 1, 64), (9_000, 8_000, 7, 10, 64)],
        )
        file.commit()
    read = load_workload(path)
    assert read.compute_s == pytest.approx(10e-6)
    notes = "; ".join(read.notes)
    assert "1 copies between devices without a size, 5 us, 4.096 KB" in notes
    assert "1 kernels of DeepEP without a size, 40 us" in notes
    sizes = tmp_path / "sizes.toml"
    sizes.write_text('[[kernels]]\nname = "deep_ep::internode::dispatch"\ncollective = "all_to_all"\nsize = "1 MB"\n')
    read = load_workload(path, kernel_sizes=sizes)
    assert sorted((c.collective, c.size_bytes) for c in read.calls) == [("all_reduce", 100), ("all_to_all", 1_000_000)]


def test_the_given_number_of_ranks_goes_before_the_largest_communicator(tmp_path):
    """Which is then one of several."""
    calls = [begin(1, 2, 1), ("ncclAllGather", {ID: 1, BYTES: 8})]
    path = write_report(tmp_path / "r.sqlite", {5: calls})
    assert (load_workload(path).num_ranks, load_workload(path).calls[0].ranks) == (2, (0, 1))
    read = load_workload(path, num_ranks=8)
    assert (read.num_ranks, read.calls[0].size_bytes, len(read.calls[0].ranks)) == (8, 16, 2)
    assert any("taken to be a block of the recorded group size" in note for note in read.notes)


def test_communicators_of_which_a_file_is_missing(tmp_path):
    """Three of four ranks: their members are assumed, and a transfer has one known end."""
    for rank in (0, 1, 3):
        ranges = [begin(1, 4, rank), begin(2 + rank % 2, 2, rank // 2)]
        if rank == 0:
            ranges.append(("ncclSend", {ID: 2, "Bytes": 16, "Peer rank": 1}))
        ranges.append(("ncclAllReduce", {ID: 1, BYTES: 8}))
        write_report(tmp_path / f"r{rank}.sqlite", {5: ranges})
    read = load_workload(tmp_path)
    assert [(c.collective, c.ranks) for c in read.calls] == [("send_recv", (0, -1)), ("all_reduce", (0, 1, 2, 3))]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """Bytes of a report."""
    calls = [("ncclAllReduce", {ID: 1, BYTES: 8}), ("ncclSend", {ID: 1, "Bytes": 8, "Peer rank": 1})]
    return write_report(tmp_path_factory.mktemp("whole") / "r.sqlite", {5: [begin(1, 2, 0), *calls]}).read_bytes()


@examples(120)
@given(at=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255), text=st.booleans())
def test_changed_reports_raise_nothing_else(tmp_path_factory, content, at, byte, text):
    """A workload or one line, wherever a byte differs: in the texts of the schema and the values, or anywhere."""
    places = [i for i, one in enumerate(content) if one > 31] if text else range(len(content))
    changed = bytearray(content)
    changed[places[int(at * len(places))]] = byte
    assert one_line(load_bytes, tmp_path_factory.getbasetemp() / "changed.rank0.sqlite", bytes(changed)).isprintable()


def load_bytes(path, changed):
    """What is read of a file with that content."""
    path.write_bytes(changed)
    return load_workload(path)
