"""Busy time of parts slice by slice, from spans that are laid over the slices one by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.ir import Circuits, Op, Transfers, Usage
from opticcl.simulate import over_time as over_time_module
from opticcl.simulate.over_time import _Spans, _step_spans, busy_over_time
from opticcl.simulate.traffic import TransferTimes


def overlap_s(begin, end, low, high):
    """How long two spans have in common [s]."""
    return max(0.0, min(end, high) - max(begin, low))


@pytest.mark.parametrize(("rows", "bins", "total_s"), [(1, 1, 2.0), (3, 4, 2.0), (2, 7, 1e-5)])
def test_work_is_spread_evenly_over_its_span(rows, bins, total_s):
    """Spans that begin and end anywhere from 0 to the end, in several calls; one without duration is in one slice."""
    rng, spans = np.random.default_rng(1), _Spans(rows, bins, total_s)
    due, width = np.zeros((rows, bins)), total_s / bins
    for _ in range(3):
        row = rng.integers(0, rows, 8)
        begin, end = np.sort(rng.choice(np.linspace(0, total_s, 2 * bins + 1), (2, 8)), axis=0)
        end[0] = begin[0] = rng.uniform(0.1, 0.9) * width + width * rng.integers(0, bins)
        work = rng.uniform(1, 2, 8)
        spans.add(row, begin, end, work)
        for r, a, b, w in zip(row, begin, end, work, strict=True):
            if a == b:
                due[r, min(int(a / width), bins - 1)] += w
                continue
            for k in range(bins):
                due[r, k] += w * overlap_s(a, b, k * width, (k + 1) * width) / (b - a)
    assert spans.sliced() == pytest.approx(due, rel=1e-6, abs=1e-6)


def test_an_instant_is_a_millionth_of_a_slice():
    """So that its rate is finite; what ends where it begins takes none of the slices before."""
    spans = _Spans(1, 4, 4.0)
    spans.add(np.array([0]), np.array([2.0 - 0.5e-6]), np.array([2.0 - 0.5e-6]), np.array([1.0]))
    assert spans.sliced()[0] == pytest.approx([0.0, 0.5, 0.5, 0.0], abs=1e-3)
    assert (spans.sliced() >= 0).all()


T = Transfers.of([0, 1, 0, 0], [1, 2, 2, 2], [0, 5, 7, 11], [5, 2, 4, 3], Op.COPY)
ROUNDS = (Circuits.of([-1, 2, 0, 2], [3, 0, 0, 0], 1), Circuits.of([3, 1], [0, 1], 2))  # 0, 2; then 1, 3


def times_of(*rows):
    """Rows (step, repeats, period, src, dst, bytes, start, end)."""
    return TransferTimes(*map(np.array, zip(*rows, strict=True)))


def listed(spans):
    """Spans as lists."""
    return [tuple(column.tolist() for column in one) for one in spans]


OTHERS = ((4, 1, 0.0, 0, 1, 1e9, 0.0, 1e9), (7, 1, 0.0, 0, 1, 1e9, 0.0, 1e9))
"""Rows of the steps before and behind."""


def test_spans_of_rounds_are_in_the_order_of_their_circuits():
    """Of a step that is repeated, once for each time."""
    mine = [
        (5, 2, 100.0, 0, 1, 5.0, 10.0, 11.0), (5, 2, 100.0, 0, 2, 4.0, 30.0, 33.0),
        (5, 2, 100.0, 1, 2, 2.0, 20.0, 22.0), (5, 2, 100.0, 0, 2, 3.0, 40.0, 44.0),
    ]  # fmt: skip
    first = ([10.0, 20.0, 30.0, 40.0], [11.0, 22.0, 33.0, 44.0], [5.0, 2.0, 4.0, 3.0])
    later = ([110.0, 120.0, 130.0, 140.0], [111.0, 122.0, 133.0, 144.0], [5.0, 2.0, 4.0, 3.0])
    times = times_of(OTHERS[0], *mine, OTHERS[1])
    assert listed(_step_spans(times, range(5, 7), T, ROUNDS)) == [first, later]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_time_module, "MAX_TIMES", 8)
        assert listed(_step_spans(times, range(5, 7), T, ROUNDS)) == [first, later]
        patch.setattr(over_time_module, "MAX_TIMES", 7)  # too many: as one span from the first to the last
        together = (first[0], later[1], [10.0, 4.0, 8.0, 6.0])
        assert listed(_step_spans(times, range(5, 7), T, ROUNDS)) == [together]


@pytest.mark.parametrize("steps", [(5,), (5, 6)])
def test_spans_of_steps_without_barriers_are_found_by_their_ends_and_sizes(steps):
    """Rows of each step are in the order of its senders."""
    rows = [
        (step, 1, 0.0, src, dst, size, 10 * size + step, 11 * size + step)
        for step in steps for src, dst, size in ((0, 1, 5.0), (0, 2, 4.0), (0, 2, 3.0), (1, 2, 2.0))
    ]  # fmt: skip
    sizes = [5.0, 2.0, 4.0, 3.0]
    due = [([10 * one + step for one in sizes], [11 * one + step for one in sizes], sizes) for step in steps]
    assert listed(_step_spans(times_of(OTHERS[0], *rows, OTHERS[1]), range(5, 7), T, ROUNDS)) == due


@pytest.mark.parametrize(("a", "b"), [((0, 1), (2, 1)), ((1, 0), (1, 2))])
def test_one_end_tells_transfers_apart(a, b):
    """Two transfers that differ in one end, recorded in another order than that of their circuits."""
    t = Transfers.of(*np.array([a, b]).T, [0, 1], 1, Op.COPY)
    rounds = (Circuits.of([0, 1], [0, 1], 2),)
    times = times_of((0, 1, 0.0, *b, 1.0, 5.0, 6.0), (0, 1, 0.0, *a, 1.0, 1.0, 2.0))
    assert listed(_step_spans(times, range(1), t, rounds)) == [([1.0, 5.0], [2.0, 6.0], [1.0, 1.0])]


def test_equal_transfers_are_told_apart_by_their_rounds():
    """Of two with the same ends and bytes the second is sent first."""
    t, rounds = Transfers.of([0, 0], [1, 1], [0, 1], 1, Op.COPY), (Circuits.of([1], [0], 1), Circuits.of([0], [0], 1))
    times = times_of((0, 1, 0.0, 0, 1, 1.0, 1.0, 2.0), (0, 1, 0.0, 0, 1, 1.0, 5.0, 6.0))
    assert listed(_step_spans(times, range(1), t, rounds)) == [([5.0, 1.0], [6.0, 2.0], [1.0, 1.0])]


def test_rows_for_all_transfers_are_spread_over_the_time_of_all_of_them():
    """By the chunks of each; repeats move by their period."""
    rows = [(5, 3, 10.0, -1, -1, 20.0, 4.0, 6.0), (5, 2, 5.0, -1, -1, 10.0, 3.0, 7.0)]
    rows += [(6, 5, 1.0, -1, -1, 20.0, 4.0, 6.0)] * 2  # as many rows as transfers
    ((start, end, size),) = listed(_step_spans(times_of(OTHERS[0], *rows, OTHERS[1]), range(5, 7), T, ROUNDS))
    assert (start, end, size) == ([3.0] * 4, [26.0] * 4, [100.0, 40.0, 80.0, 60.0])  # 280 bytes of 14 chunks
    some = times_of((5, 1, 0.0, 0, 1, 6.0, 1.0, 2.0), (5, 1, 0.0, 1, 2, 8.0, 0.0, 1.5))  # fewer rows than transfers
    ((start, end, size),) = listed(_step_spans(some, range(5, 7), T, ROUNDS))
    assert (start, end, size) == ([0.0] * 4, [2.0] * 4, [5.0, 2.0, 4.0, 3.0])


def test_steps_without_rows_or_transfers_have_no_spans():
    """Nothing was recorded, or nothing is sent."""
    assert _step_spans(times_of(*OTHERS), range(5, 7), T, ROUNDS) == []
    assert _step_spans(times_of(*OTHERS), range(4, 7), Transfers.of([], [], [], [], []), ()) == []


def test_parts_are_summed_in_the_rows_that_they_are_given():
    """A transfer on two circuits, in two rounds; a part without a row is left out, an idle circuit carries nothing."""
    kinds = (
        SimpleNamespace(shared=True, capacity=8.0, splits=False), SimpleNamespace(shared=True, capacity=16.0, splits=False)
    )  # fmt: skip
    t = Transfers.of([0, 1], [1, 0], [0, 1], [1, 3], Op.COPY)
    rounds = (Circuits.of([0, -1, 0], [0, 1, 0], 1), Circuits.of([1], [1], 0))

    def usage(circuits):
        n = len(circuits)
        yield Usage(kinds[0], circuits.transfer.astype(np.int64))
        yield Usage(kinds[1], np.array([0, 1, 2])[: n + 1], np.array([0, n - 1, n - 1])[: n + 1])

    plan = SimpleNamespace(
        fabric=SimpleNamespace(resources=kinds, usage=usage, is_packet_switched=True),
        schedule=SimpleNamespace(step_classes=lambda: (range(1),), step=lambda i: t),
        rounds=lambda i: rounds,
    )
    times = times_of((0, 1, 0.0, 0, 1, 8.0, 0.0, 2.0), (0, 1, 0.0, 1, 0, 24.0, 2.0, 4.0))

    def row_of(kind, index):
        return np.where(index == 1, -1, kind) if kind else index * 2

    found = busy_over_time(plan, times, 4.0, row_of, 3, 2)
    # kind 0 at 1 byte/s: 8 bytes of part 0 in row 0, 24 of part 1 in row 2; kind 1 at 2 byte/s, of parts 0 and 2 in row 1:
    # of the first transfer 4 bytes of part 0 and 4 of part 2, of the second 24 of part 0
    assert found == pytest.approx(np.array([[8.0, 0.0], [4.0, 12.0], [0.0, 24.0]]), rel=1e-6)
