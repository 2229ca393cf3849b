"""With a barrier after every step: the steps one after the other, each round of them simulated by an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, Circuits, ProgressCallback, Timeline, Transfers
from opticcl.simulate.bounds import lower_bound
from opticcl.simulate.latency import in_line_on, path_latency
from opticcl.simulate.parts import Reconfiguration, charged_control_s, slot_wait_s, summed_chunks, transfer_times
from opticcl.simulate.traffic import Recorder

__all__ = ["RoundEnd", "RunRound", "circuit_rounds", "simulate_with_barriers"]


class RoundEnd(NamedTuple):
    """End of a round.

    Args:
        latency_s, transfer_s: of the transfer that ends last, the latency with the time of messages [s].
        end_s: when the last bit of each circuit arrives, float64 (circuits,) [s]; None if it was not requested.
        left_s: when the last bit has left its sender, on circuits [s].
        gap_s: of that, the time of messages [s].
    """

    latency_s: float
    transfer_s: float
    end_s: np.ndarray | None = None
    left_s: float = 0.0
    gap_s: float = 0.0


RunRound = Callable[[Transfers, Circuits, float, int], RoundEnd]
"""(transfers of the step, circuits of the round, bytes of a chunk, repeats of the step) -> end of the round."""


def simulate_with_barriers(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    run_round: RunRound,
    progress: ProgressCallback,
    recorder: Recorder | None,
) -> Timeline:
    """Time of a plan whose rounds an engine simulates one by one; identical steps are simulated once.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        run_round: simulates a round.
        progress: called after every class of steps.
        recorder: collects the traffic, or None.
    """
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    num_rounds = np.zeros(len(classes), np.int64)
    reconfiguration, latency, transfer, compute, control = np.zeros((5, len(classes)))
    settings = Reconfiguration(fabric, assumed)
    begun_s = 0.0
    for c, steps in enumerate(classes):
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        num_rounds[c] = len(rounds) * repeats
        exchanges = [charged_control_s(fabric, transfers, circuits, assumed) for circuits in rounds]
        ends = [run_round(transfers, circuits, chunk_bytes, repeats) for circuits in rounds]
        sum_s = summed_chunks(transfers, assumed.compute) * chunk_bytes / assumed.memory_bytes_per_s
        compute[c] = sum_s * repeats
        in_line = not fabric.is_packet_switched and in_line_on(fabric, assumed)
        first = steps.start
        for count, charged in settings.of_runs(rounds, repeats, exchanges):
            now_s = over_s = begun_s
            for circuits, end, (setting_s, control_s) in zip(rounds, ends, charged, strict=True):
                reconfiguration[c] += setting_s * count
                control[c] += control_s * count
                ready_s = now_s + setting_s + control_s
                now_s = ready_s + slot_wait_s(fabric, ready_s)
                if recorder is not None and end.end_s is not None:
                    recorder.add_round(range(first, first + count), now_s, transfers, circuits, chunk_bytes, end.end_s)
                arrived_s = now_s + end.latency_s + end.transfer_s
                over_s = max(over_s, arrived_s)
                transfer[c] += (end.left_s - end.gap_s if in_line else end.transfer_s) * count
                latency[c] += (now_s - ready_s + (end.gap_s if in_line else end.latency_s)) * count
                now_s = now_s + end.left_s if in_line else arrived_s
            if in_line:
                latency[c] += max(0.0, over_s - now_s) * count
                now_s = max(now_s, over_s)
            behind_s = slot_wait_s(fabric, now_s + sum_s)
            is_last = first + count == schedule.num_steps
            latency[c] += behind_s * (count - is_last)
            now_s += sum_s + behind_s
            if recorder is not None:
                recorder.end_step(len(rounds), now_s - begun_s)
            begun_s, first = begun_s + (now_s - begun_s) * count, first + count
        progress("simulate steps", steps.stop, schedule.num_steps)
    bound = lower_bound(schedule.collective, fabric, size_bytes, assumed)
    about = {**assumed.record(), "mode": "barrier"}
    parts = (reconfiguration, latency, transfer, compute, control)
    return Timeline(classes, num_rounds, *parts, bound.seconds, about, bound.name)


def circuit_rounds(plan: CircuitPlan, assumed: Assumptions, record: bool) -> RunRound:
    """Rounds of circuits, where each transfer has its wavelengths to itself.

    Args:
        plan: whose fabric is optical.
        assumed: time assumptions.
        record: whether the end of every circuit is wanted.
    """

    law = path_latency(plan.fabric, assumed)

    def run_round(transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        rows, latency, duration = transfer_times(plan.fabric, transfers, circuits, chunk_bytes, assumed)
        if not len(rows):
            return RoundEnd(0.0, 0.0, np.zeros(len(circuits)) if record else None)
        last = int((latency + duration).argmax())
        end_s = None
        if record:
            of_transfer = np.zeros(len(transfers))
            of_transfer[rows] = latency + duration
            end_s = np.where(circuits.transfer >= 0, of_transfer[circuits.transfer], 0.0)
        gap_s = law.gap_s(transfers, circuits)
        return RoundEnd(float(latency[last]), float(duration[last]), end_s, float(duration.max()) + gap_s, gap_s)

    return run_round
