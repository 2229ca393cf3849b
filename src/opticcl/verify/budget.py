"""Does enough light arrive? The path of every circuit, element by element, against what the detector needs.

Rule `light_does_not_close`: at the detector, or at the lowest place of its path, a circuit has less power than it must. The
fabric says which elements a circuit passes, the values of these elements are handed in; this file only adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Fabric, Violation
from opticcl.physics.chain import ROUNDING_DB, Chain, Levels
from opticcl.physics.light import Counts, light_path_of
from opticcl.physics.optics import Optics, chain_of, check_channels

__all__ = ["RULE", "BudgetReport", "LitRound", "check_budget", "lit_rounds"]

RULE = "light_does_not_close"


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """What arrives: violations, circuits looked at [count], notes."""

    violations: tuple[Violation, ...]
    circuits: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LitRound:
    """The circuits of a round and their light.

    Args:
        steps: run of equal steps that begin with the round's.
        round: number within the step.
        circuits: of the round.
        counts: how many of each element each circuit passes, (circuits, elements).
        chain: values of the elements.
        margin_db: of each circuit, float64 (circuits,).
    """

    steps: range
    round: int
    circuits: Circuits
    counts: Counts
    chain: Chain
    margin_db: Levels


def check_budget(
    plan: CircuitPlan, values: Optics, *, progress: Callable[[str, int, int], None] = lambda what, done, total: None
) -> BudgetReport:
    """Check the light of every circuit; of a run of equal steps the first stands for all.

    Args:
        plan: circuits on an optical fabric.
        values: what each element loses or adds.
        progress: told (what, done, total) after every round.
    Raises: as `lit_rounds`.
    """
    violations: list[Violation] = []
    total, least, where = 0, np.inf, ""
    for lit in lit_rounds(plan, values):
        total += len(lit.steps) * len(lit.circuits)
        worst = int(np.argmin(lit.margin_db))
        if lit.margin_db[worst] < least:
            least = float(lit.margin_db[worst])
            where = f"circuit {lit.circuits.src[worst]} -> {lit.circuits.dst[worst]} of step {lit.steps.start}"
        dark = np.count_nonzero(lit.margin_db < -ROUNDING_DB)
        if dark:
            found = _violation(plan.fabric, lit, worst)
            violations.append(replace(found, step=lit.steps.start, round=lit.round, count=int(dark)))
        progress("follow the light", lit.steps.stop, plan.schedule.num_steps)
    notes = (f"light: least margin {least:.4g} dB, {where} (preset {values.preset})",) if where else ()
    return BudgetReport(tuple(violations), total, notes)


def lit_rounds(plan: CircuitPlan, values: Optics) -> Iterator[LitRound]:
    """Every round that differs from others, with the margins of its circuits.

    Raises: UnsupportedError: no light path. ParameterError: values are missing, or wavelengths lie outside the band.
    """
    path = light_path_of(plan.fabric)
    check_channels(plan.fabric)
    chains: dict[bytes, Chain] = {}
    for steps in plan.schedule.step_classes():
        for number, circuits in enumerate(plan.rounds(steps.start)):
            if not len(circuits):
                continue
            counts = path(circuits)
            different = counts[:1] if counts.strides[0] == 0 else counts  # one row where all circuits are alike
            passed = np.any(different > 0, axis=0)
            key = passed.tobytes()
            if key not in chains:
                chains[key] = chain_of(path, values, passed)
            margin_db = np.broadcast_to(chains[key].margin_db(different), len(circuits))
            yield LitRound(steps, number, circuits, counts, chains[key], margin_db)


def _violation(fabric: Fabric, lit: LitRound, row: int) -> Violation:
    """The circuit that lacks most: where it falls short, and through what it went."""
    path = light_path_of(fabric)
    matters = (lit.chain.loss_db + lit.chain.once_db + lit.chain.gain_db) > 0
    passed = ", ".join(
        f"{count:g} {element.kind}"
        for element, count, does in zip(path.elements, lit.counts[row].tolist(), matters.tolist(), strict=True)
        if count and does
    )
    received = float(lit.chain.received_dbm(lit.counts[row])[0])
    if received < lit.chain.sensitivity_dbm - ROUNDING_DB:
        expected, found = f"{lit.chain.sensitivity_dbm:g} dBm at the detector", f"{received:.4g} dBm"
    else:
        powers = lit.chain.powers_dbm(lit.counts[row])[0]
        place = int(np.argmin(powers))
        expected = f"{lit.chain.floor_dbm:g} dBm all along the path"
        found = f"{powers[place]:.4g} dBm behind the {path.elements[place].kind}"
    where = f"circuit {lit.circuits.src[row]} -> {lit.circuits.dst[row]} through {passed}"
    return Violation(RULE, -1, -1, where, f"at least {expected}", f"{found}: {-lit.margin_db[row]:.4g} dB short")
