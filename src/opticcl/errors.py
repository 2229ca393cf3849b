"""Errors that OptiCCL raises, in one tree::

OpticclError                 base: one clear line, exit code 2
|-- UnknownNameError         no fabric, collective, algorithm, engine, format or preset of that name
|-- ParameterError           a parameter is unknown, of the wrong dimension or out of range
|   `-- UnitError            the text is not a quantity of the required unit
|-- FabricError              the system has no machine of that shape
|-- UnsupportedError         this system cannot carry that collective or algorithm
|   `-- TooLargeError        it could, but the steps or circuits are more than are evaluated
|-- AlgorithmError           an algorithm or a circuit rule raised an exception while it made its schedule or circuits
|-- WorkloadError            a trace or a list of sizes cannot be read
|-- PlanFileError            a plan file is damaged or of another format
|-- OutputError              a file cannot be written
|-- StateFileError           the file in which the jobs of a machine are kept is damaged or of another machine
|-- InterruptedStudyError    a study or a sweep was interrupted; what is finished is kept (exit code 130)
|-- ControlError             a control unit gave up or a node died (exit code 1)
|-- ExecutionError           a rank failed while a schedule ran (exit code 1)
|-- BoundError               a time below the lower bound: an error of the model (exit code 1)
`-- VerificationError        the plan is wrong (exit code 1); carries the verdict
"""

from __future__ import annotations

__all__ = [
    "AlgorithmError",
    "BoundError",
    "ControlError",
    "ExecutionError",
    "FabricError",
    "InterruptedStudyError",
    "OpticclError",
    "OutputError",
    "ParameterError",
    "PlanFileError",
    "StateFileError",
    "TooLargeError",
    "UnitError",
    "UnknownNameError",
    "UnsupportedError",
    "VerificationError",
    "WorkloadError",
    "printable",
]


def printable(text: str, keep: str = "") -> str:
    r"""Text with every character escaped that cannot be printed, so that it cannot control a terminal.

    Every name and message that comes from a file passes through this function before it is shown.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb

    Args:
        text: any text.
        keep: characters that stay as they are, such as a newline between the lines of a message.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


class OpticclError(Exception):
    """Base of all errors that a user can cause; its text is one printable line.

    Attributes:
        exit_code: exit code of the command line: 2, the input is wrong.
        printed_by: rank that prints it, where all ranks of a group raise it.
    """

    exit_code = 2
    printed_by = 0

    def __str__(self) -> str:
        return printable(super().__str__(), keep="\n")


class UnknownNameError(OpticclError):
    """A name that no registry knows; the text gives the nearest known one."""


class ParameterError(OpticclError):
    """A parameter that is unknown, of the wrong kind or out of range."""


class UnitError(ParameterError):
    """A text that is not a quantity of the required unit."""


class FabricError(OpticclError):
    """A shape that this system cannot have; the text gives the nearest possible one."""


class UnsupportedError(OpticclError):
    """A collective or algorithm that this system cannot carry, with the reason."""


class TooLargeError(UnsupportedError):
    """Steps or circuits that are more than are evaluated; a search names the algorithm among what was not tried."""


class AlgorithmError(OpticclError):
    """An algorithm or a circuit rule, such as a plugin's, that raised an exception; its text names it and the step."""


class WorkloadError(OpticclError):
    """A trace or list of sizes that cannot be read, with the place and the reason."""


class PlanFileError(OpticclError):
    """A plan file that cannot be read, with the place and the reason."""


class OutputError(OpticclError):
    """A file that cannot be written."""


class StateFileError(OpticclError):
    """A state file of jobs that is damaged, of another machine or not readable."""


class InterruptedStudyError(OpticclError):
    """A study of a design space or a sweep that was interrupted; the text says where what is finished is kept."""

    exit_code = 130


class ControlError(OpticclError):
    """A control unit that gave up or a node that died; the text names it."""

    exit_code = 1


class ExecutionError(OpticclError):
    """A rank that failed or did not answer while a schedule ran; the text names rank, collective and step.

    Attributes:
        failed_rank: the rank that did not answer; None where it is not known.
    """

    exit_code = 1
    failed_rank: int | None = None


class BoundError(OpticclError):
    """A time below the lower bound: always an error of the model, never a good result."""

    exit_code = 1


class VerificationError(OpticclError):
    """The plan is wrong.

    Args:
        verdict: what is wrong with it; its text becomes the text of the error.
        about: what was judged; "" where the text does not name it.
    """

    exit_code = 1

    def __init__(self, verdict: object, about: str = "") -> None:
        super().__init__(f"{about}: {verdict}" if about else str(verdict))
        self.verdict = verdict
