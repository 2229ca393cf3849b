"""Checks of the engines: a limit to the events that they simulate, the lower bound of their times, what has a programme."""

from __future__ import annotations

from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Timeline
from opticcl.ir.limits import limit

__all__ = [
    "MOST_CIRCUITS",
    "EventLimit",
    "refuse_below",
    "refuse_below_bound",
    "refuse_large_programme",
    "refuse_links",
]

MOST_CIRCUITS = limit("guards.MOST_CIRCUITS")

_ROUNDING = 1e-9  # relative; a sum of many steps may end this far below the bound


class EventLimit:
    """Counts simulated events down to zero.

    Args:
        engine: name for messages.
        max_events: events that may be simulated [count].
        per_transfer: events that each transfer takes at least [count].
        instead: alternative that messages suggest.
    """

    def __init__(
        self,
        engine: str,
        max_events: int,
        per_transfer: int = 1,
        instead: str = "use the closed form (--engine closed_form)",
    ) -> None:
        self.engine: str = engine
        self.instead: str = instead
        self.max_events: int = max_events
        self.left: int = max_events
        self.per_transfer: int = per_transfer

    def require(self, events: int) -> None:
        """Refuse a simulation that is known to take this many more events.

        Raises: ParameterError: more than are left.
        """
        if events > self.left:
            raise ParameterError(
                f"{self.engine}: about {events + self.max_events - self.left:,} events or more, and {self.max_events:,} "
                f"are allowed; raise max_events=... (--max-events of simulate), or {self.instead}"
            )

    def spend(self, events: int) -> None:
        """Subtract simulated events.

        Raises: ParameterError: more than are left.
        """
        self.require(events)
        self.left -= events


def refuse_below_bound(plan: CircuitPlan, timeline: Timeline, engine: str, tolerance: float = 0.0) -> None:
    """Raise an error for a time below the lower bound, which is a defect of the engine.

    Args:
        plan: what was simulated.
        timeline: its time, with its lower bound.
        engine: name for the message.
        tolerance: part of the bytes of a transfer that the engine may leave out.
    Raises: BoundError: the time is below the bound.
    """
    refuse_below(
        timeline.total_s,
        timeline.lower_bound_s,
        f"{plan.schedule.name} on {plan.fabric.name}",
        tolerance,
        f" by the {engine} engine",
    )


def refuse_below(total_s: float, lower_bound_s: float, what: str, tolerance: float = 0.0, by: str = "") -> None:
    """Raise an error for a time below its lower bound, which is a defect of what computed it.

    Args:
        total_s: the time [s].
        lower_bound_s: its lower bound [s].
        what: takes that time, for the message.
        tolerance: part by which it may be shorter.
        by: what computed it, for the message.
    Raises: BoundError: the time is below the bound.
    """
    if total_s < lower_bound_s * (1 - tolerance - _ROUNDING):
        raise BoundError(
            f"{what}: {total_s:.6g} s{by} is below the lower bound of {lower_bound_s:.6g} s; "
            "please report this with the command that you ran"
        )


def refuse_links(plan: CircuitPlan) -> None:
    """Refuse a packet fabric.

    Raises: UnsupportedError: its links are shared by packets.
    """
    if plan.fabric.is_packet_switched:
        raise UnsupportedError(
            f"programme: packets share the links of {plan.fabric.name}, which has no circuits; "
            "try a trace (--trace) or the load of its links (--links)"
        )


def refuse_large_programme(num_circuits: int, name: str) -> None:
    """Refuse more circuits than the tables of a programme hold.

    Args:
        num_circuits: circuits [count].
        name: of the fabric.
    Raises: UnsupportedError: too many.
    """
    if num_circuits > MOST_CIRCUITS:
        raise UnsupportedError(
            f"programme: {num_circuits:,} circuits on {name}, and a programme holds {MOST_CIRCUITS:,}; take fewer nodes"
        )
