"""Power margins of all circuits of a plan, round by round: what the verifier checks and the estimate reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from opticcl.ir import CircuitPlan, Circuits
from opticcl.ir.light import Counts, Optics
from opticcl.optics.chain import Chain, Levels
from opticcl.optics.values import chain_of, check_channels, light_path_of

__all__ = ["RoundBudget", "round_budgets"]


@dataclass(frozen=True, slots=True)
class RoundBudget:
    """Power margins of the circuits of a round.

    Args:
        steps: run of equal steps whose first step has the round.
        round: index within the step.
        circuits: of the round.
        counts: elements that each circuit passes, by kind, (circuits, elements) [count].
        chain: values of the elements.
        margin_db: of each circuit, float64 (circuits,) [dB].
    """

    steps: range
    round: int
    circuits: Circuits
    counts: Counts
    chain: Chain
    margin_db: Levels


def round_budgets(plan: CircuitPlan, values: Optics, classes: Iterable[range] | None = None) -> Iterator[RoundBudget]:
    """Margins of every distinct round.

    Args:
        plan: circuits on an optical fabric.
        values: losses and gains of the elements.
        classes: runs of equal steps to evaluate; None: all of the schedule.
    Raises: UnsupportedError: no light path. ParameterError: values are missing, or wavelengths lie outside the band.
    """
    path = light_path_of(plan.fabric)
    check_channels(plan.fabric)
    chains: dict[bytes, Chain] = {}
    for steps in plan.schedule.step_classes() if classes is None else classes:
        for number, circuits in enumerate(plan.rounds(steps.start)):
            if not len(circuits):
                continue
            counts = path(circuits)
            distinct = counts[:1] if counts.strides[0] == 0 else counts  # one row where all circuits are identical
            passed = np.any(distinct > 0, axis=0)
            key = passed.tobytes()
            if key not in chains:
                chains[key] = chain_of(path, values, passed)
            margin_db = np.broadcast_to(chains[key].margin_db(distinct), len(circuits))
            yield RoundBudget(steps, number, circuits, counts, chains[key], margin_db)
