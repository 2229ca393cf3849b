"""Reports of a thread that drives several devices: calls within ncclGroupStart and ncclGroupEnd, each of its device."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.test_nsys import BYTES, ID, KERNEL, KINDS, NUMBER, RUNTIME, SIZE, TABLES, Report, begin, write_report

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_steps, load_workload
from opticcl.traces.loading import load_traces

THREAD = 1 << 24 | 7


class Node:
    """A report of one process whose thread drives several devices.

    Args:
        devices: their number; the rank of each is its place [count].
        threads: whether each device has a thread of its own.
    """

    def __init__(self, devices, threads=False):
        self.devices, self.threads = devices, threads
        self.rows = {name: [] for name in TABLES}
        self.rows["StringIds"] = [(1, "ncclDevKernel_X"), (2, "cudaLaunchKernel_v7000"), (3, "gemm")]
        self.now, self.correlation, self.took = 1_000, 0, Counter()
        self.free = Counter()

    def range(self, name, values=None, thread=THREAD, until=0):
        """A range of the host, now; or from a time to now."""
        end = self.now + 100
        self.rows["NVTX_EVENTS"].append((until or self.now, end, name, thread, json.dumps(values or {}), None))
        self.now = end + 10

    def kernel(self, device, ns, name=1, thread=THREAD):
        """A kernel, launched now."""
        self.correlation, self.now = self.correlation + 1, self.now + 20
        self.rows[RUNTIME].append((self.now, self.now + 5, thread, self.correlation, 2))
        start = max(self.now + 50, self.free[device])
        self.free[device] = start + ns
        self.rows[KERNEL].append((start, start + ns, device, 20, self.correlation, name, 1 << 24))

    def communicator(self, id, members):
        """The ranges in which the ranks of the devices make it."""
        for number, device in list(enumerate(members))[: self.devices]:
            self.range("ncclCommInitRank", {ID: id, SIZE: len(members), NUMBER: number, "CUDA device": device})

    def group(self, calls, kernels, nested=False):
        """A group of calls (name, values), at whose end kernels (device, ns) are launched."""
        self.range("ncclGroupStart")
        for name, values in calls:
            if nested:
                self.range("ncclGroupStart")
            self.range(name, values)
            if nested:
                self.range("ncclGroupEnd")
        begun = self.now
        for device, ns in kernels:
            self.kernel(device, ns)
        self.range("ncclGroupEnd", until=begun)

    def write(self, path):
        """The file."""
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as file:
            for name, columns in TABLES.items():
                file.execute(f"CREATE TABLE {name} ({columns})")
                places = ", ".join("?" * len(columns.split(", ")))
                file.executemany(f"INSERT INTO {name} VALUES ({places})", self.rows[name])
            file.commit()
        return path


def drawn_calls(draw, members):
    """Calls of each member of a communicator, and what they are: collectives in one order, and perhaps a shift."""
    mine, due = [[] for _ in members], Counter()
    for _ in range(draw.randint(1, 3)):
        name, size = draw.choice(sorted(KINDS)), draw.randint(1, 4)
        kind, share = KINDS[name]
        due[kind, size * len(members) if share else size, members] += 1
        for rows in mine:
            rows.append((name, {BYTES: size}))
    if draw.random() < 0.5:
        by, size = draw.randint(1, len(members) - 1), draw.randint(1, 99)
        for number, rows in enumerate(mine):
            to = (number + by) % len(members)
            rows.append(("ncclSend", {"Bytes": size, "Peer rank": to}))
            rows.append(("ncclRecv", {"Bytes": size, "Peer rank": (number - by) % len(members)}))
            due["send_recv", size, (members[number], members[to])] += 1
    return mine, due


def issued(mine, by_device):
    """The calls of all members in the order in which a thread issues them."""
    if by_device:
        return [call for rows in mine for call in rows]
    return [rows[i] for i in range(len(mine[0])) for rows in mine]


@examples(40)
@given(seed=st.integers(0, 2**32), by_device=st.booleans(), made=st.booleans(), nested=st.booleans())
def test_each_call_of_a_group_is_of_its_device(tmp_path_factory, seed, by_device, made, nested):
    """Device by device or call by call, of one communicator or several; each has a time, and the times are the kernels'."""
    draw = random.Random(seed)
    many = draw.choice([2, 3, 4])
    everyone = tuple(range(many))
    communicators = {11: everyone}
    if many == 4 and made:
        communicators |= {21: (0, 1), 22: (2, 3), 31: (2, 0)}
    node, due = Node(many), Counter()
    if made:
        for id, members in communicators.items():
            node.communicator(id, members)
    took = 0
    for _ in range(draw.randint(1, 4)):
        ids = draw.sample(sorted(communicators), draw.randint(1, len(communicators)))
        calls = []
        for id in ids:
            mine, more = drawn_calls(draw, communicators[id])
            calls += [(name, {ID: id, **values}) for name, values in issued(mine, by_device)]
            due += more
        kernels = [(device, 900) for device in sorted({d for id in ids for d in communicators[id]})]
        took += sum(device == 0 for device, _ in kernels) * 900
        node.kernel(0, 200, 3)
        node.group(calls, kernels, nested)
    draw.shuffle(node.rows[RUNTIME])
    path = node.write(tmp_path_factory.getbasetemp() / "groups.sqlite")
    read = load_workload(path)
    assert Counter((c.collective, c.size_bytes, c.ranks or everyone) for c in read.calls) == due
    assert read.num_ranks == many
    assert not any("on no device" in note or "counterpart" in note or "left out: " in note for note in read.notes)
    assert all(call.measured_s > 0 for call in read.calls)
    job = load_job(path)
    assert job.device_ranks == everyone
    mine = [task for task in job.tasks if task.communicates and 0 in task.devices]
    if due.keys() <= {one for one in due if one[2] == everyone and one[0] != "send_recv"}:
        assert sum(task.measured_s for task in mine) == pytest.approx(took * 1e-9)
    assert sum(task.compute_s for task in job.tasks if task.devices == (0,)) == pytest.approx(read.compute_s)


