"""Plans whose routes come some at a time from the rounds that a test gives."""

from collections.abc import Iterator

from opticcl.ir import CircuitPlan, Circuits

__all__ = ["StreamedPlan"]


class StreamedPlan(CircuitPlan):
    """A plan whose rounds have a method `stream`: step -> circuits of its only round, some at a time."""

    def stream(self, i: int) -> Iterator[Circuits]:
        """Circuits of step i."""
        found: Iterator[Circuits] = self.rounds.stream(i)  # type: ignore[attr-defined]
        return found
