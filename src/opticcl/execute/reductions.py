"""Reductions of NumPy arrays by name, in place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opticcl.errors import ParameterError

__all__ = ["REDUCTIONS", "numpy_reduction"]

REDUCTIONS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
    "land": np.logical_and,
    "lor": np.logical_or,
    "lxor": np.logical_xor,
}
BITWISE = ("band", "bor", "bxor")


def numpy_reduction(name: str, dtype: np.dtype) -> Callable[..., None]:
    """The reduction of that name, in the type of the arrays: (target, source), or (one, other, into).

    Raises: ParameterError: unknown, or not defined for that type.

    >>> target = np.array([1, 2])
    >>> numpy_reduction("sum", target.dtype)(target, np.array([10, 20]))
    >>> target.tolist()
    [11, 22]
    """
    if name not in REDUCTIONS:
        raise ParameterError(f"reduction {name!r} is unknown; try one of {', '.join(REDUCTIONS)}")
    if dtype.kind not in "biufc":
        raise ParameterError(f"reduction {name} of {dtype}: try an integer, float or complex type")
    if (name in BITWISE and dtype.kind not in "biu") or (name in ("min", "max") and dtype.kind == "c"):
        raise ParameterError(f"reduction {name} is not defined for {dtype}; try sum")
    function = REDUCTIONS[name]

    def reduce(target: np.ndarray, source: np.ndarray, into: np.ndarray | None = None) -> None:
        function(target, source, out=target if into is None else into, casting="unsafe")

    return reduce
