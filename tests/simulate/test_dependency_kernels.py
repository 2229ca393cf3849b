"""Dependencies between flows beside lists of what each rank holds."""

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.simulate import _dependency_kernels as kernels


@pytest.fixture(autouse=True)
def _plainly():
    with interpreted(kernels):
        yield


RANKS, CHUNKS, STEPS = 4, 5, 4


def drawn(seed):
    """Flows (step, source, first chunk, chunks, distance, destination, whether they are added), sorted: groups are adjacent."""
    draw = np.random.default_rng(seed)
    rows = []
    for step in range(STEPS):
        for _ in range(draw.integers(1, 5)):
            src, lo, by = draw.integers(0, RANKS), draw.integers(0, CHUNKS), draw.integers(1, 3)
            most = (CHUNKS - 1 - lo) // by + 1
            group = step, src, lo, draw.integers(1, most + 1), by
            rows += [(*map(int, group), int(to), bool(draw.integers(0, 2))) for to in draw.integers(0, RANKS, seed % 3)]
    return sorted(rows, key=lambda row: row[:5])


def by_lists(rows):
    """Pairs (flow, group): what a group sends that flows of earlier steps brought to its rank."""
    groups, held, found = sorted({row[:5] for row in rows}), {}, set()
    for step in range(STEPS):
        mine = [flow for flow, row in enumerate(rows) if row[0] == step]
        for flow in mine:
            _, src, lo, n, by, _, _ = rows[flow]
            group = groups.index(rows[flow][:5])
            found |= {(cause, group) for k in range(n) for cause in held.get((src, lo + k * by), [])}
        for flow in mine:
            _, _, lo, n, by, dst, adds = rows[flow]
            for place in [(dst, lo + k * by) for k in range(n)]:
                held[place] = [*held.get(place, []), flow] if adds else [flow]
    return sorted(found)


def by_kernel(rows):
    """The same pairs, sorted."""
    step, src, lo, n, by, dst, adds = np.array(rows, np.int64).reshape(-1, 7).T
    group_of = np.array([sorted({row[:5] for row in rows}).index(row[:5]) for row in rows], np.int64)
    flows, groups = kernels.data_needs(RANKS, CHUNKS, src, dst, step, lo, n, by, adds > 0, group_of)
    return sorted(zip(flows.tolist(), groups.tolist(), strict=True))


@pytest.mark.parametrize("table", [1, 2 * CHUNKS, 3 * CHUNKS, 1 << 22])
@pytest.mark.parametrize("seed", range(6))
def test_what_a_group_waits_for(monkeypatch, seed, table):
    """Each pair once, whichever ranks are processed together: all of them, two, three, or one alone."""
    monkeypatch.setattr(kernels, "TABLE", table)
    rows = drawn(seed)
    assert by_kernel(rows) == by_lists(rows)


def test_a_chain_of_ranks():
    """Each sends what the one before it brought, to which it was added or not."""
    for adds in (False, True):
        rows = [(step, step, 0, CHUNKS, 1, step + 1, adds) for step in range(RANKS - 1)]
        assert by_kernel(rows) == by_lists(rows) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_rows_by_key_and_the_next_of_the_same_key(seed):
    """Some keys have no row."""
    draw = np.random.default_rng(seed)
    key, value = draw.integers(0, 5, (2, 3 * seed))
    at, rows = kernels.rows_of(key, value, 6)
    pairs = list(zip(key.tolist(), value.tolist(), strict=True))
    assert len(at) == 7
    assert [rows[at[k] : at[k + 1]].tolist() for k in range(6)] == [
        [v for own, v in pairs if own == k] for k in range(6)
    ]
    following = [[i for i in range(row + 1, len(key)) if key[i] == key[row]] for row in range(len(key))]
    assert kernels.next_of_same(key, 6).tolist() == [behind[0] if behind else -1 for behind in following]
