"""Dependency graphs made by hand: each rule is broken once, and names what breaks it."""

import numpy as np
import pytest

from opticcl.ir import Verdict, Violation
from opticcl.ir.dependency_graph import Buffer, DependencyGraph, Operations
from opticcl.verify.time.dependencies import verify_graph

DEPTH = "messages that a connection must hold so that nothing deadlocks: {}"


def op(rank, kind="copy", **more):
    """An operation of a rank, whose thread block and step are 10 and 20 more than the rank."""
    given = {"source": -1, "target": -1, "count": 1, "accumulates": False, "message": -1, "sends_on": -1, **more}
    return {"rank": rank, "block": rank + 10, "step": rank + 20, "kind": kind, **given}


def graph(ops, before=(), inputs=(), outputs=(), cells=4, chunks=1, stuck=(), ranks=2):
    """Cells are shared out among the ranks in order; inputs and outputs are (cell, result)."""
    columns = {name: [one[name] for one in ops] for name in op(0)}
    columns = {name: tuple(v) if name == "kind" else np.array(v) for name, v in columns.items()}
    each = cells // ranks

    def ends(pairs, at):
        return np.array([pair[at] for pair in pairs], np.int64)

    return DependencyGraph(
        "made", "all_reduce", ranks, chunks, cells,
        tuple(Buffer(rank, "i", rank * each, each) for rank in range(ranks)), Operations(**columns),
        ends(before, 0), ends(before, 1), np.array(stuck, np.int64), ends(inputs, 0), ends(inputs, 1),
        ends(outputs, 0), ends(outputs, 1), np.arange(max([1, *(r + 1 for _, r in inputs)])) + 50, ("a note",),
    )  # fmt: skip


EXCHANGE = [
    op(0, "s", source=0, sends_on=0),
    op(1, "rrc", target=2, accumulates=True, message=0),
    op(1, "s", source=2, sends_on=1),
    op(0, "r", target=0, message=2),
]
ORDER = [(0, 3), (1, 2)]
SUM = {"inputs": [(0, 0), (2, 0)], "outputs": [(0, 0), (2, 0)]}


def found(*given, **more):
    """Violations of a graph."""
    return verify_graph(graph(*given, **more)).violations


def broken(*given, **more):
    """The one violation of a graph, as (rule, step, where, expected, found, count)."""
    (one,) = found(*given, **more)
    assert one.round == -1
    return one.rule, one.step, one.where, one.expected, one.found, one.count


def test_two_ranks_that_add():
    """A sum goes there and back; the verdict counts messages, and every part of the work is told."""
    told = []
    verdict = verify_graph(graph(EXCHANGE, ORDER, **SUM), progress=lambda *one: told.append(one))
    assert verdict == Verdict((), 2, 0, 1, True, ("a note", DEPTH.format(1)))
    assert told == [("order the operations", 1, 3), ("look for races", 2, 3), ("follow the data", 3, 3)]
    assert verify_graph(graph(EXCHANGE, ORDER, **SUM, chunks=7)).chunks == 7


# --- order --------------------------------------------------------------------------------------------------------------


def test_events_that_never_happen():
    """The first is named, all are counted; nothing else is judged then."""
    due = ("deadlock", 21, "rank 1 thread block 11 s", "an event that happens", "it waits forever", 2)
    assert broken(EXCHANGE, stuck=[2, 3], **SUM) == due
    assert verify_graph(graph(EXCHANGE, stuck=[2], **SUM)).notes == ("a note",)


@pytest.mark.parametrize(
    ("before", "where", "text", "count"),
    [
        ([(0, 1), (1, 2), (2, 1), (1, 3)], 2, "a cycle of 2: step 22 of rank 2 thread block 12 c before step 21 of "
         "rank 1 thread block 11 c", 3),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 1)], 2, "a cycle of 5: step 22 of rank 2 thread block 12 c before "
         "step 23 of rank 3 thread block 13 c before step 24 of rank 4 thread block 14 c before step 25 of rank 5 thread "
         "block 15 c before ...", 5),
        ([(1, 2), (2, 3), (3, 4), (4, 1)], 2, "a cycle of 4: step 22 of rank 2 thread block 12 c before step 23 of rank 3 "
         "thread block 13 c before step 24 of rank 4 thread block 14 c before step 21 of rank 1 thread block 11 c", 4),
        ([(0, 0)], 0, "a cycle of 1: step 20 of rank 0 thread block 10 c", 1),
        ([(3, 4), (4, 3), (3, 0), (5, 3)], 4, "a cycle of 2: step 24 of rank 4 thread block 14 c before step 23 of rank 3 "
         "thread block 13 c", 3),
    ],
)  # fmt: skip
def test_cycles(before, where, text, count):
    """Their operations are named in order; those that wait behind are counted too."""
    rule, step, name, expected, said, many = broken([op(rank, "c") for rank in range(6)], before, ranks=6, cells=6)
    assert (rule, expected, many) == ("deadlock", "an order of all operations", count)
    assert (step, name) == (20 + where, f"rank {where} thread block {10 + where} c")
    assert said == text


