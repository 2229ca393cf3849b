"""Verdict of the verifier on a plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from opticcl.picture import Plotted

__all__ = ["VERDICTS", "VERIFIED", "Judgement", "Verdict", "Violation"]

Judgement = Literal["right", "wrong", "not_judged"]
"""What a verifier finds, in a word."""

VERIFIED: dict[Judgement, bool | None] = {"right": True, "wrong": False, "not_judged": None}
"""A verdict -> value of a field `verified` or `ok` of a record."""

VERDICTS: dict[Judgement, str] = {"right": "yes", "wrong": "NO", "not_judged": "not judged"}
"""A verdict -> cell of a column that is headed verified."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Args:
        rule: name of the rule.
        step: step index, -1 at the end of the schedule.
        round: round within the step, -1 if the violation concerns none.
        where: node, chunk, resource and wavelength, in words.
        expected: what the rule requires.
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
class Verdict(Plotted):
    """Result of a verification.

    Args:
        violations: empty if the plan is right.
        transfers: transfers checked [count].
        circuits: circuits checked [count].
        chunks: chunks followed through all steps [count].
        exhaustive: True if every chunk and every step was judged, False if a seeded sample was.
        notes: totals and remarks, a line each.
        how: how the chunks were judged: every chunk followed, a checked symmetry, or a sample.
        emulated: whether light was followed through the elements of the machine, as a second judge.
    """

    violations: tuple[Violation, ...]
    transfers: int
    circuits: int
    chunks: int
    exhaustive: bool
    notes: tuple[str, ...] = ()
    how: str = "every chunk followed"
    emulated: bool = False

    @property
    def ok(self) -> bool:
        """Whether everything was judged and no rule is broken."""
        return self.judged and not self.violations

    @property
    def verdict(self) -> Judgement:
        """The verdict in a word."""
        return "right" if self.ok else "wrong" if self.judged else "not_judged"

    @property
    def judged(self) -> bool:
        """Whether everything was judged; a sample that finds nothing wrong is no verdict."""
        refused = any(violation.rule != "not_judged" for violation in self.violations)
        return refused or (self.exhaustive and not self.violations)

    def __repr__(self) -> str:
        return f"<Verdict {str(self).partition(chr(10))[0]}>"

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        from opticcl.units import counted

        checked = f"{counted(self.transfers, 'transfer')}, {counted(self.circuits, 'circuit')}"
        if self.chunks:  # zero where only the circuits of several jobs are checked
            scope = self.how if self.exhaustive else "a seeded sample"
            checked += f", {counted(self.chunks, 'chunk')} ({scope})"
        wrong = counted(len(self.violations), "violation")
        head = f"verified: {checked}" if self.ok else f"refused: {wrong} in {checked}"
        head = head if self.judged else f"not judged: {checked}"
        return "\n".join([head, *(f"  {line}" for line in (*self.violations, *self.notes))])

    def _repr_html_(self) -> str:
        from opticcl.units import html_table

        head = ("rule", "step", "round", "where", "expected", "found", "times")
        rows = [
            (v.rule, str(v.step), str(v.round), v.where, v.expected, v.found, str(v.count)) for v in self.violations
        ]
        return html_table(head if rows else (), rows, [str(self).partition("\n")[0], *self.notes])

    def record(self) -> dict[str, Any]:
        """The verdict as plain data for JSON."""
        return {
            "verdict": self.verdict,
            "ok": VERIFIED[self.verdict],
            "violations": [asdict(violation) for violation in self.violations],
            "checked": {
                "transfers": self.transfers,
                "circuits": self.circuits,
                "chunks": self.chunks,
                "exhaustive": self.exhaustive,
                "how": self.how,
                "emulated": self.emulated,
            },
            "notes": list(self.notes),
        }

    def raise_if_bad(self, about: str = "") -> Verdict:
        """The verdict itself, if the plan is right.

        Args: about: what was judged, for the error; "" where the caller says it.
        Raises: VerificationError: it is not.
        """
        if not self.ok:
            from opticcl.errors import VerificationError

            raise VerificationError(self, about)
        return self
