"""Tables of the TOML file beside the module of a system: default values, optics, control plane."""

from __future__ import annotations

from functools import cache
from typing import Any

from opticcl.files import read_toml
from opticcl.ir import ControlPlane
from opticcl.ir.light import OpticsTable
from opticcl.optics.values import optics_table

__all__ = ["control_plane", "datasheet", "optics_of"]


@cache
def datasheet(name: str) -> dict[str, Any]:
    """Values of the table `machine` of "<name>.toml" by key, without their sources.

    Every entry is a table with value, source and, where it has one, unit (always the SI unit of its dimension).
    """
    entries = read_toml("opticcl.fabrics", f"{name}.toml")["machine"]
    return {key: entry["value"] for key, entry in entries.items() if isinstance(entry, dict)}


@cache
def optics_of(name: str) -> OpticsTable:
    """The table `optics` of "<name>.toml"."""
    file = f"{name}.toml"
    return optics_table(name, read_toml("opticcl.fabrics", file)["optics"], f"opticcl/fabrics/{file}")


def control_plane(name: str, once_a_job: str, every_round: str) -> ControlPlane:
    """Control plane with the time once a job from the table `control` of "<name>.toml", 0 if it has none.

    Args:
        name: of the fabric.
        once_a_job: action before a job starts.
        every_round: action before every round.
    """
    entry = read_toml("opticcl.fabrics", f"{name}.toml").get("control", {}).get("once_a_job")
    if entry is None:
        return ControlPlane(once_a_job, 0.0, every_round, "")
    return ControlPlane(once_a_job, entry["value"], every_round, entry["source"])