# --- races --------------------------------------------------------------------------------------------------------------

WRITES = [op(0, "a", source=0, target=1), op(1, "b", source=2, target=1)]
READS = [op(0, "a", source=1, target=0), op(1, "b", source=2, target=1)]
ALL = {"inputs": [(cell, cell) for cell in range(4)]}


FIRST = [op(0, "a", source=0, target=1), op(1, "b", source=2, target=0)]
LATER = [op(0, "a", source=1, target=0), op(1, "b", source=0, target=3)]


@pytest.mark.parametrize("ops", [WRITES, READS, READS[::-1], FIRST, LATER])
def test_races(ops):
    """Two writes, or a write and a read; either order mends it, by a way of several operations too."""
    names = [f"step {one['step']} of rank {one['rank']} thread block {one['block']} {one['kind']}" for one in ops]
    rule, _, where, expected, said, count = broken(ops, **ALL)
    assert (rule, count, said) == (
        "race",
        1,
        f"none; both use rank 0 i[{int(ops not in (FIRST, LATER))}] and one writes it",
    )
    assert {expected.removeprefix("an order between it and "), *(name for name in names if where in name)} == set(names)
    assert found(ops, [(0, 1)], **ALL) == found(ops, [(1, 0)], **ALL) == ()
    assert found([*ops, op(0), op(1)], [(0, 2), (2, 3), (3, 1)], **ALL) == ()


def test_an_operation_that_reads_what_it_writes():
    """It is one access: with another write it is one race."""
    ops = [op(0, "a", source=0, target=1), op(1, "b", source=1, target=1)]
    assert broken(ops, **ALL)[5] == 1


def test_accesses_that_are_no_race():
    """Two reads; one operation that reads what it writes; other cells of a range."""
    assert found([op(0, source=1, target=0), op(1, source=1, target=2)], **ALL) == ()
    assert found([op(0, source=1, target=1)], **ALL) == ()
    assert found([op(0, source=0, target=1), op(1, source=2, target=3)], **ALL) == ()
    assert found([op(0, source=0, target=2, count=2)], **ALL) == ()
    within = [op(0, source=0, target=2, count=2), op(1, target=3, message=-1, source=1)]
    assert broken(within, **ALL)[4] == "none; both use rank 1 i[1] and one writes it"


@pytest.mark.parametrize(
    ("source", "target", "clash"), [(0, 1, True), (1, 0, True), (1, 3, False), (2, 2, False), (3, 4, True)]
)
def test_source_and_target_of_one_operation(source, target, clash):
    """They are the same cells, or apart."""
    ops = [op(0, "a"), op(1, "b", source=source, target=target, count=2)]
    due = ("race", 21, "rank 1 thread block 11 b", "source and target apart", "its own source and target overlap", 1)
    inputs = {"inputs": [(cell, cell) for cell in range(6)], "cells": 6}
    said = found(ops, **inputs)
    assert [(one.rule, one.step, one.where, one.expected, one.found, one.count) for one in said[:1]] == [due][:clash]
    assert found([op(0, source=-1, target=0, count=2)], **inputs) == ()


def test_many_races_are_counted():
    """A write among 70 readers without order; more sources than are followed together."""
    ops = [op(0, "w", source=0, target=1), *(op(1, "r", source=1, target=2 + k) for k in range(70))]
    ready = {"cells": 72, "inputs": [(cell, cell) for cell in range(72)]}
    assert broken(ops, **ready)[5] == 70
    first = [(0, k) for k in range(1, 71)]
    assert found(ops, first, **ready) == ()
    assert found(ops, [pair[::-1] for pair in first], **ready) == ()
    assert broken(ops, [pair for pair in first if pair[1] != 66], **ready)[:2] == ("race", 20)
    for alone in (64, 65, 66):
        assert broken(ops, [pair[::-1] for pair in first if pair[1] != alone], **ready)[5] == 1


