"""Names and numbers of a comparison in words, the same ones in table, pictures and page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opticcl.ir import Timeline
from opticcl.registry import write_call
from opticcl.units import format_bytes

if TYPE_CHECKING:
    from opticcl.comparison import Comparison, Entry

__all__ = [
    "PART_NAMES",
    "busiest",
    "efficiency",
    "fabric_names",
    "labels",
    "messages",
    "ratio",
    "shares",
    "slower",
    "specification",
]

PART_NAMES: dict[str, str] = {part: part.removesuffix("_s") for part in Timeline.PARTS}
"""Parts of a time, as a reader calls them."""


def messages(comparison: Comparison) -> str:
    """What is compared: "all_reduce of 100 MB", or how many of them and how much in all."""
    sizes = comparison.sizes
    if len(sizes) == 1:
        return f"{comparison.collective} of {format_bytes(sizes[0])}"
    least, most, all_together = (format_bytes(of(sizes)) for of in (min, max, sum))
    return f"{len(sizes):,} {comparison.collective} messages of {least} to {most}, {all_together} in all"


def specification(entry: Entry) -> str:
    """The text that makes the entry's fabric again."""
    return write_call(entry.fabric.name, {k: v for k, v in entry.fabric.parameters.items() if v is not None})


def fabric_names(comparison: Comparison) -> list[str]:
    """Name of each entry's fabric; where a system stands there twice, with the parameters that differ."""
    names = []
    for entry in comparison.entries:
        alike = [e.fabric.parameters for e in comparison.entries if e.fabric.name == entry.fabric.name]
        given = {k: v for k, v in entry.fabric.parameters.items() if v is not None}
        differing = {k: v for k, v in given.items() if any(other.get(k) != v for other in alike)}
        names.append(write_call(entry.fabric.name, differing))
    return names


def labels(comparison: Comparison) -> list[str]:
    """Fabric and algorithm of each entry, in one text; a plan that stands there twice is numbered."""
    plain = [
        f"{name} · {e.plan.algorithm}" for name, e in zip(fabric_names(comparison), comparison.entries, strict=True)
    ]
    return numbered(plain)


def numbered(names: Sequence[str]) -> list[str]:
    """The names; one that stands there more than once is numbered in the order given.

    >>> numbered(["torus", "ramp", "torus"])
    ['torus (1)', 'ramp', 'torus (2)']
    """
    total, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name} ({seen[name]})" if total[name] > 1 else name)
    return result


def shares(totals: Mapping[str, float]) -> dict[str, float]:
    """Share of each part in their sum, 0 to 1, by the reader's name; all zero if nothing takes time.

    >>> shares({"latency_s": 3.0, "transfer_s": 1.0})
    {'latency': 0.75, 'transfer': 0.25}
    """
    whole = sum(totals.values()) or 1.0
    return {PART_NAMES[part]: time / whole for part, time in totals.items()}


def slower(comparison: Comparison) -> list[float]:
    """How many times each entry takes the time of the fastest."""
    fastest = min(e.total_s for e in comparison.entries)
    return [
        e.total_s / fastest if fastest else (1.0 if e.total_s == fastest else float("inf")) for e in comparison.entries
    ]


def efficiency(entry: Entry) -> float:
    """Lower bound over time, 0 to 1; 1 if nothing takes time."""
    return entry.lower_bound_s / entry.total_s if entry.total_s else 1.0


def busiest(entry: Entry, *, short: bool = False) -> str:
    """The part of the machine that is busy longest and its share of the time: "link leaf 3 -> spine 1, 98%".

    Args: short: without what stands in parentheses.
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
