"""Ranges of collectives in the PyTorch profiler, named so that a Kineto trace of a run is read as its calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

__all__ = ["record_call"]


@cache
def _marker(name: str) -> Any:
    """An operator that does nothing, so that a profiler records the call: c10d::<name>_by_opticcl, with output and input."""
    library = torch.library.Library("c10d", "FRAGMENT")
    operator = f"{name}_by_opticcl"
    library.define(f"{operator}(Tensor output, Tensor given) -> ()")
    library.impl(operator, lambda output, given: None, "CompositeExplicitAutograd")
    return library, getattr(torch.ops.c10d, operator)


def record_call(name: str, output: int, given: int, dtype: torch.dtype) -> None:
    """Record a call where a profiler runs; its name is read as that of a collective.

    Args:
        name: of the collective.
        output, given: elements of the result and of the input [count].
        dtype: of both.
    """
    _, operator = _marker(name)
    operator(*(torch.empty(length, dtype=dtype, device="meta") for length in (output, given)))
