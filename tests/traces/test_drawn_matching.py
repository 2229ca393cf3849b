"""Drawn calls of several ranks: which of them are one call, its bytes and its parts, by the rules in plain words."""

import math
from collections import Counter
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import CollectiveCall, Workload
from opticcl.traces.graphs import job_of, task_graphs
from opticcl.traces.merge import merged_graphs, merged_workload
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep

KINDS = ["all_reduce", "all_gather", "broadcast"]


def traces_of(calls, **more):
    """A trace of each rank with its calls."""
    return [RankTrace("job", "s", f"f{rank}", list(mine), rank=rank, **more) for rank, mine in enumerate(calls)]


def said(read, start):
    """The notes that begin so."""
    return [note for note in read.notes if note.startswith(start)]


def collective(kind="all_reduce", size=8, **more):
    """A call of group g."""
    return RankCall(kind, kind, size, group=more.pop("group", "g"), **more)


numbered = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(KINDS), st.integers(1, 2)), min_size=1, max_size=5
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@examples(100)
@given(st.lists(numbered, min_size=2, max_size=3))
def test_calls_of_one_number_are_one_call(ranks):
    """The n-th of each number and kind is one call; a note counts numbers with several kinds, and windows that differ."""
    traces = traces_of([[collective(kind, size, sequence=number) for number, kind, size in rows] for rows in ranks])
    read = merged_workload(traces, len(ranks))
    slots = {}
    for rank, rows in enumerate(ranks):
        seen = Counter()
        for number, kind, size in rows:
            slots.setdefault((number, seen[number]), {}).setdefault((kind, size), []).append(rank)
            seen[number] += 1
    due = Counter(kind for kinds in slots.values() for kind in kinds)
    assert Counter((c.collective, c.size_bytes) for c in read.calls) == due
    differ = sum(len(kinds) > 1 for kinds in slots.values())
    what = f"{differ} sequence number{'s' * (differ > 1)}"
    assert said(read, "group 'g': the ranks") == (
        [f"group 'g': the ranks disagree on the collective or size of {what}"] if differ else []
    )
    spans = sorted({(rows[0][0], rows[-1][0]) for rows in ranks})
    shown = ", ".join(f"{a} to {b}" for a, b in spans[:3])
    assert said(read, "group 'g': recordings") == (
        [f"group 'g': recordings begin or end at different calls ({shown}): matched by sequence number"]
        if len(spans) > 1
        else []
    )
    alone = Counter(kind for kinds in slots.values() for (kind, _), mine in kinds.items() if len(mine) < len(ranks))
    assert sorted(said(read, "without a counterpart")) == sorted(
        f"without a counterpart in the trace of another rank: {n} {kind}" for kind, n in alone.items()
    )


@examples(60)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 2)), min_size=1, max_size=5), min_size=2, max_size=3
    )
)
def test_calls_without_numbers(ranks):
    """By their place if the ranks agree, else the n-th of each kind and size, with a note."""
    traces = traces_of([[collective(kind, size) for kind, size in rows] for rows in ranks])
    read = merged_workload(traces, len(ranks))
    most = Counter()
    for rows in ranks:
        most |= Counter(rows)
    assert Counter((c.collective, c.size_bytes) for c in read.calls) == most
    lengths = sorted(map(len, ranks))
    agree = all(rows == ranks[0] for rows in ranks)
    assert said(read, "ranks 0 to") == (
        []
        if agree
        else [
            f"ranks 0 to {len(ranks) - 1} disagree on the calls of group 'g' ({lengths[0]} to {lengths[-1]} calls): matched by "
            "collective and size"
        ]
    )
    if agree:
        assert [(c.collective, c.size_bytes) for c in read.calls] == ranks[0]


