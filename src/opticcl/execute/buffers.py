"""Conversion between the user's arrays and the state of all ranks.

A message lies in one block, or in one per rank; a block is cut into chunks of `width` elements, the last of which may be
padded with zeros. The state is (ranks, chunks, elements) with chunks in the order of the message. It is built slice by
slice, a range of the elements of every chunk at a time, since no schedule mixes elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.execute.rows import chunk_order
from opticcl.ir import Collective, IntArray

__all__ = ["MessageLayout", "empty_results", "load", "read_inputs", "store"]

MAX_BYTES = 1 << 33  # of all ranks' messages in total
Given = Mapping[int, np.ndarray]


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Layout of a message in arrays.

    Args:
        collective: the collective.
        shape: shape of the whole message.
        dtype: type of its elements.
        blocks: parts of the first axis: one, or one per rank.
        whole: whether ranks give the whole message, not their block of it.
        chunk_order: chunks in the order of the message, int64 (num_chunks,).
        before, after: which rank holds which chunk, bool (num_ranks, num_chunks), chunks in the order of the message.
    """

    collective: Collective
    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: int
    whole: bool
    chunk_order: IntArray
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]

    @property
    def block_shape(self) -> tuple[int, ...]:
        """Shape of one block of the message."""
        return (self.shape[0] // self.blocks, *self.shape[1:]) if self.blocks > 1 else self.shape

    @property
    def block_length(self) -> int:
        """Elements of one block [count]."""
        return int(np.prod(self.block_shape, dtype=np.int64))

    @property
    def width(self) -> int:
        """Elements of a chunk [count]."""
        return -(-self.block_length // (self.collective.num_chunks // self.blocks))


def read_inputs(c: Collective, arrays: Sequence[npt.ArrayLike | None] | np.ndarray) -> tuple[MessageLayout, Given]:
    """The layout of a message, and the contiguous arrays of the ranks that hold data at the start.

    Args:
        c: collective.
        arrays: one array per rank, None where it holds nothing.
    Raises: ParameterError: see `execute`.
    """
    if len(arrays) != c.num_ranks:
        raise ParameterError(f"execute: {len(arrays)} arrays for {c.num_ranks} ranks; give one each")
    order = chunk_order(c)
    ranks = np.arange(c.num_ranks)[:, None]
    before, after = (
        np.array(np.broadcast_to(held(ranks, order[None, :]), (c.num_ranks, c.num_chunks)))
        for held in (c.before, c.after)
    )
    given = {int(rank): np.asarray(arrays[int(rank)]) for rank in np.flatnonzero(before.any(axis=1))}
    _check(given)
    first = next(iter(given.values()))
    blocks = 1 if c.owner is None else c.num_ranks
    whole = bool(before[next(iter(given))].all()) or blocks == 1
    shape = first.shape if whole else ((first.shape[0] if first.ndim else 1) * blocks, *first.shape[1:])
    if blocks > 1 and (not shape or shape[0] % blocks):
        raise ParameterError(
            f"execute: the first axis of {first.shape} is not a multiple of {blocks} ranks; each has a block"
        )
    layout = MessageLayout(c, shape, first.dtype, blocks, whole, order, before, after)
    return layout, {rank: np.ascontiguousarray(array) for rank, array in given.items()}


def _check(given: Given) -> None:
    at, first = next(iter(given.items()))
    for rank, array in given.items():
        if array.shape != first.shape or array.dtype != first.dtype:
            here, due = f"{array.dtype}{array.shape}", f"{first.dtype}{first.shape}"
            raise ParameterError(f"execute: rank {rank} has {here}, rank {at} {due}; all must be equal")
    if first.dtype.kind not in "biufc":
        raise ParameterError(
            f"execute: arrays of {first.dtype} cannot be added; use integers, floats or complex numbers"
        )
    if first.nbytes * len(given) > MAX_BYTES:
        total = first.nbytes * len(given)
        raise ParameterError(f"execute: {total} bytes in total are more than {MAX_BYTES}; use a smaller size")


def load(layout: MessageLayout, given: Given, first: int, state: np.ndarray) -> None:
    """Fill the state with the initial data, elements from `first` on of every chunk; zeros elsewhere.

    Args:
        layout: layout of the message.
        given: arrays of the ranks that hold data.
        first: first element of each chunk.
        state: to fill, (ranks, chunks, elements).
    """
    state.fill(0)
    places = _by_block(layout, state)
    for rank, array in given.items():
        mine = slice(None) if layout.whole else slice(rank, rank + 1)
        for chunks, elements in _windows(layout, array, first, state.shape[2]):
            places[rank, mine, chunks, : elements.shape[2]] = elements
    if layout.whole and not layout.before[list(given)].all():  # some chunks of a message
        state[~layout.before] = 0


def empty_results(layout: MessageLayout) -> list[np.ndarray | None]:
    """An array for the result of each rank: the message, its block or None."""
    results: list[np.ndarray | None] = []
    for due in layout.after:
        shape = layout.shape if layout.blocks == 1 or due.all() else layout.block_shape
        results.append(np.empty(shape, layout.dtype) if due.any() else None)
    return results


def store(layout: MessageLayout, state: np.ndarray, first: int, results: Sequence[np.ndarray | None]) -> None:
    """Write elements from `first` on of every chunk to the results.

    A rank with a result of some chunks of a message without blocks gets the message with zeros elsewhere.

    Args:
        layout: layout of the message.
        state: (ranks, chunks, elements).
        first: first element of each chunk.
        results: arrays of `empty_results`.
    """
    if layout.blocks == 1 and not layout.after.all():
        state[~layout.after] = 0
    places = _by_block(layout, state)
    for rank, result in enumerate(results):
        if result is not None:
            due = layout.after[rank].reshape(layout.blocks, -1).any(axis=1)
            mine = slice(None) if due.all() or layout.blocks == 1 else due
            for chunks, elements in _windows(layout, result, first, state.shape[2]):
                elements[...] = places[rank, mine, chunks, : elements.shape[2]]


def _by_block(layout: MessageLayout, state: np.ndarray) -> np.ndarray:
    """The state as (ranks, blocks, chunks of a block, elements)."""
    return state.reshape(len(state), layout.blocks, -1, state.shape[2])


def _windows(layout: MessageLayout, array: np.ndarray, first: int, width: int) -> Iterator[tuple[slice, np.ndarray]]:
    """(chunks of a block, views of their elements from `first` on in this array): full chunks, then the padded one."""
    by_block = array.reshape(-1, layout.block_length)
    full = layout.block_length // layout.width
    cut = full * layout.width
    yield slice(full), by_block[:, :cut].reshape(len(by_block), full, layout.width)[:, :, first : first + width]
    rest = by_block[:, None, cut + first :][:, :, :width]
    if rest.size:
        yield slice(full, full + 1), rest
