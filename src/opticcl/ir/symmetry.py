"""Permutations of ranks and of chunks, and claimed symmetries of a schedule.

A schedule may claim that a permutation of ranks, together with a permutation of chunks, maps it onto itself. The verifier
checks every claim (`opticcl.verify.symmetry`); nothing relies on a claim that was not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir._common import IntArray
from opticcl.ir.schedule import Transfers, concatenate_transfers

__all__ = ["Bundles", "Digits", "Permutation", "Run", "RunSteps", "Symmetry", "Table", "Through", "Xor", "power"]


@dataclass(frozen=True, slots=True)
class Digits:
    """One digit of a mixed-radix number moved by a constant, cyclically.

    Args:
        radices: of all digits, the most significant first; their product is the number of elements.
        digit: position of the digit.
        add: added to it, modulo its radix.

    >>> Digits((2, 3), 1, 1).images(6).tolist()
    [1, 2, 0, 4, 5, 3]
    """

    radices: tuple[int, ...]
    digit: int
    add: int

    def images(self, count: int) -> IntArray:
        """Image of each element, int64 (count,).

        Raises: ParameterError: the radices have another product.
        """
        if prod(self.radices) != count or not 0 <= self.digit < len(self.radices):
            raise ParameterError(f"symmetry: digit {self.digit} of {self.radices} does not permute {count} elements")
        stride, radix = prod(self.radices[self.digit + 1 :]), self.radices[self.digit]
        elements = np.arange(count)
        value = elements // stride % radix
        moved: IntArray = elements + ((value + self.add) % radix - value) * stride
        return moved


@dataclass(frozen=True, slots=True)
class Xor:
    """Exclusive or with a mask.

    Args: mask: below the number of elements, which is a power of two.
    """

    mask: int

    def images(self, count: int) -> IntArray:
        """Image of each element, int64 (count,).

        Raises: ParameterError: an image is no element.
        """
        moved: IntArray = np.arange(count) ^ self.mask
        if self.mask < 0 or (count and int(moved.max()) >= count):
            raise ParameterError(f"symmetry: exclusive or with {self.mask} does not permute {count} elements")
        return moved


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A permutation given element by element.

    Args: values: image of each element, int (count,).
    """

    values: IntArray

    def images(self, count: int) -> IntArray:
        """Image of each element, int64 (count,).

        Raises: ParameterError: a table of another length, or one that is no permutation.
        """
        values = np.asarray(self.values, np.int64)
        valid = len(values) == count and (not count or (values.min() >= 0 and values.max() < count))
        if not valid or (np.bincount(values, minlength=count) != 1).any():
            raise ParameterError(f"symmetry: a table of {len(values)} values does not permute {count} elements")
        return values

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.values, other.values) if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(np.asarray(self.values, np.int64).tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Through:
    """A permutation of labels: the element with label l goes to the element with the label that l goes to.

    Args:
        label: of each element, a permutation, int (count,).
        inner: permutation of the labels.
    """

    label: IntArray
    inner: Permutation

    def images(self, count: int) -> IntArray:
        """Image of each element, int64 (count,).

        Raises: ParameterError: labels that are no permutation, and as the inner one does.
        """
        label = Table(self.label).images(count)
        element = np.empty(count, np.int64)
        element[label] = np.arange(count)
        moved: IntArray = element[self.inner.images(count)[label]]
        return moved

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Through):
            return NotImplemented
        return self.inner == other.inner and np.array_equal(self.label, other.label)

    def __hash__(self) -> int:
        return hash((self.inner, np.asarray(self.label, np.int64).tobytes()))


@dataclass(frozen=True, slots=True)
class Bundles:
    """Neighbours that go together: a bundle of elements takes the place of another, or turns in its own.

    Args:
        inner: permutation of the bundles; each takes the place of one as large.
        runs: bundles in order: how many, and elements of each of these; then others.
        turn: added to the place of an element in its bundle, cyclically.

    >>> Bundles(Digits((2,), 0, 1), ((2, 3),)).images(6).tolist()
    [3, 4, 5, 0, 1, 2]
    """

    inner: Permutation
    runs: tuple[tuple[int, int], ...]
    turn: int = 0

    @property
    def count(self) -> int:
        """Elements of all bundles."""
        return sum(many * wide for many, wide in self.runs)

    def images(self, count: int) -> IntArray:
        """Image of each element, int64 (count,).

        Raises: ParameterError: another number of elements, or a bundle that takes the place of a larger or smaller one.
        """
        size = np.repeat([wide for _, wide in self.runs], [many for many, _ in self.runs])
        to = self.inner.images(len(size))
        if self.count != count or (size[to] != size).any():
            raise ParameterError(f"symmetry: a move of bundles {self.runs} does not permute {count} elements")
        begin = (np.cumsum(size) - size)[to]
        ends = np.cumsum([many for many, _ in self.runs])
        moved = [
            begin[end - many : end, None] + (np.arange(wide) + self.turn) % wide
            for end, (many, wide) in zip(ends, self.runs, strict=True)
        ]
        return np.concatenate([part.ravel() for part in moved])


