"""Cells of ranks and followed chunks against a replay in a few lines of Python, one transfer of one chunk at a time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from opticcl.ir import Collective, Op
from opticcl.ir.collective import Holders, HolderTable
from opticcl.kernels import always_compiled
from opticcl.verify.cells import Cells, first_holders

MOST = 1 << 61
COUNTS = np.array([0, 1, 1, 2, 3, MOST - 1, MOST])
OPERATIONS = [[Op.COPY], [Op.REDUCE], [Op.REDUCE, Op.REDUCE | Op.MOVE], [Op.COPY, Op.REDUCE], list(Op)]


@dataclass
class Replay:
    """What each (rank, chunk) holds: label words and contributions; and what was found: [rule, row, chunk, held, step]."""

    held: dict
    found: list

    def step(self, entries, parts, number):
        """Entries (row, sender, receiver, chunk, operation) in their order; parts that each row says it carries."""
        sent = [self.held[sender, chunk] for _, sender, _, chunk, _ in entries]
        last = {}
        for (row, _, _, chunk, _), (_, _, there) in zip(entries, sent, strict=True):
            if not there:
                self.found.append(("not_held", row, chunk, 0, number))
            elif parts and parts[row] != there:
                self.found.append(("wrong_size", row, chunk, there, number))
        for _, sender, _, chunk, op in entries:
            if op & Op.MOVE:
                self.held[sender, chunk] = (0, 0, 0)
        for (row, _, receiver, chunk, op), value in zip(entries, sent, strict=True):
            cell, adds = (receiver, chunk), op != Op.COPY
            if cell in last and not (adds and last[cell]):
                self.found.append(("clash", row, chunk, 0, number))
            last[cell] = adds
            a, b, n = self.held[cell] if adds else (0, 0, 0)
            self.held[cell] = ((a + value[0]) % 2**64, (b + value[1]) % 2**64, min(n + value[2], MOST))

    def counters(self, *, of_run=False):
        """Of each rule: how often, and the row, chunk and contributions of the first, and of a run its step."""
        out = []
        for rule in ("clash", "not_held", "wrong_size"):
            mine = [one[1:] for one in self.found if one[0] == rule]
            first = min(mine, key=lambda one: one[3], default=(0, 0, 0, 0))  # of equal steps the first found
            out.append([len(mine), *first[: 4 if of_run else 3]])
        return out


def some_cells(rng, ranks, chunks, *, chunk_first=False):
    """Random labels and counts, and the replay that starts with them."""
    shape = (chunks, ranks) if chunk_first else (ranks, chunks)
    words = rng.integers(0, 1 << 64, (2, *shape), dtype=np.uint64)
    held = rng.choice(COUNTS[rng.integers(0, 2) :], shape)
    cells = Cells(words, held, words[:, 0], held[0], chunk_first)
    return cells, Replay(by_cell(cells), [])


def by_cell(cells):
    """Label words and contributions by (rank, chunk)."""
    turned = [one.T if cells.chunk_first else one for one in (*cells.words, cells.held)]
    return {cell: tuple(int(one[cell]) for one in turned) for cell in np.ndindex(turned[0].shape)}


def some_rows(rng, rows, ranks, chunks):
    """Columns src, dst, chunk_lo, chunk_n, op and parts or none; often nobody both sends and receives."""
    src, dst = rng.integers(0, ranks, (2, rows), dtype=np.int32)
    if rng.integers(0, 2):
        src, dst = src // 2 * 2, np.minimum(dst // 2 * 2 + 1, ranks - 1).astype(np.int32)
    lo = rng.integers(0, chunks, rows, dtype=np.int32)
    n = np.array([rng.integers(1, chunks - at + 1) for at in lo], np.int32)
    op = rng.choice(OPERATIONS[rng.integers(0, len(OPERATIONS))], rows).astype(np.uint8)
    parts = rng.integers(1, 3, rows).astype(np.int32)
    return src, dst, lo, n, op, parts[: rows * rng.integers(0, 2)]


def entries_of(columns, rows):
    """Transfers of one chunk each, row by row."""
    src, dst, lo, n, op, _ = (column.tolist() for column in columns)
    return [(t, src[t], dst[t], k, op[t]) for t in rows for k in range(lo[t], lo[t] + n[t])]


def plain(counters):
    """Counters as lists."""
    return [one.tolist() for one in counters]


def test_steps_one_after_the_other():
    """Several steps on the same cells: what is found in each, and what is held behind it."""
    rng = np.random.default_rng(1)
    for _ in range(120):
        ranks, chunks = (int(rng.integers(1, 5)) for _ in range(2))
        cells, replay = some_cells(rng, ranks, chunks, chunk_first=bool(rng.integers(0, 2)))
        for step in range(int(rng.integers(1, 4))):
            rows = int(rng.integers(0, 6))
            columns = some_rows(rng, rows, ranks, chunks)
            replay.found = []
            replay.step(entries_of(columns, range(rows)), columns[-1].tolist(), step)
            with always_compiled(), np.errstate(over="ignore"):
                found = cells.play_step(columns, np.arange(chunks + 1, dtype=np.int32), step)
            assert plain(found) == replay.counters()
            assert by_cell(cells) == replay.held


def test_blocks_of_steps():
    """All steps up to the first in which something is found; and the rest, again as a block."""
    rng = np.random.default_rng(2)
    for case in range(100):
        ranks, chunks, steps = 4, int(rng.integers(1, 4)), int(rng.integers(1, 5))
        cells, replay = some_cells(rng, ranks, chunks, chunk_first=bool(case % 2))
        starts = np.concatenate([[0], np.cumsum(rng.integers(0, 4, steps))])
        columns = some_rows(rng, int(starts[-1]), ranks, chunks)
        at = 0
        while at < steps:
            replay.found, begin, first = [], int(starts[at]), at
            while at < steps and not replay.found:
                replay.step(entries_of(columns, range(*starts[at : at + 2])), columns[-1].tolist(), at)
                at += 1
            rest = tuple(column[begin:] for column in columns)
            with always_compiled(), np.errstate(over="ignore"):
                below = np.arange(chunks + 1, dtype=np.int32)
                played, found = cells.play_block(rest, starts[first:] - begin, below, first)
            for counter in found:
                counter[1] += begin * bool(counter[0])
            assert (played, plain(found)) == (at - first, replay.counters())
            assert by_cell(cells) == replay.held


def test_runs():
    """Of several members, whose chunks go through any places of the base, with parts that grow or do not."""
    rng = np.random.default_rng(3)
    for case in range(120):
        ranks, chunks, members, places, count = (int(rng.integers(1, most)) for most in (5, 4, 3, 4, 4))
        cells, replay = some_cells(rng, ranks, chunks, chunk_first=bool(case % 3))
        rows = int(rng.integers(0, 5))
        src, dst, _, _, op, parts = some_rows(rng, rows, ranks, chunks)
        starts = np.sort(rng.integers(0, rows + 1, places + 1))
        order, inverse = rng.permutation(rows), rng.integers(0, places, places)
        source = rng.integers(0, places, (members, chunks))
        more = rng.integers(0, 2, rows)
        for chunk in range(chunks):
            place = source[:, chunk]
            for turn in range(count):
                carried = [int(t) for p in place for t in order[starts[p] : starts[p + 1]]]
                entries = [(t, int(src[t]), int(dst[t]), chunk, int(op[t])) for t in carried]
                replay.step(entries, (parts + turn * more[: len(parts)]).tolist(), turn)
                place = inverse[place]
        columns = (src, dst, op, parts, order, starts, inverse)
        with always_compiled(), np.errstate(over="ignore"):
            found = cells.play_run(columns, source, count, more)
        assert plain(found) == replay.counters(of_run=True)
        assert by_cell(cells) == replay.held


TABLES = {
    "one holder each": [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
    "several holders, of which the first is not rank 0": [[0, 1, 1], [0, 0, 1], [1, 1, 1]],
    "a rank holds one chunk, a chunk has two holders": [[0, 1, 1], [0, 0, 0], [1, 0, 0]],
    "a chunk that nobody holds": [[1, 0, 0], [0, 0, 0], [0, 0, 1]],
}
BEFORE = {
    "all": Holders("all"),
    "root": Holders("root", 1),
    "owner": Holders("owner", owners=np.array([2, 0, 1])),
    **{name: HolderTable(np.array(table, bool)) for name, table in TABLES.items()},
}


@pytest.mark.parametrize("chunk_first", [False, True])
@pytest.mark.parametrize(("reduces", "keeps_apart"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_cells_at_the_start(before, reduces, keeps_apart, chunk_first):
    """A rank has its own label, or the first holder's where all hold the same data; results are sums, or that label."""
    after = Holders("owner", owners=np.array([1, 1, 2]))
    c = Collective("drawn", 3, 3, reduces, before, after, keeps_apart=keeps_apart)
    labels = np.array([[3, 5], [1 << 63, 7], [11, (1 << 64) - 1]], np.uint64)
    chunks = np.array([0, 2])
    holders = {int(k): [r for r in range(3) if before(np.array([r]), np.array([k])).all()] for k in range(3)}
    one_label = not reduces and not keeps_apart and any(len(holders[k]) > 1 for k in chunks.tolist())
    with np.errstate(over="ignore"):
        cells = Cells.at_start(c, chunks, labels, chunk_first=chunk_first)
    assert cells.words.shape == ((2, 2, 3) if chunk_first else (2, 3, 2))
    found = by_cell(cells)
    for at, k in enumerate(chunks.tolist()):
        source = {r: (holders[k][0] if one_label else r) for r in holders[k]}
        for r in range(3):
            own = (*map(int, labels[source[r]]), 1) if r in source else (0, 0, 0)
            assert found[r, at] == own
        if holders[k]:
            result = sorted(set(source.values()))
            assert cells.expected[:, at].tolist() == [sum(map(int, labels[result, w])) % 2**64 for w in (0, 1)]
        if holders[k] or not one_label:
            assert cells.due[at] == len(set(source.values()))
    # the owner of each chunk lacks what others hold, and no other cell must hold the result
    due = np.zeros((3, 2), bool)
    for at, k in enumerate(chunks.tolist()):
        owner = int(after.owners[k])
        due[owner, at] = found[owner, at] != (*map(int, cells.expected[:, at]), int(cells.due[at]))
    assert cells.wrong(c, chunks).tolist() == due.tolist()