def test_calls_that_no_way_fits_stay_without_a_device(tmp_path):
    """Neither device by device nor call by call: two devices with three calls, and sends without their receives."""
    for calls in (
        [("ncclAllReduce", {ID: 1, BYTES: 8})] * 3,
        [("ncclAllReduce", {ID: 1, BYTES: size}) for size in (1, 2, 3, 4)],
        [("ncclAllReduce", {ID: 1, BYTES: size}) for size in (1, 2)],
        [(name, {ID: 1, BYTES: 8}) for name in ("ncclAllReduce", "ncclReduce")],
        [("ncclSend", {ID: 1, "Bytes": 8, "Peer rank": peer}) for peer in (1, 0)],
    ):
        node = Node(2)
        node.communicator(1, (0, 1))
        node.group(calls, [(0, 500), (1, 500)])
        node.group([("ncclAllGather", {ID: 1, BYTES: 7})] * 2, [(0, 500), (1, 500)])
        read = load_workload(node.write(tmp_path / "a.sqlite"))
        assert [(c.collective, c.size_bytes) for c in read.calls] == [("all_gather", 14)]
        assert {left.what.split()[0] for left in read.omitted} == {name for name, _ in calls}
        assert all("in a group of calls for several devices" in left.what and left.missing for left in read.omitted)
        assert sum(left.calls for left in read.omitted) == len(calls)
        assert sum(left.size_bytes for left in read.omitted) == sum(values.get(BYTES, 8) for _, values in calls)
        assert load_job(tmp_path / "a.sqlite").bound in ("lower", "estimate")


