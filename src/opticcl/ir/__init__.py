"""The plain data that packages exchange. Imports NumPy alone.

A `Schedule` has the transfers of every step, a `CircuitPlan` the circuits that carry them. Rows are
columns: a step of two million transfers is five arrays. Everything big is lazy: a step, and the circuits of a step,
are pure functions of the step's index, computed on demand; the last ones are kept within a bound, see `step_cache`.
"""

from opticcl.ir._common import IntArray, row_keys, same_columns
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
    "no_progress",
    "row_keys",
    "same_columns",
]
