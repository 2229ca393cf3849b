"""Is it right? The judge plays the plan and counts; it never calls what made the plan.

Two questions, two files. `semantics`: does every rank end with every contribution exactly once? `optics`: does every transfer
have light, can the hardware make each circuit, and do the circuits that share a resource and a wavelength stay within its
capacity?
"""

from __future__ import annotations

from collections.abc import Callable

from opticcl.ir import CircuitPlan, Verdict
from opticcl.verify.optics import check_optics
from opticcl.verify.semantics import check_semantics

__all__ = ["Progress", "verify"]


Progress = Callable[[str, int, int], None]
"""(what, done, total): told after every step."""


def _silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


def verify(plan: CircuitPlan, *, num_chunks: int | None = None, seed: int = 0, progress: Progress = _silent) -> Verdict:
    """Judge a plan.

    Args:
        plan: any schedule with circuits, from this program or another.
        num_chunks: chunks to follow; None follows all of a small plan and a seeded sample of 64 of a large one.
        seed: of that sample.
        progress: told (what, done, total) after every step.
    Returns: a verdict; circuits are always checked exhaustively.
    """
    data = check_semantics(plan.schedule, num_chunks=num_chunks, seed=seed, progress=progress)
    light = check_optics(plan, progress=progress)
    return Verdict(
        violations=data.violations + light.violations,
        transfers=data.transfers,
        circuits=light.circuits,
        chunks=data.chunks,
        exhaustive=data.exhaustive,
        notes=data.notes + light.notes,
    )