def test_a_write_between_others():
    """What follows from the pairs that are compared is not compared: of three in a row all are ordered."""
    ops = [op(0, "a", source=0, target=1), op(0, "b", source=1, target=2), op(1, "c", source=3, target=1)]
    assert found(ops, [(0, 1), (1, 2)], **ALL) == ()
    assert broken(ops, [(0, 1)], **ALL)[5] == 2
    assert broken(ops, [(0, 2)], **ALL)[5] == 2
    assert broken(ops, [(0, 1), (0, 2)], **ALL)[5] == 1


# --- data ---------------------------------------------------------------------------------------------------------------


def test_cells_that_are_read_before_they_are_written():
    """The first is named, and so is the result that has nothing."""
    ops = [op(0, "c", source=0, target=2, count=2), op(1, "d", source=1, target=1, accumulates=True)]
    first, second = found(ops, inputs=[(0, 0)], outputs=[(3, 0)], before=[(0, 1)])
    assert first == Violation(
        "read_before_written", 20, -1, "rank 0 thread block 10 c", "data in rank 0 i[1]", "none yet", 3
    )
    assert second.rule == "contribution_missing"
    assert second.where == "chunk 50 of rank 1 i[1] at rank 1"


def test_a_result_that_is_none():
    """Its contributions are complete, but a cell that never was written was added."""
    ops = [op(0, "c", source=1, target=0, accumulates=True)]
    first, second = found(ops, inputs=[(0, 0)], outputs=[(0, 0)])
    assert first.rule == "read_before_written"
    assert second == Violation("contribution_missing", -1, -1, "rank 0 i[0]", "data", "none", 1)
    sent = [op(0, "s", source=1, sends_on=0), op(1, "rrc", target=2, accumulates=True, message=0)]
    assert found(sent, inputs=[(2, 0)], outputs=[(2, 0)])[1].where == "rank 1 i[0]"
    nothing = found([op(0)], inputs=[], outputs=[(3, 0)])
    assert nothing == (Violation("contribution_missing", -1, -1, "rank 1 i[1]", "data", "none", 1),)


@pytest.mark.parametrize(
    ("ops", "before", "due"),
    [
        ([], [], [("contribution_missing", "rank 1 chunk 50 x0", 2)]),
        (EXCHANGE[:2], [], [("contribution_missing", "rank 1 chunk 50 x0", 1)]),
        ([*EXCHANGE, op(1, "c", source=0, target=2, accumulates=True)], [*ORDER, (3, 4), (2, 4)],
         [("contribution_doubled", "rank 0 chunk 50 x2, rank 1 chunk 50 x2", 1)]),
        ([*EXCHANGE, op(0, "c", source=1, target=0, accumulates=True)], [*ORDER, (3, 4)],
         [("contribution_foreign", "rank 0 chunk 51 x1", 1)]),
        ([*EXCHANGE, op(0, "c", source=1, target=0)], [*ORDER, (3, 4)],
         [("contribution_missing", "rank 0 chunk 50 x0, rank 1 chunk 50 x0", 1),
          ("contribution_foreign", "rank 0 chunk 51 x1", 1)]),
    ],
)  # fmt: skip
def test_wrong_sums(ops, before, due):
    """The rule, whose contribution, how often, and how many results are wrong."""
    more = {"inputs": [*SUM["inputs"], (1, 1)], "outputs": SUM["outputs"]}
    said = found(ops, before, **more) if ops else found([op(0)], **more)
    assert [(one.rule, one.found, one.count) for one in said] == due
    assert {(one.step, one.round, one.expected) for one in said} == {(-1, -1, "each contribution once")}