@pytest.mark.parametrize(
    ("peers", "sizes", "known"),
    [((2, 2, 3, 3), (8, 8, 8, 8), False), ((2, 3, 3, 2), (8, 8, 8, 8), True), ((2, 2, 2, 2), (8, 8, 16, 16), False)],
)
def test_transfers_to_other_hosts_are_of_a_device_if_both_ways_say_so(tmp_path, peers, sizes, known):
    """Device by device or call by call: the same ranks send as much to the same ranks."""
    node = Node(2)
    node.communicator(1, (0, 1, 2, 3))
    sends = zip(peers, sizes, strict=True)
    node.group([("ncclSend", {ID: 1, "Bytes": size, "Peer rank": peer}) for peer, size in sends], [(0, 500), (1, 500)])
    node.group([("ncclAllGather", {ID: 1, BYTES: 7})] * 2, [(0, 500), (1, 500)])
    read = load_workload(node.write(tmp_path / "a.sqlite"))
    ends = sorted(call.ranks for call in read.calls if call.is_transfer)
    assert ends == ([(0, 2), (0, 3), (1, 2), (1, 3)] if known else [])
    assert [(left.calls, left.missing) for left in read.omitted] == ([] if known else [(4, True)])


@pytest.mark.parametrize("names", [("ncclSend", "ncclSend", "ncclRecv", "ncclRecv"), ("ncclSend", "ncclRecv") * 2])
def test_transfers_without_a_peer(tmp_path, names):
    """Device by device and call by call others send and receive: they are of no device."""
    node = Node(2)
    node.group([(name, {ID: 1, "Bytes": 8}) for name in names], [(0, 500), (1, 500)])
    left = load_traces(node.write(tmp_path / "a.sqlite"))[0].omissions.records()
    assert [(one.calls, one.missing) for one in left] == [(2, True), (2, True)]


def test_calls_beside_groups(tmp_path):
    """Of another thread, behind the group, in a group that launches nothing, and at the very end of one."""
    node, other, call = Node(3), THREAD + 1, ("ncclAllReduce", {ID: 5, BYTES: 8})
    node.communicator(1, (0, 1, 2))
    node.kernel(0, 10, 3)
    node.range("ncclGroupStart")
    node.range("ncclAllGather", {ID: 6, BYTES: 7}, thread=other, until=node.now)
    node.rows[RUNTIME].append((node.now - 60, node.now - 55, other, 90, 2))
    node.rows[KERNEL].append((node.now, node.now + 300, 2, 20, 90, 1, 1 << 24))
    node.range(*call)
    node.range(*call)
    node.now -= 10
    begun = node.now
    node.kernel(0, 400)
    node.kernel(1, 400)
    node.range("ncclGroupEnd", until=begun)
    for device, (name, peer) in ((1, ("ncclRecv", 0)), (0, ("ncclSend", 1))):
        begun = node.now
        node.kernel(device, 100)
        node.range(name, {ID: 1, "Bytes": 9, "Peer rank": peer}, until=begun)
    node.group([("ncclReduce", {ID: 1, BYTES: 4})] * 3, [])
    node.group([call] * 3, [(0, 200), (1, 200), (2, 200)])
    traces = load_traces(node.write(tmp_path / "a.sqlite"))
    assert [[(c.collective, round(c.measured_s * 1e9)) for c in trace.calls] for trace in traces] == [
        [("all_reduce", 400), ("send", 100), ("all_reduce", 200)],
        [("all_reduce", 400), ("recv", 100), ("all_reduce", 200)],
        [("all_gather", 300), ("all_reduce", 200)],
    ]


def test_numbers_of_devices_in_communicators(tmp_path):
    """The first calls of a group are of the first device of their communicator, whichever it is."""
    node, both = Node(2), [(0, 200), (1, 200)]
    node.communicator(1, (0, 1, 2))
    node.communicator(7, (1, 0))
    for device in (0, 1):
        node.range("ncclCommInitRank", {ID: 8, SIZE: 2, "CUDA device": device})
    for id in (1, 7):
        ends = ("ncclSend", 1), ("ncclRecv", 0)
        node.group([(name, {ID: id, "Bytes": id, "Peer rank": peer}) for name, peer in ends], both)
    node.group([("ncclAllReduce", {ID: 8, BYTES: 8})] * 2, both)
    traces = load_traces(node.write(tmp_path / "a.sqlite"))
    assert [[(c.collective, c.size_bytes) for c in trace.calls] for trace in traces] == [
        [("send", 1), ("recv", 7), ("all_reduce", 8)],
        [("recv", 1), ("send", 7), ("all_reduce", 8)],
    ]


