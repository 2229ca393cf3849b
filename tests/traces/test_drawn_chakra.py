"""Drawn Chakra traces, as protobuf and as JSON: calls, times, notes and order by the rules of the format written down here.

The nodes are drawn as plain values, which a writer of the tests encodes; what a trace means is computed from the values.
"""

import itertools
import json
import struct
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces import test_chakra as writer

from opticcl.traces import load_job, load_workload

COMP, SEND, RECV, COLL = 4, 5, 6, 7
TYPES = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]
COLLECTIVES = ["all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all"]
COLLECTIVES += ["reduce_scatter", "reduce_scatter", "barrier"]
RANKS = 8


@dataclass
class Node:
    """A node of a trace.

    Args:
        number: its id.
        kind: number of its type.
        on_host: whether the host executes it; None if it does not say.
        needs: ids that it depends on.
        start_us, took_us: its time.
        attributes: further ones by name.
        control: how many of its dependencies are those of control.
    """

    number: int
    kind: int
    on_host: bool | None = None
    needs: list[int] = field(default_factory=list)
    start_us: int = 0
    took_us: int = 0
    attributes: dict[str, int | str] = field(default_factory=dict)
    control: int = 0

    @property
    def compute_us(self) -> int:
        """Computation on the device."""
        return self.took_us if self.kind == COMP and self.on_host is False else 0

    @property
    def has_call(self) -> bool:
        """Whether it is a record of a call with a size."""
        size, kind = self.attributes.get("comm_size"), self.attributes.get("comm_type")
        return (self.kind in (SEND, RECV) or (self.kind == COLL and kind in range(10))) and size is not None


def called(node):
    """Collective, bytes, ranks and group of the call of a node."""
    about = node.attributes
    group = str(about.get("pg_name", ""))
    if node.kind != COLL:
        return "send_recv", about["comm_size"], (about.get("comm_src", -1), about.get("comm_dst", -1)), group
    word = COLLECTIVES[about["comm_type"]]
    return word, about["comm_size"] * (RANKS if word in ("all_gather", "gather") else 1), (), group


def calls_of(nodes):
    """The nodes whose calls count: kernels; without one the records of the host."""
    with_call = [node for node in nodes if node.has_call]
    return [node for node in with_call if not node.on_host] or with_call


# --- encodings --------------------------------------------------------------------------------------------------------


def encoded(name, value, form):
    """An AttributeProto, a whole number in one of the forms that may hold it."""
    if isinstance(value, str):
        return writer.attribute(name, value)
    if form in (15, 17):
        return writer.attribute(name, value << 1 ^ value >> 63, form)
    if form in (19, 21, 23, 25):
        wire, packing = {19: (5, "<I"), 21: (1, "<Q"), 23: (5, "<i"), 25: (1, "<q")}[form]
        return writer.field(1, name) + writer.varint(form << 3 | wire) + struct.pack(packing, value)
    return writer.attribute(name, value, form)


def as_protobuf(nodes, forms, packed):
    """The trace as protobuf."""
    messages = []
    for place, one in enumerate(nodes):
        control, data = one.needs[: one.control], one.needs[one.control :]
        if packed:
            needs = writer.field(4, b"".join(map(writer.varint, control))) if control else b""
            needs += writer.field(5, b"".join(map(writer.varint, data))) if data else b""
        else:
            needs = b"".join(writer.field(4, i) for i in control) + b"".join(writer.field(5, i) for i in data)
        attributes = [encoded(name, value, forms[place % len(forms)]) for name, value in one.attributes.items()]
        if one.on_host is not None:
            attributes.append(writer.attribute("is_cpu_op", int(one.on_host), 27))
        needs += writer.field(6, one.start_us) if one.start_us else b""
        name = f"node {place}"
        messages.append(writer.node(one.number, one.kind, *attributes, needs=needs, duration_us=one.took_us, name=name))
    about = writer.field(1, "0.0.4") + writer.field(2, writer.attribute("schema", "s")) + writer.field(3, 1)
    return writer.trace(*messages, metadata=about)


