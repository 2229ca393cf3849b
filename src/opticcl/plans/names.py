"""Names of plans and of their fabrics, the same in sentences, tables, pictures and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticcl.registry import write_call
from opticcl.units import counted, format_bytes

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = [
    "fabric_names",
    "labels",
    "messages",
    "numbered",
    "short_algorithm",
    "short_algorithms",
]

LONGEST = 44
"""Characters of a short algorithm at most [count]."""


def messages(comparison: Comparison) -> str:
    """Messages of a comparison: "all_reduce of 100 MB", or their number, size or range of sizes, and sum."""
    sizes = comparison.sizes
    if len(sizes) == 1:
        return f"{comparison.collective} of {format_bytes(sizes[0])}"
    smallest, largest, total = (format_bytes(of(sizes)) for of in (min, max, sum))
    sizes_text = smallest if smallest == largest else f"{smallest} to {largest}"
    return f"{len(sizes):,} {comparison.collective} messages of {sizes_text}, {total} in all"


def fabric_names(comparison: Comparison) -> list[str]:
    """Name of each entry's fabric, with the parameters that differ where a system occurs more than once, and "as built"."""
    names = []
    for entry in comparison.entries:
        same_system = [e.fabric.parameters for e in comparison.entries if e.fabric.name == entry.fabric.name]
        given = {k: v for k, v in entry.fabric.parameters.items() if v is not None}
        differing = {k: v for k, v in given.items() if any(other.get(k) != v for other in same_system)}
        as_built = ", as built" if comparison.stays_as_built(entry) else ""
        names.append(write_call(entry.fabric.name, differing) + as_built)
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
