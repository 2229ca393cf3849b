"""Is it right? The judge plays the plan and counts; it never calls what made the plan.

Three questions, three files. `semantics`: does every rank end with every contribution exactly once? `optics`: does every
transfer have light, can the hardware make each circuit, and do the circuits that share a resource and a wavelength stay
within its capacity? `budget`, where its values are given: does enough light arrive?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from opticcl.ir import CircuitPlan, Verdict
from opticcl.verify.judge import verdict_on
from opticcl.verify.optics import check_optics
from opticcl.verify.semantics import check_semantics

if TYPE_CHECKING:
    from opticcl.physics.optics import Optics

__all__ = ["Progress", "verify"]


Progress = Callable[[str, int, int], None]
"""(what, done, total): told after every step."""


def _silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


def verify(
    plan: CircuitPlan,
    *,
    num_chunks: int | None = None,
    seed: int = 0,
    budget: Optics | None = None,
    progress: Progress = _silent,
) -> Verdict:
    """Judge a plan.

    Args:
        plan: any schedule with circuits, from this program or another.
        num_chunks: chunks to follow; None follows all of a small plan and a seeded sample of 64 of a large one.
        seed: of that sample.
        budget: what each element on the path of light loses or adds; None does not ask whether enough light arrives.
        progress: told (what, done, total) after every step.
    Returns: a verdict; circuits are always checked exhaustively.
    Raises: UnsupportedError, ParameterError: a budget that cannot be reckoned.
    """
    data = check_semantics(plan.schedule, num_chunks=num_chunks, seed=seed, progress=progress)
    light = check_optics(plan, progress=progress)
    verdict = verdict_on(data, light)
    if budget is None:
        return verdict
    if light.violations:  # what the hardware cannot make has no path to follow
        return replace(verdict, notes=(*verdict.notes, "light: not followed, since circuits are wrong"))
    from opticcl.verify.budget import check_budget

    enough = check_budget(plan, budget, progress=progress)
    return replace(verdict, violations=verdict.violations + enough.violations, notes=verdict.notes + enough.notes)