def as_json(nodes, listed, texts, snake):
    """The trace as JSON: objects in a row or a list, numbers as texts or not, names in one of two styles."""
    number = str if texts else int
    data, control, start, took = ["data_deps", "ctrl_deps", "start_time_micros", "duration_micros"]
    if not snake:
        data, control, start, took = "dataDeps", "ctrlDeps", "startTimeMicros", "durationMicros"
    whole, text, truth = ("int64_val", "string_val", "bool_val") if snake else ("int64Val", "stringVal", "boolVal")
    objects = [{"version": "0.0.4"}]
    for place, one in enumerate(nodes):
        attributes = [
            {"name": name, text: value} if isinstance(value, str) else {"name": name, whole: number(value)}
            for name, value in one.attributes.items()
        ]
        if one.on_host is not None:
            attributes.append({"name": "is_cpu_op", truth: one.on_host, **({"doc": 1} if place % 2 else {})})
        known = {"id": number(one.number), "name": f"node {place}", "type": f"{TYPES[one.kind]}_NODE"}
        known |= {data: [number(i) for i in one.needs[one.control :]], control: list(one.needs[: one.control])}
        objects.append({**known, start: number(one.start_us), took: number(one.took_us), "attr": attributes})
    return json.dumps(objects) if listed else "\n".join(map(json.dumps, objects))


# --- drawing ----------------------------------------------------------------------------------------------------------

small = st.integers(0, 2**31 - 1)
about_calls = st.fixed_dictionaries(
    {},
    optional={
        "comm_size": small,
        "comm_type": st.integers(-1, 10),
        "comm_src": st.integers(0, 3),
        "comm_dst": st.integers(4, RANKS - 1),
        "comm_tag": st.integers(0, 3),
        "pg_name": st.sampled_from(["tp", "5", 5]),
        "other": small,
    },
)


@st.composite
def traces(draw):
    """Nodes of any kind with any attributes, with dependencies on earlier ones and on none that there is."""
    found, apart = [], draw(st.sampled_from([1, 64, 2**40]))  # ids of one byte and of several
    for number in range(1, draw(st.integers(1, 14)) + 1):
        kind = draw(st.sampled_from([COMP, COMP, SEND, RECV, COLL, COLL, COLL, 2]))
        needs = draw(st.lists(st.integers(1, number - 1).map(apart.__mul__), max_size=3)) if number > 1 else []
        one = Node(number * apart, kind, draw(st.sampled_from([None, False, False, True])))
        one.needs, one.took_us = [*needs, *draw(st.sampled_from([[], [], [10**6]]))], draw(st.integers(0, 50))
        one.control = draw(st.integers(0, len(one.needs)))
        if kind in (SEND, RECV, COLL):
            one.attributes = dict(draw(about_calls))
            if draw(st.booleans()):  # most records are whole
                one.attributes |= {"comm_size": draw(small), "comm_type": draw(st.integers(0, 9))}
        found.append(one)
    found.insert(draw(st.integers(0, len(found))), Node(99, COLL, False, [], 0, 7, {"comm_type": 0, "comm_size": 8}))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of one file."""
    return tmp_path_factory.mktemp("chakra")


forms = st.lists(st.sampled_from([7, 9, 11, 13, 15, 17, 19, 21, 23, 25]), min_size=1, max_size=3)


def written(folder, nodes, draw):
    """A file of the nodes in a drawn encoding."""
    for old in folder.iterdir():
        old.unlink()
    if draw(st.booleans()):
        # Of the forms some have no sign.
        signed = all(value >= 0 for one in nodes for value in one.attributes.values() if isinstance(value, int))
        chosen = draw(forms if signed else st.sampled_from([[7], [9], [15, 17], [23, 25]]))
        (folder / "a.et").write_bytes(as_protobuf(nodes, chosen, draw(st.booleans())))
        return folder / "a.et"
    (folder / "a.json").write_text(as_json(nodes, *(draw(st.booleans()) for _ in range(3))))
    return folder / "a.json"


@examples(40)
@given(nodes=traces(), data=st.data())
def test_calls_and_notes(folder, nodes, data):
    """Kernels count, the host's records where there are none; everything else is counted."""
    read = load_workload(written(folder, nodes, data.draw), num_ranks=RANKS)
    due = calls_of(nodes)
    assert [(c.collective, c.size_bytes, c.ranks, c.group) for c in read.calls] == [called(one) for one in due]
    assert [c.name for c in read.calls] == [f"node {nodes.index(one)}" for one in due]
    assert [c.measured_s for c in read.calls] == [pytest.approx(one.took_us * 1e-6) for one in due]
    computed = [one for one in nodes if one.compute_us]
    assert read.compute_s == pytest.approx(sum(one.compute_us for one in computed) * 1e-6)

    notes = Counter(read.notes)
    kinds = Counter(TYPES[one.kind].lower() for one in nodes)
    census = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    assert notes[f"nodes: {census}; {len(nodes)} in all"] == 1
    unsized = [one for one in nodes if one.kind in (SEND, RECV, COLL) and "comm_size" not in one.attributes]
    repeated = sum(one.kind == COLL and bool(one.on_host) for one in unsized)
    repeated += sum(bool(one.on_host) for one in nodes if one.has_call) * any(not one.on_host for one in due)
    said = f"left out: {repeated:,} comm_coll where the host issues a call"
    assert notes[said] == bool(repeated)
    left = Counter(TYPES[one.kind].lower() for one in unsized if one.kind != COLL or not one.on_host)
    assert [kind for kind in left if notes[f"left out: {left[kind]} {kind} without comm_size"] != 1] == []
    untyped = [
        one.attributes["comm_size"] for one in nodes if one.kind == COLL and not one.has_call and one not in unsized
    ]
    if untyped:
        assert (
            notes[f"left out: {len(untyped)} comm_coll without a known comm_type, {sum(untyped):,} bytes in all"] == 1
        )
    known = {one.number for one in nodes}
    dangling = [i for one in nodes for i in one.needs if i not in known]
    said = f"dangling dependencies, ignored: {len(dangling)} on {len(set(dangling))} unknown ids"
    assert notes[said] == bool(dangling)
    told = [note for note in read.notes if note.startswith("computation: ")]
    assert len(told) == bool(computed)
    assert all(f"on the device in {len(computed)} of {kinds['comp']} comp nodes;" in note for note in told)
    missing = {one.what: one.missing for one in read.omitted}
    assert all(missing[what] for what in missing if "without" in what)


