"""What the judge says."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict", "Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Args:
        rule: its name.
        step: step index, -1 at the end of the schedule.
        round: round within the step, -1 if it is none.
        where: node, chunk, resource and wavelength, in words.
        expected: what the rule demands.
        found: what the plan does.
        count: how often the rule is broken in the same way in that round.
    """

    rule: str
    step: int
    round: int
    where: str
    expected: str
    found: str
    count: int = 1

    def __str__(self) -> str:
        at = (
            "at the end" if self.step < 0 else f"step {self.step}" + (f" round {self.round}" if self.round >= 0 else "")
        )
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.rule}: {at}, {self.where}: expected {self.expected}, found {self.found}{times}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge found.

    Args:
        violations: empty if the plan is right.
        transfers: transfers looked at [count].
        circuits: circuits looked at [count].
        chunks: chunks followed through all steps [count].
        exhaustive: True if every chunk and every step was looked at, False if a seeded sample was.
        notes: totals and remarks, a line each.
    """

    violations: tuple[Violation, ...]
    transfers: int
    circuits: int
    chunks: int
    exhaustive: bool
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.violations

    def __repr__(self) -> str:
        return f"<Verdict {str(self).partition(chr(10))[0]}>"

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        from opticcl.units import counted

        looked = f"{counted(self.transfers, 'transfer')}, {counted(self.circuits, 'circuit')}"
        if self.chunks:  # none where only the light of several jobs is judged
            scope = "all chunks" if self.exhaustive else "a seeded sample of the chunks"
            looked += f", {counted(self.chunks, 'chunk')} followed ({scope})"
        wrong = counted(len(self.violations), "violation")
        head = f"verified: {looked}" if self.ok else f"refused: {wrong} in {looked}"
        return "\n".join([head, *(f"  {said}" for said in (*self.violations, *self.notes))])

    def raise_if_bad(self) -> Verdict:
        """Itself, if the plan is right.

        Raises: VerificationError: it is not.
        """
        if not self.ok:
            from opticcl.errors import VerificationError

            raise VerificationError(self)
        return self