@examples(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from(["", "t", "u"]), st.integers(1, 3)), max_size=8
    ),
    st.lists(st.booleans(), min_size=16, max_size=16),
)
def test_transfers_are_pairs_of_ends_and_tag(drawn, kept):
    """In their order; those of which one side is not recorded are counted."""
    calls, due, lone = [[], [], []], Counter(), 0
    sides = {}
    for at, (src, dst, tag, size) in enumerate(drawn):
        if src == dst:
            continue
        for which, rank in enumerate((src, dst)):
            if kept[2 * at + which]:
                word = ("send", "recv")[which]
                calls[rank].append(RankCall(word, word, size, group="g", ranks=(src, dst), tag=tag))
                sides.setdefault((src, dst, tag), ([], []))[which].append(size)
    for (src, dst, _), (sent, received) in sides.items():
        lone += abs(len(sent) - len(received))
        for place in range(max(len(sent), len(received))):
            # the side of the lower rank is the first
            first, second = (sent, received) if src < dst else (received, sent)
            size = first[place] if place < len(first) else second[place]
            due[size, (src, dst)] += 1
    traces = traces_of(calls)
    if not due:
        return
    read = merged_workload(traces, 3)
    assert Counter(c.ranks for c in read.calls) == Counter(one for _, one in due.elements())
    assert said(read, "without a counterpart") == (
        [f"without a counterpart in the trace of another rank: {lone} send_recv"] if lone else []
    )


@examples(60)
@given(
    first=st.lists(st.integers(0, 2), min_size=2, max_size=2),
    last=st.lists(st.integers(0, 2), min_size=2, max_size=2),
    pair=st.booleans(),
    begin=st.integers(0, 1),
)
def test_numbers_of_transfers(first, last, pair, begin):
    """In a group of two, both ranks number the same transfers; in a larger one only recordings that begin late do."""
    sizes = list(range(10, 18))
    calls = []
    for rank in range(2):
        word = ("send", "recv")[rank]
        mine = [
            RankCall(word, word, size, group="g", ranks=(0, 1), sequence=begin + number)
            for number, size in enumerate(sizes)
        ]
        calls.append(mine[first[rank] : len(mine) - last[rank]])
    groups = {"g": (0, 1) if pair else (0, 1, 2)}
    read = merged_workload(traces_of(calls, groups=groups), 3)
    windows = [set(sizes[first[rank] : len(sizes) - last[rank]]) for rank in range(2)]
    by_number = pair or any(begin + one > 1 for one in first)
    found = Counter(c.size_bytes for c in read.calls)
    if by_number:
        assert found == Counter(windows[0] | windows[1])
    else:
        assert len(read.calls) == max(map(len, windows))


@pytest.mark.parametrize(("received", "alone"), [((1, 3, 4), 0), ((2, 4, 5), 1)])
def test_numbers_that_are_not_the_same_ones(received, alone):
    """Where both recordings have their own numbers within the same window, transfers are matched in order."""
    calls = [
        [RankCall(word, word, 8, group="g", ranks=(0, 1), sequence=number) for number in numbers]
        for word, numbers in (("send", (1, 2, 4)), ("recv", received))
    ]
    read = merged_workload(traces_of(calls, groups={"g": (0, 1)}), 2)
    assert len(read.calls) == 3 + alone
    assert len(said(read, "without a counterpart")) == bool(alone)


# --- all_to_alls ------------------------------------------------------------------------------------------------------


@examples(100)
@given(
    matrix=st.integers(2, 3).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n)
    ),
    which=st.lists(st.sampled_from(["both", "sent", "received", "none"]), min_size=3, max_size=3),
    missing=st.sampled_from([None, None, 0, 1]),
)
def test_parts_of_pairs(matrix, which, missing):
    """A pair's part is in the sender's list, else in the receiver's; without both in proportion to what is received."""
    n = len(matrix)
    calls = []
    for rank in range(n):
        column = tuple(row[rank] for row in matrix)
        one = collective("all_to_all", sum(matrix[rank]), received_bytes=sum(column), ranks=tuple(range(n)))
        if which[rank] in ("both", "sent"):
            one.sent_splits = tuple(matrix[rank])
        if which[rank] in ("both", "received"):
            one.received_splits = column
        calls.append([one])
    traces = traces_of(calls)
    if missing is not None and n > 2:
        del traces[missing]
    read = merged_workload(traces, n)
    present = [trace.rank for trace in traces]
    sent = {r for r in present if which[r] in ("both", "sent")}
    received = {r for r in present if which[r] in ("both", "received")}
    known = all(i in sent or all(j in received for j in range(n) if j != i) for i in range(n))
    (call,) = read.calls
    if known:
        due = tuple(tuple(matrix[i][j] if i in sent or j in received else 0 for j in range(n)) for i in range(n))
        assert call.matrix_bytes == due
        moved = max(
            *(sum(row) - row[i] for i, row in enumerate(due)),
            *(sum(row[j] for row in due) - due[j][j] for j in range(n)),
        )
        assert call.size_bytes == math.ceil(moved * n / (n - 1))
    elif len(present) == n:
        total = sum(map(sum, matrix))
        columns = [sum(row[j] for row in matrix) for j in range(n)]
        assert [sum(row) for row in call.matrix_bytes] == [sum(row) for row in matrix]
        for i, row in enumerate(call.matrix_bytes):
            for j, part in enumerate(row):
                assert abs(part - (sum(matrix[i]) * columns[j] / total if total else 0)) < 1
    else:
        assert call.matrix_bytes == ()
        assert call.size_bytes == max(max(sum(matrix[r]), sum(row[r] for row in matrix)) for r in present)
    guessed = not known and len({part for row in call.matrix_bytes for part in row}) > 1
    assert bool(said(read, "parts of 1 uneven all_to_all are not recorded")) == guessed
    assert bool(said(read, "uneven all_to_all: 1")) == call.is_uneven


