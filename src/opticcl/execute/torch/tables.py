"""Tensors of a user into the table of chunks of a rank schedule, and back."""

from __future__ import annotations

import numpy as np
import torch

from opticcl.execute.ranks import RankSchedule

__all__ = ["fill_table", "store_table"]


def fill_table(schedule: RankSchedule, given: torch.Tensor | None, length: int, state: torch.Tensor) -> None:
    """Fill a state with what a rank holds at the start; zeros where chunks are padded or not held.

    Args:
        schedule: of the rank.
        given: what it holds, flat: the whole message or its block; None if nothing.
        length: elements of the whole message [count].
        state: (slots, width).
    """
    block = length // schedule.blocks
    by_block = state[: schedule.num_chunks].view(schedule.blocks, -1)
    whole = given is not None and len(given) == length and bool(schedule.before.all())
    if not whole or by_block.shape[1] != block:
        state.zero_()
    if given is None or not schedule.before.any() or not block:
        return
    if len(given) == length:
        by_block[:, :block] = given.view(schedule.blocks, block)
    else:
        by_block[schedule.rank, :block] = given


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
