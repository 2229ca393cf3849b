"""The reader of TopoOpt's task graphs, on graphs written here and on real ones where they are at hand."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.damage import one_line

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

FORWARD, BACKWARD, COMM, TRANSFER, ALL_REDUCE = 0, 1, 2, 5, 6

# --- a writer of graphs: tables one after the other, each behind its vtable, what they point to behind them ----------------


def table(fields, behind=()):
    """A table: (struct form, value) or None by field number; `behind` are the vectors of the fields that are "<I"."""
    place, slots, body = 4, [], b""
    for entry in fields:
        slots.append(place + len(body) if entry else 0)
        body += struct.pack(*entry) if entry else b""
    vtable = struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), place + len(body), *slots)
    head = struct.pack("<i", len(vtable))
    content = bytearray(vtable + head + body)
    for field, vector in behind:
        at = len(vtable) + slots[field]
        struct.pack_into("<I", content, at, len(content) - at)
        content += vector
    return bytes(content), len(vtable)


def task(kind, number, device=0, run_ms=0.0, size=0, following=()):
    """A Task."""
    vector = struct.pack(f"<I{len(following)}Q", len(following), *following)
    fields = [("<h", kind), ("<Q", number), ("<Q", device), ("<f", run_ms), ("<Q", size), ("<I", 0)]
    return table(fields, [(5, vector)])


def device(number, prop, kind=14):
    """A Device."""
    return table([("<h", kind), ("<Q", number), None, ("<Q", prop)])


def tables(entries):
    """A vector of tables."""
    content, places = b"", []
    for blob, start in entries:
        places.append(4 + 4 * len(entries) + len(content) + start)
        content += blob
    offsets = [place - 4 - 4 * i for i, place in enumerate(places)]
    return struct.pack(f"<I{len(offsets)}I", len(offsets), *offsets) + content


def graph(tasks, devices=(), nodes=4, switches=1):
    """A whole file."""
    fields = [("<I", 1), ("<I", nodes), ("<I", switches), *[None] * 5, ("<I", 0), ("<I", 0)]
    blob, start = table(fields, [(8, tables(tasks)), (9, tables(devices))])
    return struct.pack("<I", 4 + start) + blob


DEVICES = [device(50, 1 * 5 + 2), device(51, 3 * 5 + 3), device(52, 0 * 5 + 4), device(53, 7, kind=0)]
GOOD = graph(
    [
        task(ALL_REDUCE, 9, size=4096, following=(0, 1, 2, 3)),
        task(FORWARD, 1, device=53, run_ms=2, following=(2, 5)),
        task(BACKWARD, 2, device=53, run_ms=3, following=(9,)),
        task(TRANSFER, 5, device=50, size=64, following=(2,)),
    ],
    DEVICES,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("topoopt") / "graph.fbuf"


def load(path, content):
    """What the reader makes of a file with that content."""
    path.write_bytes(content)
    return load_workload(path)


def test_calls_come_in_the_order_in_which_they_can_start(path):
    """The transfer can start when the forward pass is done, the all-reduce listed first when the backward pass is."""
    read = load(path, GOOD)
    assert [(c.name, c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        ("task 5", "send_recv", 64, (1, 2)),
        ("task 9", "all_reduce", 4096, (0, 1, 2, 3)),
    ]
    assert (read.num_ranks, read.compute_s, read.sizes("all_reduce")) == (4, pytest.approx(5e-3), (4096,))
    assert read.notes == (
        "tasks: 1 all_reduce, 1 forward, 1 backward, 1 transfer; 4 in all",
        "transfers from one rank to another: 1 of 64 bytes in all",
        "4 ranks (from number of nodes of graph.fbuf)",
        "computation: 5 ms on the busiest device",
    )
    read = load(path, graph([task(ALL_REDUCE, 9, size=4096, following=(0, 1, 2, 3))]))
    assert read.notes == ("tasks: 1 all_reduce; 1 in all", "4 ranks (from number of nodes of graph.fbuf)")


def test_the_tasks_of_the_busiest_device_and_the_calls_that_it_waits_for(path):
    """In the order in which they end where messages take no time, one at a time on each device."""
    load(path, GOOD)
    job = load_job(path)
    assert [(t.name, t.after, t.phase, round(t.compute_s * 1e3)) for t in job.tasks] == [
        ("forward 1", (), "forward", 2),
        ("task 5", (0,), "", 0),
        ("backward 2", (1,), "backward", 3),
        ("task 9", (2,), "backward", 0),
    ]
    # Device 53 computes 1 until 5 ms and 3 until 7; 2 on device 54 ends at 4, so what it sends waits for none of them.
    tasks = [
        task(FORWARD, 3, device=53, run_ms=2, following=(6,)),
        task(FORWARD, 1, device=53, run_ms=5, following=(3,)),
        task(FORWARD, 2, device=54, run_ms=4, following=(5,)),
        task(TRANSFER, 5, device=50, size=64),
        task(TRANSFER, 6, device=51, size=32),
        task(TRANSFER, 7, device=50, size=16, following=(1,)),
    ]
    several = [device(50, 1 * 5 + 2), device(51, 2 * 5 + 1), device(53, 7, kind=0), device(54, 8, kind=0)]
    load(path, graph(tasks, several))
    assert [(t.name, t.after) for t in load_job(path).tasks] == [
        ("task 7", ()),
        ("task 5", ()),
        ("forward 1", (0,)),
        ("forward 3", ()),
        ("task 6", (3,)),
    ]
    load(path, graph([task(FORWARD, 1, following=(2,)), task(ALL_REDUCE, 2, size=8, following=(0, 1))]))
    assert [t.name for t in load_job(path).tasks] == ["forward 1", "task 2"]


def test_what_stays_where_it_is_is_counted(path):
    """Groups of one, self transfers, switches, devices that are none, hops and sizes of computation."""
    tasks = [
        task(ALL_REDUCE, 1, size=10, following=(3,)),
        task(ALL_REDUCE, 2, size=20, following=(3, 1, 3)),
        task(TRANSFER, 3, device=51, size=30),
        task(TRANSFER, 4, device=52, size=40),
        task(TRANSFER, 5, device=99, size=50),
        task(COMM, 6, size=60),
        task(FORWARD, 7, size=70),
    ]
    read = load(path, graph(tasks, DEVICES))
    assert [(c.size_bytes, c.ranks) for c in read.calls] == [(20, (3, 1))]
    assert [(one.what, one.size_bytes) for one in read.omitted] == [
        ("all_reduce in a group of one node or none", 10),
        ("transfers from a node to itself", 30),
        ("transfers from or to a switch or an unknown node", 40),
        ("transfers on no device between nodes", 50),
        ("comm, one hop of a transfer", 60),
        ("sizes of tasks that compute", 70),
    ]


def test_a_call_ends_when_the_last_task_that_it_needs_has(path):
    """Task 5 at 4 ms, not at 1: task 6, which needs it, goes behind the 2 ms of the busiest device."""
    tasks = [
        task(FORWARD, 1, device=53, run_ms=4, following=(5,)),
        task(FORWARD, 2, device=60, run_ms=1, following=(5,)),
        task(TRANSFER, 5, device=50, size=8, following=(6,)),
        task(TRANSFER, 6, device=51, size=16),
        task(FORWARD, 3, device=61, run_ms=2, following=(4,)),
        task(FORWARD, 4, device=61, run_ms=8),
    ]
    load(path, graph(tasks, [device(50, 1 * 5 + 2), device(51, 2 * 5 + 1)]))
    assert [(t.name, t.after) for t in load_job(path).tasks] == [
        ("forward 3", ()),
        ("task 5", (0,)),
        ("task 6", (0,)),
        ("forward 4", ()),
    ]


def test_calls_of_one_size_go_together(path):
    """Of those that can start at once, in disjoint groups; in the order of kind and size, whatever that of the file."""
    pairs = [device(50 + i, src * 5 + dst) for i, (src, dst) in enumerate([(1, 2), (3, 0), (0, 1)])]
    tasks = [task(TRANSFER, 1 + i, device=50 + i, size=size) for i, size in enumerate([8, 16, 8])]
    load(path, graph([*tasks, task(ALL_REDUCE, 9, size=4, following=(0, 1))], pairs))
    job = load_job(path)
    assert [(t.name, t.size_bytes, job.groups[t.group].num_groups) for t in job.tasks] == [
        ("task 9", 4, 1),
        ("task 1", 8, 2),
        ("task 2", 16, 1),
    ]


def test_odd_dependencies_are_repaired_and_noted(path):
    """A circle, a dangling id and an id given twice: every call is kept, that behind the circle as the last."""
    tasks = [
        task(TRANSFER, 5, device=50, size=4),
        task(FORWARD, 1, following=(2, 77)),
        task(FORWARD, 2, following=(1, 5)),
        task(ALL_REDUCE, 3, size=8, following=(0, 1)),
        task(ALL_REDUCE, 3, size=9, following=(0, 1)),
    ]
    read = load(path, graph(tasks, DEVICES))
    assert [call.size_bytes for call in read.calls] == [8, 9, 4]
    assert "dangling dependencies, ignored: 1 on ids that no task has" in read.notes
    assert any(note.startswith("cyclic dependencies: 3 tasks") for note in read.notes)
    assert any(note.startswith("duplicate ids: 1") for note in read.notes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "byte 0"),
        (b"\0" * 100, "without a vtable"),
        (b"\xff" * 100, "beyond the file"),
        (GOOD[: len(GOOD) // 2], "beyond the file"),
        (graph([], DEVICES), "0 tasks"),
        (graph([task(FORWARD, 1)], nodes=0), "0 nodes"),
        (graph([task(ALL_REDUCE, 1, size=2**61, following=(0, 1))]), r"2\*\*60"),
        (graph([task(ALL_REDUCE, 1, size=8, following=(0, 4))]), "node 4 of 4"),
        (graph([task(FORWARD, 1, run_ms=float("nan"))]), "nan seconds"),
        (graph([task(FORWARD, 1, run_ms=-1)]), "-0.001 seconds"),
        (graph([task(FORWARD, 1)]), "no collective with a size among several ranks"),
    ],
)
def test_a_wrong_graph_is_refused(path, content, said):
    """One printable line with the byte."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(path, content)
    assert str(caught.value).isprintable()