# --- order ------------------------------------------------------------------------------------------------------------


def meaning(job):
    """Computation with all the calls that it has waited for, and calls with the computation before them, in order."""
    rows, waited, computed = [], frozenset(), 0.0
    for task in job.tasks:
        if task.communicates:
            rows.append((task.name, round(sum(job.tasks[i].compute_s for i in before(job, task)) * 1e6)))
        else:
            waited |= {job.tasks[i].name for i in before(job, task) if job.tasks[i].communicates}
            computed += task.compute_s
            rows.append((waited, round(computed * 1e6)))
    return rows


def before(job, task):
    """All tasks that have ended when one starts; the computation in its order."""
    found, todo = set(), list(task.after)
    while todo:
        i = todo.pop()
        if i not in found:
            found.add(i)
            todo += job.tasks[i].after
            if not job.tasks[i].communicates:
                todo += [j for j in range(i) if not job.tasks[j].communicates]
    return found


@examples(40)
@given(nodes=traces(), data=st.data())
def test_kernels_in_the_order_of_the_file(folder, nodes, data):
    """With a host: a kernel waits for the calls that its data need, directly or by what issues them; the last ones for all."""
    nodes.append(Node(100, COMP, True))  # a host
    job = load_job(written(folder, nodes, data.draw), num_ranks=RANKS)
    due = [
        node
        for node in calls_of(nodes)
        if called(node)[2] == () or len(set(called(node)[2])) > 1 or -1 in called(node)[2]
    ]
    names = {id(one): f"node {nodes.index(one)}" for one in due}
    last = max(nodes.index(one) for one in due)
    by_id = {one.number: names[id(one)] for one in due}
    issuing = {one.number for one in nodes if one.kind == COLL and one.on_host}
    owner = {}
    for one in due:
        owner |= dict.fromkeys(one.needs, (nodes.index(one), names[id(one)]))
    rows, waited, computed, behind = [], frozenset(), 0, 0
    for place, one in enumerate(nodes):
        if id(one) in names:
            rows.append((names[id(one)], computed))
        elif one.compute_us:
            earlier = {name for name in names.values() if int(name[5:]) < place}
            wanted = {by_id[i] for i in one.needs[one.control :] if by_id.get(i) in earlier}
            wanted |= {
                owner[i][1] for i in one.needs[one.control :] if i in issuing and owner.get(i, (place,))[0] < place
            }
            if place > last:
                wanted, behind = set(names.values()), behind + 1
            waited |= wanted
            computed += one.compute_us
            rows.append((waited, computed))
    # Kernels that wait for nothing more may be one task with those before them.
    merged = [
        row
        for row, after in zip(rows, [*rows[1:], ("", 0)], strict=True)
        if isinstance(row[0], str) or row[0] != after[0]
    ]
    found = meaning(job)
    found = [
        row
        for row, after in zip(found, [*found[1:], ("", 0)], strict=True)
        if isinstance(row[0], str) or row[0] != after[0]
    ]
    assert found == merged
    assert sum(note.startswith("order: kernels run in the order of the file") for note in job.notes) == 1
    said = (
        "the kernel after the last collective depends"
        if behind == 1
        else f"the {behind} kernels after the last collective"
    )
    assert sum(said in note for note in job.notes) == bool(behind)
    kernels = sum(int(task.name.split()[0]) for task in job.tasks if not task.communicates)
    assert kernels == sum(bool(one.compute_us) for one in nodes)
    assert all(
        task.name.endswith("kernel" if task.name.startswith("1 ") else "kernels")
        for task in job.tasks
        if not task.communicates
    )


