"""Members of pools of devices for the circuits of a round."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit


@njit
def take_members(first_member, pool, wanted, setting):  # type: ignore[no-untyped-def]
    """A member for each use of a round, int64 (n,): one with its setting, else the first that no other use takes.

    Args:
        first_member: first member of each group; uses of one group are adjacent.
        pool: members of the group.
        wanted: setting of each use.
        setting: of every member now.
    """
    n = len(wanted)
    taken = np.full(n, -1, np.int64)
    at = 0
    while at < n:
        stop = at
        while stop < n and first_member[stop] == first_member[at]:
            stop += 1
        free = np.ones(pool[at], np.bool_)
        for i in range(at, stop):
            for m in range(pool[at]):
                if free[m] and setting[first_member[at] + m] == wanted[i]:
                    taken[i] = first_member[at] + m
                    free[m] = False
                    break
        for i in range(at, stop):
            if taken[i] < 0:
                for m in range(pool[at]):
                    if free[m]:
                        taken[i] = first_member[at] + m
                        free[m] = False
                        break
                if taken[i] < 0:  # more uses than members: a broken plan; the verifier of light says so
                    taken[i] = first_member[at]
        at = stop
    return taken
