"""A comparison as a program that computes it again."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from opticcl.assumptions import KEYS, Assumptions, assumptions
from opticcl.plans.machines import specification

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = ["reproduction"]


def reproduction(comparison: Comparison) -> str:
    """Python text that compiles, verifies and times the same plans under the same assumptions."""
    plans = "\n".join(f'    ("{specification(e.fabric)}", "{e.plan.algorithm}"),' for e in comparison.entries)
    assumed = "".join(f"    {k}={v!r},\n" for k, v in _arguments(comparison.entries[0].profile.assumed).items())
    sizes = _sizes(comparison.sizes)
    return (
        f"import opticcl\n\nplans = [\n{plans}\n]\nsizes = {sizes}  # bytes\nassumed = dict(\n{assumed})\n"
        "for fabric, algorithm in plans:\n"
        f'    found = opticcl.compare([fabric], "{comparison.collective}", sizes, as_built=True, algorithm=algorithm, '
        "**assumed)\n"
        '    print(found.frame().select("fabric", "algorithm", "verified", "total_s"))\n'
    )


def _arguments(assumed: Assumptions) -> dict[str, Any]:
    """Arguments that name a set of assumptions and the values that differ from it.

    >>> _arguments(assumptions("common", endpoint="nic"))
    {'assumptions': 'common', 'endpoint': 2.7e-06}
    """
    name = assumed.name.removesuffix(", changed")
    whole = assumptions(name)
    differing = {key: getattr(assumed, key) for key in KEYS if getattr(assumed, key) != getattr(whole, key)}
    return {"assumptions": name, **differing}


def _sizes(sizes: tuple[int, ...]) -> str:
    """The sizes as a Python expression; equal neighbours are counted.

    >>> _sizes((5, 7, 7, 7))
    '[5] + [7] * 3'
    """
    if len(sizes) == 1:
        return f"[{sizes[0]}]"
    parts: list[str] = []
    single: list[int] = []

    def flush() -> None:
        if single:
            parts.append(f"[{', '.join(map(str, single))}]")
            single.clear()

    for size, equal in groupby(sizes):
        count = len(list(equal))
        if count == 1:
            single.append(size)
        else:
            flush()
            parts.append(f"[{size}] * {count}")
    flush()
    return " + ".join(parts)
