"""The verifier: it replays a plan and counts, and never calls the code that generated the plan.

Four questions, four folders. `data`: does every rank end with every contribution exactly once? `light`: does every
transfer have a circuit, can the hardware make each circuit, do the circuits that share a resource and a wavelength stay
within its capacity, and, where optical values are given, does every circuit have enough power? `time`: is a programme
possible? `tables`: do tables of devices set what a plan needs? `sweep` counts for all of them what a unit carries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, ProgressCallback, Verdict, no_progress
from opticcl.verify.data.contributions import check_data
from opticcl.verify.judge import combined_verdict
from opticcl.verify.light.circuits import check_light

if TYPE_CHECKING:
    from opticcl.ir.light import Optics


__all__ = ["Emulate", "verify"]

Emulate = Literal["auto", "always", "never"] | bool
"""Whether a second judge follows the light."""


def verify(
    plan: CircuitPlan,
    *,
    num_chunks: int | None = None,
    seed: int = 0,
    every_chunk: bool = False,
    exact: bool = False,
    budget: Optics | None = None,
    emulate: Emulate = "never",
    isolation_db: Mapping[str, float] | None = None,
    progress: ProgressCallback = no_progress,
) -> Verdict:
    """Verify a plan.

    Args:
        plan: any schedule with circuits, from this program or another.
        num_chunks: follow a seeded sample of that many chunks, which gives no verdict on the others; None judges all.
        seed: seed of that sample.
        every_chunk, exact: of former versions, which could leave them out; they do nothing, every verdict is on all chunks and
            exact.
        budget: loss and gain of each optical element; None skips the power budget.
        emulate: follow light through the elements of the machine too, as a second judge. auto: where the first one finds
            nothing wrong, of up to 20,000 signals on machines whose elements are known; always (or True), never (or False).
        isolation_db: with `emulate="always"`, of groups or kinds of elements, to follow what leaks in them too [dB].
        progress: called after every step.
    Returns: a verdict; circuits are always checked exhaustively.
    Raises: UnsupportedError, ParameterError: the power budget cannot be computed, or light cannot be followed.
    """
    if emulate not in ("auto", "always", "never", True, False):
        raise ParameterError(f"verify: emulate={emulate!r}; try auto, always or never")
    always = emulate in ("always", True)
    if always:
        from opticcl.optics.rounds import followable

        followable(plan.fabric)  # refused before any work
    data = check_data(plan.schedule, num_chunks=num_chunks, seed=seed, progress=progress)
    light = check_light(plan, progress=progress)
    verdict = combined_verdict(data, light)
    if always:
        verdict = _with_emulation(plan, verdict, isolation_db, progress)
    elif emulate == "auto" and not light.violations:
        verdict = _with_small_emulation(plan, verdict, progress)
    if budget is None:
        return verdict
    if light.violations:  # circuits that the hardware cannot make have no path
        return replace(verdict, notes=(*verdict.notes, "power budget: not checked, since circuits are wrong"))
    from opticcl.verify.light.budget import check_budget

    enough = check_budget(plan, budget, progress=progress)
    return replace(verdict, violations=verdict.violations + enough.violations, notes=verdict.notes + enough.notes)


def _with_emulation(
    plan: CircuitPlan, verdict: Verdict, isolation_db: Mapping[str, float] | None, progress: ProgressCallback
) -> Verdict:
    """The verdict with that of the second judge of light.

    Args:
        plan: that is verified.
        verdict: of the first.
        isolation_db: of elements in which light leaks, or None.
        progress: called after every step.
    """
    from opticcl.verify.light.emulated import NEEDED, emulate

    if any(violation.rule in NEEDED for violation in verdict.violations):
        return replace(verdict, notes=(*verdict.notes, "emulated: no light, since circuits do not exist"))
    emulation = emulate(plan, isolation_db=isolation_db, progress=progress)
    notes = verdict.notes + emulation.notes
    return replace(verdict, violations=verdict.violations + emulation.violations, notes=notes, emulated=True)


def _with_small_emulation(plan: CircuitPlan, verdict: Verdict, progress: ProgressCallback) -> Verdict:
    """The verdict with that of the second judge of light, if the plan has few signals and its machine a netlist.

    Args:
        plan: that is verified.
        verdict: of the first judge, who finds no light wrong.
        progress: called after every step.
    """
    from opticcl.verify.light.emulated import emulate, few_signals

    if not few_signals(plan):
        return verdict
    try:
        emulation = emulate(plan, progress=progress)
    except UnsupportedError:  # a machine whose elements say less than its netlist promises
        return verdict
    harmful = tuple(one for one in emulation.violations if one.rule != "light_stray")  # nothing listens there
    return replace(verdict, violations=verdict.violations + harmful, emulated=True)
