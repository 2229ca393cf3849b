"""What steps and changes take on optical circuit switches that hold links, and the least time of any schedule on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, inf, isfinite

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.errors import ParameterError
from opticcl.ir import Circuits, Collective, Fabric, IntArray
from opticcl.simulate.latency import path_latency
from opticcl.units import Seconds

__all__ = ["ShiftLaw", "bound_apart_s", "bound_of_held_links", "bound_s", "shift_law"]

COLLECTIVES = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce")


@dataclass(frozen=True, slots=True)
class ShiftLaw:
    """What a step and a change take.

    Args:
        alpha_s: of a step [s].
        delta_s: of each link that a circuit passes [s].
        s_per_byte: of a link [s/byte].
        change_s: of a change of links [s].
        sums_s_per_byte: of adding what arrived, from one sender [s/byte].
        first_free: whether the first links stand from the start, whichever they are.
        stands: shifts whose links stand from the start, one a plane; (): none.
        gap_s: of each message of a step behind the first [s].
        fused: whether what arrives from several senders is added at once: it takes a third of the time for each arrival,
            and two thirds more.
    Raises: ParameterError: a negative time, or one that is no number.
    """

    alpha_s: Seconds
    delta_s: Seconds
    s_per_byte: float
    change_s: Seconds
    sums_s_per_byte: float = 0.0
    first_free: bool = False
    stands: tuple[int, ...] = ()
    gap_s: Seconds = 0.0
    fused: bool = False

    def __post_init__(self) -> None:
        for name in ("alpha_s", "delta_s", "s_per_byte", "change_s", "sums_s_per_byte", "gap_s"):
            value = getattr(self, name)
            if not value >= 0 or (name != "change_s" and not isfinite(value)):
                raise ParameterError(f"plan: {name}={value:g} is not a duration; try 0 or more")


def bound_s(
    collective: str, num_nodes: int, size_bytes: int, law: ShiftLaw, *, planes: int = 1
) -> tuple[Seconds, str, int]:
    """Least time of any schedule with barriers on links that all change at the same times, whatever shape they have.

    With q changes a node reaches at most C(t + q, q) k^t nodes over t links in all: t is cut into hops on each of the q + 1
    sets of links in order. So some block passes as many links as it takes to count N nodes, and the blocks of an all_to_all
    pass at least the sum over the N - 1 nearest. Every set of links has a step of its own; where a change takes no time, they
    may all be rounds of one, in line:

        first + min over q of q R + (q + 1) alpha + delta t(q) + beta V(q)

    Args:
        collective: one that `digit_shifts` does.
        num_nodes: nodes N [count].
        size_bytes: message of every rank [bytes].
        law: of steps and changes; `s_per_byte` is that of all planes together.
        planes: switches k [count].
    Returns: time [s], the term that dominates, and changes after the first [count].
    Source: ours; with q = 0 the Moore bound of a digraph of degree k.
    """
    if num_nodes == 1:
        return 0.0, "nothing to send", 0
    first = 0.0 if law.first_free or law.stands else law.change_s
    farthest, total = _reached(num_nodes, planes)
    many = 1 if law.change_s == inf else len(farthest)
    q = np.arange(many)
    others = (num_nodes - 1) / num_nodes
    volume = total[:many] / num_nodes if collective == "all_to_all" else others * (1 + (collective == "all_reduce"))
    changes_s = np.zeros(many) if many == 1 else q * law.change_s
    parts = {
        "changes of links": first + changes_s,
        "steps": np.where(law.change_s > 0, q + 1, 1) * law.alpha_s,
        "links to the farthest node": farthest[:many] * law.delta_s,
        "bytes through a port": volume * size_bytes * law.s_per_byte * np.ones(many),
    }
    seconds = sum(parts.values(), np.zeros(many))
    best = int(seconds.argmin())
    return float(seconds[best]), max(parts, key=lambda part: float(parts[part][best])), best


def bound_of_held_links(
    collective: Collective, fabric: Fabric, size_bytes: int, assumed: Assumptions, *, apart: bool
) -> tuple[Seconds, str] | None:
    """Least time on sets of links that stand one after the other, and the term that dominates; None where there are none.

    Args:
        collective: what is computed.
        fabric: on which machine.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        apart: whether links change one by one while others carry data, or data moves while other data is on its way.
    """
    one = Circuits.of(np.zeros(1), np.zeros(1), np.zeros(1), path=np.zeros((1, 1)))
    if collective.name not in COLLECTIVES or fabric.node_of_rank is not None or fabric.links_set(one) is None:
        return None
    law = shift_law(fabric, assumed)
    if assumed.configuration is not None:
        law = replace(law, first_free=True)  # what stands at the start may serve, whatever it is
    asked = collective.name, fabric.num_nodes, size_bytes, law
    planes = fabric.ports_per_node
    return bound_apart_s(*asked, planes=planes) if apart else bound_s(*asked, planes=planes)[:2]


def bound_apart_s(
    collective: str, num_nodes: int, size_bytes: int, law: ShiftLaw, *, planes: int = 1
) -> tuple[Seconds, str]:
    """Least time of any schedule on links that change one by one, while others carry data.

    A schedule that gives no port a second link has a graph of degree k; another one takes the time of a change at least.

    Args: collective, num_nodes, size_bytes, law, planes: as of `bound_s`.
    Returns: time [s], and the term that dominates.
    """
    first = 0.0 if law.first_free or law.stands else law.change_s
    still = replace(law, alpha_s=0.0, change_s=inf, first_free=True)
    by_links, _, _ = bound_s(collective, num_nodes, 0, still, planes=planes)
    by_bytes, _, _ = bound_s(collective, num_nodes, size_bytes, replace(still, delta_s=0.0), planes=planes)
    once_s, name = max((by_links, "links to the farthest node"), (by_bytes, "bytes through a port"))
    after_s, name = min((once_s, name), (law.change_s, "changes of links"))
    return first + after_s, name if after_s >= first else "changes of links"


@lru_cache(maxsize=64)
def _reached(num_nodes: int, planes: int) -> tuple[IntArray, IntArray]:
    """Links to the farthest node and to all nodes together, with 0, 1, ... changes up to where more bring nothing.

    Args:
        num_nodes: nodes N [count].
        planes: links that a node has at a time [count].
    """
    by_changes, others = list[tuple[int, int]](), num_nodes - 1
    while not by_changes or by_changes[-1][0] > 1:
        q, farthest, total, counted = len(by_changes), 0, 0, 0
        while counted < others:
            farthest += 1
            here = min(others - counted, comb(farthest + q, q) * planes**farthest)
            total, counted = total + farthest * here, counted + here
        by_changes.append((farthest, total))
    farthest_of, total_of = np.array(by_changes, np.int64).T
    return farthest_of, total_of


def shift_law(fabric: Fabric, assumed: Assumptions) -> ShiftLaw:
    """What steps of shifts and changes of links take on a machine, for `opticcl.plans.held_shifts` and `bound_s`.

    Args:
        fabric: optical circuit switches.
        assumed: time assumptions.
    """
    law, links = path_latency(fabric, assumed), fabric.num_machine_nodes * fabric.ports_per_node
    alone = _path_s(fabric, assumed, [0])
    relay = _path_s(fabric, assumed, [0, links]) - alone
    control = fabric.shortest_control_s if assumed.control == "charged" else 0.0
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


def _path_s(fabric: Fabric, assumed: Assumptions, hops: list[int]) -> float:
    """Latency of one circuit over these hops [s]."""
    one = Circuits.of(np.zeros(1), np.zeros(1), np.zeros(1), path=np.array([hops]))
    return float(path_latency(fabric, assumed).of_circuits(one)[0])


def _shifts_standing(fabric: Fabric, assumed: Assumptions) -> tuple[int, ...]:
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
