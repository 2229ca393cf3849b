"""Between the user's arrays and (ranks, chunks, elements): who holds which part of the message, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import Collective, IntArray

__all__ = ["Layout", "read_inputs", "write_outputs"]

MAX_BYTES = 1 << 33  # of all ranks' messages together


@dataclass(frozen=True, slots=True)
class Layout:
    """How a message lies in arrays.

    Args:
        collective: whose message.
        shape: of the whole message.
        blocks: parts that the first axis is cut into: one, or one a rank.
        chunk_order: chunks as they follow each other in the message, int64 (num_chunks,).
        before, after: who holds which chunk, bool (num_ranks, num_chunks).
    """

    collective: Collective
    shape: tuple[int, ...]
    blocks: int
    chunk_order: IntArray
    before: np.ndarray
    after: np.ndarray

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of one block of the message."""
        return (self.shape[0] // self.blocks, *self.shape[1:]) if self.blocks > 1 else self.shape


def read_inputs(c: Collective, arrays: Sequence[npt.ArrayLike | None] | np.ndarray) -> tuple[Layout, np.ndarray]:
    """The layout of a message and every rank's chunks at the start, (ranks, chunks, elements).

    Raises: ParameterError: see `execute`.
    """
    if len(arrays) != c.num_ranks:
        raise ParameterError(f"execute: {len(arrays)} arrays for {c.num_ranks} ranks; give one each")
    ranks, chunks = np.arange(c.num_ranks)[:, None], np.arange(c.num_chunks)[None, :]
    before, after = (
        np.array(np.broadcast_to(held(ranks, chunks), (c.num_ranks, c.num_chunks))) for held in (c.before, c.after)
    )
    given = {int(rank): np.asarray(arrays[int(rank)]) for rank in np.flatnonzero(before.any(axis=1))}
    _check(given)
    first = next(iter(given.values()))
    blocks = 1 if c.owner is None else c.num_ranks
    whole = before[next(iter(given))].all() or blocks == 1
    shape = first.shape if whole else ((first.shape[0] if first.ndim else 1) * blocks, *first.shape[1:])
    if blocks > 1 and (not shape or shape[0] % blocks):
        raise ParameterError(
            f"execute: the first axis of {first.shape} is no multiple of {blocks} ranks; each gets a block"
        )
    order = np.arange(c.num_chunks) if c.owner is None else np.argsort(c.owner, kind="stable")
    layout = Layout(c, shape, blocks, order, before, after)
    return layout, _cut(layout, given, whole)


def _check(given: dict[int, np.ndarray]) -> None:
    at, first = next(iter(given.items()))
    for rank, array in given.items():
        if array.shape != first.shape or array.dtype != first.dtype:
            found, due = f"{array.dtype}{array.shape}", f"{first.dtype}{first.shape}"
            raise ParameterError(f"execute: rank {rank} has {found}, rank {at} {due}; all must be alike")
    if first.dtype.kind not in "biufc":
        raise ParameterError(
            f"execute: arrays of {first.dtype} cannot be added; use integers, floats or complex numbers"
        )
    if first.nbytes * len(given) > MAX_BYTES:
        total = first.nbytes * len(given)
        raise ParameterError(f"execute: {total} bytes in all are more than {MAX_BYTES}; use a smaller size")


def _cut(layout: Layout, given: dict[int, np.ndarray], whole: bool) -> np.ndarray:
    """Ranks' arrays as chunks, each block filled up with zeros to whole chunks of equal size."""
    c, blocks = layout.collective, layout.blocks
    length = int(np.prod(layout.block_shape, dtype=np.int64))
    in_block = c.num_chunks // blocks
    each = -(-length // in_block)
    state = np.zeros((c.num_ranks, c.num_chunks, each), next(iter(given.values())).dtype)
    for rank, array in given.items():
        held = np.zeros((blocks, in_block * each), array.dtype)
        if whole:
            held[:, :length] = array.reshape(blocks, length)
        else:
            held[rank, :length] = array.ravel()
        state[rank, layout.chunk_order] = held.reshape(c.num_chunks, each)
        state[rank, ~layout.before[rank]] = 0
    return state


def write_outputs(layout: Layout, state: np.ndarray) -> list[np.ndarray | None]:
    """What every rank ends with, as the user's arrays; where contributions stay apart, `state` is by origin.

    A rank that is due some chunks of a message without blocks gets the message with zeros for the others.
    """
    c, blocks = layout.collective, layout.blocks
    length = int(np.prod(layout.block_shape, dtype=np.int64))
    if c.keeps_apart:  # (origins, chunks, elements): rank r gets its chunks from all origins
        by_owner = state[:, layout.chunk_order].reshape(c.num_ranks, blocks, -1)[:, :, :length]
        return [by_owner[:, rank].reshape(layout.shape).copy() for rank in range(c.num_ranks)]
    results: list[np.ndarray | None] = []
    for rank in range(c.num_ranks):
        wanted = layout.after[rank][layout.chunk_order]
        due = wanted.reshape(blocks, -1).all(axis=1)
        if blocks == 1 and not due.all() and wanted.any():  # some chunks of a message without blocks
            state[rank, ~layout.after[rank]] = 0
            due[:] = True
        message = state[rank, layout.chunk_order].reshape(blocks, -1)[:, :length]
        if due.all():
            results.append(message.reshape(layout.shape).copy())
        else:  # one block, or nothing
            results.append(message[due].reshape(layout.block_shape).copy() if due.any() else None)
    return results
