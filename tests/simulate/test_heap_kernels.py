"""The heap of numbers beside `heapq`."""

import heapq

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.simulate import _heap_kernels as kernels

STALE = 29  # numbers in the heap; this one stands in the places behind it


@pytest.mark.parametrize("seed", range(8))
def test_numbers_come_by_key_and_then_by_number(seed):
    """Added in any order, some removed in between; what is behind the heap has no effect, and nothing is lost."""
    draw = np.random.default_rng(seed)
    key = draw.integers(0, 2 + 2 * seed, STALE) * 1.0
    heap, keys, size, due = np.full(STALE + 1, STALE, np.int32), np.full(STALE + 1, 99.0), np.zeros(1, np.int64), []
    with interpreted(kernels):
        for number in [*draw.permutation(STALE).tolist(), *[-1] * STALE]:
            if number >= 0:
                kernels.push(heap, keys, size, number, key[number])
                heapq.heappush(due, (key[number], number))
            for _ in range(min(draw.integers(-2, 3) if number >= 0 else 1, len(due))):
                assert (keys[0], heap[0]) == heapq.heappop(due)
                kernels.drop_least(heap, keys, size)
                assert sorted(zip(keys[: size[0]], heap[: size[0]].tolist(), strict=True)) == sorted(due)
    assert size[0] == len(due) == 0


@pytest.mark.parametrize("seed", range(8))
def test_a_number_whose_key_grows_finds_its_place(seed):
    """As if it were removed and added again; what is behind the heap has no effect."""
    draw = np.random.default_rng(seed)
    key = draw.integers(0, 2 + 2 * seed, STALE) * 1.0
    heap, keys, size = np.full(STALE + 1, STALE, np.int32), np.full(STALE + 1, -1.0), np.zeros(1, np.int64)
    with interpreted(kernels):
        for number in draw.permutation(STALE).tolist():
            kernels.push(heap, keys, size, number, key[number])
        due = [(key[number], number) for number in range(STALE)]
        heapq.heapify(due)
        while due:
            assert (keys[0], heap[0]) == due[0]
            if draw.integers(3):
                grown = keys[0] + draw.integers(4)
                heapq.heapreplace(due, (grown, int(heap[0])))
                kernels.lower_least(heap, keys, size, grown)
            else:
                heapq.heappop(due)
                kernels.drop_least(heap, keys, size)
    assert size[0] == 0
    assert heap[STALE] == STALE
