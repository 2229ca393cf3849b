"""Which light carries it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray, first_rows, numbered
from opticcl.ir.limits import HOPS_AT_ONCE
from opticcl.ir.paths import joined_paths, paths_of_rows

__all__ = ["Circuits", "concatenate_circuits"]


@dataclass(frozen=True, slots=True)
class Circuits:
    """Circuits that stand at the same time, as columns of equal length.

    A transfer may use several circuits; each takes its share of the bytes in proportion to its wavelengths. A circuit
    uses the wavelengths lo, lo + step, ..., n of them.

    Args:
        transfer: row of the step's `Transfers` that this circuit carries, or -1: it is idle, and stands without carrying
            anything in this round, int32 (n,).
        src: sending node, int32 (n,).
        dst: receiving node, int32 (n,).
        port: port of the sender and of the receiver (a fabric says what its ports are), int32 (n,).
        wavelength_lo: first wavelength index, int32 (n,).
        wavelength_n: number of wavelengths, int32 (n,).
        hops: all paths end to end, int32; a fabric says what a hop is (a fibre segment, a gate, ...).
        hop_offsets: path of circuit i is hops[hop_offsets[i]:hop_offsets[i + 1]], int64 (n + 1,).
        wavelength_step: distance between the wavelengths of a circuit [count].
        waveguide: of each hop of the path, the same on all of them, int32 (n,), -1 for a circuit without; None where the
            fabric does not number them.
    """

    transfer: IntArray
    src: IntArray
    dst: IntArray
    port: IntArray
    wavelength_lo: IntArray
    wavelength_n: IntArray
    hops: IntArray
    hop_offsets: IntArray
    wavelength_step: int = 1
    waveguide: IntArray | None = None

    @classmethod
    def of(
        cls,
        transfer: Any,
        src: Any,
        dst: Any,
        port: Any = 0,
        wavelength_lo: Any = 0,
        wavelength_n: Any = 1,
        path: Any = None,
        wavelength_step: int = 1,
        waveguide: Any = None,
    ) -> Circuits:
        """Columns from anything that broadcasts to the shape of `src`.

        Args:
            path: array (n, k) of k hops a circuit, or a pair (hops, hop_offsets), or None for no hops.
            waveguide: None where they have no numbers.
        """
        n = len(src)

        def column(value: Any) -> IntArray:
            array = np.asarray(value, dtype=np.int32)
            return np.ascontiguousarray(array) if array.shape == (n,) else np.full(n, array)

        if path is None:
            path = np.zeros((n, 0), np.int32)
        if isinstance(path, tuple):
            hops, offsets = path
        else:
            hops, offsets = np.ravel(path), np.arange(n + 1, dtype=np.int64) * np.shape(path)[1]
        return cls(
            column(transfer),
            column(src),
            column(dst),
            column(port),
            column(wavelength_lo),
            column(wavelength_n),
            np.ascontiguousarray(hops, dtype=np.int32),
            np.ascontiguousarray(offsets, dtype=np.int64),
            wavelength_step,
            None if waveguide is None else column(waveguide),
        )

    def __len__(self) -> int:
        return len(self.src)

    def __repr__(self) -> str:
        return f"<Circuits {len(self):,}>"

    def __str__(self) -> str:
        names = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n")
        return first_rows({**{name: getattr(self, name) for name in names}, "hops": self.num_hops()})

    def path(self, i: int) -> IntArray:
        """Hops of circuit `i`, int32 (k,)."""
        return self.hops[self.hop_offsets[i] : self.hop_offsets[i + 1]]

    def num_hops(self) -> IntArray:
        """Hops of every circuit, int64 (n,)."""
        return np.diff(self.hop_offsets)

    def hop_owner(self) -> IntArray:
        """Circuit that each entry of `hops` belongs to, int64 (len(hops),)."""
        return np.repeat(np.arange(len(self)), self.num_hops())

    def each_wavelength(self, owner: IntArray | None = None) -> tuple[IntArray, IntArray]:
        """Circuit and wavelength of every pair of them, int64 (sum of wavelengths,) each.

        Args: owner: circuit of each of several rows, such as hops, which take the place of circuits then, int64 (rows,).
        """
        lo, count = self.wavelength_lo, self.wavelength_n.astype(np.int64)
        if owner is not None:
            lo, count = lo[owner], count[owner]
        row, nth = numbered(count)
        return row, lo[row] + nth * self.wavelength_step

    def in_parts(self) -> Iterator[Circuits]:
        """Some circuits after the other, each time those of at most `HOPS_AT_ONCE` hops, or one."""
        offsets, begin = self.hop_offsets, 0
        while begin < len(self):
            end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + HOPS_AT_ONCE, "right")) - 1)
            if end - begin == len(self):
                yield self
                return
            columns = {name: getattr(self, name)[begin:end] for name in _COLUMNS}
            hops, places = self.hops[offsets[begin] : offsets[end]], offsets[begin : end + 1] - offsets[begin]
            guide = None if self.waveguide is None else self.waveguide[begin:end]
            yield replace(self, **columns, hops=hops, hop_offsets=places, waveguide=guide)
            begin = end

    def carrying(self) -> Circuits:
        """Those that carry a transfer, without the idle ones."""
        carries = self.transfer >= 0
        return self if carries.all() else self.take(carries)

    @property
    def num_bytes(self) -> int:
        """Size of all columns [bytes]."""
        columns = (getattr(self, field.name) for field in fields(self))
        return sum(column.nbytes for column in columns if isinstance(column, np.ndarray))

    def carrying_others(self, transfer: IntArray) -> Circuits:
        """The same circuits with other transfers.

        Args: transfer: of each, int32 (n,).
        """
        return replace(self, transfer=transfer)

    def take(self, rows: Any) -> Circuits:
        """The given rows (indices or mask), paths included; all of them in their order share their paths."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        hops, offsets = self.hops, self.hop_offsets
        if not np.array_equal(rows, np.arange(len(self))):
            hops, offsets = paths_of_rows(hops, offsets, rows)
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        waveguide = None if self.waveguide is None else self.waveguide[rows]
        return replace(self, **columns, hops=hops, hop_offsets=offsets, waveguide=waveguide)

    def same_path(self, one: IntArray, other: IntArray) -> npt.NDArray[np.bool_]:
        """Whether the circuits of two lists of rows have the same hops, bool (k,)."""
        mine, its = self.take(one), self.take(other)
        same: npt.NDArray[np.bool_] = mine.num_hops() == its.num_hops()
        mine, its = mine.take(same), its.take(same)
        apart = np.bincount(mine.hop_owner()[mine.hops != its.hops], minlength=len(mine))
        same[same] = apart == 0
        return same


_COLUMNS = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n")


def concatenate_circuits(parts: Iterable[Circuits]) -> Circuits:
    """Several lists of circuits (of one wavelength step) as one, in order; one without waveguides has -1."""
    parts = list(parts)
    hops, offsets = joined_paths([(p.hops, p.hop_offsets) for p in parts])
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in _COLUMNS}
    guides = [np.full(len(p), -1, np.int32) if p.waveguide is None else p.waveguide for p in parts]
    return Circuits(
        **columns,
        hops=hops,
        hop_offsets=offsets,
        wavelength_step=parts[0].wavelength_step,
        waveguide=np.concatenate(guides) if any(p.waveguide is not None for p in parts) else None,
    )
