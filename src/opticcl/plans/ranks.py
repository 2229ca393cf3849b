"""The same plans under other assumptions: the time beside, the ranks under both sets, and the single keys that swap ranks.

Every variation searches the fastest algorithm again where the comparison does, so one set of assumptions chooses and charges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opticcl.assumptions import KEYS, LATENCY_KEYS, Assumptions, assumptions
from opticcl.ir import Fabric

__all__ = [
    "Charge",
    "Decided",
    "Swaps",
    "Variation",
    "beside",
    "is_tie",
    "keys_between",
    "ranks",
    "sensitivity",
    "swaps",
]

FACTORS = (0.5, 2.0)
"""By which `sensitivity` multiplies every value."""

OF_FABRICS = {
    "control": ("control_switch_delay", "synchronisation"),
    "reconfiguration": ("reconfiguration", "switching"),
}
"""Key -> parameters of fabrics that have it instead of the assumptions."""


@dataclass(frozen=True, slots=True)
class Variation:
    """Other assumptions, or other times of the devices of a fabric.

    Args:
        name: for tables, such as "published" or "endpoint x 2".
        assumed: the assumptions.
        key: of the one value that differs; "" for a whole set.
        factor: by which the fabric's own times of that key are multiplied; 1: the key is an assumption.
        machines: (fabric, the one in its place); others stay as they are.
    """

    name: str
    assumed: Assumptions
    key: str = ""
    factor: float = 1.0
    machines: tuple[tuple[Fabric, Fabric], ...] = ()

    def chooses_on(self, fabric: Fabric) -> bool:
        """Whether the closed form, which chooses algorithms, may cost plans on this fabric differently."""
        if self.key == "prepare":
            return False
        if self.key == "rounds":
            return not fabric.is_packet_switched and not fabric.reconfiguration_s
        return self.key != "control_charge" or has_control(fabric)

    def on(self, fabric: Fabric) -> Fabric:
        """The fabric with its times multiplied, or the one in its place; itself where there is neither."""
        for here, other in self.machines:
            if here == fabric:
                return other
        if self.factor == 1 or fabric.machine is not fabric:
            return fabric
        own = {p: fabric.parameters[p] for p in OF_FABRICS.get(self.key, ()) if fabric.parameters.get(p)}
        if fabric.slot_s:
            own.pop("switching", None)  # part of the slot
        changed = {name: value * self.factor for name, value in own.items()}
        return replace(fabric, **changed) if changed else fabric  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Charge:
    """A time under a variation.

    Args:
        algorithm: the fastest under it, with its parameters.
        total_s: of all messages [s].
    """

    algorithm: str
    total_s: float


@dataclass(frozen=True, slots=True)
class Decided:
    """A default of a fabric with which it has another rank than with the alternative.

    Args:
        fabric: name.
        parameter: name.
        default, alternative: values.
        charge: time with the alternative.
        rank, other_rank: with the default and with the alternative.
    """

    fabric: str
    parameter: str
    default: Any
    alternative: Any
    charge: Charge
    rank: int
    other_rank: int

    def __str__(self) -> str:
        """One line."""
        from opticcl.units import format_seconds

        other = f"{format_seconds(self.charge.total_s)} by {self.charge.algorithm}"
        return (
            f"{self.fabric} has rank {self.rank} with its default {self.parameter}={self.default}, rank "
            f"{self.other_rank} with {self.parameter}={self.alternative} ({other})"
        )


@dataclass(frozen=True, slots=True)
class Swaps:
    """Pairs of plans that a variation puts in the other order.

    Args:
        variation: that does it.
        pairs: (the faster under the variation, the other), positions of entries.
    """

    variation: Variation
    pairs: tuple[tuple[int, int], ...]

    def record(self, names: Sequence[str]) -> dict[str, Any]:
        """Plain values with the names of the entries."""
        pairs = [[names[i], names[j]] for i, j in self.pairs]
        return {"variation": self.variation.name, "key": self.variation.key, "swaps": pairs}


def has_control(fabric: Fabric) -> bool:
    """Whether rounds on this fabric take control messages."""
    ranks = np.arange(fabric.num_nodes)
    return fabric.control_s(ranks, np.roll(ranks, 1)) > 0


def beside(assumed: Assumptions) -> Variation:
    """The set whose times stand beside: published, or common beside published; with the same changed rules.

    >>> beside(assumptions("common")).name, beside(assumptions("published", compute="none")).assumed.compute
    ('published', 'none')
    """
    base = assumed.name.removesuffix(", changed")
    other = "common" if base == "published" else "published"
    whole = assumptions(base)
    rules = [key for key in KEYS if key not in (*LATENCY_KEYS, "latency")]
    changed = {key: getattr(assumed, key) for key in rules if getattr(assumed, key) != getattr(whole, key)}
    return Variation(other, assumptions(other, **changed))


def keys_between(assumed: Assumptions, other: Assumptions) -> list[Variation]:
    """The assumptions with one key after the other as in the other set; the parts of the latency go with `latency`."""
    variations = []
    for key in KEYS:
        value = getattr(other, key)
        if key in LATENCY_KEYS or value == getattr(assumed, key):
            continue
        parts = {part: getattr(other, part) for part in LATENCY_KEYS} if key == "latency" else {}
        variations.append(Variation(f"{key}={value}", replace(assumed, **{key: value}, **parts), key))
    return variations


def sensitivity(assumed: Assumptions) -> list[Variation]:
    """Each value of the assumptions halved and doubled, and the fabrics' own control and reconfiguration times."""
    keys = (*(LATENCY_KEYS if assumed.latency == "parts" else ()), "memory_bytes_per_s")
    variations = []
    for key in keys:
        for factor in FACTORS:
            varied = replace(assumed, **{key: getattr(assumed, key) * factor})
            variations.append(Variation(f"{key} x {factor:g}", varied, key))
    for key in OF_FABRICS:
        variations += [Variation(f"{key} x {factor:g}", assumed, key, factor) for factor in FACTORS]
    return variations


TIE = 1.05
"""Times that are at most this over the least are as good as it."""


def is_tie(time_s: float, least_s: float) -> bool:
    """Whether a time is within 5 % of the least [s]."""
    return time_s <= least_s * TIE


def ranks(times: Sequence[float]) -> list[int]:
    """Rank of each time, 1 for the least; equal times share a rank.

    >>> ranks([3.0, 1.0, 3.0])
    [2, 1, 2]
    """
    return [1 + sum(other < time * (1 - 1e-9) for other in times) for time in times]


def swaps(variation: Variation, times: Sequence[float], varied: Sequence[float]) -> Swaps:
    """Pairs of entries that stand in the other order under a variation; ties are no order.

    Args:
        variation: that was evaluated.
        times: of the entries [s].
        varied: under the variation [s].
    """
    pairs = [
        (j, i)
        for i in range(len(times))
        for j in range(len(times))
        if not is_tie(times[j], times[i]) and not is_tie(varied[i], varied[j])
    ]
    return Swaps(variation, tuple(pairs))