@st.composite
def graphs(draw):
    """Nodes without a host, in any order of the file; computation has a duration, or operations and bytes."""
    count = draw(st.integers(1, 9))
    order = draw(st.permutations(range(1, count + 1)))
    found = []
    for place, number in enumerate(order):
        kind = draw(st.sampled_from([COMP, COMP, COMP, COLL, SEND, 3]))
        needs = draw(st.lists(st.sampled_from(order[:place]), max_size=3)) if place else []
        one = Node(number, kind, draw(st.sampled_from([False, None])), needs)
        one.control = draw(st.integers(0, len(needs)))
        if kind == COMP:
            one.took_us = draw(st.integers(0, 9))
            one.attributes = draw(
                st.fixed_dictionaries({}, optional={"num_ops": st.integers(-2, 9), "tensor_size": st.integers(-2, 9)})
            )
        elif kind != 3:
            one.took_us = draw(st.integers(0, 9))
            one.attributes = {"comm_size": number, "comm_type": 0, "comm_src": 0, "comm_dst": 1}
        found.append(one)
    found.append(Node(count + 1, COLL, False, [], 0, 2, {"comm_type": 5, "comm_size": 77}))
    return draw(st.permutations(found))


def in_order(nodes):
    """Nodes as they start: of those that may, the one that could start first, then the first of the file."""
    ends, order = {}, []
    while len(order) < len(nodes):
        ready = [one for one in nodes if one.number not in ends and all(i in ends for i in one.needs)]
        at, _, one = min((max((ends[i] for i in o.needs), default=0), nodes.index(o), o.number) for o in ready)
        node = next(o for o in nodes if o.number == one)
        ends[one] = at + (node.took_us if node.attributes.get("comm_size") else node.compute_us)
        order.append(node)
    return order


@examples(40)
@given(nodes=graphs(), data=st.data())
def test_dependencies_alone_decide(folder, nodes, data):
    """The order by a list of what may start; a task waits for the calls before it and the last computation before it."""
    job = load_job(written(folder, nodes, data.draw), num_ranks=RANKS)
    rows, tasks, by_id = [], {}, {one.number: one for one in nodes}

    def ahead(node):
        """Tasks that a node needs, through nodes that are none."""
        found = set()
        for i in node.needs:
            found |= {tasks[i]} if i in tasks else ahead(by_id[i])
        return found

    for one in in_order(nodes):
        work = one.attributes.get("num_ops", 0), one.attributes.get("tensor_size", 0)
        # The bytes count beside operations.
        operations = max(work[0], 0), max(work[1], 0) * ("num_ops" in one.attributes)
        calls = "comm_size" in one.attributes
        if not calls and not one.compute_us and not any(operations):
            continue
        after = ahead(one)
        computed = [i for i in after if not rows[i][0].startswith("node") or rows[i][1] == ""]
        late = {i for i in after if rows[i][1]} | set(computed and [max(computed)])
        name = f"node {nodes.index(one)}" if calls else f"node {one.number}"
        kind = ("broadcast" if one.attributes.get("comm_type") else "all_reduce") if one.kind == COLL else "send_recv"
        operations = (0, 0) if calls or one.compute_us else operations
        tasks[one.number] = len(rows)
        rows.append((name, kind if calls else "", one.compute_us, tuple(sorted(late)), *operations))
    assert [
        (t.name, t.collective, round(t.compute_s * 1e6), t.after, t.operations, t.memory_bytes) for t in job.tasks
    ] == rows
    assert sum(note.startswith("order: as dependencies allow") for note in job.notes) == 1


