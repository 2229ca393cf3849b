"""Power margins of all circuits of a plan, round by round: what the verifier checks and the estimate reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from opticcl.ir import CircuitPlan, Circuits
from opticcl.ir.light import Counts, LightPath, Optics
from opticcl.ir.representatives import LightMove
from opticcl.optics.chain import Chain, Levels
from opticcl.optics.values import chain_of, check_channels, light_path_of

__all__ = ["RoundBudget", "counts_of_rounds", "least_margin_db", "round_budgets"]


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


def counts_of_rounds(plan: CircuitPlan, classes: Iterable[range] | None = None) -> Iterator[Counts]:
    """Elements that the light of each distinct round passes, of equal circuits perhaps of one alone.

    Args:
        plan: circuits on an optical fabric.
        classes: runs of equal steps to evaluate; None: all of the schedule.
    Yields: by kind, (paths, elements) [count].
    Raises: UnsupportedError: no light path. ParameterError: wavelengths lie outside the band.
    """
    path = light_path_of(plan.fabric)
    check_channels(plan.fabric)
    last: list[tuple[tuple[Circuits, ...], tuple[LightMove, ...]]] = []
    for steps in plan.schedule.step_classes() if classes is None else classes:
        sets = [(one.rounds, one.moves) for one in plan.by_senders(steps.start)] or [(plan.rounds(steps.start), ())]
        if len(sets) == len(last) and all(one is other for (one, _), (other, _) in zip(sets, last, strict=True)):
            continue
        last = sets
        for circuits, moves in ((circuits, moves) for rounds, moves in sets for circuits in rounds):
            if not len(circuits):
                continue
            counts = path.of_images(circuits, moves) if moves and path.of_images is not None else path(circuits)
            yield counts[:1] if counts.strides[0] == 0 else counts  # one row where all circuits are identical


def least_margin_db(path: LightPath, values: Optics, rounds: Iterable[Counts]) -> float:
    """Least margin of the light of some rounds; infinite without any [dB].

    Args:
        path: of the fabric.
        values: losses and gains of the elements.
        rounds: elements that circuits pass, as of `counts_of_rounds`.
    Raises: ParameterError: values are missing.
    """
    chains: dict[bytes, Chain] = {}
    return min((float(_chain(chains, path, values, one).margin_db(one).min()) for one in rounds), default=inf)


def round_budgets(plan: CircuitPlan, values: Optics) -> Iterator[RoundBudget]:
    """Margins of every distinct round.

    Args:
        plan: circuits on an optical fabric.
        values: losses and gains of the elements.
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
            distinct = counts[:1] if counts.strides[0] == 0 else counts
            chain = _chain(chains, path, values, distinct)
            margin_db = np.broadcast_to(chain.margin_db(distinct), len(circuits))
            yield RoundBudget(steps, number, circuits, counts, chain, margin_db)


def _chain(chains: dict[bytes, Chain], path: LightPath, values: Optics, counts: Counts) -> Chain:
    """The chain of the elements that circuits pass.

    Args:
        chains: by which elements are passed; a new one is added.
        path: of the fabric.
        values: of the elements.
        counts: (circuits, elements).
    """
    passed = np.any(counts > 0, axis=0)
    key = passed.tobytes()
    if key not in chains:
        chains[key] = chain_of(path, values, passed)
    return chains[key]
