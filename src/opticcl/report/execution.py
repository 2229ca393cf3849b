"""Output of `opticcl execute`: the results of a plan compared with NumPy, as a record and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.execute.light import LightUse
    from opticcl.plans.plan import Plan

__all__ = ["ExecutionReport"]

SHOWN = 6
"""Violations of light that are printed."""


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionReport(Result):
    """An executed plan.

    Args:
        plan: that was executed.
        num_results: ranks with a result [count].
        wrong_ranks: ranks whose result differs from NumPy's.
        dtype: of the elements.
        shape: of each result.
        size_bytes: message that was used [bytes].
        asked_bytes: requested message; None where the data are given [bytes].
        light: that carried the data; None: they were copied in memory.
    """

    plan: Plan
    num_results: int
    wrong_ranks: tuple[int, ...]
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    asked_bytes: int | None = None
    light: LightUse | None = None

    @property
    def ok(self) -> bool:
        """Whether every result equals NumPy's, and all light arrived."""
        return not self.wrong_ranks and (self.light is None or self.light.clean)

    @property
    def num_ranks(self) -> int:
        """Ranks of the plan [count]."""
        return self.plan.schedule.collective.num_ranks

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl execute --json` prints them."""
        light = self.light
        by_light = light and {
            "rounds": light.rounds,
            "signals": light.signals,
            "violations": [asdict(violation) for violation in light.violations],
        }
        return {
            "ok": self.ok,
            "ranks": self.num_ranks,
            "wrong_ranks": list(self.wrong_ranks),
            "dtype": self.dtype,
            "shape": list(self.shape),
            "size_bytes": self.size_bytes,
            **({"light": by_light} if by_light else {}),
        }

    @property
    def headline(self) -> str:
        """Whether all ranks have the right result."""
        if self.wrong_ranks:
            return f"{len(self.wrong_ranks)} of {self.num_ranks} ranks have a wrong result."
        if not self.ok:
            return "The results are right, but light is wrong."
        return f"Every rank with a result has the right one: {counted(self.num_results, 'rank')}."

    def blocks(self) -> list[str]:
        """The lines below the sentence."""
        return self.lines()

    def lines(self) -> list[str]:
        """The plan, a message that was rounded up, and the comparison with NumPy."""
        lines = [str(replace(self.plan, size_bytes=self.size_bytes))]
        if self.asked_bytes not in (None, self.size_bytes):
            lines.append(
                f"{counted(self.asked_bytes, 'byte')} requested, {self.size_bytes:,} used: whole {self.dtype} elements in "
                "every block and chunk"
            )
        if self.light is not None:
            lines += _light_lines(self.light)
        if self.wrong_ranks:
            wrong = (
                f"{len(self.wrong_ranks)} of {self.num_ranks} ranks differ from NumPy, rank {self.wrong_ranks[0]} first"
            )
            return [*lines, f"wrong: {wrong}"]
        exactly = "exactly" if self.dtype.startswith(("int", "uint", "bool")) else "up to rounding"
        ranks = f"all {self.num_results} ranks"
        if self.num_results < self.num_ranks:
            ranks = f"the {self.num_results} of {self.num_ranks} ranks with a result"
        return [*lines, f"{ranks} agree with NumPy {exactly}: {prod(self.shape):,} x {self.dtype}"]


def _light_lines(light: LightUse) -> list[str]:
    """What the light did, and the first of its violations."""
    carried = f"{counted(light.rounds, 'round')} of light, {counted(light.signals, 'signal')}"
    if light.clean:
        return [f"{carried}: every photodiode received its own signal and no other"]
    more = len(light.violations) - SHOWN
    shown = [f"  {violation}" for violation in light.violations[:SHOWN]]
    return [f"{carried}: light is wrong", *shown, *([f"  and {counted(more, 'other violation')}"] if more > 0 else [])]
