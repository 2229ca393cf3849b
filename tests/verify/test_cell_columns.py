"""Steps and runs that are followed with NumPy: every answer and every cell is that of the kernels."""

import copy
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir import Op
from opticcl.kernels import always_compiled, never_compiled
from opticcl.verify.cells import Cells
from opticcl.verify.chunk_rows import followed_rows

COUNTS = st.sampled_from([0, 1, 1, 2, 3, (1 << 31) - 1, 1 << 60, (1 << 61) - 1, 1 << 61])
WORDS = st.integers(0, (1 << 64) - 1)


def some_cells(data, ranks, chunks, *, chunk_first):
    """Any labels, counts up to the largest that there are."""
    shape = (chunks, ranks) if chunk_first else (ranks, chunks)
    words = np.random.default_rng(data.draw(WORDS)).integers(0, 1 << 64, (2, *shape), dtype=np.uint64)
    held = np.array(data.draw(st.lists(COUNTS, min_size=ranks * chunks, max_size=ranks * chunks))).reshape(shape)
    return Cells(words, held, words[:, 0], held[0], chunk_first)


def some_rows(data, ranks):
    """Senders, receivers, operations, and parts or none."""
    rows = data.draw(st.integers(0, 12))
    ops = data.draw(st.sampled_from([[Op.COPY], [Op.REDUCE], [Op.COPY, Op.MOVE], list(Op)]))
    draw = [st.integers(0, ranks - 1), st.integers(0, ranks - 1), st.sampled_from(ops), st.integers(1, 3)]
    columns = [data.draw(st.lists(one, min_size=rows, max_size=rows)) for one in draw]
    src, dst, op, parts = map(np.array, columns, [np.int32, np.int32, np.uint8, np.int32])
    return src, dst, op, parts if data.draw(st.booleans()) else parts[:0]


def by_both(cells, play):
    """What is found, and the cells afterwards, with NumPy and with kernels."""
    found = []
    for forced in (never_compiled, always_compiled):
        mine = copy.deepcopy(cells)
        with forced(), np.errstate(over="ignore"):  # labels are added modulo 2^64, also where nothing is compiled
            answer = [np.asarray(one).tolist() for one in play(mine)]
        found.append((answer, mine.words.tolist(), mine.held.tolist()))
    return found


@examples(120)
@given(st.data())
def test_a_step(data):
    """With clashes, empty sends and wrong sizes among its rows, some of which carry no followed chunk."""
    ranks, chunks = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    cells = some_cells(data, ranks, chunks, chunk_first=False)
    src, dst, op, parts = some_rows(data, ranks)
    lo, n = (np.array([data.draw(st.integers(least, 4)) for _ in src], np.int32) for least in (0, 1))
    if data.draw(st.booleans()):  # nobody both sends and receives
        src, dst = src // 2 * 2, np.minimum(dst // 2 * 2 + 1, ranks - 1)
    below = np.minimum(np.arange(9), chunks).astype(np.int32)
    plain, compiled = by_both(cells, lambda mine: mine.play_step((src, dst, lo, n, op, parts), below, 3))
    assert plain == compiled


@examples(60)
@given(st.data())
def test_a_block(data):
    """Its steps one after the other, up to the first with a violation."""
    ranks, chunks = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 4))
    cells = some_cells(data, ranks, chunks, chunk_first=data.draw(st.booleans()))
    src, dst, op, parts = some_rows(data, ranks)
    lo, n = (np.array([data.draw(st.integers(least, 4)) for _ in src], np.int32) for least in (0, 1))
    columns = (src, dst, lo, n, op, parts)
    starts = np.array([0, *sorted(data.draw(st.lists(st.integers(0, len(src)), max_size=3))), len(src)])
    below = np.minimum(np.arange(9), chunks).astype(np.int32)

    def step_by_step(mine):
        for played, (begin, end) in enumerate(pairwise(starts)):
            found = mine.play_step(tuple(column[begin:end] for column in columns), below, 2 + played)
            if any(counter[0] for counter in found):
                break
        first = [[counter[0], counter[1] + begin * bool(counter[0]), *counter[2:]] for counter in found]
        return played + 1, np.array(first)

    def at_once(mine):
        played, found = mine.play_block(columns, starts, below, 2)
        return played, np.array(found)

    (plain, _), (_, compiled) = by_both(cells, step_by_step), by_both(cells, at_once)
    assert plain == compiled


@examples(80)
@given(st.data())
def test_a_run(data):
    """Of any number of members, whose chunks any places take."""
    ranks, chunks, members, places = (data.draw(st.integers(1, most)) for most in (4, 4, 2, 5))
    cells = some_cells(data, ranks, chunks, chunk_first=True)
    src, dst, op, parts = some_rows(data, ranks)
    starts = np.array([0, *sorted(data.draw(st.integers(0, len(src))) for _ in range(places - 1)), len(src)])
    inverse = np.array([data.draw(st.integers(0, places - 1)) for _ in range(places)])
    source = np.array([data.draw(st.integers(0, places - 1)) for _ in range(members * chunks)]).reshape(members, -1)
    more = np.array([data.draw(st.integers(0, 2)) for _ in src], np.int64)
    columns = (src, dst, op, parts, np.arange(len(src))[::-1].copy(), starts, inverse)
    count = data.draw(st.integers(1, 5))
    plain, compiled = by_both(cells, lambda mine: mine.play_run(columns, source, count, more))
    assert plain == compiled


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=8), st.sets(st.integers(0, 7)))
def test_rows_that_carry_followed_chunks(ranges, chunks):
    """And the range of these in each."""
    lo, n = np.array(ranges, np.int32).reshape(-1, 2).T.copy()
    below = np.searchsorted(sorted(chunks), np.arange(9)).astype(np.int32)
    found = []
    for forced in (never_compiled, always_compiled):
        with forced():
            found.append(followed_rows(lo, n, below))
    assert all(one.dtype == other.dtype == np.int32 for one, other in zip(*found, strict=True))
    assert [one.tolist() for one in found[0]] == [one.tolist() for one in found[1]]
