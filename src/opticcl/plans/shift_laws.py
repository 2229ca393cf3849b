"""Shifts held on the links of an optical circuit switch, as a law of time and as an algorithm for a message."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.errors import TooLargeError
from opticcl.fabrics.ocs import Ocs
from opticcl.ir import Circuits, Fabric
from opticcl.ir.limits import limit
from opticcl.plans.held_shifts import HeldShifts, ShiftLaw, fastest_held
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.simulate.latency import path_latency

__all__ = ["MOST_NODES", "held_algorithm", "held_shifts", "shift_law"]

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
    found = held_shifts(fabric, wanted, size_bytes, assumed) if isfinite(shift_law(fabric, assumed).change_s) else None
    if found is None:
        return None
    if (
        found.name == "digit_shifts" and found.changes and found.changes == found.steps - 1
    ):  # every step has links of its own
        return f"digit_shifts:radices={'x'.join(map(str, found.radices))}"
    return found.algorithm


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


def shift_law(fabric: Ocs, assumed: Assumptions) -> ShiftLaw:
    """What steps of shifts and changes of links take on a machine, for `opticcl.plans.held_shifts`.

    Args:
        fabric: optical circuit switches.
        assumed: time assumptions.
    """
    law, links = path_latency(fabric, assumed), fabric.nodes * fabric.planes
    alone = _path_s(fabric, assumed, [0])
    relay = _path_s(fabric, assumed, [0, links]) - alone
    control = fabric.control if assumed.control == "charged" else 0.0
    each, on_change = _charged(fabric.reconfiguration_s, control, assumed)
    passes = {"fused": 3, "chain": 3, "none": 0}[assumed.compute]
    return ShiftLaw(
        alpha_s=alone - relay + law.message_gap_s + each,
        delta_s=relay,
        s_per_byte=8 / fabric.node_rate_bits_per_s,
        change_s=on_change,
        sums_s_per_byte=passes / assumed.memory_bytes_per_s,
        first_free=assumed.initial == "warm",
        stands=_shifts_standing(fabric, assumed),
        gap_s=law.message_gap_s,
        fused=assumed.compute == "fused",
    )


def _charged(change_s: float, control_s: float, assumed: Assumptions) -> tuple[float, float]:
    """What every step is charged, and what a change is charged in addition [s].

    Args:
        change_s: of a change of links [s].
        control_s: of an exchange with the controller [s].
        assumed: time assumptions.
    """
    change_each, control_each = (
        charge == "every_step" for charge in (assumed.reconfiguration_charge, assumed.control_charge)
    )
    each = change_s * change_each + control_s * control_each
    whole = change_s + control_s
    if assumed.control_order == "beside_setting":
        whole = max(change_s, control_s)
        each = whole if change_each and control_each else each
    return each, whole - each


def _path_s(fabric: Ocs, assumed: Assumptions, hops: list[int]) -> float:
    """Latency of one circuit over these hops [s]."""
    one = Circuits.of(np.zeros(1), np.zeros(1), np.zeros(1), path=np.array([hops]))
    return float(path_latency(fabric, assumed).of_circuits(one)[0])


def _shifts_standing(fabric: Ocs, assumed: Assumptions) -> tuple[int, ...]:
    """The shift on each plane whose links all stand at the start; () where some plane has another setting."""
    start = assumed.configuration
    links = None if start is None or start.links is None else fabric.links_set(start.links)
    if links is None or not len(links[0]):
        return ()
    n, k = fabric.num_nodes, fabric.ports_per_node
    begin, plane = np.divmod(links[0], k)
    shift = (links[1] // k - begin) % n
    each = [np.unique(shift[plane == number]) for number in range(k)]
    if any(len(one) != 1 for one in each) or len(np.unique(links[0])) < n * k:
        return ()
    return tuple(int(one[0]) for one in each)