@pytest.mark.parametrize(
    ("kind", "about", "work"),
    [
        (COMP, {"num_ops": 1, "tensor_size": 1}, (1, 1)),
        (COMP, {"num_ops": 9, "tensor_size": -1}, (9, 0)),
        (COMP, {"num_ops": -9, "tensor_size": 5}, (0, 5)),
        (COMP, {"num_ops": "9", "tensor_size": 5}, (0, 5)),
        (COMP, {"num_ops": 9, "tensor_size": "5"}, (9, 0)),
        (COMP, {"num_ops": 0, "tensor_size": 0}, None),
        (COMP, {"tensor_size": 5}, None),
        (3, {"num_ops": 9, "tensor_size": 5}, None),
    ],
)
def test_work_of_a_computation(folder, kind, about, work):
    """Operations and bytes from 1, where they are numbers; other nodes have none."""
    nodes = [Node(1, kind, None, attributes=about), Node(2, COLL, False, [1], 0, 0, {"comm_type": 0, "comm_size": 8})]
    (folder / "c.et").write_bytes(as_protobuf(nodes, [9], False))
    found = [(t.operations, t.memory_bytes) for t in load_job(folder / "c.et", num_ranks=2).tasks if not t.communicates]
    assert found == ([work] if work else [])


@pytest.mark.parametrize("form", [7, 9, 15, 17, 23, 25])
def test_a_negative_rank_is_unknown(folder, form):
    """In each form of numbers with a sign."""
    about = {"comm_size": 8, "comm_src": 3, "comm_dst": -5}
    (folder / "c.et").write_bytes(as_protobuf([Node(1, SEND, False, attributes=about)], [form], False))
    assert load_workload(folder / "c.et").calls[0].ranks == (3, -1)


@examples(30)
@given(st.lists(st.tuples(st.integers(1, 8), st.lists(st.integers(1, 10), max_size=3)), min_size=1, max_size=10))
def test_ids_and_circles(folder, drawn):
    """Ids that occur twice, ids that there are none of, and a circle that is one."""
    nodes = [Node(number, COMP, None, needs) for number, needs in drawn]
    nodes.append(Node(300, COLL, False, [], 0, 0, {"comm_type": 0, "comm_size": 8}))
    (folder / "c.et").write_bytes(as_protobuf(nodes, [9], True))
    notes = load_workload(folder / "c.et").notes
    known = {one.number for one in nodes}
    doubled = len(nodes) - len(known)
    assert (f"duplicate ids: {doubled}; each of these nodes counts" in notes) == bool(doubled)
    dangling = [i for one in nodes for i in one.needs if i not in known]
    said = f"dangling dependencies, ignored: {len(dangling)} on {len(set(dangling))} unknown ids"
    assert (said in notes) == bool(dangling)
    edges = {(one.number, i) for one in nodes for i in one.needs}
    reached = set(edges)
    for _ in known:
        reached |= {(a, d) for a, b in reached for c, d in edges if b == c}
    circles = [note for note in notes if note.startswith("cyclic dependencies")]
    assert len(circles) == any(a == b for a, b in reached)
    for note in circles:
        ids = [int(one) for one in note.rpartition("such as ")[2].split(" needs ")]
        assert ids[0] == ids[-1]
        assert len(set(ids)) == len(ids) - 1
        assert all(pair in edges for pair in itertools.pairwise(ids))


def test_a_long_circle_is_shortened(folder):
    """Of eight and of nine ids; each back edge is counted."""
    whole = "1 needs 2 needs 3 needs 4 needs 5 needs 6 needs 7 needs 1"
    for many, shown in ((7, whole), (8, "1 needs 2 needs 3 needs 4 needs ... needs 7 needs 8 needs 1")):
        nodes = [Node(i, COMP, None, [i % many + 1]) for i in range(1, many + 1)]
        nodes.append(Node(99, COLL, False, [99, 1], 0, 0, {"comm_type": 0, "comm_size": 8}))
        (folder / "c.et").write_bytes(as_protobuf(nodes, [9], False))
        (note,) = (note for note in load_workload(folder / "c.et").notes if note.startswith("cyclic"))
        assert note == f"cyclic dependencies, ignored: 2 close a cycle, such as {shown}"


