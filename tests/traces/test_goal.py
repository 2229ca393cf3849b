"""GOAL files, read by the package and by a parser written here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import one_line, survives_damage

import opticcl
from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

FILE = """// two ranks
num_ranks 2

rank 0 {
l1: send 1000b to 1 tag 7 cpu 0
calc 500 cpu 1
l2: recv 2000b from 1 tag 8 nic 0
l3: calc 1000
l3 requires l2
l4: send 8 to 1
l4 irequires l3
}
rank 1 {
a: recv 1000b from 0 tag 7
b: send 2000b to 0 tag 8
b requires a
c: recv 8b from 0
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("goal") / "job.goal"


def load(path, text):
    """What the reader makes of a file with that text."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_workload(path)


def longest(job, transfer_s=1.0):
    """Ends of the tasks by their dependencies alone, by name and devices; every transfer takes as long [s]."""
    ends = []
    for task in job.tasks:
        took = transfer_s if task.communicates else task.compute_s
        ends.append(max((ends[i] for i in task.after), default=0.0) + took)
    return {(task.name, task.devices): end for task, end in zip(job.tasks, ends, strict=True)}


def test_calls_and_dependencies(path):
    """Transfers once, with their ends; computation in nanoseconds; irequires waits for a start alone."""
    read = load(path, FILE)
    assert sorted((c.collective, c.size_bytes, c.ranks) for c in read.calls) == [
        ("send_recv", 8, (0, 1)),
        ("send_recv", 1000, (0, 1)),
        ("send_recv", 2000, (1, 0)),
    ]
    assert (read.num_ranks, read.ranks_source) == (2, "num_ranks of job.goal")
    assert read.source == "GOAL file job.goal"
    assert read.compute_s == pytest.approx(1.5e-6)
    assert "computation: 1.5 us of the rank that computes most" in read.notes
    assert any(note.startswith("order: a transfer starts when its sender is ready") for note in read.notes)
    assert any("several cpus" in note for note in read.notes)
    job = load_job(path)
    assert longest(job, 1e-6) == pytest.approx(
        {
            ("l1", (0, 1)): 1e-6,
            ("line 6", (0,)): 500e-9,
            ("b", (0, 1)): 2e-6,
            ("l3", (0,)): 3e-6,
            ("l4", (0, 1)): 3e-6,
        }
    )
    assert job.compute_s == pytest.approx(1.5e-6)


def test_ranks_without_operations_and_lines_without_labels(path):
    """A block may be missing or empty; labels too."""
    text = "num_ranks 4\nrank 0 {\nsend 8b to 3\nsend 8b to 3\ncalc 5 cpu 1\n}\nrank 1 {}\n"
    text += "rank 3 {\nrecv 8b from 0\nrecv 8b from 0\n}\n"
    read = load(path, text)
    assert (read.num_ranks, [(c.name, c.ranks) for c in read.calls]) == (4, [("line 3", (0, 3)), ("line 4", (0, 3))])
    assert not any("several cpus" in note for note in read.notes)
    assert load_job(path).device_ranks == (0, 1, 2, 3)
    assert "no collective with a size" in one_line(load, path, "num_ranks 1\nrank 0 {\ncalc 5\n}\n")


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("MAX_OPERATIONS", 7, "line 17: more than 7 operations"),
        ("MAX_WAITS", 1, "line 4: this rank has more than 1 dependencies"),
    ],
)
def test_large_files_are_refused(path, monkeypatch, limit, value, said):
    """With the bound; a file of just that size is read."""
    path.write_text(FILE)
    monkeypatch.setattr(f"opticcl.traces.goal.{limit}", value)
    with pytest.raises(WorkloadError, match=said):
        load_job(path)
    monkeypatch.setattr(f"opticcl.traces.goal.{limit}", value + 1)
    assert load_job(path).num_calls == 3


def test_remarks_are_left_out(path):
    """Of a line, within a line, over several lines, one of each within the other."""
    marked = f"/* send\n9b\n8b */ // /* x\n{FILE}".replace(
        "num_ranks 2\n", "num_ranks 2 /* / */\n/* Send begin */ //*\n"
    )
    marked = marked.replace("l3 requires l2\n", "l3 /* // */ requires l2 /* l3 requires l4\n// */ // l9 requires l9\n")
    assert load(path, marked) == load(path, FILE)
    assert "line 5: 'x'" in one_line(load, path, "/* a\n\n*/\nnum_ranks 1\nx /* y */")


@pytest.mark.parametrize(
    ("sent", "received", "alone"),
    [
        ("00000500", "500", 0),
        ("10020003500", "10020003500", 0),
        ("18446744073692774656", "18446744073692774656", 0),
        ("10020003500", "10020003501", 1),
    ],
)
def test_tags_are_numbers_of_up_to_64_bits(path, sent, received, alone):
    """As generators compose them from numbers of channels, calls and communicators, with zeros in front."""
    read = load(
        path, f"num_ranks 2\nrank 0 {{\nsend 8b to 1 tag {sent}\n}}\nrank 1 {{\nrecv 8b from 0 tag {received}\n}}\n"
    )
    assert len(read.calls) == 1 + alone
    assert any("without a counterpart" in note for note in read.notes) == bool(alone)


def test_a_receive_of_any_tag(path):
    """Takes what no other receive of its sender does; one from any rank prefers its own tag."""
    sends = "rank 0 {\nsend 8b to 2 tag 3\nsend 8b to 2 tag 4\nsend 8b to 1 tag 4\n}\nrank 1 {\nsend 8b to 2 tag 5\n"
    own = "recv 8b from 0 tag 4\n}\nrank 2 {\n"
    receives = "recv 8b from -1 tag 5\nl1: recv 8b from 0 tag -1 cpu 0\nrecv 8b from 0 tag 4\n}\n"
    read = load(path, f"num_ranks 3\n{sends}{own}{receives}")
    assert sorted(call.ranks for call in read.calls) == [(0, 1), (0, 2), (0, 2), (1, 2)]
    assert not any("without a counterpart" in note for note in read.notes)


def test_a_receive_from_any_rank(path):
    """Is joined with the first send of its size; a send to any rank is refused."""
    ends = "rank 0 {\nsend 8b to 2\n}\nrank 1 {\nsend 9b to 2\n}\nrank 2 {\nrecv 9b from -1\nrecv 8b from -1 tag 5\n}\n"
    read = load(path, f"num_ranks 3\n{ends}")
    assert [(call.size_bytes, call.ranks) for call in read.calls] == [(8, (0, 2)), (9, (1, 2))]
    said = one_line(load, path, f"num_ranks 3\n{ends}".replace("to 2", "to -1"))
    assert "line 3: to -1, which is not a rank from 0 to 2" in said


def test_two_ranks_that_send_before_they_receive_do_not_wait_for_each_other(path):
    """The receive waits for the send, the transfer does not; what requires the receive waits for both."""
    text = "num_ranks 2\n"
    for rank in range(2):
        ends = f"s: send 8b to {1 - rank}\nr: recv 8b from {1 - rank}\nr requires s\nc: calc 5\nc requires r\n"
        text += f"rank {rank} {{\n{ends}}}\n"
    path.write_text(text)
    job = load_job(path)
    assert all(task.after == () for task in job.tasks if task.communicates)
    assert sorted(len(task.after) for task in job.tasks) == [0, 0, 2, 2]


def test_a_plan_is_read_back(path):
    """The transfers of a ring with their bytes, and what each waits for: six transfers one after the other."""
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", 1_000_000, algorithm="ring")
    plan.export(path)
    assert [call.size_bytes for call in load_workload(path).calls] == 24 * [250_000]
    job = load_job(path)
    assert max(longest(job).values()) == 6
    done = opticcl.train(job, ["ideal:nodes=4"]).rows[0]
    assert done.verified


# --- drawn files ------------------------------------------------------------------------------------------------------


@st.composite
def jobs(draw):
    """A job that can run: each rank's operations in some order, each with what it requires among the earlier ones."""
    num_ranks = draw(st.integers(2, 4))
    ranks = [[] for _ in range(num_ranks)]
    tags = {}
    for _ in range(draw(st.integers(1, 12))):
        src = draw(st.integers(0, num_ranks - 1))
        if draw(st.booleans()):
            ranks[src].append(f"calc {draw(st.integers(0, 10**6))}")
            continue
        dst = draw(st.integers(0, num_ranks - 1).filter(lambda rank, src=src: rank != src))
        tag = tags[src, dst] = tags.get((src, dst), -1) + 1
        size = draw(st.integers(0, 10**9))
        ranks[src].append(f"send {size}b to {dst} tag {tag}")
        ranks[dst].append(f"recv {size}b from {src} tag {tag}")
    blocks = []
    for rank, operations in enumerate(ranks):
        rows = [f"x{i}: {one}" for i, one in enumerate(operations)]
        for i in range(1, len(operations)):
            for j in draw(st.sets(st.integers(0, i - 1), max_size=2)):
                rows.append(f"x{i} {draw(st.sampled_from(['requires', 'requires', 'irequires']))} x{j}")
        blocks.append("\n".join([f"rank {rank} {{", *draw(st.permutations(rows)), "}"]))
    return "\n".join([f"num_ranks {num_ranks}", *draw(st.permutations(blocks))]) + "\n"


def parsed(text, transfer_s=1.0):
    """Transfers (bytes, ranks) and the ends of computations and receives, by a parser and a rule of its own."""
    ops, needs, rank = {}, {}, -1
    for words in (line.split() for line in text.splitlines()[1:]):
        if words[0] == "rank":
            rank = int(words[1])
        elif words[0].endswith(":"):
            ops[rank, words[0][:-1]] = words[1:]
            needs.setdefault((rank, words[0][:-1]), [])
        elif words[0] != "}":
            needs.setdefault((rank, words[0]), []).append(((rank, words[2]), words[1] == "irequires"))

    def started(one):
        return max((started(other) if early else ended(other) for other, early in needs[one]), default=0.0)

    def ended(one):
        words = ops[one]
        if words[0] == "calc":
            return started(one) + int(words[1]) / 1e9
        if words[0] == "send":
            return started(one) + transfer_s
        sender = next(
            other
            for other, there in ops.items()
            if other[0] == int(words[3]) and there[0] == "send" and (there[3], there[5]) == (str(one[0]), words[5])
        )
        return max(started(one), ended(sender))

    transfers = [(int(w[1][:-1]), (rank, int(w[3]))) for (rank, _), w in ops.items() if w[0] == "send"]
    return transfers, {one: ended(one) for one, words in ops.items() if words[0] == "calc"}


@examples(60)
@given(text=jobs())
def test_drawn_files_by_an_independent_parser(path, text):
    """Bytes and ends of all transfers, and when each computation ends if nothing shares anything."""
    transfers, ends = parsed(text)
    if not transfers:
        assert "no collective" in one_line(load, path, text)
        return
    read = load(path, text)
    assert sorted((c.size_bytes, c.ranks) for c in read.calls) == sorted(transfers)
    found = {(devices[0], name): end for (name, devices), end in longest(load_job(path)).items() if len(devices) == 1}
    assert found == pytest.approx(ends)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (FILE, "\n// remark\n", "line 1: '' is not num_ranks"),
        ("num_ranks 2", "num_ranks x", "line 2: 'num_ranks x' is not num_ranks|no trace that opticcl reads"),
        ("num_ranks 2", "num_ranks 0", "line 2: 'num_ranks 0' is not num_ranks with a number from 1"),
        ("rank 1 {", "rank 2 {", "line 13: rank 2 is not 0 to 1"),
        ("rank 1 {", "rank 0 {", "line 13: rank 0 is there twice"),
        ("rank 1 {", "rang 1 {", "line 13: 'rang 1 {' is not the start of a rank"),
        ("l4: send 8 to 1", "l4: send 8 to 5", "line 10: to 5, which is not a rank from 0 to 1"),
        ("l4: send 8 to 1", "l4: send 8 to 2", "line 10: to 2, which is not a rank from 0 to 1"),
        ("l4 irequires l3", "l9 irequires l3", "line 11: label l9 does not exist in its rank"),
        ("l4: send 8 to 1", "l4: put 8 to 1", "line 10: 'l4: put 8 to 1' is not an operation; write"),
        ("l4: send 8 to 1", "l4: send 8.5 to 1", "line 10: 'l4: send 8.5 to 1' is not an operation"),
        ("l4: send 8 to 1", "l3: send 8 to 1", "line 10: label l3 is there twice"),
        ("l4: send 8 to 1", f"l4: send {2**59 * 3} to 1", "2\\*\\*60"),
        ("l4 irequires l3", "l4 requires l9", "line 11: label l9 does not exist in its rank"),
        ("l4 irequires l3", "l3 requires l3", "line 4: labels of this rank require each other, l3 among them"),
        ("c: recv 8b from 0\n}", "c: recv 8b from 0", "line 17: the file ends within the rank that line 13 begins"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(path, old, new, said):
    """One printable line."""
    assert old in FILE
    path.write_text(FILE.replace(old, new))
    with pytest.raises(WorkloadError, match=said) as caught:
        load_job(path)
    assert str(caught.value).isprintable()


def test_a_workload_needs_no_order(path):
    """Labels that require each other are refused where tasks are wanted."""
    assert len(load(path, FILE.replace("l4 irequires l3", "l3 requires l3")).calls) == 3


@examples(60)
@given(at=st.integers(0, len(FILE) - 1), byte=st.integers(0, 255), cut=st.integers(0, len(FILE)))
def test_cut_and_flipped_files_raise_nothing_else(path, at, byte, cut):
    """A workload or one line."""
    assert survives_damage(load, path, FILE, at, byte, cut)
