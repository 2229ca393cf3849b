"""Verification of a dependency graph: right for every order of execution that its dependencies allow.

1. No operation waits forever: the dependencies have no cycle, and every awaited event happens (`deadlock`).
2. Two accesses to a cell of which one writes are ordered by dependencies (`race`). Then every order gives the same result.
3. In one such order, every cell is written before it is read (`read_before_written`), and every output cell ends with each
   contribution to its result exactly once (`contribution_missing`, `contribution_doubled`, `contribution_foreign`).

Contributions are random 128-bit labels and a sum of contributions is the sum of their labels;
for the results that are wrong the counts are computed exactly, by following the operations backwards.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray, ProgressCallback, Verdict, Violation, no_progress, numbered
from opticcl.ir.dependency_graph import DependencyGraph, Operations
from opticcl.ir.limits import limit
from opticcl.kernels import njit

__all__ = ["topological_order", "verify_graph"]

SHOWN = 4  # names in a message, and results that are explained
DEEP = 2  # messages that wait on a connection, above which a note says so [count]

_MANY = limit("dependencies.MANY")


def verify_graph(graph: DependencyGraph, *, seed: int = 0, progress: ProgressCallback = no_progress) -> Verdict:
    """Verify a dependency graph.

    Args:
        graph: any, from this program or another.
        seed: of the labels.
        progress: called after every part.
    Returns: a verdict; it follows every chunk. `transfers` counts messages.
    """
    ops = graph.operations
    order = topological_order(graph)
    progress("order the operations", 1, 3)
    violations = list(_deadlocks(graph, order))
    notes: list[str] = []
    if not violations:
        violations += _races(graph, order)
        progress("look for races", 2, 3)
        violations += _data(graph, order, np.random.default_rng(seed))
        progress("follow the data", 3, 3)
        notes.append(_depth_note(graph))
    return Verdict(tuple(violations), ops.num_messages, 0, graph.num_chunks, True, (*graph.notes, *notes))


# --- order ------------------------------------------------------------------------------------------------------------


def topological_order(graph: DependencyGraph) -> IntArray:
    """Operations in an order that keeps all dependencies, int64; without those that are on a cycle or behind one."""
    return _sorted(len(graph.operations), *graph.edges())


def _sorted(count: int, before: IntArray, after: IntArray) -> IntArray:
    starts, ends = _grouped(count, before, after)
    return _kahn(starts, ends, np.bincount(after, minlength=count))


def _grouped(count: int, key: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Values by key: those of key k are values[starts[k]:starts[k + 1]]."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=count))]).astype(np.int64)
    return starts, value[np.argsort(key, kind="stable")].astype(np.int64)


def _deadlocks(graph: DependencyGraph, order: IntArray) -> Iterator[Violation]:
    if len(graph.stuck):
        first = int(graph.stuck[0])
        yield _violation(graph, "deadlock", first, "an event that happens", "it waits forever", len(graph.stuck))
    left = np.ones(len(graph.operations), bool)
    left[order] = False
    if not left.any():
        return
    before, after = graph.edges()
    inside = left[before] & left[after]
    starts, causes = _grouped(len(left), after[inside], before[inside])
    seen: dict[int, int] = {}
    at = int(np.flatnonzero(left)[0])
    while at not in seen:  # each that is left waits for another that is left
        seen[at] = len(seen)
        at = int(causes[starts[at]])
    cycle = [i for i, number in seen.items() if number >= seen[at]][::-1]
    names = " before ".join(_place(graph, i) for i in cycle[:SHOWN]) + (" before ..." if len(cycle) > SHOWN else "")
    found = f"a cycle of {len(cycle)}: {names}"
    yield _violation(graph, "deadlock", cycle[0], "an order of all operations", found, int(left.sum()))


# --- races ------------------------------------------------------------------------------------------------------------


def _races(graph: DependencyGraph, order: IntArray) -> Iterator[Violation]:
    ops = graph.operations
    apart = np.abs(ops.source - ops.target)
    overlapping = np.flatnonzero((ops.source >= 0) & (ops.target >= 0) & (apart > 0) & (apart < ops.count))
    if len(overlapping):
        found = "its own source and target overlap"
        yield _violation(graph, "race", int(overlapping[0]), "source and target apart", found, len(overlapping))
    cell, op, writes = _accesses(ops)
    position = np.empty(len(ops), np.int64)
    position[order] = np.arange(len(order))
    by_cell = np.lexsort((position[op], cell))
    before, after, where = _conflicts(cell[by_cell], op[by_cell], writes[by_cell])
    edges = graph.edges()
    ordered = _reaches(order, *_grouped(len(ops), edges[1], edges[0]), before, after)
    wrong = np.flatnonzero(~ordered)
    if len(wrong):
        one, other = int(before[wrong[0]]), int(after[wrong[0]])
        expected = f"an order between it and {_place(graph, other)}"
        where_found = f"none; both use {graph.cell_name(int(where[wrong[0]]))} and one writes it"
        yield _violation(graph, "race", one, expected, where_found, len(wrong))


def _accesses(ops: Operations) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Cell, operation and whether it writes, of every access; an operation that reads and writes a cell has the write."""
    parts = []
    for first, writes in ((ops.source, False), (ops.target, True)):
        used = first >= 0
        if not writes:
            used &= first != ops.target
        rows = np.flatnonzero(used)
        row, within = numbered(ops.count[rows])
        op = rows[row]
        parts.append((first[op] + within, op, np.full(len(op), writes)))
    cells, owners, flags = zip(*parts, strict=True)
    return np.concatenate(cells), np.concatenate(owners), np.concatenate(flags)


