"""The plain data that rooms hand to each other. Imports NumPy alone.

A `Schedule` says who sends which piece to whom in which step, a `CircuitPlan` which light carries it. Rows are
columns: a step of two million transfers is five arrays. Everything big is lazy: a step, and the circuits of a step,
are pure functions of the step's index, made when somebody asks and forgotten afterwards.
"""

from opticcl.ir._common import IntArray
from opticcl.ir.circuits import Circuits, concatenate_circuits
from opticcl.ir.collective import Collective
from opticcl.ir.fabric import Fabric, Fault, Part, Resource, Usage
from opticcl.ir.plan import CircuitPlan
from opticcl.ir.schedule import Op, Schedule, Transfers, concatenate_transfers
from opticcl.ir.timeline import Timeline
from opticcl.ir.verdict import Verdict, Violation

__all__ = [
    "CircuitPlan",
    "Circuits",
    "Collective",
    "Fabric",
    "Fault",
    "IntArray",
    "Op",
    "Part",
    "Resource",
    "Schedule",
    "Timeline",
    "Transfers",
    "Usage",
    "Verdict",
    "Violation",
    "concatenate_circuits",
    "concatenate_transfers",
]
