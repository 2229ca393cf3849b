"""Arrays for `opticcl execute`: random ones, or files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opticcl.errors import OutputError, ParameterError
from opticcl.files import write_whole
from opticcl.ir import Collective

OWN_BLOCK_FIRST = ("all_gather", "gather", "send_recv")

__all__ = ["expected_results", "load_arrays", "matches", "random_arrays", "save_arrays"]


def random_arrays(wanted: Collective, size_bytes: int, dtype: str, seed: int) -> list[np.ndarray]:
    """One seeded array a rank; small whole numbers, so that sums of floats are exact too.

    Raises: ParameterError: no such numeric type, or more than 8 GiB in all.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError:
        raise ParameterError(f"--dtype: {dtype!r} is no NumPy type; try int64 or float32") from None
    if kind.kind not in "biufc":
        raise ParameterError(f"--dtype: {dtype!r} cannot be added; try int64 or float32")
    if seed < 0:
        raise ParameterError(f"--seed: {seed} is negative; try 0")
    n = wanted.num_ranks
    if size_bytes * n > 1 << 33:
        raise ParameterError(f"--size: {size_bytes} bytes on {n} ranks are more than 8 GiB; try a smaller size")
    random = np.random.default_rng(seed)
    length = size_bytes // kind.itemsize
    if wanted.owner is not None:  # whole blocks, or one block where a rank starts with its own
        block = max(1, length // n)
        length = block if wanted.name in OWN_BLOCK_FIRST else block * n
    return [random.integers(0, 100, length).astype(kind) for _ in range(n)]


def expected_results(wanted: Collective, arrays: list[np.ndarray] | np.ndarray) -> list[np.ndarray | None]:
    """What every rank must end with, by NumPy; None where the collective gives it nothing."""
    given = np.asarray(arrays)
    n, root = wanted.num_ranks, wanted.root
    if wanted.name in ("all_reduce", "barrier", "reduce", "reduce_scatter"):
        total = np.sum(given, axis=0, dtype=given.dtype)
        if wanted.name == "reduce":
            return [total if rank == root else None for rank in range(n)]
        return list(np.split(total, n)) if wanted.name == "reduce_scatter" else [total] * n
    if wanted.name == "broadcast":
        return [given[root]] * n
    if wanted.name == "scatter":
        return list(np.split(given[root], n))
    if wanted.name == "send_recv":
        return [given[(rank - wanted.shift) % n] for rank in range(n)]
    if wanted.name == "all_to_all":
        blocks = given.reshape(n, n, given.shape[1] // n, *given.shape[2:])
        return [blocks[:, rank].reshape(given.shape[1:]) for rank in range(n)]
    gathered = given.reshape(-1, *given.shape[2:])
    return [gathered if wanted.name == "all_gather" or rank == root else None for rank in range(n)]


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


def save_arrays(path: Path, results: list[np.ndarray | None]) -> None:
    """Write the results of the ranks that have one, one row each, whole or not at all.

    Raises: OutputError: not writable.
    """
    if path.suffix != ".npy":
        raise OutputError(f"--output: {path} does not end in .npy")
    with write_whole(path) as file:
        np.save(file, np.stack([r for r in results if r is not None]), allow_pickle=False)


def matches(result: np.ndarray | None, expected: np.ndarray | None, num_ranks: int) -> bool:
    """Whether a rank's result is as expected: exactly for integers, up to rounding for sums of floats."""
    if result is None or expected is None:
        return result is expected
    if result.dtype.kind in "biu":
        return bool(np.array_equal(result, expected))
    return bool(np.allclose(result, expected, rtol=num_ranks * np.finfo(result.dtype).eps, equal_nan=True))
