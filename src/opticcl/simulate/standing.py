"""Which circuits stand, and whether the next round changes any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray, numbered
from opticcl.ir.device_settings import DeviceSettings, changing_settings, stand_among
from opticcl.ir.limits import limit
from opticcl.ir.programme import DeviceTable
from opticcl.pairs import distinct

__all__ = ["Standing", "all_within", "circuit_numbers"]

SETTINGS_AT_ONCE = limit("standing.SETTINGS_AT_ONCE")
LOOKED_UP = 3  # circuits of a round that are looked up before all of them are compared
ANSWERED = 64  # rounds of which it is known whether they need a device set where another stands
KEPT = 4  # rounds whose circuits are known to stand
ENDS = ("src", "dst", "port")
CIRCUIT = (*ENDS, "wavelength_lo", "wavelength_n")
LINKS = ("links",)


class Standing:
    """Circuits that stand.

    Args:
        fabric: that they are on.
        initial: what stands at the start; None: nothing, or not known.
    Raises: ParameterError: a configuration of another machine.
    """

    def __init__(self, fabric: Fabric, initial: DeviceSettings | None = None) -> None:
        self._fabric = fabric
        self._last: _Set | None = None
        self._rounds: list[Circuits] = []  # objects whose circuits stand: the same again need no comparison
        self._initial = initial  # until circuits are set
        if initial is not None:
            initial.require(fabric)
            if initial.links is not None:
                self._set(initial.links, self._links(initial.links))

    def copy(self) -> Standing:
        """What stands now, whatever is set later."""
        return copy(self)

    def let_go(self, again: Callable[[], Circuits]) -> None:
        """Keep numbers of the circuits that stand in place of their columns.

        Args: again: gives them where they are needed.
        """
        self._rounds = []
        if self._last is not None:
            self._last.let_go(again)

    def changes(self, circuits: Circuits) -> bool | None:
        """Whether a round has circuits that do not stand yet; None for the first round, if it is not known. They stand then.

        Args: circuits: of the round.
        """
        if any(circuits is one for one in self._rounds):
            return False
        links = self._links(circuits)
        if self._last is None and self._initial is None:
            self._set(circuits, links)
            return None
        if not self._stand(circuits, links):
            self._set(circuits, links)
            return True
        self._rounds = [*self._rounds[1 - KEPT :], circuits]
        return False

    def _stand(self, circuits: Circuits, links: npt.NDArray[np.uint64] | None) -> bool:
        """Whether all circuits of a round stand.

        Args:
            circuits: of the round.
            links: their numbers, as of `_links`.
        """
        if self._last is None:
            return self._initial is not None and bool(self._initial.stand(circuits).all())
        last = self._last
        stands = last.has(circuits, CIRCUIT) if links is None else all_within(links, last.numbers[LINKS])
        return stands or self._devices_stand(circuits, last)

    def _links(self, circuits: Circuits) -> npt.NDArray[np.uint64] | None:
        """Numbers of the links that are set for circuits which share them; None on other fabrics."""
        links = self._fabric.links_set(circuits)
        if links is None:
            return None
        return (links[0].astype(np.uint64) << np.uint64(32)) + links[1].astype(np.uint64)

    def _set(self, circuits: Circuits, links: npt.NDArray[np.uint64] | None) -> None:
        """The circuits of a round stand; with links, also the links whose ends it does not use."""
        after = _Set(circuits)
        if links is not None:
            numbers, low = np.sort(links), np.uint64(0xFFFFFFFF)
            if self._last is not None:
                old = self._last.numbers[LINKS]
                used = np.isin(old >> np.uint64(32), numbers >> np.uint64(32)) | np.isin(old & low, numbers & low)
                numbers = distinct(np.concatenate([old[~used], numbers]))
            after.numbers[LINKS] = numbers
        self._last, self._rounds = after, [circuits]

    def _devices_stand(self, circuits: Circuits, last: _Set) -> bool:
        """Whether light of the same paths is divided into other circuits, for which nothing has to be set."""
        fabric = self._fabric
        if not fabric.devices or not last.has(circuits, ENDS):
            return False
        asked = fabric, _Set(circuits).digest, last.digest
        if asked not in _ANSWERS:
            _ANSWERS[asked] = self._settings_stand(circuits, last.circuits)
            if len(_ANSWERS) > ANSWERED:
                del _ANSWERS[next(iter(_ANSWERS))]
        return _ANSWERS[asked]

    def _settings_stand(self, circuits: Circuits, known: Circuits) -> bool:
        """Whether all devices of circuits have their settings where others stand.

        Settings on some paths at a time are compared, and what stands on none of these is looked for on all.

        Args:
            circuits: of a round.
            known: that stand.
        """
        fabric, both = self._fabric, (circuits, known)
        pooled = np.array([device.pool > 1 for device in fabric.devices])
        parts = list(_by_path(*both))

        def settings(of: int, rows: IntArray) -> DeviceTable:
            return changing_settings(fabric, both[of].take(rows))

        def equal_to(wanted: DeviceTable, of: int) -> DeviceTable:
            parts_of = (settings(of, rows[of]) for rows in parts)
            return DeviceTable.joined(one.take(stand_among(one, wanted, pooled & False)) for one in parts_of)

        for rows in parts:
            wanted = settings(0, rows[0])
            lacking = wanted.take(~stand_among(wanted, settings(1, rows[1]), pooled))
            if len(lacking) and not stand_among(equal_to(lacking, 0), equal_to(lacking, 1), pooled).all():
                return False
        return True


_ANSWERS: dict[tuple[Fabric, bytes, bytes], bool] = {}
"""Whether the devices of a set of circuits stand where those of another do, of the last questions: plans have equal steps."""


class _Set:
    """Circuits that were set, with the sorted numbers by which others are found among them, computed when they are."""

    def __init__(self, circuits: Circuits) -> None:
        self._circuits: Circuits | None = circuits
        self._again: Callable[[], Circuits] = lambda: circuits
        self.numbers: dict[tuple[str, ...], npt.NDArray[np.uint64]] = {}

    @property
    def circuits(self) -> Circuits:
        """All of them."""
        return self._again() if self._circuits is None else self._circuits

    @cached_property
    def digest(self) -> bytes:
        """Equal for sets of equal circuits, whatever they carry."""
        return blake2b(self._sorted(CIRCUIT).tobytes(), digest_size=16).digest()

    def let_go(self, again: Callable[[], Circuits]) -> None:
        """As of `Standing`."""
        if self._circuits is not None:
            for columns in (CIRCUIT, ENDS):
                self._sorted(columns)
            self._circuits, self._again = None, again

    def has(self, circuits: Circuits, columns: tuple[str, ...]) -> bool:
        """Whether all circuits of a round are among these, by some columns and their paths."""
        if self._circuits is not None:
            if _same(circuits, self._circuits, columns):
                return True
            if _one_missing(circuits, self._circuits, columns):
                return False
        return all_within(_numbers(circuits, columns), self._sorted(columns))

    def _sorted(self, columns: tuple[str, ...]) -> npt.NDArray[np.uint64]:
        if columns not in self.numbers:
            self.numbers[columns] = np.sort(_numbers(self.circuits, columns))
        return self.numbers[columns]


def _numbers(circuits: Circuits, columns: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    """Numbers of circuits by some columns and their paths."""
    return circuit_numbers(circuits) if columns == CIRCUIT else path_numbers(circuits)


def _by_path(circuits: Circuits, others: Circuits) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows of the circuits of two rounds on some paths, path by path in their order, with about `SETTINGS_AT_ONCE` settings.

    Args: circuits, others: of the rounds.
    """
    _, first, path = np.unique(
        np.concatenate([path_numbers(circuits), path_numbers(others)]), return_index=True, return_inverse=True
    )
    place = np.argsort(np.argsort(first))[path]
    settings = np.concatenate([(one.num_hops() + 1) * one.wavelength_n for one in (circuits, others)])
    part = (np.cumsum(np.bincount(place, settings)) // SETTINGS_AT_ONCE)[place]
    order = np.argsort(part, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
        yield rows[rows < len(circuits)], rows[rows >= len(circuits)] - len(circuits)


def _same(circuits: Circuits, others: Circuits, columns: Sequence[str]) -> bool:
    """Whether both have equal paths and columns, row by row.

    Args:
        circuits, others: of two rounds.
        columns: names.
    """
    names = (*columns, "hop_offsets", "hops")
    return all(np.array_equal(getattr(circuits, name), getattr(others, name)) for name in names)


def _one_missing(circuits: Circuits, others: Circuits, columns: Sequence[str]) -> bool:
    """Whether one of a few circuits is not among others, by some columns; most rounds differ in each of their circuits.

    Args:
        circuits: of which a few are looked up.
        others: among which.
        columns: names, which equal circuits have in common.
    """
    for row in {len(circuits) * i // LOOKED_UP for i in range(LOOKED_UP if len(circuits) else 0)}:
        candidates = np.flatnonzero(others.src == circuits.src[row])
        for name in columns[1:]:
            candidates = candidates[getattr(others, name)[candidates] == getattr(circuits, name)[row]]
        if not len(candidates):
            return True
    return False


def all_within(some: IntArray, numbers: IntArray) -> bool:
    """Whether all of some numbers are among sorted ones."""
    if not len(numbers):
        return not len(some)

    def within(wanted: IntArray) -> bool:
        return bool((numbers[np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)] == wanted).all())

    few = some[:: max(1, len(some) // 64)]  # at most 127, which suffice in most cases
    if not within(few):
        return False
    ordered = np.sort(some)  # for the sake of the processor's cache
    return np.array_equal(ordered, numbers) or within(ordered)


def circuit_numbers(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for nodes, port, wavelengths, path and waveguide: others need other devices set, uint64 (circuits,)."""
    guide = () if circuits.waveguide is None else (circuits.waveguide,)
    return _mixed(path_hashes(circuits), *_ends(circuits), circuits.wavelength_lo, circuits.wavelength_n, *guide)


def path_numbers(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for nodes, port and path, uint64 (circuits,)."""
    return _mixed(path_hashes(circuits), *_ends(circuits))


def _ends(circuits: Circuits) -> Iterator[IntArray]:
    return (getattr(circuits, name) for name in ENDS)


def _mixed(hashes: npt.NDArray[np.uint64], *columns: IntArray) -> npt.NDArray[np.uint64]:
    """Numbers that further columns are mixed into."""
    for column in columns:
        hashes = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + np.asarray(column).astype(
            np.uint64
        )
    return np.asarray((hashes ^ (hashes >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9))


def path_hashes(circuits: Circuits) -> npt.NDArray[np.uint64]:
    """A 64-bit number for the path of each circuit, uint64 (circuits,); equal paths have equal numbers."""
    parts = [np.zeros(0, np.uint64)]
    for part in circuits.in_parts():
        hashes, many, first = np.zeros(len(part), np.uint64), part.num_hops(), part.hop_offsets[:-1]
        _, position = numbered(many)
        mixed = part.hops.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + position.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        hashes[many > 0] = np.add.reduceat(mixed ^ (mixed >> np.uint64(27)), first[many > 0])
        parts.append(hashes)
    return np.concatenate(parts)
