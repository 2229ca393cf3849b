"""Check of the light budget: the power of every circuit along its path against what the detector needs.

Rule `light_does_not_close`: at the detector, or at the lowest place of its path, a circuit has less power than required. The
fabric provides the elements that a circuit passes, the caller their values; this file only adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.ir import CircuitPlan, Fabric, ProgressCallback, Violation, no_progress
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.light import Optics
from opticcl.optics.budget import RoundBudget, round_budgets
from opticcl.optics.chain import ROUNDING_DB
from opticcl.optics.values import light_path_of

__all__ = ["RULE", "BudgetReport", "check_budget"]

RULE = "light_does_not_close"


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """Result of the check: violations, circuits checked [count], notes."""

    violations: tuple[Violation, ...]
    circuits: int
    notes: tuple[str, ...]


def check_budget(plan: CircuitPlan, values: Optics, *, progress: ProgressCallback = no_progress) -> BudgetReport:
    """Check the light of every circuit; of a run of equal steps the first is checked for all, and of circuits that symmetries
    define the listed ones, where a fabric has one path for all.

    Args:
        plan: circuits on an optical fabric.
        values: losses and gains of the elements.
        progress: called after every round.
    Raises: as `round_budgets`.
    """
    if plan.has_images and len(light_path_of(plan.fabric).extremes) == 1:
        plan = listed_plan(plan)
    violations: list[Violation] = []
    total, least, where = 0, np.inf, ""
    for checked in round_budgets(plan, values):
        total += len(checked.steps) * len(checked.circuits)
        worst = int(np.argmin(checked.margin_db))
        if checked.margin_db[worst] < least:
            least = float(checked.margin_db[worst])
            where = (
                f"circuit {checked.circuits.src[worst]} -> {checked.circuits.dst[worst]} of step {checked.steps.start}"
            )
        if dark := np.count_nonzero(checked.margin_db < -ROUNDING_DB):
            violations.append(_violation(plan.fabric, checked, worst, int(dark)))
        progress("follow the light", checked.steps.stop, plan.schedule.num_steps)
    notes = (f"light: least margin {least:.4g} dB, {where} (preset {values.preset})",) if where else ()
    return BudgetReport(tuple(violations), total, notes)


def _violation(fabric: Fabric, checked: RoundBudget, row: int, count: int) -> Violation:
    """The circuit with the least margin: where its power is too low, and the elements that it passes.

    Args:
        fabric: the machine.
        checked: a round.
        row: of the circuit.
        count: circuits of the round with too little power.
    """
    path = light_path_of(fabric)
    matters = (checked.chain.loss_db + checked.chain.once_db + checked.chain.gain_db) > 0
    passed = ", ".join(
        f"{count:g} {element.kind}"
        for element, count, does in zip(path.elements, checked.counts[row].tolist(), matters.tolist(), strict=True)
        if count and does
    )
    received = float(checked.chain.received_dbm(checked.counts[row])[0])
    if received < checked.chain.sensitivity_dbm - ROUNDING_DB:
        expected, found = f"{checked.chain.sensitivity_dbm:g} dBm at the detector", f"{received:.4g} dBm"
    else:
        powers = checked.chain.powers_dbm(checked.counts[row])[0]
        place = int(np.argmin(powers))
        expected = f"{checked.chain.floor_dbm:g} dBm all along the path"
        found = f"{powers[place]:.4g} dBm behind the {path.elements[place].kind}"
    where = f"circuit {checked.circuits.src[row]} -> {checked.circuits.dst[row]} through {passed}"
    short = f"{found}: {-checked.margin_db[row]:.4g} dB short"
    return Violation(RULE, checked.steps.start, checked.round, where, f"at least {expected}", short, count)
