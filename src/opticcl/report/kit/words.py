"""Names and numbers of a comparison as text, the same in table, pictures and page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opticcl.ir import Timeline
from opticcl.registry import write_call
from opticcl.units import counted, format_bytes, unit_suffix

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plans.comparison import Comparison, Entry
    from opticcl.plans.sweep import Point

__all__ = [
    "PART_NAMES",
    "busiest",
    "fabric_names",
    "gap",
    "heading",
    "labels",
    "messages",
    "ratio",
    "run_of",
    "shares",
    "short_algorithm",
    "short_algorithms",
    "slower",
    "specification",
]

LONGEST = 44
"""Characters of a short algorithm at most [count]."""

PART_NAMES: dict[str, str] = {part: part.removesuffix("_s") for part in Timeline.PARTS}
"""Part of a timeline -> its name in tables and pictures."""


def heading(key: str) -> str:
    """The key of a record in words, without its unit.

    >>> heading("longest_outage_s"), heading("policy")
    ('longest outage', 'policy')
    """
    return key.removesuffix(unit_suffix(key)).replace("_", " ")


def messages(comparison: Comparison) -> str:
    """Messages of a comparison: "all_reduce of 100 MB", or their number, size or range of sizes, and sum."""
    sizes = comparison.sizes
    if len(sizes) == 1:
        return f"{comparison.collective} of {format_bytes(sizes[0])}"
    smallest, largest, total = (format_bytes(of(sizes)) for of in (min, max, sum))
    sizes_text = smallest if smallest == largest else f"{smallest} to {largest}"
    return f"{len(sizes):,} {comparison.collective} messages of {sizes_text}, {total} in all"


def specification(fabric: Fabric) -> str:
    """Text from which a fabric can be built."""
    return write_call(fabric.name, {k: v for k, v in fabric.parameters.items() if v is not None})


def fabric_names(comparison: Comparison) -> list[str]:
    """Name of each entry's fabric, with the parameters that differ where a system occurs more than once."""
    names = []
    for entry in comparison.entries:
        same_system = [e.fabric.parameters for e in comparison.entries if e.fabric.name == entry.fabric.name]
        given = {k: v for k, v in entry.fabric.parameters.items() if v is not None}
        differing = {k: v for k, v in given.items() if any(other.get(k) != v for other in same_system)}
        names.append(write_call(entry.fabric.name, differing))
    return names


def labels(comparison: Comparison, *, short: bool = False) -> list[str]:
    """Fabric and algorithm of each entry; plans with the same label are numbered.

    Args:
        comparison: of plans.
        short: whether to shorten algorithms, see `short_algorithm`.
    """
    algorithms = [entry.plan.algorithm for entry in comparison.entries]
    shown = short_algorithms(algorithms) if short else algorithms
    return numbered([f"{name} · {one}" for name, one in zip(fabric_names(comparison), shown, strict=True)])


def short_algorithm(algorithm: str) -> str:
    """An algorithm with the parameters that fit in 44 characters; of held shifts radices and number of cuts.

    >>> short_algorithm("lumorph:radix=4")
    'lumorph:radix=4'
    >>> short_algorithm("digit_shifts:radices=2x2x2x2,cuts=1x2x3,shifts=1x2x4x8")
    'digit_shifts 2x2x2x2, 3 cuts'
    >>> short_algorithm("mine:first=" + 20 * "1" + ",second=" + 20 * "2")
    'mine:first=11111111111111111111,...'
    """
    name, _, given = algorithm.partition(":")
    values = dict(part.partition("=")[::2] for part in given.split(","))
    if name == "digit_shifts" and "shifts" in values:
        cuts = len(values["cuts"].split("x")) if "cuts" in values else 0
        return f"{name} {values.get('radices', '')}, {counted(cuts, 'cut')}"
    if len(algorithm) <= LONGEST:
        return algorithm
    whole, _, cut = algorithm[: LONGEST - 3].rpartition(",")
    return f"{whole},..." if whole else f"{cut}..."


def short_algorithms(algorithms: Sequence[str]) -> list[str]:
    """The algorithms with the parameters that fit; different ones that look the same are numbered.

    >>> held = "digit_shifts:radices=2x2,cuts=1,shifts="
    >>> short_algorithms(["ring", "ring", f"{held}1", f"{held}2"])
    ['ring', 'ring', 'digit_shifts 2x2, 1 cut (1)', 'digit_shifts 2x2, 1 cut (2)']
    """
    whole = list(dict.fromkeys(algorithms))
    short = dict(zip(whole, numbered([short_algorithm(one) for one in whole]), strict=True))
    return [short[one] for one in algorithms]


def numbered(names: Sequence[str]) -> list[str]:
    """The names; one that occurs more than once is numbered.

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


def gap(timed: Entry | Timeline | Point, *, short: bool = False) -> str:
    """Time over its lower bound, and what binds that: "2.08x bisection of the ring".

    Args:
        timed: entry of a comparison, timeline, or point of a sweep.
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
