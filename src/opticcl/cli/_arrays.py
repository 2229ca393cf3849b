"""Arrays for `opticcl execute`: random ones, or files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opticcl.errors import OutputError, ParameterError
from opticcl.files import write_whole

__all__ = ["load_arrays", "matches_sum", "random_arrays", "save_arrays"]


def random_arrays(num_ranks: int, size_bytes: int, dtype: str, seed: int) -> list[np.ndarray]:
    """One seeded array a rank; small whole numbers, so that sums of floats are exact too.

    Raises: ParameterError: no such numeric type, or more than 8 GiB in all.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ParameterError(f"--dtype: {dtype!r} is no NumPy type; try int64 or float32") from None
    if kind.kind not in "biufc":
        raise ParameterError(f"--dtype: {dtype!r} cannot be added; try int64 or float32")
    if size_bytes * num_ranks > 1 << 33:
        raise ParameterError(f"--size: {size_bytes} bytes on {num_ranks} ranks are more than 8 GiB; try a smaller size")
    random = np.random.default_rng(seed)
    return [random.integers(0, 100, size_bytes // kind.itemsize).astype(kind) for _ in range(num_ranks)]


def load_arrays(path: Path) -> np.ndarray:
    """An array with one row a rank.

    Raises: ParameterError: not readable, or no .npy file of at least one row.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ParameterError(f"--input: cannot read {path} as a .npy file: {str(error).splitlines()[0]}") from None
    if not isinstance(array, np.ndarray) or not array.ndim:
        raise ParameterError(f"--input: {path} holds no array with one row a rank")
    return array


def save_arrays(path: Path, results: list[np.ndarray]) -> None:
    """Write the results, one row a rank, whole or not at all.

    Raises: OutputError: not writable.
    """
    if path.suffix != ".npy":
        raise OutputError(f"--output: {path} does not end in .npy")
    with write_whole(path) as file:
        np.save(file, np.stack(results), allow_pickle=False)


def matches_sum(result: np.ndarray, arrays: list[np.ndarray] | np.ndarray) -> bool:
    """Whether a rank's result is the sum of all: exactly for integers, up to rounding for floats."""
    total = np.sum(np.asarray(arrays), axis=0, dtype=result.dtype)
    if result.dtype.kind in "biu":
        return bool(np.array_equal(result, total))
    return bool(np.allclose(result, total, rtol=len(arrays) * np.finfo(result.dtype).eps, equal_nan=True))
