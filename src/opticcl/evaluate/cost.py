"""Bill of materials: what a fabric is built of, what that costs and what it draws.

    parts of the fabric  x  datasheets of data/parts.toml  ->  dollars, watts, and both for each Gb/s

A datasheet gives a range where its source does, so all sums are ranges: (low, high). A part that is larger or faster than
the one on the datasheet costs and draws in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from opticcl.data import load
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Fabric, Part
from opticcl.registry import canonical, nearest

__all__ = ["Bill", "Item", "Range", "Sheet", "bill_of", "part_sheets", "price_lists"]

Range = tuple[float, float]
Growth = Literal["piece", "ports", "rate", "port_rate"]
MOST = 1e12  # dollars or watts of a part; more is a mistake


@dataclass(frozen=True, slots=True)
class Sheet:
    """Datasheet of one kind of part.

    Args:
        usd, w: (low, high) of one part [USD, W].
        per: what they grow with: piece, ports, rate or port_rate.
        ports, rate_bits_per_s: of the part that the sheet is about [count, bit/s].
        source: where the numbers come from.
        assumed: whether no source prints them.
    """

    usd: Range
    w: Range
    per: Growth
    source: str
    ports: int = 0
    rate_bits_per_s: float = 0.0
    assumed: bool = False

    def times(self, part: Part) -> float:
        """How many parts of this sheet one such part is worth."""
        size = 1.0
        if self.per in ("ports", "port_rate"):
            size *= part.ports / self.ports
        if self.per in ("rate", "port_rate"):
            size *= part.rate_bits_per_s / self.rate_bits_per_s
        return size


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a bill.

    Args:
        part: what and how many.
        sheet: what it costs and draws.
        usd, w: (low, high) of all of them together [USD, W].
    """

    part: Part
    sheet: Sheet
    usd: Range
    w: Range


@dataclass(frozen=True, slots=True)
class Bill:
    """What a fabric costs and draws.

    Args:
        fabric: which.
        prices: list of datasheets that was taken.
        items: one a kind of part.
    """

    fabric: Fabric
    prices: str
    items: tuple[Item, ...]

    @property
    def usd(self) -> Range:
        """(low, high) of the whole [USD]."""
        return _sum(item.usd for item in self.items)

    @property
    def w(self) -> Range:
        """(low, high) of the whole, everything switched on [W]."""
        return _sum(item.w for item in self.items)

    @property
    def capacity_bits_per_s(self) -> float:
        """What all nodes can send at once [bit/s]."""
        return self.fabric.num_machine_nodes * self.fabric.node_rate_bits_per_s

    @property
    def usd_per_gbps(self) -> Range:
        """Dollars for each Gb/s that nodes can send."""
        low, high = (usd / self.capacity_bits_per_s * 1e9 for usd in self.usd)
        return low, high

    @property
    def j_per_bit(self) -> Range:
        """Energy of a bit while all nodes send at their full rate [J/bit]; in pJ it is the number of mW for each Gb/s."""
        low, high = (w / self.capacity_bits_per_s for w in self.w)
        return low, high

    @property
    def assumed(self) -> tuple[str, ...]:
        """Kinds of parts whose price or power no source prints."""
        return tuple(dict.fromkeys(item.part.kind for item in self.items if item.sheet.assumed))

    def energy_j(self, seconds: float) -> Range:
        """What the network takes in that time, all of it switched on (low, high) [J]."""
        low, high = (w * seconds for w in self.w)
        return low, high


def _sum(ranges: Any) -> Range:
    lows, highs = zip((0.0, 0.0), *ranges, strict=True)
    return math.fsum(lows), math.fsum(highs)


def price_lists() -> tuple[str, ...]:
    """Names of the lists of datasheets."""
    return tuple(load("parts.toml"))


def part_sheets(prices: str = "default", changes: Mapping[str, float] | None = None) -> dict[str, Sheet]:
    """Datasheet of every kind of part.

    Args:
        prices: a list of data/parts.toml; what it leaves out is taken from `default`.
        changes: other numbers, by "part.usd" or "part.w".
    Raises: ParameterError: no such list, part or number.
    """
    lists = load("parts.toml")
    if (key := canonical(prices)) not in lists:
        raise ParameterError(f"prices={prices!r} is no list; {nearest(key, lists)}")
    tables = {**lists["default"], **lists[key]}
    sheets = {
        kind: Sheet(**{**table, "usd": tuple(table["usd"]), "w": tuple(table["w"])}) for kind, table in tables.items()
    }
    changes = {canonical(name): value for name, value in (changes or {}).items()}
    for name, value in changes.items():
        kind, dot, number = name.rpartition(".")
        if not dot or number not in ("usd", "w"):
            known = "the price and the power of a part can be set, such as fibre.usd=10 or transceiver.w=5"
            raise ParameterError(f"{name}={value:g}: only {known}")
        if kind not in sheets:
            raise ParameterError(f"{name}={value:g}: no such part; {nearest(kind, sheets)}")
        if not 0 <= value <= MOST:
            raise ParameterError(f"{name}={value:g} is not from 0 to {MOST:g}; try {kind}.{number}=100")
        old, both = sheets[kind], (value, value)
        given = replace(old, usd=both) if number == "usd" else replace(old, w=both)
        assumed = old.assumed and not {f"{kind}.usd", f"{kind}.w"} <= changes.keys()
        sheets[kind] = replace(given, source=f"given {number}; {old.source}", assumed=assumed)
    return sheets


def bill_of(fabric: Fabric, prices: str = "default", changes: Mapping[str, float] | None = None) -> Bill:
    """What a fabric costs and draws.

    Args:
        fabric: of a job it is the whole machine.
        prices, changes: as `part_sheets` takes them.
    Raises: UnsupportedError: nobody says what the fabric is built of. ParameterError: see `part_sheets`.
    """
    if not fabric.parts:
        why = "one node needs no network" if fabric.num_machine_nodes == 1 else "nobody can say what it is built of"
        raise UnsupportedError(f"{fabric.name} has no bill: {why}; try another fabric")
    sheets = part_sheets(prices, changes)
    together: dict[tuple[str, int, float], int] = {}
    for part in fabric.parts:
        alike = (part.kind, part.ports, part.rate_bits_per_s)
        together[alike] = together.get(alike, 0) + part.count
    items = []
    for (kind, ports, rate), count in together.items():
        if count:
            part, sheet = Part(kind, count, ports, rate), sheets[kind]
            pieces = count * sheet.times(part)
            items.append(Item(part, sheet, _scaled(sheet.usd, pieces), _scaled(sheet.w, pieces)))
    return Bill(fabric, canonical(prices), tuple(items))


def _scaled(each: Range, pieces: float) -> Range:
    return each[0] * pieces, each[1] * pieces