def test_a_group_of_one_device_has_the_time_of_its_kernel(tmp_path):
    """Calls of a group share the kernels that its end launches; a call behind it, or before, has its own."""
    node = Node(1)
    node.communicator(1, (0, 1))
    peer = {ID: 1, "Bytes": 300, "Peer rank": 1}
    node.group([("ncclSend", peer), ("ncclRecv", {**peer, "Bytes": 100})], [(0, 400)])
    begun = node.now
    node.kernel(0, 1_000)
    node.range("ncclAllReduce", {ID: 1, BYTES: 8}, until=begun)
    read = load_workload(node.write(tmp_path / "report.rank0.sqlite"))
    assert [(c.collective, c.size_bytes, c.ranks, round(c.measured_s * 1e9)) for c in read.calls] == [
        ("send_recv", 300, (0, 1), 300),
        ("send_recv", 100, (1, 0), 100),
        ("all_reduce", 8, (0, 1), 1_000),
    ]
    assert "batches: 1 kernel of 2 calls, which share their time by bytes" in read.notes


spans = st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.integers(1, 200)), min_size=1, max_size=8)


@examples(40)
@given(spans)
def test_recorded_times_add_up(tmp_path_factory, drawn):
    """Computation, exposed calls and idle time of a device are the step, by marking every nanosecond."""
    node = Node(1)
    node.communicator(1, (0, 1))
    for calls, gap, ns in [(True, 1, 9), *drawn, (False, 7, 5)]:
        node.now += gap
        begun = node.now
        node.kernel(0, ns, 1 if calls else 3)
        if calls:
            node.range("ncclAllReduce", {ID: 1, BYTES: 8}, until=begun)
    (step,) = load_steps(node.write(tmp_path_factory.getbasetemp() / "report.rank0.sqlite"))
    kernels = node.rows[KERNEL]
    first, last = min(one[0] for one in kernels), max(one[1] for one in kernels)
    marks = bytearray(last - first)
    for mark, name in ((1, 1), (2, 3)):
        for one in kernels:
            if one[5] == name:
                marks[one[0] - first : one[1] - first] = bytes([mark]) * (one[1] - one[0])
    parts = step.recorded.busy_s, step.recorded.exposed_s, step.recorded.idle_s
    assert [round(part * 1e9) for part in parts] == [marks.count(2), marks.count(1), marks.count(0)]
    assert sum(parts) == pytest.approx(step.recorded.total_s, rel=1e-3)


def test_events_are_counted(tmp_path):
    """Kernels, copies between devices, calls of the host and ranges; a kernel without a time has a note, and no time."""
    node = Node(1)
    node.communicator(1, (0, 1))
    node.group([("ncclAllReduce", {ID: 1, BYTES: 8})], [(0, 500)])
    node.kernel(0, 300, 3)
    path = node.write(tmp_path / "report.rank0.sqlite")
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"INSERT INTO {KERNEL} VALUES (9, NULL, 0, 20, 77, 3, {1 << 24})")
        file.execute(f"INSERT INTO {KERNEL} VALUES (9, 8, 0, 20, 78, 3, {1 << 24})")
        file.execute("INSERT INTO StringIds VALUES (9, 'deep_ep::internode::dispatch')")
        file.execute(f"INSERT INTO {KERNEL} VALUES (90000, 130000, 0, 20, NULL, 9, {1 << 24})")
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, streamId INT, copyKind INT, bytes INT, globalPid INT)"
        )
        rows = [
            (10, 20, 7, 10, 64, 1 << 24),
            (10, 20, 7, 10, 32, 1 << 24),
            (10, 20, 7, 2, 64, 1 << 24),
            (10, 20, 7, 10, 64, 5),
        ]
        file.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?)", rows)
        file.commit()
    read = load_workload(path)
    kernels, copies, host, ranges = 5, 2, 2, 4
    assert f"events: {kernels + copies + host + ranges}" in read.notes
    assert "kernels without a time: 2" in read.notes
    notes = "; ".join(read.notes)
    assert "1 kernels of DeepEP without a size, 40 us: deep_ep::internode::dispatch (1)" in notes
    assert "2 copies between devices without a size, 20 ns, 96 " in notes
    assert read.compute_s == pytest.approx(300e-9)