# --- data -------------------------------------------------------------------------------------------------------------


def _data(graph: DependencyGraph, order: IntArray, random: np.random.Generator) -> Iterator[Violation]:
    ops = graph.operations
    num_results = len(graph.result_chunk)
    labels = np.ones((len(graph.input_cell), 3), np.uint64)  # two words, and a count that does not overflow
    labels[:, :2] = random.integers(0, 2**64, size=(len(graph.input_cell), 2), dtype=np.uint64)
    due = np.zeros((num_results, 3), np.uint64)
    np.add.at(due, graph.input_result, labels)
    state = np.zeros((graph.num_cells, 3), np.uint64)
    written = np.zeros(graph.num_cells, bool)
    state[graph.input_cell] = labels
    written[graph.input_cell] = True
    messages: dict[int, tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]] = {}
    unwritten: list[tuple[int, int]] = []  # operation and cell
    for i in order.tolist():
        count = int(ops.count[i])
        value, good = np.zeros((count, 3), np.uint64), np.ones(count, bool)
        if ops.message[i] >= 0:
            received, received_good = messages.pop(int(ops.message[i]))
            value, good = value + received, good & received_good
        for first in _read_by(ops, i):
            cells = slice(first, first + count)
            if not written[cells].all():
                unwritten.append((i, first + int(np.argmin(written[cells]))))
            value, good = value + state[cells], good & written[cells]
        value[:, 2] = np.minimum(value[:, 2], _MANY)
        if ops.target[i] >= 0:
            cells = slice(int(ops.target[i]), int(ops.target[i]) + count)
            state[cells], written[cells] = value, good
        if ops.sends_on[i] >= 0:
            messages[i] = value, good
    if unwritten:
        i, cell = unwritten[0]
        yield _violation(
            graph, "read_before_written", i, f"data in {graph.cell_name(cell)}", "none yet", len(unwritten)
        )
    outputs, results = graph.output_cell, graph.output_result
    wrong = ~written[outputs] | (state[outputs] != due[results]).any(axis=1)
    yield from _explain(graph, order, np.flatnonzero(wrong))