def test_a_small_file_cannot_ask_for_much_memory(path):
    """Tasks that share one list of 65,536 dependencies: each table may be pointed to again."""
    count = 65
    blob, start = task(FORWARD, 1, following=range(2**16))
    places = [4 * (count - i) + start for i in range(count)]
    vector = struct.pack(f"<I{count}I", count, *places) + blob
    fields = [("<I", 1), ("<I", 4), ("<I", 0), *[None] * 5, ("<I", 0)]
    content, root = table(fields, [(8, vector)])
    with pytest.raises(WorkloadError, match="more than 4,194,304 dependencies"):
        load(path, struct.pack("<I", 4 + root) + content)


@examples(80)
@given(
    flips=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, len(GOOD)),
)
def test_cut_and_flipped_graphs_raise_nothing_else(path, flips, cut):
    """A workload or one line; never an access outside the file."""
    content = bytearray(GOOD)
    for at, byte in flips:
        content[at] = byte
    for damaged in (content, content[:cut]):
        assert one_line(load, path, bytes(damaged)).isprintable()


@pytest.mark.parametrize(
    ("name", "reduced", "moved", "groups"),
    [
        ("100vgg_16", (32, 1_157_409_952), (0, 0), {16}),
        ("100candle_16", (140, 4_752_687_116), (456, 18_522_046_464), {4, 8, 16}),
    ],
)
def test_the_real_graphs_to_the_byte(name, reduced, moved, groups):
    """Counts and bytes as the notes give them from the authors' own reader."""
    read = load_workload(shared_file(f"topoopt/{name}.fbuf"))
    sizes = read.sizes("all_reduce")
    transfers = [c.size_bytes for c in read.calls if c.is_transfer]
    assert (len(sizes), sum(sizes)) == reduced
    assert (len(transfers), sum(transfers)) == moved
    assert {len(c.ranks) for c in read.calls if not c.is_transfer} == groups
    assert read.total_bytes == reduced[1] + moved[1]
    assert (read.num_ranks, read.compute_s > 0.1) == (16, True)
    assert not any(note.startswith("left out") for note in read.notes)
