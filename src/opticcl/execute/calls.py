"""What a rank that calls a collective must hold: elements and types of its input and of its result."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Protocol

from opticcl.errors import ParameterError

__all__ = ["MOVES", "check_buffers"]

MOVES = frozenset({"broadcast", "all_gather", "gather", "scatter", "all_to_all"})
"""Collectives that add nothing."""
BLOCK_FIRST = ("all_gather", "gather")
BLOCK_LAST = ("reduce_scatter", "scatter")


class Elements(Sized, Protocol):
    """A flat array or tensor."""

    @property
    def dtype(self) -> Any:
        """Type of its elements."""


def check_buffers(
    name: str, size: int, given: Elements | None, result: Elements | None, length: int, called: tuple[str, str]
) -> None:
    """Check that the input and the result of a rank fit together.

    Args:
        name: of the collective.
        size: ranks [count].
        given, result: flat; None where the rank has none.
        length: elements of the whole message [count].
        called: what the caller calls both.
    Raises: ParameterError: lengths or types differ from what they must be.
    """
    if name in (*BLOCK_FIRST, *BLOCK_LAST, "all_to_all") and length % size:
        raise ParameterError(f"{length} elements do not divide among {size} ranks")
    if given is not None and result is not None and given.dtype != result.dtype:
        raise ParameterError(f"the types {given.dtype} and {result.dtype} differ")
    block = length // size
    due = block if name in BLOCK_FIRST else length, block if name in BLOCK_LAST else length
    for what, held, expected in zip(called, (given, result), due, strict=True):
        if held is not None and len(held) != expected:
            raise ParameterError(f"{what} has {len(held)} elements, not {expected}")