Permutation = Digits | Xor | Table | Through | Bundles


@dataclass(frozen=True, slots=True)
class Symmetry:
    """A claim: with ranks and chunks permuted, the schedule and its collective are what they were.

    Args:
        ranks: permutation of the ranks.
        chunks: permutation of the chunks.
    """

    ranks: Permutation
    chunks: Permutation


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive steps defined by the first of them.

    Step k of the run is the base step with each chunk c replaced by shift^k(c), and with `parts` larger by k parts_step. It is
    a definition, not a claim.

    Args:
        base: returns the first step; pure.
        count: steps, >= 1 [count].
        shift: permutation of the chunks; None where count is 1 or no chunk changes.
        parts_step: added to the parts of every transfer from step to step [count].
        beside: runs of as many steps that take place at the same time, each with a shift of its own: the two directions of a
            ring. Step k carries the transfers of step k of all of them.
    Raises: ParameterError: no steps, or runs of different lengths side by side.
    """

    base: Callable[[], Transfers]
    count: int = 1
    shift: Permutation | None = None
    parts_step: int = 0
    beside: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(f"schedule: a run of {self.count} steps; at least 1")
        if any(other.count != self.count or other.beside for other in self.beside):
            raise ParameterError(f"schedule: runs of different lengths beside a run of {self.count} steps")

    @property
    def members(self) -> tuple[Run, ...]:
        """This run and those beside it, in the order of their transfers."""
        return (self, *self.beside)

    def first_step(self) -> Transfers:
        """The first step: the base, with those of the runs beside it."""
        return concatenate_transfers(member.base() for member in self.members) if self.beside else self.base()


class RunSteps:
    """The step function of runs: what each step is follows from the base of its run.

    Args:
        runs: in order.
        num_chunks: chunks of the message [count].
    """

    def __init__(self, runs: tuple[Run, ...], num_chunks: int) -> None:
        self.runs, self._num_chunks = runs, num_chunks
        self._starts = np.cumsum([0, *(run.count for run in runs)])
        self._last: tuple[int, tuple[Transfers, ...], Transfers] | None = None

    @property
    def num_steps(self) -> int:
        """Steps of all runs [count]."""
        return int(self._starts[-1])

    @property
    def classes(self) -> tuple[range, ...]:
        """Steps of each run."""
        return tuple(range(int(a), int(b)) for a, b in zip(self._starts[:-1], self._starts[1:], strict=True))

    def run_of(self, i: int) -> int:
        """Number of the run that step i belongs to."""
        return int(np.searchsorted(self._starts, i, side="right")) - 1

    def __call__(self, i: int) -> Transfers:
        """Step i."""
        number = self.run_of(i)
        if not 0 <= i < self.num_steps:
            raise IndexError(f"step {i} of {self.num_steps}")
        run = self.runs[number]
        if self._last is None or self._last[0] != number:
            bases = tuple(member.base() for member in run.members)
            self._last = number, bases, bases[0] if len(bases) == 1 else concatenate_transfers(bases)
        _, bases, first = self._last
        times = i - int(self._starts[number])
        if not times or not any(member.shift or member.parts_step for member in run.members):
            return first
        lo = [
            base.chunk_lo if member.shift is None else _shifted(member.shift, base.chunk_lo, times, self._num_chunks)
            for member, base in zip(run.members, bases, strict=True)
        ]
        parts = first.parts
        if parts is not None and any(member.parts_step for member in run.members):
            added = np.repeat([member.parts_step for member in run.members], [len(base) for base in bases])
            parts = parts + (times * added).astype(np.int32)
        lows = lo[0] if len(lo) == 1 else np.concatenate(lo)
        return Transfers(first.src, first.dst, lows, first.chunk_n, first.op, parts, first.chunk_step)


def _shifted(shift: Permutation, chunks: IntArray, times: int, num_chunks: int) -> IntArray:
    """Chunks moved `times` times, int32 (n,)."""
    if isinstance(shift, Digits):  # without the images of all chunks, since there may be thousands of steps
        stride, radix = prod(shift.radices[shift.digit + 1 :]), shift.radices[shift.digit]
        value = chunks // stride % radix
        return (chunks + ((value + times * shift.add) % radix - value) * stride).astype(np.int32)
    return power(shift.images(num_chunks), times)[chunks].astype(np.int32)


def power(images: IntArray, exponent: int) -> IntArray:
    """Images under a permutation applied `exponent` times, int64 (n,), by repeated squaring.

    >>> power(np.array([1, 2, 3, 0]), 3).tolist()
    [3, 0, 1, 2]
    """
    result, base = np.arange(len(images)), images
    while exponent:
        if exponent & 1:
            result = base[result]
        base = base[base]
        exponent >>= 1
    return result
