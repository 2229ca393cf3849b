"""Time of a plan and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray
from opticcl.picture import Plotted

__all__ = ["Timeline"]

_HEADS = {"reconfiguration_s": "reconf."}  # names that are wider than their column


@dataclass(frozen=True, slots=True)
class Timeline(Plotted):
    """Time of a plan and its parts: one row for each run of identical steps, with the time of the whole run.

    Args:
        steps: the runs, in order.
        rounds: rounds in each run, int64 (rows,).
        reconfiguration_s, latency_s, transfer_s, compute_s, control_s: float64 (rows,) [s].
        lower_bound_s: no schedule of this collective on this fabric can be faster [s].
        assumptions: values by name.
        bound_by: what binds the lower bound, in words.
    """

    steps: tuple[range, ...]
    rounds: IntArray
    reconfiguration_s: npt.NDArray[np.float64]
    latency_s: npt.NDArray[np.float64]
    transfer_s: npt.NDArray[np.float64]
    compute_s: npt.NDArray[np.float64]
    control_s: npt.NDArray[np.float64]
    lower_bound_s: float = 0.0
    assumptions: Mapping[str, Any] = field(default_factory=dict)
    bound_by: str = ""

    PARTS = ("reconfiguration_s", "latency_s", "transfer_s", "compute_s", "control_s")

    @property
    def num_steps(self) -> int:
        """Number of steps [count]."""
        return sum(map(len, self.steps))

    @property
    def num_rounds(self) -> int:
        """Number of rounds [count]."""
        return int(self.rounds.sum())

    @property
    def step_s(self) -> npt.NDArray[np.float64]:
        """Time of each run of steps, float64 (rows,) [s]."""
        return np.sum([getattr(self, p) for p in self.PARTS], axis=0, dtype=np.float64)

    @property
    def total_s(self) -> float:
        """Total time [s]."""
        return float(self.step_s.sum())

    @property
    def gap(self) -> float:
        """Total time over its lower bound; 1 where both are 0, infinite where the bound alone is."""
        if self.lower_bound_s:
            return self.total_s / self.lower_bound_s
        return float("inf") if self.total_s else 1.0

    def totals(self) -> dict[str, float]:
        """Time of each part [s], by name."""
        return {part: float(getattr(self, part).sum()) for part in self.PARTS}

    def record(self) -> dict[str, Any]:
        """Total, parts, bound and assumptions, for JSON."""
        return {
            "total_s": self.total_s,
            "num_steps": self.num_steps,
            "num_rounds": self.num_rounds,
            **self.totals(),
            "lower_bound_s": self.lower_bound_s,
            "bound_by": self.bound_by,
            "gap": self.gap if self.gap < float("inf") else None,
            "assumptions": dict(self.assumptions),
        }

    def __iter__(self) -> Iterator[tuple[range, int, dict[str, float]]]:
        for i, steps in enumerate(self.steps):
            yield steps, int(self.rounds[i]), {p: float(getattr(self, p)[i]) for p in self.PARTS}

    def __repr__(self) -> str:
        from opticcl.units import counted, format_seconds

        steps, rounds = counted(self.num_steps, "step"), counted(self.num_rounds, "round")
        return f"<Timeline {format_seconds(self.total_s)}: {steps}, {rounds}>"

    def __str__(self) -> str:
        head, *rows = self._cells()
        widths = (16, 9, *(12,) * (len(head) - 2))
        lines = (
            [f"{label:<{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))]
            for label, *rest in (head, *rows)
        )
        return "\n".join(map(" ".join, lines))

    def _repr_html_(self) -> str:
        from opticcl.units import format_seconds, html_table

        head, *rows = self._cells()
        notes = [f"lower bound {format_seconds(self.lower_bound_s)}: {self.bound_by}"] if self.bound_by else []
        return html_table(head, rows, notes)

    def _cells(self) -> list[list[str]]:
        """Names of the columns, a row for each run of steps, and their sums."""
        from opticcl.units import format_seconds

        def cells(label: str, rounds: int, parts: Iterable[float], total_s: float) -> list[str]:
            return [label, str(rounds), *map(format_seconds, (*parts, total_s))]

        head = ["steps", "rounds", *(_HEADS.get(p, p.removesuffix("_s")) for p in (*self.PARTS, "total"))]
        rows = [
            cells(
                f"{s.start}" if len(s) == 1 else f"{s.start}..{s.stop - 1}", rounds, parts.values(), sum(parts.values())
            )
            for s, rounds, parts in self
        ]
        return [head, *rows, cells("all", self.num_rounds, self.totals().values(), self.total_s)]
