"""`opticcl faults --replay`: recorded faults of servers on a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.cli._output import Outputs, ProgressLine, print_json, print_table
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import Fabric
    from opticcl.operations.fault_replay.replay import RecoveryTimes

__all__ = ["print_replay", "split_assumed"]

SPARES = 16
"""Spare servers unless an option says otherwise [count]."""


def split_assumed(assume: list[str]) -> tuple[RecoveryTimes, list[str]]:
    """Recovery times among the values of `--assume`, and the others.

    Args: assume: "restart=30min", "weak=0.5", or an assumption on times.
    Raises: ParameterError, UnitError: a value of another kind, or a key given twice.
    """
    from opticcl.operations.fault_replay.replay import RecoveryTimes, recovery_times
    from opticcl.registry import convert_value
    from opticcl.units import quantity

    given: dict[str, Any] = {}
    others = []
    for item in assume:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals or key not in RecoveryTimes.__slots__:
            others.append(item)
            continue
        if key in given:
            raise ParameterError(f"--assume: {key} is given twice; give it once")
        share = key in ("communication", "weak")
        given[key] = (
            convert_value(text, float, f"--assume: {key}") if share else quantity(text, "s", f"--assume: {key}")
        )
    return recovery_times(**given), others


def print_replay(
    machine: Fabric,
    path: Path,
    ranks: int | None,
    spares: int | None,
    work: tuple[str, str, str],
    assumed: Assumptions,
    times: RecoveryTimes,
    seed: int,
    outputs: Outputs,
    json: bool,
) -> None:
    """Replay a trace, write the files and print the report.

    Args:
        machine: the whole fabric.
        path: of the trace.
        ranks: of the job; None: all nodes but the spares.
        spares: servers besides; None: 16, or fewer on a small machine.
        work: collective, size and algorithm.
        assumed: time assumptions.
        times: of recovery.
        seed: of the choice of servers.
        outputs: files of the call.
        json: whether JSON is printed.
    """
    from opticcl.operations.fault_replay.fault_trace import read_fault_trace
    from opticcl.operations.fault_replay.replay import ReplaySetup, replay
    from opticcl.report.fault_replay import ReplayReport, replay_figure, replay_label, replay_table
    from opticcl.units import message_size

    nodes = machine.num_nodes
    if spares is None:
        spares = min(SPARES, nodes // 8) if ranks is None else min(SPARES, max(0, nodes - ranks))
    message_size(work[1])
    setup = ReplaySetup(
        machine, read_fault_trace(path), nodes - spares if ranks is None else ranks, spares, *work, assumed, times, seed
    )
    with ProgressLine() as progress:
        report = ReplayReport(setup, replay(setup, progress=progress))
    outputs.write_pictures(lambda: replay_figure(report), replay_label(report))
    outputs.write_record(report.record, lambda: report.record()["rows"])
    if json:
        print_json(report.record())
    else:
        print_table(replay_table(report), *report.lines())
        outputs.print_lines()