spans = st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.integers(1, 20)), min_size=1, max_size=10)


@examples(30)
@given(spans, st.booleans(), st.data())
def test_recorded_times_add_up(folder, drawn, starts, data):
    """Computation, exposed calls and idle time are the step, by marking every microsecond; sums alone without starts."""
    nodes, marks = [], [0] * 100
    for number, (calls, start, took) in enumerate([*drawn, (True, 30, 5)], 1):
        about = {"comm_type": 0, "comm_size": 8} if calls else {}
        nodes.append(Node(number, COLL if calls else COMP, False, [], start * starts, took, about))
        for at in range(start, start + took):
            marks[at] |= 1 if calls else 2
    recorded = load_job(written(folder, nodes, data.draw), num_ranks=2).recorded
    assert recorded.compute_s == pytest.approx(sum(took for calls, _, took in drawn if not calls) * 1e-6)
    assert recorded.communication_s == pytest.approx(sum(took for calls, _, took in drawn if calls) * 1e-6 + 5e-6)
    if not starts:
        assert (recorded.total_s, recorded.exposed_s, recorded.busy_s, recorded.idle_s) == (None, None, None, None)
        return
    lit = [at for at, mark in enumerate(marks) if mark]
    idle = sum(not mark for mark in marks[lit[0] : lit[-1] + 1])
    parts = [recorded.busy_s, recorded.exposed_s, recorded.idle_s]
    due = [sum(mark > 1 for mark in marks), marks.count(1), idle]
    assert [round(part * 1e6, 3) for part in parts] == due
    assert sum(parts) == pytest.approx(recorded.total_s, rel=1e-9)
    assert recorded.total_s == pytest.approx((lit[-1] + 1 - lit[0]) * 1e-6)


@pytest.mark.parametrize("starts", [(0, 9), (9, 0), (0, 0)])
def test_a_start_that_is_missing_leaves_the_sums(folder, starts):
    """Of the computation, or of the call."""
    nodes = [Node(1, COMP, False, [], starts[0], 5)]
    nodes.append(Node(2, COLL, False, [], starts[1], 7, {"comm_type": 0, "comm_size": 8}))
    (folder / "c.et").write_bytes(as_protobuf(nodes, [9], False))
    recorded = load_job(folder / "c.et", num_ranks=2).recorded
    assert (recorded.compute_s, recorded.communication_s) == (pytest.approx(5e-6), pytest.approx(7e-6))
    assert recorded.total_s is None


def test_memory_of_a_trace_is_bounded(folder):
    """Beyond 8 MiB of ids and dependencies they are given up, which a note says."""
    for many, noted in ((2**23 - 3 * 8, False), (2**23 - 3 * 8 + 1, True)):  # an id and two ends of 8 bytes
        node = writer.node(1, COLL, writer.attribute("comm_type", 0), writer.attribute("comm_size", 8))
        ids = b"\xff\xff\xff\xff\xff\xff\xff\1" * (many // 8) + b"\2" * (many % 8)
        needs = writer.varint(5 << 3 | 2) + writer.varint(many) + ids
        (folder / "big.et").write_bytes(writer.trace(node + needs))
        said = "ids and dependencies were not checked: too many to keep in memory"
        assert (said in load_workload(folder / "big.et").notes) == noted


def test_dependencies_over_many_blocks(folder):
    """Ids of nine bytes in rows of a megabyte and of none: all that are unknown are counted, and the order is theirs."""
    many = 120_000
    far = b"".join(
        bytes((128 | i & 127, 128 | i >> 7 & 127, 128 | i >> 14)) + b"\x80\x80\x80\x80\x80\1" for i in range(many)
    )
    nodes = [writer.node(1, COMP, needs=writer.varint(5 << 3 | 2) + writer.varint(len(far)) + far)]
    nodes += [writer.node(2, COMP), writer.node(3, COMP, needs=writer.packed(1, 2**40, 300))]
    nodes += [writer.coll(4, 8, 0, writer.attribute("is_cpu_op", 0, 27), needs=writer.packed(3, 2))]
    (folder / "big.et").write_bytes(writer.trace(*nodes))
    notes = load_workload(folder / "big.et").notes
    assert f"dangling dependencies, ignored: {many + 2:,} on {many + 2:,} unknown ids" in notes
    assert not any("cyclic" in note for note in notes)