def test_many_reasons_are_counted_together():
    """From the 65th on; those before keep their own counts."""
    left = Omissions()
    for number in [*range(70), 0]:
        left.add(f"reason {number}", 2)
    counts = {one.what: (one.calls, one.size_bytes) for one in left.records()}
    assert (len(counts), counts["reason 0"], counts["of other kinds"]) == (65, (2, 4), (6, 12))


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("many", "kept"), [(256, True), (257, False)])
def test_large_all_to_alls_have_no_matrix(many, kept, listed):
    """Up to 256 ranks; a larger one is as large as its largest side, whether or not its parts are recorded."""
    about = {"group": "", "sent_splits": (3,) + (1,) * (many - 1) if listed else ()}
    calls = [[collective("all_to_all", 256 + rank, received_bytes=300 + rank, **about)] for rank in range(many)]
    read = merged_workload(traces_of(calls))
    (call,) = read.calls
    assert (len(call.matrix_bytes) == many) == kept
    assert bool(said(read, "all_to_all of more than 256 ranks: 1")) != kept
    if not kept:
        assert call.size_bytes == 300 + many - 1
    elif listed:
        assert call.matrix_bytes[0] == (3,) + (1,) * 255


@pytest.mark.parametrize("kind", ["all_to_all", "all_gather"])
def test_shares_are_even(kind):
    """A call whose size is that of a share has parts of one size: none are kept."""
    calls = [[collective(kind, 8, counts="share", ranks=(0, 1, 2))] for _ in range(3)]
    (call,) = merged_workload(traces_of(calls), 3).calls
    assert (call.size_bytes, call.matrix_bytes) == (24, ())


def test_what_several_ranks_say_together():
    """The computation of the rank that computes most, where the number of ranks is from, all that is left out."""
    traces = traces_of([[collective()], [collective()]], world_size=2, world_source="world")
    for trace, took_s in zip(traces, (1.5, 2.5), strict=True):
        trace.compute_s = took_s
        trace.omissions.add("a kind", 3)
    read = merged_workload(traces, 0)
    assert (read.compute_s, read.num_ranks, read.ranks_source) == (2.5, 2, "world of f0")
    assert [(one.what, one.calls, one.size_bytes) for one in read.omitted] == [("a kind", 2, 6)]


# --- times ------------------------------------------------------------------------------------------------------------


@examples(100)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(0, 50),
)
def test_a_call_takes_what_its_last_rank_measured(drawn, offset):
    """The skew is how long the first rank waited for the last, on clocks that are aligned by the ends."""
    calls = [[], []]
    at = 100
    for took, *waits in drawn:
        at += 40
        for rank, wait in enumerate(waits):
            end = at + 20 + took + offset * rank
            calls[rank].append(collective(measured_s=took + wait, start_s=end - took - wait, end_s=end, ranks=(0, 1)))
    read = merged_workload(traces_of(calls), 2)
    assert [c.measured_s for c in read.calls] == [took + min(waits) for took, *waits in drawn]
    waited = [abs(a - b) for _, a, b in drawn]
    last = Counter(int(a > b) for _, a, b in drawn)
    (note,) = said(read, "skew between ranks")
    assert f"(median of {len(drawn)})" in note
    if max(waited):
        middle = median(waited)
        assert f"waited {seconds(middle)} for the last" in note
        assert f", {seconds(max(waited))} at most" in note
        assert f"rank {last.most_common(1)[0][0]} was last in {max(last.values())}" in note
    job = merged_graphs(with_steps(traces_of(calls)), 2)[0]
    longest = max((sum(w[r] + t for t, *w in drawn), -r) for r in range(2))
    rank = -longest[1]
    due = sum(w[rank] - min(w) for _, *w in drawn)
    assert job.recorded is None or job.recorded.skew_s == pytest.approx(due)


