"""Arrays for `opticcl execute` (random ones, or files), and the results that NumPy computes from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opticcl.collective import COLLECTIVES
from opticcl.errors import ParameterError, UnsupportedError, printable
from opticcl.files import write_whole
from opticcl.ir import Collective, IntArray, ProgressCallback, no_progress
from opticcl.units import format_bytes

OWN_BLOCK_FIRST = ("all_gather", "gather", "send_recv")
MAX_BYTES = 1 << 33  # of all ranks together
COPIES = 3  # of the data: given, executed, and computed by NumPy
LARGEST_VALUE = 63  # of random data: a power of two less one, and small, so that sums of floats are exact
SLICE = 1 << 18  # elements that are added at a time: fits into a cache for a few ranks

__all__ = [
    "COPIES",
    "expected_results",
    "least_length",
    "load_arrays",
    "matches",
    "message_bytes",
    "message_elements",
    "numeric_type",
    "random_arrays",
    "save_arrays",
    "wrong_ranks",
]


def numeric_type(name: str) -> np.dtype:
    """The NumPy type of that name.

    Raises: ParameterError: none, or not numeric.
    """
    try:
        dtype = np.dtype(name)
    except TypeError:
        raise ParameterError(f"--dtype: {name!r} is not a NumPy type; try int64 or float32") from None
    if dtype.kind not in "biufc":
        raise ParameterError(f"--dtype: {name!r} cannot be added; try int64 or float32")
    return dtype


def least_length(num_chunks: int, blocks: int, size_bytes: int, itemsize: int) -> int:
    """Elements of the smallest message of at least `size_bytes` bytes with equal blocks and no empty chunk.

    Args:
        num_chunks, blocks: of the message [count].
        size_bytes: least size of the message [bytes].
        itemsize: size of an element [bytes].
    """
    chunks = num_chunks // blocks
    block = max(1, -(-size_bytes // (itemsize * blocks)))
    chunk = -(-block // chunks)
    return blocks * max(block, (chunks - 1) * chunk + 1)  # so that the last chunk is not empty


def message_elements(wanted: Collective, size_bytes: int, itemsize: int) -> int:
    """Elements of the smallest message of at least `size_bytes` bytes with equal blocks and no empty chunk.

    >>> from opticcl.collective import collective
    >>> message_elements(collective("all_reduce", 8, 8), 1000, 8), message_elements(collective("all_reduce", 8, 8), 3, 8)
    (125, 8)

    Args:
        wanted: collective.
        size_bytes: least size of the message [bytes].
        itemsize: size of an element [bytes].
    """
    blocks = 1 if wanted.owner is None else wanted.num_ranks
    return least_length(wanted.num_chunks, blocks, size_bytes, itemsize)


def message_bytes(wanted: Collective, arrays: Sequence[np.ndarray] | np.ndarray) -> int:
    """Size of the whole message of these arrays, one per rank [bytes]."""
    return int(arrays[0].nbytes) * (wanted.num_ranks if wanted.name in OWN_BLOCK_FIRST else 1)


def random_arrays(
    wanted: Collective,
    size_bytes: int,
    dtype: str,
    seed: int,
    progress: ProgressCallback = no_progress,
    most_bytes: int = MAX_BYTES,
) -> np.ndarray:
    """One seeded row per rank; small whole numbers, so that sums of floats are exact too.

    Where a custom collective does not reduce, all holders of a chunk hold the same data.

    Args:
        wanted: collective.
        size_bytes: size of the message, rounded up by `message_elements` [bytes].
        dtype: NumPy type.
        seed: seed of the data.
        progress: called after every slice.
        most_bytes: of all ranks together, at most `MAX_BYTES` [bytes].
    Raises: ParameterError: an unknown or not numeric type, or more than that in total.
    """
    kind = numeric_type(dtype)
    if seed < 0:
        raise ParameterError(f"--seed: {seed} is negative; try 0")
    n = wanted.num_ranks
    length = message_elements(wanted, size_bytes, kind.itemsize)
    if (total := length * kind.itemsize * n) > MAX_BYTES:
        raise ParameterError(f"--size: {size_bytes} bytes on {n} ranks are more than 8 GiB; try a smaller size")
    if total > most_bytes:
        needed, free = (format_bytes(COPIES * each) for each in (total, most_bytes))
        raise ParameterError(
            f"--size: data and results of {n} ranks take {needed}, {free} are free; try a smaller size"
        )
    if wanted.name in OWN_BLOCK_FIRST:
        length //= n
    random = np.random.default_rng(seed)
    rows = np.empty((n, length), kind)
    same_data = wanted.name not in COLLECTIVES and not wanted.reduces
    for rank, row in enumerate(rows):
        if same_data and rank:
            row[:] = rows[0]
            continue
        for first in range(0, length, SLICE):
            part = row[first : first + SLICE]
            drawn = random.bit_generator.random_raw(-(-len(part) // 8)).view(np.uint8)[: len(part)] & LARGEST_VALUE
            part[:] = drawn
            progress("make the data", rank * length + first + len(part), n * length)
    return rows


def expected_results(
    wanted: Collective, arrays: Sequence[np.ndarray] | np.ndarray, progress: ProgressCallback = no_progress
) -> list[np.ndarray | None]:
    """Result of every rank by NumPy; None where the collective gives it nothing.

    Args:
        wanted: collective.
        arrays: one per rank.
        progress: called after every slice.
    Raises: ParameterError: holders of the same chunk of a custom collective, which does not reduce, hold different data.
    """
    if wanted.name not in COLLECTIVES:
        return _by_tables(wanted, arrays)
    given = np.asarray(arrays)
    n, root = wanted.num_ranks, wanted.root
    if wanted.name in ("all_reduce", "barrier", "reduce", "reduce_scatter"):
        total = _total(given, progress)
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
    if wanted.name not in ("all_gather", "gather"):
        raise UnsupportedError(f"execute: no NumPy reference for {wanted.name}")
    gathered = given.reshape(-1, *given.shape[2:])
    return [gathered if wanted.name == "all_gather" or rank == root else None for rank in range(n)]


def _total(given: np.ndarray, progress: ProgressCallback) -> np.ndarray:
    """The sum of all rows in their own type, slice by slice; of float16 in float32, rounded once."""
    rows = given.reshape(len(given), -1)
    total = np.empty(rows.shape[1], given.dtype)
    summed = np.float32 if given.dtype == np.float16 else given.dtype
    for first in range(0, len(total), SLICE):
        part = slice(first, first + SLICE)
        total[part] = np.add.reduce(rows[:, part], axis=0, dtype=summed)
        progress("add up with NumPy", min(first + SLICE, len(total)), len(total))
    return total.reshape(given.shape[1:])


def _by_tables(wanted: Collective, arrays: Sequence[np.ndarray | None] | np.ndarray) -> list[np.ndarray | None]:
    """The same for a custom collective, by its tables of holders before and after."""
    n, chunks = wanted.num_ranks, np.arange(wanted.num_chunks)
    before, after = (held(np.arange(n)[:, None], chunks[None, :]) for held in (wanted.before, wanted.after))
    holders = [np.flatnonzero(column) for column in before.T]
    given = {rank: np.asarray(arrays[rank]) for rank in map(int, np.flatnonzero(before.any(axis=1)))}
    some = next(iter(given.values()))
    flat = {rank: array.ravel() for rank, array in given.items()}
    width = -(-some.size // len(chunks))
    made = np.zeros(some.size, some.dtype)
    parts = [slice(chunk * width, (chunk + 1) * width) for chunk in chunks]
    for chunk, part in enumerate(parts):
        made[part] = _of_holders(wanted, chunk, holders[chunk], [flat[int(rank)][part] for rank in holders[chunk]])
    results: list[np.ndarray | None] = []
    for due in after:
        result = np.zeros_like(made) if due.any() else None
        for i in np.flatnonzero(due):
            assert result is not None
            result[parts[i]] = made[parts[i]]
        results.append(None if result is None else result.reshape(some.shape))
    return results


def _of_holders(wanted: Collective, chunk: int, holders: IntArray, pieces: list[np.ndarray]) -> np.ndarray:
    """A chunk at the end: the sum of the contributions of its holders, or what they all hold."""
    if wanted.reduces:
        return np.add.reduce(pieces, axis=0, dtype=pieces[0].dtype)
    for rank, piece in zip(holders, pieces, strict=True):
        if piece.tobytes() != pieces[0].tobytes():
            raise ParameterError(
                f"{wanted.name}: ranks {holders[0]} and {rank} both hold chunk {chunk} at the start, with different data; "
                "as nothing is added, they must hold the same"
            )
    return pieces[0]


def load_arrays(path: Path) -> np.ndarray:
    """An array with one row per rank.

    Raises: ParameterError: not readable, or not a .npy file of at least one row.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except MemoryError:
        raise
    except Exception as error:  # it parses the header as Python, and raises whatever Python does
        line = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ParameterError(f"--input: cannot read {path} as a .npy file: {printable(line[:200])}") from None
    if not isinstance(array, np.ndarray) or not array.ndim:
        raise ParameterError(f"--input: {path} does not contain an array with one row per rank")
    return array