def test_ranks_of_which_some_are_not_recorded(tmp_path):
    """One device of two with a number, and processes without communicators, are refused."""
    call = ("ncclAllReduce", {ID: 1, BYTES: 8})
    path = write_report(tmp_path / "a.sqlite", {0: [begin(1, 2, 0), call], 1: [call]}, shared="threads")
    with pytest.raises(WorkloadError, match=r"has calls of 2 ranks .* the number of device 1 of process 1;"):
        load_workload(path)
    path = write_report(tmp_path / "b.sqlite", {5: [("ncclAllReduce", {BYTES: 8})], 6: [("ncclAllReduce", {BYTES: 8})]})
    with pytest.raises(
        WorkloadError, match=r"has calls of 2 ranks \(process 5, process 6\), .* the number of process 5;"
    ):
        load_workload(path)
    path = write_report(
        tmp_path / "c.sqlite", {0: [("ncclCommInitRank", {SIZE: 3}), call], 1: [call]}, shared="threads"
    )
    with pytest.raises(WorkloadError, match="has calls of 2 ranks"):
        load_workload(path)


def test_waits_of_streams_for_events(tmp_path):
    """A kernel waits for the call whose event its stream waits for, though the call had ended before it could start."""
    report = Report()
    report.rows["NVTX_EVENTS"].append((0, 500, "ncclCommInitRank", None, 99, json.dumps({SIZE: 4})))
    for name, ns in (("a", 100_000), ("", 0), ("b", 400_000), ("wait", 0), ("c", 50_000), ("", 0), ("d", 60_000)):
        if name == "wait":
            report.wait(7, 20)
        elif name:
            report.kernel(name, 7, ns)
        else:
            report.call("ncclAllReduce", 8_000)
    job = load_job(report.write(tmp_path / "report.rank0.sqlite"))
    first, _ = (i for i, task in enumerate(job.tasks) if task.communicates)
    waiting = [round(task.compute_s * 1e6) for task in job.tasks if first in task.after]
    assert waiting == [50]


def test_kernels_that_a_graph_launches(tmp_path):
    """They belong to no call of the report, which says so."""
    node = Node(1)
    node.communicator(1, (0, 1))
    node.group([("ncclAllReduce", {ID: 1, BYTES: 8})], [(0, 500)])
    node.rows["StringIds"].append((8, "cudaGraphLaunch_v10000"))
    node.kernel(0, 700)
    row = node.rows[RUNTIME].pop()
    node.rows[RUNTIME].append((*row[:4], 8))
    notes = "; ".join(load_workload(node.write(tmp_path / "report.rank0.sqlite")).notes)
    assert "1 kernels of collectives, 700 ns, launched by a graph" in notes
    assert "outside of any record" not in notes


def test_ranges_that_are_no_calls(tmp_path):
    """Neither a call nor one without a size: what makes, ends or waits for communicators."""
    node = Node(1)
    node.communicator(1, (0, 1))
    node.group([("ncclAllReduce", {ID: 1, BYTES: 8}), ("ncclCommDestroy", {}), ("ncclMemAlloc", {ID: 1})], [(0, 500)])
    read = load_workload(node.write(tmp_path / "report.rank0.sqlite"))
    assert ([c.size_bytes for c in read.calls], read.omitted) == ([8], ())
