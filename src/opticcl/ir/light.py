"""Light path of a circuit: kinds of optical elements in order, how many of each, and the values of a light budget.

    launch ──► modulator ──► splitter ──► soa_gate ──► fibre ──► star ──► ... ──► detector
               1 piece       1, 32 ways   amplifies    2 spans   2 stages, 2,048 ways

A fabric describes which elements its circuits pass (`LightPath`, written from the paper's hardware section). Losses and
gains are values of an `OpticsTable`, so the same path can be evaluated with the values of any datasheet.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir._common import IntArray
from opticcl.ir.circuits import Circuits
from opticcl.ir.representatives import LightMove

__all__ = [
    "LARGEST_COUNT",
    "LITERAL",
    "Counts",
    "Element",
    "LightPath",
    "Limit",
    "Optics",
    "OpticsTable",
    "Value",
    "count_in_words",
]

LARGEST_COUNT = 1 << 16
"""Pieces of anything that a limit of light counts up to."""

LITERAL = "literal"
"""The preset that holds what the paper prints."""

_METRES = {"km": 1e3, "m": 1.0, "cm": 1e-2}

Counts = npt.NDArray[np.float64]
"""How many of each element paths have, (paths, elements)."""


@dataclass(frozen=True, slots=True)
class Element:
    """One position on the path.

    Args:
        kind: name under which its values are looked up; the same kind may stand at several positions.
        ways: number of outputs that it divides the light into; besides other losses this costs 10 log10(ways) dB.
        amplifies: whether it may have a gain; a passive element may not.
        joined: number of such amplifiers in use at once whose noise reaches the same detector [count].
    """

    kind: str
    ways: int = 1
    amplifies: bool = False
    joined: int = 1


@dataclass(frozen=True, slots=True)
class Value:
    """One value.

    Args:
        value: in its unit, None if no source gives it.
        unit: dB, dBm, dB/km, dB/cm, km or cm.
        source: paper and section, "assumed: ...", "fitted: ..." or "given".
    """

    value: float | None
    unit: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class OpticsTable:
    """All values that a light budget of a fabric may need, with their alternatives by preset.

    Args:
        name: of the fabric.
        entries: by name, "launch" or "<element>.loss"; each has unit, source, value if known, and one table a preset.
        geometry: values that shape paths, such as the ports of the largest star coupler; no budget value.
        layers: preset -> preset that it is laid over; others are laid over `literal`.
        where: file that holds the table, for messages.
    """

    name: str
    entries: Mapping[str, Mapping[str, Any]]
    geometry: Mapping[str, Any]
    layers: Mapping[str, str]
    where: str

    @property
    def presets(self) -> tuple[str, ...]:
        """Presets that the table has, the paper's first, then by name."""
        names = {key for entry in self.entries.values() for key, value in entry.items() if isinstance(value, dict)}
        return (LITERAL, *sorted(names))

    def layers_of(self, preset: str) -> list[str]:
        """The preset and those that it is laid over, itself first, without the paper's own."""
        layers = [] if preset == LITERAL else [preset]
        while layers and layers[-1] in self.layers:
            layers.append(self.layers[layers[-1]])
        return layers