def save_arrays(path: Path, results: list[np.ndarray | None]) -> None:
    """Write the results of the ranks that have one, one row each, atomically.

    Raises: OutputError: not writable.
    """
    with write_whole(path) as file:
        np.save(file, np.stack([r for r in results if r is not None]), allow_pickle=False)


def matches(result: np.ndarray | None, expected: np.ndarray | None, num_ranks: int, largest: float = 0.0) -> bool:
    """Whether a rank's result is as expected: exactly for integers, up to rounding for sums of floats.

    Args:
        result, expected: arrays, or None.
        num_ranks: summands [count].
        largest: largest absolute value of the summands, for the tolerance of sums that nearly cancel.
    """
    if result is None or expected is None:
        return result is expected
    if np.array_equal(result, expected):  # nearly always, and quick to see
        return True
    if result.shape != expected.shape or result.dtype.kind in "biu":
        return False
    rounding = num_ranks * float(np.finfo(result.dtype).eps)
    return bool(np.allclose(result, expected, rtol=rounding, atol=rounding * num_ranks * largest, equal_nan=True))


def wrong_ranks(
    results: Sequence[np.ndarray | None],
    expected: Sequence[np.ndarray | None],
    arrays: Sequence[np.ndarray] | np.ndarray,
    progress: ProgressCallback = no_progress,
) -> list[int]:
    """Ranks whose result is not as expected; see `matches`.

    Args:
        results, expected: one per rank.
        arrays: the summands.
        progress: called after every rank.
    """
    wrong, largest = [], None
    for rank, (result, due) in enumerate(zip(results, expected, strict=True)):
        if not matches(result, due, len(results)):
            if largest is None:
                largest = max(float(np.abs(row[np.isfinite(row)]).max(initial=0)) for row in map(np.asarray, arrays))
            if not matches(result, due, len(results), largest):
                wrong.append(rank)
        progress("compare", rank + 1, len(results))
    return wrong
