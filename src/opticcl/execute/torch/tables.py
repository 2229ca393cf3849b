"""The table of chunks of a rank schedule into tensors of a user."""

from __future__ import annotations

import numpy as np
import torch

from opticcl.execute.ranks import RankSchedule

__all__ = ["store_table"]


def store_table(schedule: RankSchedule, state: torch.Tensor, length: int, result: torch.Tensor) -> None:
    """Copy the result of a rank from its state: the message or its block.

    Args:
        schedule: of the rank.
        state: at the end, (slots, width).
        length: elements of the whole message [count].
        result: flat, filled.
    """
    block = length // schedule.blocks
    if schedule.final is not None:
        result.view(schedule.num_ranks, block)[:] = state[schedule.final].view(schedule.num_ranks, -1)[:, :block]
        return
    by_block = state[: schedule.num_chunks].view(schedule.blocks, -1)[:, :block]
    if len(result) == length:
        result.view(schedule.blocks, block)[:] = by_block
    else:
        due = int(np.flatnonzero(schedule.after.reshape(schedule.blocks, -1).any(axis=1))[0])
        result[:] = by_block[due]
