"""How much an engine may play before it refuses."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

from opticcl.errors import ParameterError

__all__ = ["Limit", "Progress"]

Progress = Callable[[str, int, int], None]


class Limit:
    """Counts events down to none left.

    Args:
        engine: its name, for messages.
        max_events: what it may play [count].
        least_a_transfer: events that every transfer takes at least [count].
        instead: what else one can do, for messages.
    Raises: ParameterError: no number, or not one event allowed.
    """

    def __init__(
        self,
        engine: str,
        max_events: int,
        least_a_transfer: int = 1,
        instead: str = "let the closed form tell (--engine closed_form)",
    ) -> None:
        if not isinstance(max_events, Integral) or max_events < 1:
            raise ParameterError(f"{engine}: max_events={max_events} is no whole number of 1 or more; try 1000000")
        self.engine: str = engine
        self.instead: str = instead
        self.max_events: int = max_events
        self.left: int = max_events
        self.least_a_transfer: int = least_a_transfer

    def expect(self, events: int) -> None:
        """Refuse what is known to take more.

        Raises: ParameterError.
        """
        if events > self.left:
            raise ParameterError(
                f"{self.engine}: about {events + self.max_events - self.left:,} events or more, and {self.max_events:,} "
                f"are allowed; lift that with max_events=... (--max-events of simulate), or {self.instead}"
            )

    def spend(self, events: int) -> None:
        """Count what was played."""
        self.expect(events)
        self.left -= events
