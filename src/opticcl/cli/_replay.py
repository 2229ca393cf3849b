"""`opticcl faults --replay`: recorded faults of servers on a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import Fabric, ProgressCallback
    from opticcl.operations.fault_replay.replay import RecoveryTimes
    from opticcl.report.fault_replay import ReplayReport

__all__ = ["ReplayJob", "replayed", "split_assumed"]

LONG_UNITS = {"min": 60.0, "h": 3600.0, "d": 86_400.0}
"""Units of times of recovery [s]."""

SPARES = 16
"""Spare servers unless an option says otherwise [count]."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """The job that meets the faults.

    Args:
        ranks: of the job; None: all nodes but the spares.
        spares: servers besides; None: 16, or fewer on a small machine.
        collective: of an iteration.
        size: message of every rank.
        algorithm: of every plan.
        seed: of the choice of servers.
    """

    ranks: int | None
    spares: int | None
    collective: str
    size: str
    algorithm: str
    seed: int


def split_assumed(recover: Sequence[str], assume: Sequence[str]) -> tuple[RecoveryTimes, list[str]]:
    """Recovery times of `--recover` and among the values of `--assume`, and the other values of `--assume`.

    Args: recover, assume: "restart=30min", "weak=0.5"; in `assume` also assumptions on times.
    Raises: ParameterError, UnitError: an unknown name, a value of another kind, or a key given twice.
    """
    from opticcl.operations.fault_replay.replay import RecoveryTimes, recovery_times
    from opticcl.registry import convert_value, nearest

    names = RecoveryTimes.__slots__
    given: dict[str, Any] = {}
    others = []
    for option, item in [("--recover", item) for item in recover] + [("--assume", item) for item in assume]:
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals or key not in names:
            if option == "--recover":
                raise ParameterError(f"--recover: {item!r}; write one such as restart=600s; {nearest(key, names)}")
            others.append(item)
            continue
        if key in given:
            raise ParameterError(f"{option}: {key} is given twice; give it once")
        share = key in ("communication", "weak")
        given[key] = convert_value(text, float, f"{option}: {key}") if share else _seconds(text, f"{option}: {key}")
    return recovery_times(**given), others


def _seconds(text: str, what: str) -> float:
    """A time such as "30min", "2h" or "3.7us" [s].

    Args:
        text: number and unit.
        what: its name, for the message.
    Raises: ParameterError, UnitError: it is none.
    """
    from opticcl.registry import convert_value
    from opticcl.units import quantity

    for unit, factor in LONG_UNITS.items():
        if text.endswith(unit):
            return factor * float(convert_value(text.removesuffix(unit).strip(), float, what))
    return quantity(text, "s", what)


def replayed(
    machine: Fabric, path: Path, job: ReplayJob, assumed: Assumptions, times: RecoveryTimes, progress: ProgressCallback
) -> ReplayReport:
    """A job while the faults of a trace come and go.

    Args:
        machine: the whole fabric.
        path: of the trace.
        job: that meets the faults.
        assumed: time assumptions.
        times: of recovery.
        progress: called with (what, done, total).
    """
    from opticcl.operations.fault_replay.fault_trace import read_fault_trace
    from opticcl.operations.fault_replay.replay import ReplaySetup, replay
    from opticcl.report.fault_replay import ReplayReport
    from opticcl.units import message_size

    nodes, ranks, spares = machine.num_nodes, job.ranks, job.spares
    if spares is None:
        spares = min(SPARES, nodes // 8) if ranks is None else min(SPARES, max(0, nodes - ranks))
    ranks = nodes - spares if ranks is None else ranks
    message_size(job.size)
    trace = read_fault_trace(path)
    setup = ReplaySetup(
        machine, trace, ranks, spares, job.collective, job.size, job.algorithm, assumed, times, job.seed
    )
    return ReplayReport(setup, replay(setup, progress=progress))
