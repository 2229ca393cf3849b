"""Everything OptiCCL refuses, in one tree::

OpticclError                 base: one clear line, exit code 2
|-- UnknownNameError         no fabric, collective, algorithm, engine or preset of that name
|-- ParameterError           a parameter is unknown, of the wrong dimension or out of range
|   `-- UnitError            the text is not a quantity of the unit that is asked for
|-- FabricError              no such shape of this system exists
|-- UnsupportedError         this system cannot carry that collective or algorithm
|-- WorkloadError            a trace or a list of sizes cannot be read
|-- ProgrammeError           a programme file is damaged or none of ours
|-- OutputError              a file cannot be written
|-- ControlError             a control unit gave up, a node died, or the state of jobs is damaged (exit code 1)
|-- BoundError               a time below the lower bound came out: an error of ours
`-- VerificationError        the plan is wrong (exit code 1); carries the verdict
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opticcl.ir import Verdict

__all__ = [
    "BoundError",
    "ControlError",
    "FabricError",
    "OpticclError",
    "OutputError",
    "ParameterError",
    "ProgrammeError",
    "UnitError",
    "UnknownNameError",
    "UnsupportedError",
    "VerificationError",
    "WorkloadError",
]


class OpticclError(Exception):
    """Base of all errors that a user can cause; its text is one line.

    Attributes:
        exit_code: what the command line answers with: 2, the input is wrong.
    """

    exit_code = 2


class UnknownNameError(OpticclError):
    """A name that no registry knows; the text gives the nearest known one."""


class ParameterError(OpticclError):
    """A parameter that is unknown, of the wrong kind or out of range."""


class UnitError(ParameterError):
    """A text that is not a quantity of the unit that is asked for."""


class FabricError(OpticclError):
    """A shape that this system cannot have; the text gives the nearest it can."""


class UnsupportedError(OpticclError):
    """A collective or algorithm that this system cannot carry, with the reason."""


class WorkloadError(OpticclError):
    """A trace or list of sizes that cannot be read, with what is wrong and where."""


class ProgrammeError(OpticclError):
    """A programme file that cannot be read, with what is wrong and where."""


class OutputError(OpticclError):
    """A file that cannot be written."""


class ControlError(OpticclError):
    """A control unit that gave up, a node that died, or a state file that is damaged; one line that names it."""

    exit_code = 1


class BoundError(OpticclError):
    """A time below the lower bound: never a good result, always an error of the model."""

    exit_code = 1


class VerificationError(OpticclError):
    """The plan is wrong; `verdict` says where."""

    exit_code = 1

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict
