"""Numbers of a comparison as text, the same in table, pictures and page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opticcl.ir import Timeline
from opticcl.units import unit_suffix

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison, Entry
    from opticcl.plans.sweep import Point
    from opticcl.training.communication import PlanUse

__all__ = [
    "PART_NAMES",
    "busiest",
    "gap",
    "heading",
    "ratio",
    "run_of",
    "shares",
    "slower",
]


PART_NAMES: dict[str, str] = {part: part.removesuffix("_s") for part in Timeline.PARTS}
"""Part of a timeline -> its name in tables and pictures."""


def heading(key: str) -> str:
    """The key of a record in words, without its unit.

    >>> heading("longest_outage_s"), heading("policy")
    ('longest outage', 'policy')
    """
    return key.removesuffix(unit_suffix(key)).replace("_", " ")


def shares(totals: Mapping[str, float]) -> dict[str, float]:
    """Share of each part in their sum, 0 to 1, by its name; all zero if the sum is zero.

    >>> shares({"latency_s": 3.0, "transfer_s": 1.0})
    {'latency': 0.75, 'transfer': 0.25}
    """
    whole = sum(totals.values()) or 1.0
    return {PART_NAMES[part]: time / whole for part, time in totals.items()}


def run_of(first: int, last: int) -> str:
    """Consecutive numbers.

    >>> run_of(3, 3), run_of(0, 7)
    ('3', '0..7')

    Args: first, last: both included.
    """
    return f"{first}" if first == last else f"{first}..{last}"


def slower(comparison: Comparison) -> list[float]:
    """Time of each entry over that of the fastest with a rank; of all where none has one."""
    fastest = comparison.entries[0].total_s
    return [
        e.total_s / fastest if fastest else (1.0 if e.total_s == fastest else float("inf")) for e in comparison.entries
    ]


def gap(timed: Entry | Timeline | Point | PlanUse, *, short: bool = False) -> str:
    """Time over its lower bound, and what binds that: "2.08x bisection of the ring".

    Args:
        timed: entry of a comparison, timeline, point of a sweep, or plan that carries messages.
        short: the factor alone.
    """
    factor = timed.total_s / timed.lower_bound_s if timed.lower_bound_s else 0.0
    if not factor:
        return "-"
    return ratio(factor) if short else f"{ratio(factor)} {timed.bound_by}"


def busiest(entry: Entry, *, short: bool = False) -> str:
    """The busiest part of the machine and the share of the time in which it is busy: "link leaf 3 -> spine 1, 98%".

    Args:
        entry: of a comparison.
        short: whether to omit the text in parentheses.
    """
    if entry.bottleneck is None:
        return "-"
    name = entry.bottleneck.name
    if short:
        name = re.sub(r" (at )?\([^()]*\)|^link ", "", name)
        name = name.replace("transmitter of", "tx of").replace("receiver of", "rx of")
    return f"{name}, {entry.bottleneck.utilisation:.0%}"


def ratio(value: float) -> str:
    """A factor with three digits.

    >>> ratio(1.0), ratio(3.14159), ratio(27.18), ratio(12345.6)
    ('1.00x', '3.14x', '27.2x', '12,346x')
    """
    return f"{value:.2f}x" if value < 9.995 else f"{value:.1f}x" if value < 99.95 else f"{value:,.0f}x"
