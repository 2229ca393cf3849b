"""Plan files: every circuit of every round, as Parquet, CSV or JSON.

`docs/files.md` describes the columns. A file is written step by step, whole or not at all, and read step by step, so a
plan of sixteen million circuits needs little memory. A plan that was read is verified like any other plan.
"""

from __future__ import annotations

from pathlib import Path

from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats.plan_read import PlanFile, read_plan_file
from opticcl.formats.plan_write import MOST_ROWS, write_plan_file
from opticcl.ir import ProgressCallback

__all__ = ["PlanFile", "read_plan_file", "write_plan_file"]


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    rows = write_plan_file(path, plan.circuits, plan.size_bytes, plan.algorithm, progress, listed=plan.listed)
    return f"plan file: {path}, {rows:,} circuits"


register_format(
    Format(
        "plan",
        tuple(MOST_ROWS),
        "every circuit of every round, with the fabric and the collective",
        reads="a plan",
        writes="a plan",
        read=read_plan_file,
        write=_write,
    )
)