def seconds(value):
    """A whole or half number of seconds as notes print it."""
    return f"{value:g} s"


def with_steps(traces, recorded=None):
    """The same with a step of their calls, one after the other."""
    for trace in traces:
        tasks = [RankTask(call.name, 0.0, (call,), (i - 1,) * bool(i)) for i, call in enumerate(trace.calls)]
        trace.steps = [RecordedStep("", tasks, recorded=recorded)]
    return traces


# --- graphs -----------------------------------------------------------------------------------------------------------


def test_groups_of_a_job_have_names():
    """That of the call, else all, part or pair, with a number where it is taken; all ranks in any order are all."""
    about = [
        ("all_reduce", (0, 1), "tp"),
        ("all_reduce", (2, 3), "tp"),
        ("all_gather", (3, 2, 1, 0), ""),
        ("broadcast", (), ""),
        ("broadcast", (1, 2), ""),
        ("send_recv", (1, 2), ""),
        ("send_recv", (2, 1), "tp"),
        ("send_recv", (-1, 2), ""),
        ("all_gather", (0, 1), "tp"),
        ("reduce", (0, 1), "dp"),
        ("reduce", (0, 0, 1, 1), ""),
    ]
    calls = tuple(
        CollectiveCall(f"c{i}", word, 8 + i, group, 0.5 * i, ranks) for i, (word, ranks, group) in enumerate(about)
    )
    job = job_of(Workload("job", "s", calls, num_ranks=4))
    assert [(task.group, tuple(job.groups[task.group].ranks)) for task in job.tasks] == [
        ("tp", (0, 1)),
        ("tp 2", (2, 3)),
        ("all", (0, 1, 2, 3)),
        ("all", (0, 1, 2, 3)),
        ("part", (1, 2)),
        ("part", (1, 2)),
        ("pair", (2, 1)),
        ("pair 2", (0, 1)),
        ("tp", (0, 1)),
        ("dp", (0, 1)),
        ("all 2", (0, 0, 1, 1)),
    ]
    assert job.groups["pair 2"].source == "assumed"
    assert "transfers without recorded ranks: 1, assumed from rank 0 to rank 1" in job.notes
    assert [task.measured_s for task in job.tasks] == [0.5 * i for i in range(len(about))]
    assert (job.recorded.communication_s, job.recorded.total_s) == (pytest.approx(0.5 * sum(range(len(about)))), None)


def test_a_matrix_follows_the_order_of_its_group():
    """Rows and columns of ranks that are named in another order than the group of all has."""
    matrix = ((0, 1, 2), (3, 0, 4), (5, 6, 0))
    call = CollectiveCall("c", "all_to_all", 9, "", 0, (2, 0, 1), "", matrix)
    (task,) = job_of(Workload("job", "s", (call,), num_ranks=3)).tasks
    assert task.matrix_bytes == ((0, 4, 3), (6, 0, 5), (1, 2, 0))


@pytest.mark.parametrize(
    ("compute_s", "missing", "bound"), [(0, False, ""), (0, True, "lower"), (1, False, "upper"), (1, True, "estimate")]
)
def test_bounds_of_a_list_of_calls(compute_s, missing, bound):
    """Computation before all communication is an upper bound, calls that are left out a lower one, both none."""
    omissions = Omissions()
    omissions.add("a call", 8, missing=missing)
    calls = (CollectiveCall("c", "all_reduce", 8),)
    job = job_of(Workload("job", "s", calls, (), 4, compute_s, "", omissions.records()))
    assert (job.bound, job.recorded) == (bound, None)
    assert sum("all computation precedes" in note for note in job.notes) == bool(compute_s)
    assert [task.after for task in job.tasks] == [(), (0,)][: 1 + bool(compute_s)]
    assert job.compute_s == compute_s


