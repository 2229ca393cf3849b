"""Compiled checks beside their definitions, on small columns: points of polynomials, orbits, sets, events of runs."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

from opticcl.collective import as_request
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.symmetry import Run, RunSteps
from opticcl.kernels import always_compiled, never_compiled
from opticcl.verify import symmetry
from opticcl.verify._field import evaluate, multiply, prefix_sums
from opticcl.verify._time_data import _replay_step
from opticcl.verify.chunk_rows import _reached
from opticcl.verify.exact import _events_of, _list_events, _play_sets, _run_events
from opticcl.verify.symmetry import Claim, _evaluate, _prefix_sums, _products, end_runs, orbits

PRIME = (1 << 61) - 1
EDGES = (0, 1, 2, PRIME - 1, PRIME - 2, (PRIME + 1) // 2, 1 << 60, 123456789012345678)


@pytest.fixture(autouse=True)
def without_compiler(monkeypatch):
    """Where nothing is compiled, a product of 128 bits is one of Python."""

    def folded(a, b):
        product = int(a) * int(b)
        return np.uint64((product & PRIME) + (product >> 61))

    if numba.config.DISABLE_JIT:
        monkeypatch.setattr(symmetry, "_folded", folded)


def words(values):
    """As a column."""
    return np.array(values, np.uint64)


def columns(rows, *types):
    """Columns of rows, of the types that the checks are compiled for."""
    table = np.array(rows, np.int64).reshape(-1, len(types)).T
    return [np.ascontiguousarray(column, kind) for column, kind in zip(table, types, strict=True)]


SHORT = (np.int32, np.int32, np.uint8, np.int32, np.int32, np.int32)
LONG = (np.int64,) * 5


def test_products_and_sums():
    """Modulo 2^61 - 1, at the edges too."""
    due = [[a * o % PRIME for a in EDGES] for o in EDGES]
    assert _products(words(EDGES), words(EDGES)).tolist() == due
    assert multiply(words(EDGES)[:, None], words(EDGES)).tolist() == due
    values = [PRIME - 1, 1, 5, PRIME - 5, 7, *EDGES]
    for sums in (_prefix_sums, prefix_sums):
        assert sums(words(values)).tolist() == [sum(values[:k]) % PRIME for k in range(len(values) + 1)]
        assert sums(words([])).tolist() == [0]


ROWS = [
    (0, 1, 0, 1, 0, 2), (0, 1, 0, 1, 3, 1), (0, 1, 0, 2, 3, 1), (0, 2, 0, 1, 2, 3), (0, 2, 1, 1, 2, 3),
    (1, 2, 1, 1, 2, 3), (1, 2, 1, 1, 0, 5), (2, 0, 1, 0, 4, 1), (2, 0, 1, 0, 0, 5), (2, 0, 1, 1, 4, 1), (2, 0, 1, 1, 0, 2),
]  # fmt: skip


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("apart", [False, True])
def test_polynomials(apart, size):
    """Sums over rows of sender, receiver, parts and chunks, whichever rows are beside each other."""
    random = np.random.default_rng(3)
    low, high = (PRIME - 40, PRIME) if size == "large" else (1, PRIME)
    a, b, q, x = (random.integers(low, high, count, dtype=np.uint64) for count in ((2, 3), 3, 3, 5))
    for rows in (ROWS, ROWS[::-1], ROWS[::2] + ROWS[1::2], ROWS[:1], [], ROWS * 9):
        due = 0
        for src, dst, op, parts, lo, n in rows:
            value = int(a[op, src]) * int(b[dst]) * sum(x[lo : lo + n].tolist())
            due += value * (int(q[parts]) if apart else 1)
        src, dst, op, parts, lo, n = columns(rows, *SHORT)
        parts = parts if apart else parts[:0]
        for value in (_evaluate, evaluate):
            assert int(value(src, dst, op, parts, lo, n, a, b, q, _prefix_sums(x))) == due % PRIME, rows


def test_sums_that_are_zero():
    """A sum that is the modulus is none, of chunks, of one sender and of all."""
    one, most = words([1, 1, 1]), words([[1, PRIME - 1, 1]])
    x = _prefix_sums(words([PRIME - 1, 1, 1]))
    rows = [(0, 0, 0, 0, 0, 2)]
    pairs = [(0, 0, 0, 0, 0, 1), (0, 1, 0, 0, 1, 1)]
    apart = [(0, 0, 0, 0, 1, 1), (1, 0, 0, 0, 2, 1)]
    for some in (rows, pairs, apart):
        src, dst, op, parts, lo, n = columns(some, *SHORT)
        for value in (_evaluate, evaluate):
            assert int(value(src, dst, op, parts[:0], lo, n, most, one, one, x)) == 0


def test_orbits_and_what_is_reached():
    """Against sets, under one and two permutations."""
    random = np.random.default_rng(4)
    for count, many in ((1, 1), (7, 1), (12, 2), (12, 1), (9, 3)):
        for _ in range(4):
            images = np.stack([random.permutation(count) if many == 1 else swap(random, count) for _ in range(many)])
            sets = {frozenset(reached(images, k)) for k in range(count)}
            some = random.integers(0, count, 2)
            due = sorted(set().union(*(reached(images, k) for k in some.tolist())))
            for forced in (always_compiled, never_compiled):
                with forced():
                    first, largest = orbits([Claim(1, image, image) for image in images], count)
                    assert (first.tolist(), largest) == (sorted(map(min, sets)), max(map(len, sets)))
                    assert np.flatnonzero(_reached(images, some)).tolist() == due


def swap(random, count):
    """Two elements that change places."""
    image = np.arange(count)
    pair = random.choice(count, 2, replace=False)
    image[pair] = pair[::-1]
    return image


def reached(images, start):
    """All that permutations take an element to."""
    found, more = set(), {start}
    while more:
        found |= more
        more = {int(image[k]) for image in images for k in more} - found
    return found


def test_first_and_last_run():
    """Of steps, of runs, and of a schedule without either."""
    request = as_request("all_gather").on(4, 4)
    steps = [Transfers.of([0], [1 + k], [0], 1, Op.COPY) for k in range(3)]
    first, last = end_runs(Schedule("own", request, 3, steps.__getitem__))
    assert (first.base() is steps[0], last.base() is steps[2]) == (True, True)
    assert end_runs(Schedule("own", request, 0, steps.__getitem__)) == ()
    runs = tuple(Run(lambda k=k: steps[k]) for k in range(3))
    assert end_runs(Schedule("own", request, 3, RunSteps(runs, 4))) == (runs[0], runs[2])
    assert end_runs(Schedule("own", request, 0, RunSteps((), 4))) == ()


# --- sets ---------------------------------------------------------------------------------------------------------------


def played(events, sets, marked=()):
    """Sets and marks after events (step, src, dst, op, chunk)."""
    state = np.array(sets, np.uint64)
    marks = np.zeros(state.shape[:2], np.bool_)
    for at in marked:
        marks[at] = True
    _play_sets(*columns(events, *LONG), state, marks)
    return state.tolist(), [tuple(at) for at in np.argwhere(marks).tolist()]


COPY, ADD, MOVE, TAKE = (int(op) for op in (Op.COPY, Op.REDUCE, Op.MOVE, Op.REDUCE_MOVE))


def test_sets_after_events():
    """Sends of a step see the sets before it; what is added twice is marked, and the mark goes with the data."""
    three = [[[1, 0]], [[2, 8]], [[4, 0]]]
    assert played([], three) == (three, [])
    assert played([(0, 0, 1, ADD, 0), (0, 1, 2, ADD, 0)], three) == ([[[1, 0]], [[3, 8]], [[6, 8]]], [])
    assert played([(0, 0, 1, ADD, 0), (1, 1, 2, ADD, 0)], three) == ([[[1, 0]], [[3, 8]], [[7, 8]]], [])
    assert played([(3, 1, 0, COPY, 0), (3, 0, 1, COPY, 0)], three) == ([[[2, 8]], [[1, 0]], [[4, 0]]], [])
    assert played([(0, 0, 1, MOVE, 0), (0, 1, 0, TAKE, 0)], three) == ([[[2, 8]], [[1, 0]], [[4, 0]]], [])
    twice = [(0, 1, 2, ADD, 0), (1, 1, 2, ADD, 0)]
    assert played(twice, three) == ([[[1, 0]], [[2, 8]], [[6, 8]]], [(2, 0)])
    high = [[[0, 0]], [[0, 8]], [[0, 12]]]
    assert played(twice[:1], high)[1] == [(2, 0)]
    assert played([*twice, (2, 2, 0, COPY, 0)], three)[1] == [(0, 0), (2, 0)]
    assert played([*twice, (2, 2, 0, ADD, 0)], [[[0, 0]], *three[1:]])[1] == [(0, 0), (2, 0)]
    assert played([*twice, (2, 2, 0, MOVE, 0)], [[[0, 0]], *three[1:]]) == ([[[6, 8]], [[2, 8]], [[0, 0]]], [(0, 0)])
    assert played([(0, 0, 2, COPY, 0)], three, [(2, 0)])[1] == []
    assert played([(0, 0, 2, ADD, 0)], three, [(2, 0)])[1] == [(2, 0)]
    chunks = [[[1], [2]], [[4], [8]]]
    assert played([(0, 0, 1, ADD, 1), (0, 1, 0, COPY, 0)], chunks) == ([[[4], [2]], [[4], [10]]], [])
    assert played([(0, 0, 1, TAKE, 0), (0, 0, 1, ADD, 1)], chunks) == ([[[0], [2]], [[5], [10]]], [])
    assert played([(0, 0, 1, TAKE, 0)], chunks, [(0, 1)])[1] == [(0, 1)]
    assert played([(0, 0, 1, COPY, 0)], chunks, [(1, 1)])[1] == [(1, 1)]
    assert played([(0, 0, 1, ADD, 0)], chunks, [(0, 0)])[1] == [(0, 0), (1, 0)]
    assert played([(0, 0, 1, ADD, 1)], chunks, [(0, 1)])[1] == [(0, 1), (1, 1)]
    later = [(5, 0, 1, ADD, 0), (6, 1, 0, TAKE, 1), (6, 0, 1, ADD, 1), (7, 1, 0, ADD, 0)]
    assert played(later, chunks) == ([[[5], [10]], [[5], [2]]], [(0, 0)])


def test_events_of_a_run(monkeypatch):
    """Step by step, chunk by chunk, member by member: rows of the chunk that stood there so many turns ago."""
    rows, starts, inverse = np.array([5, 6, 7]), np.array([0, 2, 2, 3]), np.array([2, 0, 1])
    source = np.array([[0, 1], [2, 2]])
    due, at = [], source.copy()
    for turn in range(4):
        for k in range(2):
            for member in range(2):
                here = at[member, k]
                due += [(turn, int(row), k) for row in rows[starts[here] : starts[here + 1]]]
                at[member, k] = inverse[here]
    found = _list_events(rows, starts, inverse, source.copy(), 4, 8)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == due
    assert [len(column) for column in _list_events(rows, starts, inverse, source.copy(), 0, 8)] == [0, 0, 0]
    step = Transfers.of(np.arange(8), np.arange(8) + 1, 0, 1, Op.REDUCE)
    for most, parts in ((1, 4), (9, 4), (24, 2), (1 << 20, 1)):
        monkeypatch.setattr("opticcl.verify.exact.MOST_EVENTS", most)
        monkeypatch.setattr(
            "opticcl.verify.exact.indexed_by_chunk", lambda *given: (rows, starts, inverse, source.copy())
        )
        events = list(_run_events(SimpleNamespace(count=4), [step], step, np.arange(2), 10, None))
        assert len(events) == parts
        joined = [row for one in events for row in zip(*(column.tolist() for column in one), strict=True)]
        assert [(number - 10, src, chunk) for number, src, _, _, chunk in joined] == due
    assert _events_of(step, np.array([3]), np.array([2]), np.array([1])).dst.tolist() == [3]


# --- times of data ------------------------------------------------------------------------------------------------------


def times_of_a_step(rows, low, ready, left, copied):
    """What a step changes, chunk by chunk: rows of (src, dst, lo, n, apart, op, left, arrived, summed)."""
    width, none = ready.shape[1], float("-inf")
    carried = [[lo + k * apart - low for k in range(n)] for _, _, lo, n, apart, *_ in rows]
    carried = [[c for c in chunks if 0 <= c < width] for chunks in carried]
    due = [max([none, *(ready[row[0], c] for c in chunks)]) for row, chunks in zip(rows, carried, strict=True)]
    for (src, *_, left_s, _, _), chunks in zip(rows, carried, strict=True):
        for c in chunks:
            left[src, c] = max(left[src, c], left_s)
    for (src, *_, op, _, _, _), chunks in zip(rows, carried, strict=True):
        for c in chunks if op in (MOVE, TAKE) else ():
            ready[src, c] = copied[src, c] = none
    missing = []
    for (_, dst, *_, op, _, arrived, summed), chunks in zip(rows, carried, strict=True):
        late = [0.0]
        for c in chunks:
            late += [left[dst, c] - arrived, (ready if op == COPY else copied)[dst, c] - arrived]
            ready[dst, c] = summed if op == COPY else max(ready[dst, c], summed)
            copied[dst, c] = arrived if op == COPY else copied[dst, c]
        missing.append(max(late))
    return due, missing


def test_times_of_data():
    """When data is ready, when its last send has left, when it was copied: against the same, chunk by chunk."""
    random = np.random.default_rng(6)
    for low, width in ((0, 6), (2, 3), (3, 1)) * 8:
        state = random.integers(0, 9, (3, 4, width)).astype(float)
        state[random.random(state.shape) < 0.2] = -np.inf
        rows = []
        for _ in range(int(random.integers(1, 7))):
            src, dst = random.choice(4, 2, replace=False).tolist()
            lo, apart = int(random.integers(0, 4)), int(random.integers(1, 4))
            n = int(random.integers(1, 1 + (5 - lo) // apart + 1))
            rows.append((src, dst, lo, n, apart, int(random.integers(0, 4)), *random.integers(0, 9, 3).tolist()))
        expected = state.copy()
        due, missing = times_of_a_step(rows, low, *expected)
        given = columns(rows, np.int32, np.int32, np.int32, np.int32, np.int32, np.uint8, *(np.float64,) * 3)
        ready_of, found = np.full(len(rows), -np.inf), np.zeros(len(rows))
        _replay_step(*given, low, width, *state, ready_of, found)
        assert (ready_of.tolist(), found.tolist()) == (due, missing), rows
        assert np.array_equal(state, expected), rows
