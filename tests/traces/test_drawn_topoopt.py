"""Drawn task graphs of TopoOpt: the order of calls, the busiest device and its tasks, by playing the graph task by task."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.test_topoopt import DEVICES, graph, task

from opticcl.traces import load_job, load_workload

TYPES = ("forward", "backward", "comm", "update", "barrier", "transfer", "all_reduce")
COMPUTE, COMM, TRANSFER, ALL_REDUCE = (0, 1, 3, 4), 2, 5, 6
NODES, SWITCHES = 4, 1
ENDS = {50: (1, 2), 51: (3, 3), 52: (0, 4)}  # of the devices of test_topoopt; node 4 is the switch


@st.composite
def drawn(draw):
    """Tasks (type, id, device, ms, bytes, following); the graph may only have arrows to later ids."""
    found = []
    count = draw(st.integers(1, 9))
    for number in range(1, count + 1):
        kind = draw(st.sampled_from([0, 1, 3, 4, 2, 5, 5, 5, 6, 6, 9]))
        device = draw(st.sampled_from([50, 50, 51, 52, 53] if kind == TRANSFER else [53, 60, 61]))
        later = draw(st.lists(st.integers(number + 1, count + 2), max_size=3))
        members = draw(st.lists(st.integers(0, NODES - 1), max_size=4))
        following = tuple(members if kind == ALL_REDUCE else dict.fromkeys(later))
        size = (
            draw(st.sampled_from([0, 8, 16])) if kind not in (TRANSFER, ALL_REDUCE) else draw(st.sampled_from([8, 16]))
        )
        found.append((kind, number, device, draw(st.integers(0, 4)), size, following))
    found.append((ALL_REDUCE, 90, 60, 0, 32, (0, 1)))
    return draw(st.permutations(found))


def call_of(one):
    """Collective, bytes and ranks of the call of a task; None if it has none."""
    kind, _, device, _, size, following = one
    if kind == ALL_REDUCE and len(set(following)) > 1:
        return "all_reduce", size, tuple(dict.fromkeys(following))
    if kind == TRANSFER and device == 50:
        return "send_recv", size, ENDS[50]
    return None


def needs_of(tasks):
    """Tasks that each one waits for, by id."""
    found = {one[1]: [] for one in tasks}
    for one in tasks:
        for after in one[5] if one[0] != ALL_REDUCE else ():
            if after in found:
                found[after].append(one[1])
    return found


def played(tasks, devices):
    """Ids in the order in which they start, and when each ends: the first that is ready goes first.

    Args: devices: whether a device computes one task at a time, and only computation takes time.
    """
    needs, ends, free, order = needs_of(tasks), {}, Counter(), []
    while len(ends) < len(tasks):
        ready = [one for one in tasks if one[1] not in ends and all(i in ends for i in needs[one[1]])]
        at, _, one = min((max((ends[i] for i in needs[o[1]]), default=0), tasks.index(o), o) for o in ready)
        computes = one[0] in COMPUTE
        if devices and computes:
            at = max(at, free[one[2]])
            free[one[2]] = at + one[3]
        ends[one[1]] = at + (one[3] if computes or not devices else 0)
        order.append(one)
    return order, ends


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("topoopt") / "job.fbuf"


# A long task before one transfer, a short one before the other, which the file has later.
TWO_CHAINS = [(0, 1, 60, 3, 0, (2,)), (5, 2, 50, 0, 8, ()), (0, 3, 61, 1, 0, (4,)), (5, 4, 50, 0, 16, ())]


@examples(60)
@given(tasks=drawn())
@example(tasks=TWO_CHAINS)
def test_calls_in_the_order_in_which_they_can_start(path, tasks):
    """With their ends; what is no call of two nodes is counted, as is every type of task."""
    path.write_bytes(graph([task(*one) for one in tasks], DEVICES, NODES, SWITCHES))
    read = load_workload(path)
    order, _ = played(tasks, devices=False)
    due = [(f"task {one[1]}", *call_of(one)) for one in order if call_of(one)]
    everyone = tuple(range(NODES))
    assert [(c.name, c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        (name, kind, size, () if ranks == everyone else ranks) for name, kind, size, ranks in due
    ]
    left = {}
    for kind, _, device, _, size, following in tasks:
        what = {
            COMM: "comm, one hop of a transfer",
            TRANSFER: {
                53: "transfers on no device between nodes",
                51: "transfers from a node to itself",
                52: "transfers from or to a switch or an unknown node",
            }.get(device),
            ALL_REDUCE: "all_reduce in a group of one node or none" if len(set(following)) < 2 else None,
        }.get(kind, "sizes of tasks that compute" if size else None)
        if what:
            n, total = left.get(what, (0, 0))
            left[what] = n + 1, total + size
    assert {one.what: (one.calls, one.size_bytes) for one in read.omitted} == left
    busy = Counter()
    for kind, _, device, took, *_ in tasks:
        busy[device] += took * (kind in COMPUTE)
    assert read.compute_s == pytest.approx(max(busy.values(), default=0) * 1e-3)
    kinds = Counter(TYPES[one[0]] if one[0] < 7 else "of unknown type" for one in tasks)
    census = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    assert f"tasks: {census}; {len(tasks)} in all" in read.notes
    unknown = sum(i not in {one[1] for one in tasks} for one in tasks if one[0] != ALL_REDUCE for i in one[5])
    said = f"dangling dependencies, ignored: {unknown} on ids that no task has"
    assert (said in read.notes) == bool(unknown)
    assert read.num_ranks == NODES


@examples(60)
@given(tasks=drawn())
def test_the_job_of_the_busiest_device(path, tasks):
    """Its computation in the order of its ends, after the calls that it needs; calls after what ended before."""
    path.write_bytes(graph([task(*one) for one in tasks], DEVICES, NODES, SWITCHES))
    job = load_job(path)
    needs, (_, ends) = needs_of(tasks), played(tasks, devices=True)
    busy = {}
    for kind, _, device, took, *_ in tasks:
        if kind in COMPUTE:
            busy[device] = busy.get(device, 0) + took
    device = max(busy, key=lambda one: busy[one], default=None)
    mine = sorted(
        (one for one in tasks if one[0] in COMPUTE and one[2] == device),
        key=lambda one: (ends[one[1]], tasks.index(one)),
    )
    calls = {one[1]: call_of(one) for one in tasks if call_of(one)}
    computed = [(i, t) for i, t in enumerate(job.tasks) if not t.communicates]
    assert [(t.name, t.compute_s, t.phase) for _, t in computed] == [
        (
            f"{TYPES[kind]} {number}",
            pytest.approx(took * 1e-3),
            TYPES[kind] if kind < 2 else "update" if kind == 3 else "",
        )
        for kind, number, _, took, *_ in mine
    ]
    # Each call goes behind the last computation that ended by the time at which all that it needs had ended.
    behind = {}
    for number in calls:
        ready = max((ends[i] for i in needs[number]), default=0)
        last = [place for place, one in enumerate(mine) if ends[one[1]] <= ready]
        behind.setdefault(last[-1] if last else -1, []).append(calls[number])
    position = -1
    found = {}
    for t in job.tasks:
        if not t.communicates:
            position += 1
            continue
        assert t.after == ((computed[position][0],) if position >= 0 else ())
        assert (t.fusible, t.phase) == (
            t.collective == "all_reduce",
            "backward" if t.collective == "all_reduce" else "",
        )
        found.setdefault(position, Counter())[t.collective, t.size_bytes] += job.groups[t.group].num_groups
    assert found == {place: Counter((kind, size) for kind, size, _ in rows) for place, rows in behind.items()}
    assert all(list(kinds) == sorted(kinds) for kinds in found.values())
    together = len(calls) - sum(t.communicates for t in job.tasks)
    assert any(f"calls of all {NODES} nodes, {together} of them at the same time" in note for note in job.notes)
    for (_, t), one in zip(computed, mine, strict=True):
        wanted = Counter(calls[i][:2] for i in needs[one[1]] if i in calls)
        assert {job.tasks[i].collective for i in t.after} == {kind for kind, _ in wanted}
        assert {(job.tasks[i].collective, job.tasks[i].size_bytes) for i in t.after} == set(wanted)
