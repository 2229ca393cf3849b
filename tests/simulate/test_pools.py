"""Members of pools beside the same choice from lists of those that are free."""

import numpy as np

from opticcl.simulate._pools import take_members


def test_members_that_are_set_come_first():
    """Pools of one to four members, up to one use more than members, few settings."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        sizes = rng.integers(1, 5, 4)
        firsts = np.cumsum(sizes) - sizes
        uses = [int(rng.integers(0, size + 2)) for size in sizes]
        groups = rng.permutation(4).tolist()  # groups are adjacent, in any order
        first = np.array([firsts[g] for g in groups for _ in range(uses[g])], np.int64)
        pool = np.array([sizes[g] for g in groups for _ in range(uses[g])], np.int64)
        wanted, setting = rng.integers(0, 3, len(first)), rng.integers(0, 3, int(sizes.sum()))
        due = [-1] * len(first)
        for g in groups:
            mine, free = np.flatnonzero(first == firsts[g]).tolist(), list(range(firsts[g], firsts[g] + sizes[g]))
            for i in mine:
                same = [member for member in free if setting[member] == wanted[i]]
                if same:
                    due[i] = same[0]
                    free.remove(same[0])
            for i in mine:
                if due[i] < 0:
                    due[i] = free.pop(0) if free else int(firsts[g])
        assert take_members(first, pool, wanted, setting).tolist() == due


def test_no_use_takes_no_member():
    """A round without pools."""
    none = np.zeros(0, np.int64)
    assert take_members(none, none, none, none).tolist() == []