def _read_by(ops: Operations, i: int) -> Iterator[int]:
    if ops.source[i] >= 0:
        yield int(ops.source[i])
    if ops.accumulates[i]:
        yield int(ops.target[i])


def _explain(graph: DependencyGraph, order: IntArray, wrong: IntArray) -> Iterator[Violation]:
    """One violation a rule, with the first output that breaks it and its exact counts."""
    ranks = graph.rank_of_cell()
    by_rule: dict[str, Violation] = {}
    for output in wrong[:SHOWN].tolist():
        counts = _contributions(graph, order, int(graph.output_cell[output]))
        result = int(graph.output_result[output])
        mine = graph.input_result == result
        rank = int(ranks[graph.output_cell[output]])
        where = (
            f"chunk {graph.result_chunk[result]} of {graph.cell_name(int(graph.output_cell[output]))} at rank {rank}"
        )
        for rule, rows in (
            ("contribution_missing", np.flatnonzero(mine & (counts < 1))),
            ("contribution_doubled", np.flatnonzero(mine & (counts > 1))),
            ("contribution_foreign", np.flatnonzero(~mine & (counts != 0))),
        ):
            if len(rows) and rule not in by_rule:
                texts = [_contribution(graph, ranks, counts, row) for row in rows[:SHOWN].tolist()]
                text = ", ".join(texts) + (", ..." if len(rows) > SHOWN else "")
                by_rule[rule] = Violation(rule, -1, -1, where, "each contribution once", text, len(wrong))
    if len(wrong) and not by_rule:  # right in this order, but from a cell that was never written
        cell = graph.cell_name(int(graph.output_cell[wrong[0]]))
        by_rule["output"] = Violation("contribution_missing", -1, -1, cell, "data", "none", len(wrong))
    yield from by_rule.values()


def _contribution(graph: DependencyGraph, ranks: IntArray, counts: IntArray, row: int) -> str:
    chunk = graph.result_chunk[graph.input_result[row]]
    return f"rank {ranks[graph.input_cell[row]]} chunk {chunk} x{counts[row]}"


def _contributions(graph: DependencyGraph, order: IntArray, cell: int) -> IntArray:
    """How often each input is in a cell at the end, up to 2**40, int64 (inputs,): the operations followed backwards."""
    ops = graph.operations
    weight = np.zeros(graph.num_cells, np.int64)
    weight[cell] = 1
    of_message: dict[int, IntArray] = {}
    for i in order[::-1].tolist():
        count = int(ops.count[i])
        value = of_message.pop(i, None)
        if ops.target[i] >= 0:
            cells = slice(int(ops.target[i]), int(ops.target[i]) + count)
            value = np.minimum(weight[cells] + (0 if value is None else value), _MANY)
            if not ops.accumulates[i]:
                weight[cells] = 0
        if value is None or not value.any():
            continue
        if ops.accumulates[
            i
        ]:  # the content of the target goes on, in what is stored and, if it is sent, in the message
            weight[cells] = value
        if ops.source[i] >= 0:
            cells = slice(int(ops.source[i]), int(ops.source[i]) + count)
            weight[cells] = np.minimum(weight[cells] + value, _MANY)
        if ops.message[i] >= 0:
            of_message[int(ops.message[i])] = value
    return weight[graph.input_cell]


# --- connections ------------------------------------------------------------------------------------------------------


def _depth_note(graph: DependencyGraph) -> str:
    depth = _depth(graph)
    warning = f", more than {DEEP}" if depth > DEEP else ""
    return f"messages that a connection must hold so that nothing deadlocks: {depth}{warning}"


