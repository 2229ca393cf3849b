"""Numbers that bound what is evaluated: the only ones, so that a test can move them and see that no answer moves.

A module takes its limits from here by name. A number that a kernel reads stays in the file of the kernel, since numba compiles
a kernel again when its own file changes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = [
    "CHUNKS_CARRIED",
    "EVENTS_TOGETHER",
    "LIMITS",
    "MOST_LISTED",
    "ROUTES_AT_ONCE",
    "ROUTES_IN_PIECES",
    "ROUTES_LISTED",
    "TRANSFERS_LISTED",
    "Limit",
    "limit",
]

Kind = Literal["refusal", "effort", "memory", "range"]
REFUSAL: Kind = "refusal"
EFFORT: Kind = "effort"
MEMORY: Kind = "memory"
RANGE: Kind = "range"


class Limit(NamedTuple):
    """A number that bounds what is evaluated.

    Args:
        value: the number.
        unit: what it counts.
        kind: refusal: what is larger is refused, with the number; effort: what a search or a bound tries, so that another
            number may choose another plan; memory: what is kept, or evaluated at once, or done in one of two ways that give
            the same; range: of a type of number, which no answer reaches.
        bounds: what it bounds, after the unit.
    """

    value: int
    unit: str
    kind: Kind
    bounds: str


# fmt: off
LIMITS: dict[str, Limit] = {
    "limits.CHUNKS_CARRIED": Limit(1 << 32, "chunks", REFUSAL, "that all transfers carry together, where every one is played"),
    "limits.EVENTS_TOGETHER": Limit(1 << 26, "transfers", MEMORY, "of single chunks that are sorted at once: 512 MB"),
    "limits.MOST_LISTED": Limit(1 << 21, "transfers", MEMORY, "of a step that are listed where a few define all: 40 MB"),
    "limits.ROUTES_LISTED": Limit(1 << 21, "routes", MEMORY, "of a step that are evaluated as a whole: some 200 MB"),
    "limits.ROUTES_AT_ONCE": Limit(1 << 18, "routes", MEMORY, "of a larger step that are evaluated at once"),
    "limits.ROUTES_IN_PIECES": Limit(1 << 16, "routes", MEMORY, "evaluated as a whole, where straight pieces suffice"),
    "limits.TRANSFERS_LISTED": Limit(1 << 26, "transfers", REFUSAL, "of a step of phases that are listed: some 2 GB"),
    "candidate.MOST_DISTINCT_STEPS": Limit(1 << 14, "steps", EFFORT, "of a schedule that a search evaluates to the end"),
    "compare.MOST_STEP_BYTES": Limit(640000000, "bytes", MEMORY, "of the steps and circuits of a fabric that are kept"),
    "direct_parts.MOST_PARTS": Limit(256, "parts", EFFORT, "of a block, in a search"),
    "graph_schedule.MOST_BITS": Limit(1 << 26, "bits", REFUSAL, "of the tables of a custom collective"),
    "held_shifts.ALL_SHIFTS": Limit(256, "nodes", EFFORT, "up to which every shift may be held"),
    "held_shifts.KEPT_NODES": Limit(8192, "nodes", MEMORY, "whose factorisations are kept: 30 MB a collective"),
    "overlap.MOST_STEPS": Limit(1 << 14, "steps", REFUSAL, "of a schedule"),
    "planner.MANY": Limit(512, "nodes", EFFORT, "above which break-evens are searched within a decade"),
    "published.MOST_BYTES": Limit(1 << 26, "bytes", REFUSAL, "of a file"),
    "published.MOST_STEPS": Limit(1 << 12, "steps", REFUSAL, "of a published schedule"),
    "published.MOST_NODES": Limit(1 << 12, "nodes", REFUSAL, "of a published case"),
    "published.MOST_CASES": Limit(1 << 12, "cases", REFUSAL, "of a published matrix"),
    "shift_laws.MOST_NODES": Limit(8192, "nodes", EFFORT, "up to which a search plans held shifts too"),
    "sizes.MOST_SIZES": Limit(1000, "sizes", REFUSAL, "of one sweep"),
    "streams.MOST_PIECES": Limit(1 << 11, "pieces", EFFORT, "that are tried"),
    "streams.MOST_ROWS": Limit(1 << 20, "pieces", EFFORT, "times nodes of a plan that is tried: ten seconds"),
    "streams.LARGE_NODES": Limit(1 << 14, "nodes", EFFORT, "above which one number of pieces is tried, a piece a slot"),
    "streams.MOST_DEVICES": Limit(1 << 26, "devices", EFFORT, "of a machine up to which each is followed"),
    "switch_plans.MOST_STEPS": Limit(512, "steps", EFFORT, "of a schedule that is divided among switches"),
}
"""Name -> limit; the name is that of the module and of its constant."""
# fmt: on


def limit(name: str) -> int:
    """The value of a limit.

    Args: name: in `LIMITS`.
    """
    return LIMITS[name].value


CHUNKS_CARRIED = limit("limits.CHUNKS_CARRIED")
EVENTS_TOGETHER = limit("limits.EVENTS_TOGETHER")
MOST_LISTED = limit("limits.MOST_LISTED")
ROUTES_LISTED = limit("limits.ROUTES_LISTED")
ROUTES_AT_ONCE = limit("limits.ROUTES_AT_ONCE")
ROUTES_IN_PIECES = limit("limits.ROUTES_IN_PIECES")
TRANSFERS_LISTED = limit("limits.TRANSFERS_LISTED")