def test_many_contributions():
    """Four are named; counts are exact up to 2 to the power of 40, also behind sums that double."""
    inputs = [(cell, 0) for cell in range(6)]
    (one,) = found([op(0, "s", source=0, sends_on=0)], inputs=inputs, outputs=[(0, 0)], cells=6)
    assert one.found == ", ".join(f"rank {cell // 3} chunk 50 x0" for cell in (1, 2, 3, 4)) + ", ..."
    (one,) = found([op(0)], inputs=inputs[:5], outputs=[(0, 0)], cells=6)
    assert one.found == ", ".join(f"rank {cell // 3} chunk 50 x0" for cell in (1, 2, 3, 4))
    turns = range(50)
    twice = [op(0, source=k % 2, target=1 - k % 2, accumulates=k > 0) for k in turns]
    before = [(k, k + 1) for k in turns[:-1]]
    for many in (5, 20, 49):
        (one,) = found(twice[:many], before[: many - 1], inputs=[(0, 0)], outputs=[(many % 2, 0)])
        row = [1, 1]
        for k in range(1, many):
            row[1 - k % 2] += row[k % 2]
        assert one.found == f"rank 0 chunk 50 x{row[many % 2]}"
    (most,) = found(
        [op(0, source=k % 2, target=1 - k % 2, accumulates=k > 0) for k in range(70)],
        [(k, k + 1) for k in range(69)], inputs=[(0, 0)], outputs=[(0, 0)],
    )  # fmt: skip
    assert most.found == f"rank 0 chunk 50 x{1 << 40}"


def test_messages_carry_sums():
    """A value is stored and sent; ranges keep their order."""
    ops = [
        op(0, "s", source=0, sends_on=0, count=2),
        op(1, "rrcs", source=-1, target=2, accumulates=True, message=0, sends_on=1, count=2),
        op(0, "r", target=0, message=1, count=2),
    ]
    ends = [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert found(ops, [(0, 2)], inputs=ends, outputs=ends) == ()
    crossed = [(0, 0), (1, 1), (2, 1), (3, 0)]
    said = found(ops, [(0, 2)], inputs=crossed, outputs=crossed)
    assert [one.rule for one in said] == ["contribution_missing", "contribution_foreign"]
    assert said[0].found == "rank 1 chunk 50 x0"
    assert (said[1].where, said[1].found) == ("chunk 50 of rank 0 i[0] at rank 0", "rank 1 chunk 51 x1")
    passed = [
        op(0, "s", source=0, sends_on=0),
        op(1, "rcs", target=2, message=0, sends_on=1),
        op(0, "r", target=1, message=1),
    ]
    assert found(passed, inputs=[(0, 0)], outputs=[(0, 0), (2, 0), (1, 0)]) == ()
    (doubled,) = found(
        [*passed, op(0, "c", source=1, target=1, accumulates=True)], [(2, 3)], inputs=[(0, 0)], outputs=[(1, 0)]
    )
    assert doubled.found == "rank 0 chunk 50 x2"


# --- connections --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "text"), [(0, "0"), (1, "1"), (2, "2"), (3, "3, more than 2"), (5, "5, more than 2")]
)
def test_messages_that_a_connection_must_hold(ahead, text):
    """Both ranks send so many messages before they receive the first."""
    sends = [op(rank, "s", source=4 * rank, sends_on=rank) | {"step": k} for rank in (0, 1) for k in range(ahead)]
    receives = [
        op(1 - rank, "r", target=0 + 8 * (1 - rank) + 10 + k, message=rank * ahead + k)
        for rank in (0, 1)
        for k in range(ahead)
    ]
    count = 2 * ahead
    before = [(k, k + 1) for k in range(count - 1) if k != ahead - 1]
    before += [(count + k, count + k + 1) for k in range(count - 1) if k != ahead - 1]
    before += [(ahead - 1, count + ahead), (count - 1, count)] if ahead else []
    verdict = verify_graph(graph([*sends, *receives] or [op(0)], before, inputs=[(0, 0), (4, 0)], cells=30))
    assert verdict.notes[-1] == DEPTH.format(text)
    assert verdict.violations == ()


def test_messages_of_several_connections():
    """One after the other on each: a connection holds one, whatever is on the others."""
    ops = []
    for _ in range(3):
        for connection in (0, 1):
            send = op(0, "s", source=0, sends_on=connection) | {"step": 9 - len(ops) // 4}
            ops += [send, op(1, "r", target=4 + len(ops), message=len(ops))]
    before = [(i, i - 4) for i in range(4, len(ops))]
    assert verify_graph(graph(ops, before, inputs=[(0, 0)], cells=40)).notes[-1] == DEPTH.format(1)


def test_messages_of_connections_that_wait_for_each_other():
    """The last message of one may come after the first of the next."""
    ops = [op(0, "s", source=0, sends_on=1)]
    ops += [op(0, "s", source=0, sends_on=0) | {"step": k} for k in range(2)]
    ops += [op(1, "r", target=10 + k, message=k) for k in range(3)]
    verdict = verify_graph(graph(ops, [(0, 1), (4, 2)], inputs=[(0, 0)], cells=40))
    assert verdict.notes[-1] == DEPTH.format(1)
