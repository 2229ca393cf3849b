"""Whether all ranks add in one order, so that sums of floats are equal on all of them, bit by bit.

A sum of two floats does not depend on their order, a sum of three does. So every partial sum has a fingerprint, a function of
the unordered pair of those that were added; equal fingerprints mean that the same numbers were added in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opticcl.execute.lockstep import run_in_lockstep
from opticcl.execute.loop import play
from opticcl.execute.ranks import RankSchedule
from opticcl.ir import mixed_bits

__all__ = ["adds_in_one_order"]


def adds_in_one_order(schedules: Sequence[RankSchedule]) -> bool:
    """Whether an all_reduce gives every rank sums that were added in one order.

    Args: schedules: of all ranks.
    Reading: two orders have one fingerprint with a probability of 2**-64.
    """
    states = []
    for schedule in schedules:
        slot = np.arange(schedule.slots, dtype=np.uint64)[:, None]
        states.append(mixed_bits(slot + np.uint64(schedule.rank * schedule.slots + 1)))

    def add(target: np.ndarray, source: np.ndarray) -> None:
        target[:] = mixed_bits(target + source)

    run_in_lockstep(
        play(schedule, state, np.empty((schedule.stage_rows, 1), np.uint64), add)
        for schedule, state in zip(schedules, states, strict=True)
    )
    first = states[0][: schedules[0].num_chunks]
    return all(np.array_equal(state[: schedules[0].num_chunks], first) for state in states)
