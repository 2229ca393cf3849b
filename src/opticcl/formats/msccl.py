"""MSCCL XML: schedules for GPUs, as MSCCL, RCCL and their compilers exchange them; see `docs/files.md`."""

from __future__ import annotations

from pathlib import Path

from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats.msccl_read import read_msccl
from opticcl.formats.msccl_write import write_msccl
from opticcl.ir import ProgressCallback

__all__ = ["read_msccl", "write_msccl"]


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    steps, blocks = write_msccl(path, plan.circuits.schedule, plan.algorithm, progress)
    lost = "without circuits, wavelengths, times and the size of the message"
    return f"MSCCL XML: {path}, {steps:,} steps of {blocks:,} thread blocks, {lost}"


register_format(
    Format(
        "msccl",
        (".xml",),
        "sends, receives and reductions of GPUs, with dependencies",
        reads="a dependency graph",
        writes="a schedule, without light",
        read=read_msccl,
        is_graph=True,
        write=_write,
    )
)