@dataclass(frozen=True, slots=True)
class Optics:
    """All values of a fabric's optics under one preset.

    Args:
        table: that they come from.
        preset: name of the set laid over the paper's values.
        values: by name: launch, sensitivity, floor, penalty, and <element>.loss, .gain, .noise, .output or .length.
    """

    table: OpticsTable
    preset: str
    values: Mapping[str, Value]

    @property
    def name(self) -> str:
        """Name of the fabric, for messages."""
        return self.table.name

    def get(self, name: str) -> float | None:
        """A value, None if it is missing or not in the table."""
        value = self.values.get(name)
        return None if value is None else value.value

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those of the names that have no value, each once."""
        return [name for name in dict.fromkeys(names) if self.get(name) is None]

    def needed(self, names: Sequence[str]) -> list[float]:
        """The values of these names.

        Raises: ParameterError: some are missing; the text names them and the option that sets them.
        """
        lacking = self.missing(names)
        if lacking:
            others = [preset for preset in self.table.presets if preset != self.preset]
            example = f"{lacking[0]}={'0' if self.unit(lacking[0]) == 'dBm' else '1'}{self.unit(lacking[0])}"
            raise ParameterError(
                f"{self.name}: preset {self.preset} has no {', '.join(lacking)}; set them, as in --set {example}, or "
                f"use preset {' or '.join(others) or 'another'} (defined in {self.table.where})"
            )
        return [float(self.values[name].value or 0.0) for name in names]

    def unit(self, name: str) -> str:
        """Unit of a value, dB if it is not in the table."""
        return self.values[name].unit if name in self.values else "dB"

    def loss_db(self, kind: str) -> float:
        """Loss of one piece of an element; a loss per length is multiplied by its length [dB].

        Raises: ParameterError: a value is missing.
        """
        per_length = self.unit(f"{kind}.loss").removeprefix("dB").removeprefix("/")
        if not per_length:
            return self.needed([f"{kind}.loss"])[0]
        loss, length = self.needed([f"{kind}.loss", f"{kind}.length"])
        return loss * length * _METRES[self.unit(f"{kind}.length")] / _METRES[per_length]

    def check_known(self, name: str) -> None:
        """Refuse a name that the table does not have.

        Raises: ParameterError: unknown value; the text gives the nearest name.
        """
        if name in self.values:
            return
        kind, _, field = name.partition(".")
        amplifiers = [other.removesuffix(".gain") for other in self.values if other.endswith(".gain")]
        if field == "gain" and any(other.startswith(f"{kind}.") for other in self.values):
            known = ", ".join(amplifiers) or "none"
            raise ParameterError(f"{self.name}: {name}: {kind} is passive and has no gain; amplifiers here: {known}")
        close = difflib.get_close_matches(name, self.values, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(self.values))
        raise ParameterError(f"{self.name}: its optics have no value {name!r}; {hint}")


@dataclass(frozen=True, slots=True, eq=False)
class LightPath:
    """Elements that the light of a fabric passes.

    Args:
        table: values of the elements.
        elements: in the order in which light passes them.
        counts: circuits -> how many of each element each of them passes, (circuits, elements).
        extremes: a few paths of which one is the worst whatever the values, where light takes the shorter way,
            (paths, elements).
        names: of these paths, for messages.
        typical: mean over all pairs of nodes that one circuit can join, (elements,).
        least: senders, receivers -> how many of each element any circuit from one node to the other passes at least,
            (pairs, elements), where that depends on their distance and no element amplifies; None: it does not.
        of_images: circuits, moves of the machine -> what they and their images under all products of the moves pass,
            (paths, elements); None: what they pass themselves.
    """

    table: OpticsTable
    elements: tuple[Element, ...]
    counts: Callable[[Circuits], Counts]
    extremes: Counts
    names: tuple[str, ...]
    typical: Counts
    least: Callable[[IntArray, IntArray], Counts] | None = None
    of_images: Callable[[Circuits, Sequence[LightMove]], Counts] | None = None

    def __call__(self, circuits: Circuits) -> Counts:
        """How many of each element each circuit passes, (circuits, elements)."""
        return self.counts(circuits)

    @property
    def uniform(self) -> bool:
        """Whether all circuits pass the same elements: the mean of all paths equals the worst."""
        return bool(np.all(self.extremes == self.typical))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of elements, each once, in order."""
        return tuple(dict.fromkeys(element.kind for element in self.elements))


@dataclass(frozen=True, slots=True)
class Limit:
    """One quantity that the light budget limits.

    Args:
        name: of the quantity, as a key.
        value: its limit; None if a value for it is missing, or no size closes.
        text: in words.
    """

    name: str
    value: float | None
    text: str


def count_in_words(number: float | None, noun: str) -> str:
    """A count in words.

    >>> count_in_words(None, "interface"), count_in_words(1, "interface"), count_in_words(65536, "interface")
    ('no interfaces', '1 interface', '65,536 or more interfaces')
    """
    if number is None:
        return f"no {noun}s"
    return f"{number:,}{' or more' * (number >= LARGEST_COUNT)} {noun}{'s' * (number != 1)}"
