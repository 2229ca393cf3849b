"""Bill of materials: the parts of a fabric with their price and power.

    parts of the fabric  x  datasheets of prices.toml  ->  dollars, watts, and both per Gb/s

A datasheet gives a range where its source does, so all sums are ranges: (low, high). Price and power of a part that is larger
or faster than the one on the datasheet are scaled in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.files import read_toml
from opticcl.ir import Fabric, Part
from opticcl.registry import canonical, nearest, write_call

__all__ = ["Bill", "Item", "Range", "Sheet", "bill_of", "part_sheets", "price_lists"]

Range = tuple[float, float]
Growth = Literal["piece", "ports", "rate", "port_rate"]
MOST = 1e12  # largest price [USD] or power [W] of a part that is accepted


@dataclass(frozen=True, slots=True)
class Sheet:
    """Datasheet of one kind of part.

    Args:
        usd, w: (low, high) of one part [USD, W].
        per: quantity that they are proportional to: piece, ports, rate or port_rate.
        ports, rate_bits_per_s: of the part on the datasheet [count, bit/s].
        source: of the values.
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
        """Price of a part in multiples of the price on this sheet."""
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
        part: kind, count, ports and rate.
        sheet: its price and power.
        usd, w: (low, high) of all parts of the line [USD, W].
    """

    part: Part
    sheet: Sheet
    usd: Range
    w: Range


@dataclass(frozen=True, slots=True)
class Bill:
    """Price and power of a fabric.

    Args:
        fabric: that is billed.
        prices: name of the list of datasheets.
        items: one per kind of part.
    """

    fabric: Fabric
    prices: str
    items: tuple[Item, ...]

    @property
    def usd(self) -> Range:
        """(low, high) of all parts [USD]."""
        return _sum(item.usd for item in self.items)

    @property
    def w(self) -> Range:
        """(low, high) of all parts at full power [W]."""
        return _sum(item.w for item in self.items)

    @property
    def capacity_bits_per_s(self) -> float:
        """Sum of the node rates [bit/s]."""
        return self.fabric.num_machine_nodes * self.fabric.node_rate_bits_per_s

    @property
    def usd_per_gbps(self) -> Range:
        """Price per Gb/s of capacity (low, high) [USD]."""
        low, high = (usd / self.capacity_bits_per_s * 1e9 for usd in self.usd)
        return low, high

    @property
    def j_per_bit(self) -> Range:
        """Energy per bit while all nodes send at their full rate (low, high) [J/bit]; in pJ/bit it equals mW per Gb/s."""
        low, high = (w / self.capacity_bits_per_s for w in self.w)
        return low, high

    @property
    def assumed(self) -> tuple[str, ...]:
        """Kinds of parts whose price or power is assumed."""
        return tuple(dict.fromkeys(item.part.kind for item in self.items if item.sheet.assumed))

    def energy_j(self, seconds: float) -> Range:
        """Energy of the network in that time, at full power (low, high) [J]."""
        low, high = (w * seconds for w in self.w)
        return low, high

    def record(self) -> dict[str, Any]:
        """The bill as plain values; ranges are [low, high]."""
        given = {key: value for key, value in self.fabric.parameters.items() if value is not None}
        return {
            "fabric": self.fabric.name,
            "specification": write_call(self.fabric.name, given),
            "num_nodes": self.fabric.num_machine_nodes,
            "node_rate_bits_per_s": self.fabric.node_rate_bits_per_s,
            "prices": self.prices,
            "usd": list(self.usd),
            "w": list(self.w),
            "usd_per_gbps": list(self.usd_per_gbps),
            "j_per_bit": list(self.j_per_bit),
            "assumed": list(self.assumed),
            "parts": [
                {
                    "part": item.part.kind,
                    "count": item.part.count,
                    "ports": item.part.ports,
                    "rate_bits_per_s": item.part.rate_bits_per_s,
                    "usd": list(item.usd),
                    "w": list(item.w),
                    "source": item.sheet.source,
                    "assumed": item.sheet.assumed,
                }
                for item in self.items
            ],
        }


def _sum(ranges: Any) -> Range:
    lows, highs = zip((0.0, 0.0), *ranges, strict=True)
    return math.fsum(lows), math.fsum(highs)


def price_lists() -> tuple[str, ...]:
    """Names of the lists of datasheets."""
    return tuple(read_toml("opticcl.estimate", "prices.toml"))


def part_sheets(prices: str = "default", changes: Mapping[str, float] | None = None) -> dict[str, Sheet]:
    """Datasheet of every kind of part.

    Args:
        prices: a list of prices.toml; parts that it lacks are taken from `default`.
        changes: replaced prices and powers, by "part.usd" or "part.w" [USD, W].
    Raises: ParameterError: no such list or part, or a value out of range.
    """
    lists = read_toml("opticcl.estimate", "prices.toml")
    if (key := canonical(prices)) not in lists:
        raise ParameterError(f"prices={prices!r} is not a list; {nearest(key, lists)}")
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
    """Price and power of a fabric.

    Args:
        fabric: to be billed; for a job the whole machine.
        prices, changes: as in `part_sheets`.
    Raises: UnsupportedError: the fabric has no list of parts. ParameterError: as in `part_sheets`.
    """
    parts = fabric.parts()
    if not parts:
        why = "one node needs no network" if fabric.num_machine_nodes == 1 else "it has no list of parts"
        raise UnsupportedError(f"{fabric.name} has no bill: {why}; try another fabric")
    sheets = part_sheets(prices, changes)
    counts: dict[tuple[str, int, float], int] = {}
    for part in parts:
        kind = (part.kind, part.ports, part.rate_bits_per_s)
        counts[kind] = counts.get(kind, 0) + part.count
    items = []
    for (name, ports, rate), count in counts.items():
        if count:
            part, sheet = Part(name, count, ports, rate), sheets[name]
            pieces = count * sheet.times(part)
            items.append(Item(part, sheet, _scaled(sheet.usd, pieces), _scaled(sheet.w, pieces)))
    return Bill(fabric, canonical(prices), tuple(items))


def _scaled(each: Range, pieces: float) -> Range:
    return each[0] * pieces, each[1] * pieces
