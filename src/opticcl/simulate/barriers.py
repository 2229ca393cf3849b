"""With a barrier after every step: the steps one after the other, each round of them played by an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Timeline, Transfers
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s
from opticcl.simulate.limits import Progress
from opticcl.simulate.parts import Standing, charged_control_s, lit, summed_chunks
from opticcl.simulate.traffic import Recorder

__all__ = ["PlayRound", "RoundEnd", "play_with_barriers", "round_of_light"]


class RoundEnd(NamedTuple):
    """How a round ends.

    Args:
        latency_s, transfer_s: of the transfer that ends last [s].
        end_s: when each circuit's last bit arrives, float64 (circuits,) [s]; None where nobody asked.
    """

    latency_s: float
    transfer_s: float
    end_s: np.ndarray | None = None


PlayRound = Callable[[Transfers, Circuits, float, int], RoundEnd]
"""(transfers of the step, circuits of the round, bytes of a chunk, repeats of the step) -> how it ends."""


def play_with_barriers(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    play: PlayRound,
    progress: Progress,
    recorder: Recorder | None,
) -> Timeline:
    """Time of a plan whose rounds an engine plays one by one; steps of a class are played once."""
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    num_rounds = np.zeros(len(classes), np.int64)
    reconfiguration, latency, transfer, compute, control = np.zeros((5, len(classes)))
    standing = Standing(assumed, fabric.reconfiguration_s)
    begun_s = 0.0
    for c, steps in enumerate(classes):
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        num_rounds[c] = len(rounds) * repeats
        reconfiguration[c] = standing.charge(rounds, repeats)
        setting_s = reconfiguration[c] / max(1, len(rounds) * repeats)
        now_s = begun_s
        for circuits in rounds:
            end = play(transfers, circuits, chunk_bytes, repeats)
            control_s = charged_control_s(fabric, transfers, circuits, assumed)
            latency[c] += end.latency_s * repeats
            transfer[c] += end.transfer_s * repeats
            control[c] += control_s * repeats
            now_s += setting_s + control_s
            if recorder is not None and end.end_s is not None:
                recorder.round(steps, now_s, transfers, circuits, chunk_bytes, end.end_s)
            now_s += end.latency_s + end.transfer_s
        sum_s = summed_chunks(transfers, assumed) * chunk_bytes / assumed.memory_bytes_per_s
        compute[c] = sum_s * repeats
        if recorder is not None:
            recorder.step_ended(len(rounds), now_s + sum_s - begun_s)
        begun_s += (now_s + sum_s - begun_s) * repeats
        progress("play steps", steps.stop, schedule.num_steps)
    bound = lower_bound_s(schedule.collective, fabric, size_bytes)
    told = {**as_dict(assumed), "mode": "barrier"}
    return Timeline(classes, num_rounds, reconfiguration, latency, transfer, compute, control, bound, told)


def round_of_light(plan: CircuitPlan, record: bool) -> PlayRound:
    """Circuits: each has its light to itself."""

    def play(transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        rows, latency, duration = lit(plan.fabric, transfers, circuits, chunk_bytes)
        if not len(rows):
            return RoundEnd(0.0, 0.0)
        last = int((latency + duration).argmax())
        end_s = None
        if record:
            of_transfer = np.zeros(len(transfers))
            of_transfer[rows] = latency + duration
            end_s = of_transfer[circuits.transfer]
        return RoundEnd(float(latency[last]), float(duration[last]), end_s)

    return play