@pytest.mark.parametrize(
    ("value", "given_", "ranks", "fits"),
    [(0, 0, (0, 1), None), (4, 8, (0, 1), False), (0, 4, (3, 4), False), (0, 5, (3, 4), True), (4, 4, (), True)],
)
def test_the_number_of_devices_of_a_list(value, given_, ranks, fits):
    """Given or recorded; a contradiction is refused with both."""
    work = Workload("job", "s", (CollectiveCall("c", "all_reduce", 8, ranks=ranks),), num_ranks=value, ranks_source="w")
    if fits:
        assert job_of(work, num_ranks=given_).num_ranks == (given_ or value)
    else:
        what = (
            "does not record the number"
            if fits is None
            else f"{given_} ranks are given, but w has {max(value, 5 * (not value))}"
        )
        with pytest.raises(WorkloadError, match=what):
            job_of(work, num_ranks=given_)
        if fits is not None:
            with pytest.raises(WorkloadError, match=what.replace("but w has", "but the workload has")):
                job_of(replace(work, ranks_source=""), num_ranks=given_)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("word", ["recv", "send"])
@pytest.mark.parametrize("bound", ["", "upper"])
def test_bounds_of_the_trace_of_one_rank(missing, word, bound):
    """A receive does not wait for its sender, and a call that is left out takes no time: either lowers the bound."""
    call = RankCall("t", word, 8, ranks=(0, 1) if word == "send" else (1, 0))
    trace = RankTrace("job", "s", "f", [call], rank=0, world_size=2, world_source="w", after=["last"])
    trace.omissions.add("a call", 8, missing=missing)
    tasks = [RankTask("x", 1.0), RankTask("t", 0.0, (call,), (0,))]
    trace.steps = [RecordedStep("one", tasks, ["of the step"], bound)]
    (job,) = task_graphs(trace)
    low = missing or word == "recv"
    assert job.bound == ({"": "lower", "upper": "estimate"}[bound] if low else bound)
    assert sum(note.startswith("order: 1 receives start as early") for note in job.notes) == (word == "recv")
    assert "of the step" in job.notes
    assert "left out: 1 a call, 8 bytes in all" in job.notes
    assert (
        job.notes.index("last") < job.notes.index("left out: 1 a call, 8 bytes in all") < job.notes.index("of the step")
    )
    trace.world_size = 0
    with pytest.raises(WorkloadError, match="does not record the number of devices"):
        task_graphs(trace)


@examples(60)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=14))
def test_transfers_that_go_at_once(drawn):
    """Each is in the first batch in which neither end has that role; one of unknown ends is alone."""
    calls, sets = [], []
    for src, dst, transfer in drawn:
        if src == dst:
            continue
        ranks = (src, dst) if transfer else (max(src, 0), dst)
        if len(set(ranks)) < 2:
            continue
        calls.append(CollectiveCall("c", "send_recv" if transfer else "all_reduce", 8, ranks=ranks))
    if not calls:
        return
    due, last = [], None
    for call in calls:
        if last != (last := (call.collective, -1 in call.ranks)):
            due += sets
            sets = []
        roles = set(enumerate(call.ranks)) if call.is_transfer else {(0, rank) for rank in call.ranks}
        if -1 in call.ranks:
            roles = {(0, -1), (1, -1)}
        place = next((i for i, (taken, _) in enumerate(sets) if not taken & roles), len(sets))
        if place == len(sets):
            sets.append((set(), []))
        sets[place][0].update(roles)
        sets[place][1].append(call)
    due += sets
    job = job_of(Workload("job", "s", tuple(calls), num_ranks=4))
    assert [(task.collective, job.groups[task.group].num_groups) for task in job.tasks] == [
        (mine[0].collective, len(mine)) for _, mine in due
    ]


def test_transfers_of_one_pair_again_and_again():
    """After 4,096 batches that are open at once none is joined any more."""
    many = 4_096
    calls = [CollectiveCall("c", "send_recv", 8, ranks=(0, 1))] * (many + 1) + [
        CollectiveCall("c", "send_recv", 8, ranks=(2, 3))
    ]
    job = job_of(Workload("job", "s", tuple(calls), num_ranks=4))
    counts = [job.groups[task.group].num_groups for task in job.tasks]
    assert counts == [1] * many + [2]
