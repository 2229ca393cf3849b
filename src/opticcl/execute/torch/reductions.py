"""Reductions of tensors by the names of torch, in place."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from opticcl.errors import ParameterError
from opticcl.execute.loop import Reduction

__all__ = ["op_name", "root_of", "tensor_reduction"]

NUMPY_TYPES = {
    torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
    torch.complex64, torch.complex128,
}  # fmt: skip
"""Types that NumPy adds as fast as torch, in the thread that calls it."""


def _numpy(function: Any) -> Reduction:
    def reduce(target: torch.Tensor, source: torch.Tensor) -> None:
        array = target.numpy()
        with np.errstate(all="ignore"):  # an overflow is a value, as with torch
            function(array, source.numpy(), out=array)

    return reduce


def _torch(function: Any) -> Reduction:
    def reduce(target: torch.Tensor, source: torch.Tensor) -> None:
        function(target, source, out=target)

    return reduce


_OPS = {
    "SUM": (np.add, torch.add),
    "PRODUCT": (np.multiply, torch.mul),
    "MIN": (np.minimum, torch.minimum),
    "MAX": (np.maximum, torch.maximum),
    "BAND": (np.bitwise_and, torch.bitwise_and),
    "BOR": (np.bitwise_or, torch.bitwise_or),
    "BXOR": (np.bitwise_xor, torch.bitwise_xor),
}


def op_name(opts: Any) -> str:
    """Name of the reduce operation of the options of a call; SUM by default."""
    op = getattr(opts, "reduceOp", None)
    return "SUM" if op is None else _name_of(getattr(op, "op", op))  # a ReduceOp holds its kind


@cache
def _name_of(kind: Any) -> str:
    return str(kind).rpartition(".")[2]


def root_of(opts: Any) -> int:
    """Root of the options of a call; 0 by default."""
    return int(getattr(opts, "rootRank", 0))


@cache
def tensor_reduction(op: str, dtype: torch.dtype, device: str = "cpu") -> Reduction:
    """The reduction of an operation; AVG is a sum that the caller divides.

    Args:
        op: name, as torch writes it.
        dtype: of the tensors.
        device: kind of device that holds them.
    Raises: ParameterError: not available for that type.
    """
    name = "SUM" if op == "AVG" else op
    if name not in _OPS:
        raise ParameterError(f"reduction {op} is not available; try SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR")
    if op == "AVG" and not (dtype.is_floating_point or dtype.is_complex):
        raise ParameterError(f"reduction AVG of {dtype} is not defined; use SUM and divide")
    if op in ("BAND", "BOR", "BXOR") and (dtype.is_floating_point or dtype.is_complex):
        raise ParameterError(f"reduction {op} of {dtype} is not defined; use an integer type")
    if not _adds(dtype, device):
        raise ParameterError(f"reduction {op} of {dtype} is not available; try float32 or int64")
    if name in ("MIN", "MAX") and dtype.is_complex:
        raise ParameterError(f"reduction {op} of {dtype} is not defined; use SUM")
    by_numpy, by_torch = _OPS[name]
    if dtype == torch.bool:
        logical = {"SUM": torch.logical_or, "MAX": torch.logical_or, "PRODUCT": torch.logical_and}
        return _torch({**logical, "MIN": torch.logical_and}.get(name, by_torch))
    return _numpy(by_numpy) if dtype in NUMPY_TYPES and device == "cpu" else _torch(by_torch)


def _adds(dtype: torch.dtype, device: str) -> bool:
    """Whether torch adds tensors of a type at all; it moves more types than it adds."""
    try:
        one = torch.zeros(1, dtype=dtype, device=device)
        torch.add(one, one, out=one)
    except RuntimeError:
        return False
    return True
