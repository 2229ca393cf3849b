"""Drawn traces of several ranks: their number, members of groups, ends of transfers, by the rules in plain words."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import WorkloadError
from opticcl.traces.call_rows import CallRows
from opticcl.traces.notes import Omissions
from opticcl.traces.ranks import RankCount, RankModel, rank_count, workload_from
from opticcl.traces.recording import GroupEnds, RankCall, RankTrace

rank_sets = st.one_of(
    st.integers(1, 6).map(lambda n: tuple(range(n))), st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)
).map(tuple)
groups = st.dictionaries(st.sampled_from(["a", "b", "c"]), rank_sets, max_size=2)
calls = st.lists(
    st.one_of(
        st.builds(
            lambda g, r: RankCall("x", "all_reduce", 8, group=g, ranks=r), st.sampled_from(["", "a", "z"]), rank_sets
        ),
        st.builds(lambda n: RankCall("y", "all_gather", 8, group_size=n), st.integers(0, 9)),
        st.builds(lambda n: RankCall("y", "all_gather", 8, group_size=n, group_rule="rule"), st.integers(1, 9)),
        st.builds(lambda a, b: RankCall("z", "send", 8, ranks=(a, b)), st.integers(-1, 7), st.integers(0, 7)),
    ),
    min_size=1,
    max_size=4,
)
made = st.builds(
    RankTrace,
    *map(st.just, ("job", "s")),
    st.integers(0, 9).map("f{}".format),
    calls,
    rank=st.integers(-1, 7),
    world_size=st.sampled_from([0, 0, 0, 6, 8]),
    world_source=st.just("world"),
    groups=groups,
    groups_source=st.just("list"),
    whole_job=st.sampled_from([False, False, True]),
)


def is_whole(ranks):
    """Whether these are all ranks from 0 to one of them."""
    return set(ranks) == set(range(len(set(ranks))))


def number_of(traces, given):
    """The number of ranks, where it comes from, and the highest that occurs; None for the number if sources contradict."""
    occur, whole = {-1}, [(0, "")]
    for trace in traces:
        occur |= {trace.rank, *(rank for ranks in trace.groups.values() for rank in ranks)}
        here = [
            (len(ranks), f"process group {name!r} of {trace.file}")
            for name, ranks in trace.groups.items()
            if is_whole(ranks)
        ]
        together = {rank for ranks in trace.groups.values() for rank in ranks}
        here += [(len(together), "the groups in list")] if together and is_whole(together) else []
        named = {}
        for call in trace.calls:
            occur |= {*call.ranks, *([] if call.ranks else [call.group_size - 1])}
            if call.collective != "send" and call.ranks and is_whole(call.ranks):
                named[call.group, call.ranks] = (
                    len(call.ranks),
                    (f"process group {call.group!r} of {trace.file}" if call.group else "the largest group"),
                )
        here += named.values()
        if trace.whole_job:
            highest = max((max(call.ranks) for call in trace.calls if call.ranks), default=-1)
            here.append((highest + 1, "the ranks that occur"))
        whole += here
    highest, most = max(occur), max(n for n, _ in whole)
    sources = {source for n, source in whole if n == most}
    worlds = {trace.world_size for trace in traces} - {0}
    world = min(worlds, default=0)
    files = len(traces) if len(traces) > 1 and {one.rank for one in traces} == set(range(len(traces))) else 0
    for value, source in (
        (given, {"the given number"}),
        (world, {f"world of {t.file}" for t in traces if t.world_size}),
        (most * (most > highest), sources),
        (files * (highest < files), {"the number of files"}),
    ):
        if value:
            wrong = len(worlds) > 1 or highest >= value or (given and world not in (0, given))
            return None if wrong else value, source, highest
    return (None if len(worlds) > 1 else 0), {""}, highest


@examples(100)
@given(traces=st.lists(made, min_size=1, max_size=3), given_=st.sampled_from([0, 0, 0, 5, 8, 9]))
def test_the_number_of_ranks(traces, given_):
    """By the first of its sources; those that contradict it are refused."""
    value, sources, highest = number_of(traces, given_)
    if value is None:
        with pytest.raises(WorkloadError, match=r"is (\d+ ranks?, but|[\d,]+ ranks, more)"):
            rank_count(traces, given_)
        return
    found = rank_count(traces, given_)
    assert (found.value, found.at_least) == (value, highest + 1)
    assert found.source in sources


def test_more_ranks_than_a_job_has():
    """2**30 are a number, one more is none."""
    trace = RankTrace("job", "s", "f", [RankCall("x", "all_reduce", 8)])
    assert rank_count([trace], 2**30).value == 2**30
    with pytest.raises(WorkloadError, match="the given number is 1,073,741,825 ranks, more than 1,073,741,824"):
        rank_count([trace], 2**30 + 1)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("world", [0, 4, 6, 12])
def test_members_of_a_group(world, known):
    """Those of the call, of the file, of the rule that gives size and distance, a block of the size, else all."""
    for rank, size, stride, rule, recorded in product(
        (-1, 0, 3, 7, 11), range(7), (1, 2, 3), (False, True), (False, True)
    ):
        check_members(world, known, rank, size, stride, rule, recorded)


def check_members(world, known, rank, size, stride, rule, recorded):
    """One of them."""
    call = RankCall("x", "all_reduce", 8, group="g", group_size=size, group_stride=stride if rule else 1)
    call.group_rule = "by rule" if rule else ""
    call.ranks = (5, 2) if recorded else ()
    trace = RankTrace("job", "s", "f", [call], rank=rank, groups={"g": (3, 1)} if known else {}, groups_source="w.json")
    found = RankModel(RankCount(world, "", 0), [trace]).members(trace, call)
    own = max(rank, 0)
    if recorded:
        due = (5, 2), "recorded"
    elif known:
        due = (3, 1), "w.json"
    elif rule and not size:
        due = tuple(r for r in range(world) if r % stride == own % stride), "by rule"
    elif rule:
        block = size * stride
        due = tuple(r for r in range(100) if r // block == own // block and r % stride == own % stride), "by rule"
    elif size and size == world:
        due = tuple(range(world)), "recorded group size"
    elif size:
        block = tuple(r for r in range(100) if r // size == own // size)
        due = (
            tuple(range(size)) if world and block[-1] >= world else block,
            "assumed: a block of the recorded group size",
        )
    else:
        due = tuple(range(world)), "assumed: all ranks"
    assert (tuple(found.ranks), found.source) == due


@examples(100)
@given(
    called=st.lists(st.lists(st.sampled_from(["", "p", "q"]), max_size=3), min_size=1, max_size=4),
    size=st.integers(0, 3),
    transfer=st.booleans(),
    rule=st.booleans(),
)
def test_groups_that_some_ranks_call(called, size, transfer, rule):
    """Of several traces: the ranks that call it, if others do not, and the recorded size is theirs."""
    traces = [
        RankTrace("job", "s", f"f{rank}", [RankCall("x", "all_reduce", 8, group=name) for name in names], rank=rank)
        for rank, names in enumerate(called)
    ]
    if transfer:
        traces[0].calls.append(RankCall("t", "send", 8, group="q", ranks=(0, 1)))
    model = RankModel(RankCount(8, "", 0), traces)
    one = RankCall("x", "all_reduce", 8, group="p", group_size=size, group_rule="by rule" if rule else "")
    callers = tuple(rank for rank, names in enumerate(called) if "p" in names)
    found = model.members(traces[0], one)
    fits = 1 < len(callers) < len(called) and size in (0, len(callers)) and not rule
    assert (found.source == "assumed: the ranks whose traces call it") == fits
    if fits:
        assert found.ranks == callers
    unnamed = RankCall("x", "all_reduce", 8)
    assert model.members(traces[0], unnamed) == (range(8), "assumed: all ranks")


parts = st.lists(st.integers(0, 2), max_size=4)


@examples(100)
@given(
    sent=parts, received=parts, rank=st.integers(-1, 4), own_size=st.integers(0, 2), taken=st.sampled_from([-1, 0, 1])
)
def test_an_uneven_exchange_is_no_smaller_for_its_rank(sent, received, rank, own_size, taken):
    """The even exchange in which the rank moves as much as the larger of its lists; without fitting lists the larger size.

    A note says that it is uneven, by its lists or by both sizes.
    """
    members = (0, 2, 4)
    call = RankCall("x", "all_to_all", own_size, received_bytes=taken, ranks=members)
    call.sent_splits, call.received_splits = tuple(sent), tuple(received)
    trace = RankTrace("job", "s", "f", [call], rank=rank)
    found = RankModel(RankCount(8, "", 0), [trace]).resolve(trace, call, Omissions())
    differ = taken not in (-1, own_size) or len(set(sent)) > 1 or len(set(received)) > 1
    assert any(note.startswith("uneven all_to_all: 1,") for note in workload_from(trace, 8).notes) == differ
    sizes = []
    for rows, size in ((sent, own_size), (received, taken)):
        if len(rows) == 3 and rank in members:
            moved = sum(rows) - rows[members.index(rank)]
            size = math.ceil(moved * 3 / 2)
        sizes.append(size)
    assert found.size_bytes == max(sizes)


def test_what_a_model_leaves_out():
    """Groups of one rank, transfers to oneself, shares of an unknown number of ranks; a share too large is refused."""
    omissions = Omissions()
    trace = RankTrace("job", "s", "f", [RankCall("x", "all_gather", 5, "share")])
    unknown = RankModel(RankCount(0, "", 0), [trace])
    assert unknown.resolve(trace, trace.calls[0], omissions) is None
    assert unknown.resolve(trace, RankCall("x", "all_reduce", 6, ranks=(4,)), omissions) is None
    assert unknown.resolve(trace, RankCall("x", "send", 7, ranks=(0, 0)), omissions) is None
    assert unknown.resolve(trace, RankCall("x", "send", 7, ranks=(-1, -1)), omissions).ranks == (-1, -1)
    assert [tuple(one) for one in omissions.records()] == [
        ("all_gather of a share, where the number of ranks is not recorded", 1, 5, True),
        ("all_reduce in a group of one rank", 1, 6, False),
        ("send from a rank to itself", 1, 7, False),
    ]
    four = RankModel(RankCount(4, "", 0), [trace])
    largest = RankCall("x", "all_gather", 2**58, "share")
    assert four.resolve(trace, largest, omissions).size_bytes == 2**60
    with pytest.raises(WorkloadError, match=r"bytes a rank, 4 ranks, is more than 2\*\*60 bytes"):
        four.resolve(trace, RankCall("x", "all_gather", 2**58 + 1, "share"), omissions)


# --- ends of transfers ------------------------------------------------------------------------------------------------


@examples(100)
@given(
    members=st.lists(rank_sets, max_size=3),
    rank=st.integers(-1, 5),
    sender=st.integers(-1, 4),
    receiver=st.integers(-1, 4),
    sends=st.booleans(),
    named=st.sampled_from(["", "g0", "own"]),
)
def test_ends_within_a_group_are_ranks(members, rank, sender, receiver, sends, named):
    """In the recorded group, or in the only one that has both numbers and the rank of the trace at its own."""
    ends = GroupEnds(sender, receiver, (6, 7, 5, 4, 3) if named == "own" else ())
    call = RankCall("x", "send" if sends else "recv", 8, group=named, ranks=(-1, -1), ends=ends)
    listed = {f"g{i}": ranks for i, ranks in enumerate(members)}
    trace = RankTrace("job", "s", "f", [call], rank=rank, groups=listed)
    known = ends.members or listed.get(named, ())
    found = {}
    for group in [known] if known else dict.fromkeys(members):
        places = [sender, receiver]
        if max(places) >= len(group):
            continue
        own = places[not sends]
        if not known and rank >= 0 and not (group[own] == rank if own >= 0 else rank in group):
            continue
        pair = [group[at] if at >= 0 else -1 for at in places]
        if own < 0:
            pair[not sends] = rank
        if known or pair[0] != pair[1] or pair[0] < 0:
            found[tuple(pair)] = found.get(tuple(pair), False) or is_whole(group)
    if len(found) == 1:
        due = next(iter(found))
    elif known:
        due = (-1, -1)
    elif found:
        due = next((pair for pair, whole in found.items() if whole), next(iter(found)))
    else:
        due = (sender, receiver)
    if rank >= 0 and due[not sends] < 0:
        due = (rank, due[1]) if sends else (due[0], rank)
    try:
        read = workload_from(trace, 8)
    except WorkloadError:
        return
    assert call.ranks == due
    said = "ends of 1 transfer count within a group that is not recorded"
    assert any(note.startswith(said) for note in read.notes) == (len(found) != 1 and not known)


# --- tables -----------------------------------------------------------------------------------------------------------

kinds = st.sampled_from(
    [
        ("all_reduce", (0, 1, 2)),
        ("all_reduce", (3,)),
        ("all_gather", (0, 2)),
        ("all_gather", ()),
        ("all_to_all", ()),
        ("send", ()),
    ]
)


@examples(50)
@given(
    rows=st.lists(
        st.tuples(kinds, st.integers(0, 2**40), st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), max_size=12
    ),
    rank=st.integers(-1, 5),
    given_=st.sampled_from([0, 6]),
)
def test_a_table_says_what_its_calls_say(rows, rank, given_):
    """Calls, notes and what is left out are those of the same calls one by one."""
    held, one_by_one = CallRows(), []
    for (collective, ranks), size, src, dst, label in rows:
        counts = "share" if collective == "all_gather" else "message"
        transfer = collective == "send"
        number = held.kind(collective, ranks, counts=counts)
        ends = (src, dst) if transfer else (-1, -1)
        named = label % 2 * transfer
        columns = (number, size, *ends, label * 0.5, label, named)
        held.add(*(np.array([value]) for value in columns))
        one_by_one.append(
            RankCall(
                f"call {label}",
                collective,
                size,
                counts,
                ("", "named")[named],
                ends if transfer else ranks,
                measured_s=label * 0.5,
            )
        )
    held.add(*[np.array([], np.int64)] * 7)
    table = held.table("call {}".format, ("", "named"))
    assert [vars_of(one) for one in table] == [vars_of(one) for one in one_by_one]
    assert len(held.calls) == len({kind for kind, *_ in rows})
    outcomes = []
    for calls_ in (table, one_by_one):
        trace = RankTrace("job", "s", "f", calls_, rank=rank, whole_job=True)
        try:
            read = workload_from(trace, given_)
        except WorkloadError as error:
            outcomes.append(str(error))
            continue
        about = [(c.collective, c.size_bytes, c.ranks, c.group, c.measured_s, c.name) for c in read.calls]
        notes = [note for note in read.notes if not note.startswith("the trace is of rank")]
        outcomes.append((about, sorted(notes), read.num_ranks, sorted(read.omitted), read.total_bytes))
    assert outcomes[0] == outcomes[1]


def vars_of(call):
    """Fields of a call."""
    return {name: getattr(call, name) for name in RankCall.__slots__}


def test_shares_of_a_table_that_are_too_large():
    """Refused by their call; as large as a message may be they are read."""
    for size, fits in ((2**58, True), (2**58 + 1, False)):
        held = CallRows()
        kind = held.kind("all_gather", (), counts="share")
        held.add(*(np.array([value, value]) for value in (kind, size, -1, -1, 0, 7, 0)))
        trace = RankTrace("job", "s", "f", held.table("call {}".format))
        if fits:
            assert [c.size_bytes for c in workload_from(trace, 4).calls] == [2**60] * 2
        else:
            with pytest.raises(
                WorkloadError, match="the all_gather 'call 7' of 288,230,376,151,711,745 bytes a rank, 4 ranks"
            ):
                workload_from(trace, 4)


def test_groups_without_the_rank_of_the_trace():
    """A note with the first of them, its ranks cut after the eighth; transfers are none."""
    wide = RankCall("wide", "all_reduce", 8, ranks=tuple(range(1, 10)))
    near = RankCall("near", "all_reduce", 8, ranks=tuple(range(1, 9)))
    for calls_, said in (
        ([wide, near], "2 calls of groups without it, such as 'wide' of ranks 1, 2, 3, 4, 5, 6, 7, 8, ..."),
        ([near], "1 call of groups without it, such as 'near' of ranks 1, 2, 3, 4, 5, 6, 7, 8"),
    ):
        more = [RankCall("mine", "all_reduce", 8, ranks=(0, 1)), RankCall("t", "send", 8, ranks=(2, 3))]
        notes = workload_from(RankTrace("job", "s", "f", [*more, *calls_], rank=0), 16).notes
        assert f"the trace is of rank 0, but {said}" in notes
        assert not any(
            "groups without it" in note for note in workload_from(RankTrace("j", "s", "f", calls_ + more), 16).notes
        )


def test_the_order_of_notes():
    """What the reader says first, ranks and groups, what it says last, what is left out."""
    trace = RankTrace("job", "s", "f", [RankCall("x", "all_reduce", 0)], before=["first"], after=["last"])
    trace.omissions.add("of one kind", 5)
    assert workload_from(trace, 2).notes == (
        "first",
        "size of 0 bytes: 1 of 1 calls",
        "2 ranks (from --nodes)",
        "groups assumed: 1 of 1 calls without a group: taken to be all ranks",
        "last",
        "left out: 1 of one kind, 5 bytes in all",
    )
