"""Is it right? The judge plays the plan and counts; it never calls what made the plan.

Two questions, two files. `semantics`: does every rank end with every contribution exactly once? `optics`: does every transfer
have light, can the hardware make each circuit, and do the circuits that share a resource and a wavelength stay within its
capacity?
"""

from __future__ import annotations

from opticcl.ir import CircuitPlan, Verdict
from opticcl.verify.optics import check_optics
from opticcl.verify.semantics import check_semantics

__all__ = ["verify"]


def verify(plan: CircuitPlan, *, num_chunks: int | None = None, seed: int = 0) -> Verdict:
    """Judge a plan.

    Args:
        plan: any schedule with circuits, from this program or another.
        num_chunks: chunks to follow; None follows all of a small plan and a seeded sample of 64 of a large one.
        seed: of that sample.
    Returns: a verdict; circuits are always checked exhaustively.
    """
    data = check_semantics(plan.schedule, num_chunks=num_chunks, seed=seed)
    light = check_optics(plan)
    return Verdict(
        violations=data.violations + light.violations,
        transfers=data.transfers,
        circuits=light.circuits,
        chunks=data.chunks,
        exhaustive=data.exhaustive,
        notes=data.notes + light.notes,
    )
