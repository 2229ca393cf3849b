"""The plain data that packages exchange. Its modules import NumPy alone, and are imported when a name of theirs is wanted.

A `Schedule` has the transfers of every step, a `CircuitPlan` the circuits that carry them. Rows are
columns: a step of two million transfers is five arrays. Everything big is lazy: a step, and the circuits of a step,
are pure functions of the step's index, computed on demand; the last ones are kept within a bound, see `step_cache`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of typing
if TYPE_CHECKING:
    from typing import Any

    from opticcl.ir._common import IntArray, mixed_bits, numbered, row_keys, same_columns
    from opticcl.ir.circuit_plan import CircuitPlan
    from opticcl.ir.circuits import Circuits, concatenate_circuits
    from opticcl.ir.collective import Collective
    from opticcl.ir.fabric import CellGrid, ControlPlane, Fabric, FabricNumbers, Fault, Part, Resource, Usage
    from opticcl.ir.occupied import Condition, Occupied, Options, PartKind, PartUse
    from opticcl.ir.progress import ProgressCallback, no_progress
    from opticcl.ir.schedule import Schedule
    from opticcl.ir.timeline import Timeline
    from opticcl.ir.transfers import Op, Transfers, concatenate_transfers
    from opticcl.ir.verdict import Verdict, Violation

__all__ = [
    "CellGrid",
    "CircuitPlan",
    "Circuits",
    "Collective",
    "Condition",
    "ControlPlane",
    "Fabric",
    "FabricNumbers",
    "Fault",
    "IntArray",
    "Occupied",
    "Op",
    "Options",
    "Part",
    "PartKind",
    "PartUse",
    "ProgressCallback",
    "Resource",
    "Schedule",
    "Timeline",
    "Transfers",
    "Usage",
    "Verdict",
    "Violation",
    "concatenate_circuits",
    "concatenate_transfers",
    "mixed_bits",
    "no_progress",
    "numbered",
    "row_keys",
    "same_columns",
]

_HOME = {
    "IntArray": "_common",
    "mixed_bits": "_common",
    "numbered": "_common",
    "row_keys": "_common",
    "same_columns": "_common",
    "CircuitPlan": "circuit_plan",
    "Circuits": "circuits",
    "concatenate_circuits": "circuits",
    "Collective": "collective",
    "CellGrid": "fabric",
    "ControlPlane": "fabric",
    "Fabric": "fabric",
    "FabricNumbers": "fabric",
    "Fault": "fabric",
    "Part": "fabric",
    "Resource": "fabric",
    "Usage": "fabric",
    "Condition": "occupied",
    "Occupied": "occupied",
    "Options": "occupied",
    "PartKind": "occupied",
    "PartUse": "occupied",
    "ProgressCallback": "progress",
    "no_progress": "progress",
    "Schedule": "schedule",
    "Timeline": "timeline",
    "Op": "transfers",
    "Transfers": "transfers",
    "concatenate_transfers": "transfers",
    "Verdict": "verdict",
    "Violation": "verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'opticcl.ir' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"opticcl.ir.{_HOME[name]}"), name)
    return value