def test_a_result_needs_both_words_and_the_count():
    """Each alone is seen, in the cells that must hold the result, whichever way they lie."""
    c = Collective("drawn", 2, 1, True, Holders("all"), Holders("root", 1))
    labels = np.array([[3, 5], [7, 11]], np.uint64)
    for chunk_first in (False, True):
        start = Cells.at_start(c, np.array([0]), labels, chunk_first=chunk_first)
        for changed in ("", "first", "second", "count"):
            words, held = np.zeros((2, 1, 2), np.uint64), np.zeros((1, 2), np.int64)
            words[:, 0, 1], held[0, 1] = (10, 16), 2
            words[0, 0, 1] += np.uint64(changed == "first")
            words[1, 0, 1] += np.uint64(changed == "second")
            held[0, 1] += changed == "count"
            if not chunk_first:
                words, held = words.swapaxes(1, 2).copy(), held.T.copy()
            cells = replace(start, words=words, held=held)
            assert cells.wrong(c, np.array([0])).tolist() == [[False], [changed != ""]]


def test_first_holders_are_asked_for_where_several_hold_the_same():
    """None where contributions are added or kept apart, or no chunk has two holders."""
    one, two = np.array([[0, 1], [1, 0], [0, 0]]), np.array([[0, 0], [1, 0], [1, 1]])
    moved = Collective("drawn", 3, 2, False, Holders("all"), Holders("all"))
    assert first_holders(moved, one) is None
    assert first_holders(moved, two).tolist() == [1, 2]
    for kind in ({"reduces": True}, {"keeps_apart": True}):
        assert first_holders(replace(moved, **kind), two) is None