def _depth(graph: DependencyGraph) -> int:
    """Messages that each connection must be able to hold so that no sender waits forever [count]."""
    ops = graph.operations
    receives = np.flatnonzero(ops.message >= 0)
    sends = ops.message[receives]
    if not len(sends):
        return 0
    by_send = np.lexsort((ops.step[sends], ops.sends_on[sends]))
    sends, receives = sends[by_send], receives[by_send]
    connection = ops.sends_on[sends]
    before, after = graph.edges()

    def runs(depth: int) -> bool:
        rows = np.flatnonzero(connection[depth:] == connection[:-depth])
        full = np.concatenate([before, receives[rows]]), np.concatenate([after, sends[rows + depth]])
        return len(_sorted(len(ops), *full)) == len(ops)

    low, high = 1, int(np.bincount(connection).max())
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if runs(middle) else (middle + 1, high)
    return low


# --- names ------------------------------------------------------------------------------------------------------------


def _violation(graph: DependencyGraph, rule: str, i: int, expected: str, found: str, count: int) -> Violation:
    return Violation(rule, int(graph.operations.step[i]), -1, graph.operation_name(i), expected, found, count)


def _place(graph: DependencyGraph, i: int) -> str:
    return f"step {graph.operations.step[i]} of {graph.operation_name(i)}"


# --- kernels ----------------------------------------------------------------------------------------------------------


@njit
def _kahn(starts, ends, waits):  # type: ignore[no-untyped-def]
    """Nodes whose predecessors all come first, in that order; `waits` counts the predecessors of each."""
    order = np.empty(len(waits), np.int64)
    filled = 0
    for i in range(len(waits)):
        if waits[i] == 0:
            order[filled] = i
            filled += 1
    at = 0
    while at < filled:
        i = order[at]
        at += 1
        for k in range(starts[i], starts[i + 1]):
            waits[ends[k]] -= 1
            if waits[ends[k]] == 0:
                order[filled] = ends[k]
                filled += 1
    return order[:filled]


@njit
def _conflicts(cell, op, writes):  # type: ignore[no-untyped-def]
    """Pairs of accesses that must be ordered: each write with the accesses since the write before, each read with that write.

    Accesses are sorted by cell and position in one order; the pairs that are left out follow from those.
    """
    before, after, where = (
        np.empty(2 * len(op), np.int64),
        np.empty(2 * len(op), np.int64),
        np.empty(2 * len(op), np.int64),
    )
    n, last, reads = 0, -1, 0  # last: row of the last write of this cell; reads: first row after it
    for row in range(len(op)):
        if row == 0 or cell[row] != cell[row - 1]:
            last, reads = -1, row
        if last >= 0 and op[last] != op[row]:
            before[n], after[n], where[n] = op[last], op[row], cell[row]
            n += 1
        if writes[row]:
            for k in range(reads, row):
                if op[k] != op[row]:
                    before[n], after[n], where[n] = op[k], op[row], cell[row]
                    n += 1
            last, reads = row, row + 1
    return before[:n], after[:n], where[:n]


@njit
def _reaches(order, starts, causes, before, after):  # type: ignore[no-untyped-def]
    """Whether a path leads from before[k] to after[k]: 64 sources at a time, one pass over the graph for each 64."""
    reaches = np.zeros(len(before), np.bool_)
    by_source = np.argsort(before, kind="mergesort")
    bit_of = np.zeros(len(order), np.uint64)
    reached = np.zeros(len(order), np.uint64)
    row = 0
    while row < len(before):
        first, bits = row, 0
        while row < len(before):
            source = before[by_source[row]]
            if bit_of[source] == 0:
                if bits == 64:
                    break
                bit_of[source] = np.uint64(1) << np.uint64(bits)
                bits += 1
            row += 1
        for i in order:
            word = bit_of[i]
            for k in range(starts[i], starts[i + 1]):
                word |= reached[causes[k]]
            reached[i] = word
        for k in range(first, row):
            pair = by_source[k]
            reaches[pair] = reached[after[pair]] & bit_of[before[pair]] != 0
        for k in range(first, row):
            bit_of[before[by_source[k]]] = 0
    return reaches
