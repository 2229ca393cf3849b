"""Times of all circuits and transfers of a plan, as list scheduling finds them: their programme, timeline and critical path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, Fabric, IntArray, Timeline
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.simulate.bounds import Starts, lower_bound
from opticcl.simulate.latency import in_line_on
from opticcl.simulate.traffic import Recorder

__all__ = ["ListTimes", "Waits", "asynchronous", "by_device"]


@dataclass(frozen=True, slots=True)
class Waits:
    """What a circuit waits for beside its data.

    Args:
        devices: its devices alone; else a reconfiguration wherever it was not part of the last round that changed any.
        prepared: whether devices are set while data is awaited.
        at_arrival: whether a resource is free once the last bit has arrived; else once it has left.
    """

    devices: bool
    prepared: bool
    at_arrival: bool


def asynchronous(fabric: Fabric, assumed: Assumptions) -> Waits:
    """What circuits wait for in the asynchronous mode."""
    return Waits(devices=False, prepared=False, at_arrival=not in_line_on(fabric, assumed))


def by_device(assumed: Assumptions) -> Waits:
    """What circuits wait for in the device engine: nothing that stands."""
    return Waits(devices=True, prepared=assumed.prepare == "early", at_arrival=False)


class ListTimes(NamedTuple):
    """Times of all circuits and transfers of a plan, in its order.

    Args:
        circuits: columns step, round, row, transfer, start, latency, duration (with gap: messages of the sender),
            released, released_by, charged, control.
        transfers: columns step, src, dst, bytes, start, left, received, arrived, summed, circuit (the one that ends last).
        devices, control: of a programme.
        num_rounds: of each class of steps, int64 (classes,).
        waits: what circuits waited for.
    """

    circuits: dict[str, np.ndarray]
    transfers: dict[str, np.ndarray]
    devices: DeviceTable
    control: ControlTimes
    num_rounds: IntArray
    waits: Waits

    @property
    def total_s(self) -> float:
        """Last event [s]."""
        return float(self.transfers["summed"].max(initial=0.0))

    def programme(self, plan: CircuitPlan, size_bytes: int, engine: str, assumed: Assumptions) -> Programme:
        """The tables of a programme.

        Args:
            plan: that was scheduled.
            size_bytes: message of every rank [bytes].
            engine: name.
            assumed: time assumptions.
        """
        c, t, slot_s = self.circuits, self.transfers, plan.fabric.slot_s
        n = len(c["step"])
        slot = slots = np.full(n, -1)
        if slot_s:
            slot, slots = (
                np.rint(column / slot_s).astype(np.int64) for column in (c["start"], c["duration"] - c["gap"])
            )
        end = np.where(c["transfer"] >= 0, c["start"] + c["latency"] + c["duration"], np.nan)
        circuits = CircuitTimes.of(
            step=c["step"], round=c["round"], row=c["row"], start_s=c["start"], end_s=end, slot=slot, slots=slots
        )
        data = DataTimes.of(step=t["step"], transfer=t["row"], arrived_s=t["arrived"], summed_s=t["summed"])
        runs = StepRuns.single(plan.schedule.num_steps)
        return Programme(
            engine,
            size_bytes,
            self.total_s,
            runs,
            circuits,
            data,
            self.devices,
            self.control,
            {**assumed.record(), "mode": "asynchronous"},
        )

    def timeline(self, plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline:
        """What the steps of each class contribute to the chain of transfers that ends last; the rows add up to the total.

        Args:
            plan: that was scheduled.
            size_bytes: message of every rank [bytes].
            assumed: time assumptions.
        """
        classes = plan.schedule.step_classes()
        parts = np.zeros((5, len(classes)))
        starts = np.array([steps.start for steps in classes])
        c, t = self.circuits, self.transfers
        end = self.total_s
        for flow in self.chain()[::-1].tolist():
            row = int(np.searchsorted(starts, t["step"][flow], side="right")) - 1
            at = int(t["circuit"][flow])
            released, start = float(c["released"][at]), float(c["start"][at])
            gap = start - released
            control = min(gap, float(c["control"][at]))
            setting = gap - control if not plan.fabric.slot_s else min(gap - control, float(c["charged"][at]))
            latency, transfer, compute = _split(end - start, float(c["duration"][at]), float(c["latency"][at]), end)
            messages = min(transfer, float(c["gap"][at]))
            transfer, latency = transfer - messages, latency + messages
            latency += gap - control - setting  # for the next slot
            parts[:, row] += setting, latency, transfer, compute, control
            end = released
        starts_by: Starts = "devices" if self.waits.devices else "data"
        bound = lower_bound(plan.schedule.collective, plan.fabric, size_bytes, assumed, starts=starts_by)
        about = {**assumed.record(), "mode": "asynchronous"}
        setting_s, latency_s, transfer_s, compute_s, control_s = parts
        times = (setting_s, latency_s, transfer_s, compute_s, control_s)
        return Timeline(classes, self.num_rounds, *times, bound.seconds, about, bound.name)

    def chain(self) -> IntArray:
        """Transfers of the critical path, in order."""
        t = self.transfers
        if not len(t["summed"]):
            return np.zeros(0, np.int64)
        flow = int(t["summed"].argmax())
        backwards = []
        while flow >= 0:
            backwards.append(flow)
            flow = int(self.circuits["released_by"][t["circuit"][flow]])
        return np.array(backwards[::-1])

    def record(self, recorder: Recorder, classes: Sequence[range]) -> None:
        """Give the times of the transfers to a recorder.

        Args:
            recorder: of the traffic.
            classes: of steps.
        """
        columns = [self.transfers[name] for name in ("step", "src", "dst", "bytes", "start", "received")]
        recorder.add_transfers(columns, classes, self.chain())


def _split(rest_s: float, duration_s: float, latency_s: float, end_s: float) -> tuple[float, float, float]:
    """Latency, transfer and sums of a time after the start of light [s]; what is left of rounding goes to the transfer.

    Args:
        rest_s: the time to be divided [s].
        duration_s, latency_s: of the circuit [s].
        end_s: of the time, which sets the rounding [s].
    """
    rounding_s = 1e-12 * end_s
    compute = rest_s - duration_s - latency_s
    compute = compute if compute > rounding_s else 0.0
    latency = min(latency_s, rest_s - duration_s)
    latency = latency if latency > rounding_s else 0.0
    transfer = rest_s - compute - latency
    return (latency, transfer, compute) if duration_s else (latency + transfer, 0.0, compute)
