"""Verdict on the times of a programme."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["TIME_LAWS", "TimeVerdict", "TimeViolation"]

TIME_LAWS = {
    "too_short": "a circuit must stand for the latency of its path and for its bytes",
    "off_slot": "a circuit starts with a slot",
    "set_in_flight": "a device keeps its setting while light passes it, and takes its setting time to change",
    "unset_at_start": "cold devices are set before their first light",
    "sent_before_there": "data is sent once it has arrived and been summed",
    "overwritten_before_sent": "a chunk stays as it is until it has been sent",
    "summed_too_fast": "one memory computes the sums of a rank",
    "overlap": "circuits never exceed the capacity of a resource",
    "control_late": "circuits are set up by a control exchange after their data is ready",
    "total_too_small": "the total is the last event",
    "never_sent": "every transfer has a circuit",
}
"""Laws of time that a programme must obey, by name."""


@dataclass(frozen=True, slots=True)
class TimeViolation:
    """A broken law.

    Args:
        law: key of `TIME_LAWS`.
        step: step index.
        round: round within the step, -1 if the violation concerns none.
        where: circuit, device or rank, in words.
        missing_s: time by which the law is missed [s].
        count: violations of this law in that round; this one is the largest.
    """

    law: str
    step: int
    round: int
    where: str
    missing_s: float
    count: int = 1

    def __str__(self) -> str:
        from opticcl.units import format_seconds

        at = f"step {self.step}" + (f" round {self.round}" if self.round >= 0 else "")
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.law}: {at}, {self.where}: {TIME_LAWS[self.law]}; {format_seconds(self.missing_s)} missing{times}"


@dataclass(frozen=True, slots=True)
class TimeVerdict:
    """Result of a verification of times.

    Args:
        violations: empty if the programme is right.
        circuits: rows of circuits checked, with repeats [count].
        uses: uses of device settings checked [count].
        changes: changes of device settings, with repeats [count].
        total_s: time of the plan [s].
        idle_s: part of it in which no circuit carries data [s].
        receive_buffer_bytes: largest receive buffer that a rank needs beside its data, where buffers are separate [bytes].
    """

    violations: tuple[TimeViolation, ...]
    circuits: int
    uses: int
    changes: int
    total_s: float
    idle_s: float
    receive_buffer_bytes: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether no law is broken."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        from opticcl.units import counted

        checked = f"{counted(self.circuits, 'circuit')}, {counted(self.uses, 'use')} of devices"
        wrong = counted(len(self.violations), "violation")
        head = f"times verified: {checked}" if self.ok else f"times refused: {wrong} in {checked}"
        return "\n".join([head, *(f"  {violation}" for violation in self.violations)])

    def record(self) -> dict[str, Any]:
        """The verdict as plain data for JSON."""
        return {
            "ok": self.ok,
            "violations": [asdict(violation) for violation in self.violations],
            "circuits": self.circuits,
            "uses": self.uses,
            "changes": self.changes,
            "total_s": self.total_s,
            "idle_s": self.idle_s,
            "receive_buffer_bytes": self.receive_buffer_bytes,
        }
