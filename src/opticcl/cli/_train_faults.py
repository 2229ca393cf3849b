"""`opticcl train --faults`: the job on every fabric while recorded faults come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opticcl.errors import OpticclError, ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import ProgressCallback
    from opticcl.operations.fault_replay.fault_trace import FaultTrace
    from opticcl.report.training_faults import TrainingFaults, TrainingFaultsRow
    from opticcl.training.train import TrainingResult, TrainingRow

__all__ = ["check_spares", "training_faults"]

DAY_S = 86_400.0


def check_spares(spares: int, devices: int) -> None:
    """Raises: ParameterError: fewer than 0 spares, or less than two devices for the job. Args: spares, devices [count]."""
    if not 0 <= spares <= devices - 2:
        raise ParameterError(f"--spares: {spares} of {devices} devices is not 0 to {max(0, devices - 2)}; try 1")


def training_faults(
    trace: FaultTrace, spares: int, found: TrainingResult, assumed: Assumptions, progress: ProgressCallback
) -> TrainingFaults:
    """Replay the faults on every machine of a comparison.

    Args:
        trace: recorded faults.
        spares: devices that are kept as spares in the second replay [count].
        found: the comparison.
        assumed: time assumptions.
        progress: called with (what, done, total).
    """
    from opticcl.report.training_faults import TrainingFaults

    return TrainingFaults([_row(row, trace, spares, assumed, progress) for row in found.rows], trace)


def _row(
    row: TrainingRow, trace: FaultTrace, spares: int, assumed: Assumptions, progress: ProgressCallback
) -> TrainingFaultsRow:
    from opticcl.operations.fault_replay.replay import ReplayRun, ReplaySetup, recovery_times, replay
    from opticcl.report.training_faults import TrainingFaultsRow

    iteration, devices = row.iteration, row.machine.num_nodes
    whole = [use.plan for use in row.plans if use.plan.fabric.num_nodes == devices]
    per_day = DAY_S / iteration.total_s if iteration.total_s else 0.0
    share = 1.0 if row.communication_share is None else row.communication_share
    known = TrainingFaultsRow(
        row.machine.name, devices, spares, per_day, iteration.job.samples or 0, share, "", {}, {}, ""
    )
    if not whole:
        return replace(known, reason="no message of the job has all devices, so its faults are not replayed")
    plan = whole[0]
    times = recovery_times(communication=share)
    runs: list[dict[str, ReplayRun]] = []
    try:
        for kept in dict.fromkeys((0, spares)):
            setup = ReplaySetup(
                row.machine.machine,
                trace,
                devices - kept,
                kept,
                plan.schedule.collective.name,
                str(plan.size_bytes),
                "auto",
                assumed,
                times,
                0,
            )
            runs.append({run.policy: run for run in replay(setup, progress=progress)})
    except OpticclError as error:
        return replace(known, reason=str(error))
    return replace(
        known,
        collective=plan.schedule.collective.name,
        without=runs[0],
        with_spares=runs[1] if spares else {},
    )
