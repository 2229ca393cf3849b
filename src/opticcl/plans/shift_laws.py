"""Shifts held on the links of an optical circuit switch, as an algorithm for a message."""

from __future__ import annotations

from math import inf, isfinite

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.errors import TooLargeError
from opticcl.fabrics.ocs import Ocs
from opticcl.ir import Fabric
from opticcl.ir.limits import limit
from opticcl.plans.held_shifts import HeldShifts, fastest_held
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.simulate.held_links import shift_law

__all__ = ["MOST_NODES", "held_algorithm", "held_shifts"]

MOST_NODES = limit("shift_laws.MOST_NODES")


def held_algorithm(fabric: Fabric, wanted: Request, size_bytes: float, assumed: Assumptions) -> str | None:
    """The fastest `digit_shifts` or `balanced_digits` for a message, with its links; None on fabrics without links to hold.

    Times of messages one after the other are those of one with their mean size, as often: the law is linear in the size.

    Args:
        fabric: that would run it.
        wanted: collective and root.
        size_bytes: message of every rank, or the mean of several [bytes].
        assumed: time assumptions.
    Raises: TooLargeError: more nodes than `MOST_NODES`.
    """
    if not isinstance(fabric, Ocs) or wanted.name not in COLLECTIVES:
        return None
    if fabric.num_nodes > MOST_NODES:
        raise TooLargeError(
            f"digit_shifts with held links: {fabric.num_nodes:,} nodes; a search plans up to {MOST_NODES:,}"
        )
    held = held_shifts(fabric, wanted, size_bytes, assumed) if isfinite(shift_law(fabric, assumed).change_s) else None
    if held is None:
        return None
    if (
        held.name == "digit_shifts" and held.changes and held.changes == held.steps - 1
    ):  # every step has links of its own
        return f"digit_shifts:radices={'x'.join(map(str, held.radices))}"
    return held.algorithm


def held_shifts(
    fabric: Fabric, wanted: Request, size_bytes: float, assumed: Assumptions, *, time_limit_s: float = inf
) -> HeldShifts | None:
    """The fastest segments of shifts for a message; None on fabrics without links to hold.

    Args:
        fabric: that would run them.
        wanted: collective and root.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        time_limit_s: after which the best so far is returned [s].
    """
    if not isinstance(fabric, Ocs) or wanted.name not in COLLECTIVES:
        return None
    law = shift_law(fabric, assumed)
    return fastest_held(wanted.name, fabric.num_nodes, size_bytes, law, planes=fabric.planes, time_limit_s=time_limit_s)
