"""RAMP-x: every collective in at most four steps, one for each way in which subgroups of nodes can differ.

Two movements make all of it, over the subgroups of `_ramp_maps`. Spreading goes through steps 1 to 4: to each peer goes the
part of my range that has the peer's digit. Collecting goes through steps 4 to 1: each peer gets the whole range that I have.

    reduce_scatter   spread, adding up                 all_gather   collect
    all_to_all       spread, handing on side by side   all_reduce   spread, adding up; collect
    scatter          spread, from the root alone       gather       collect, to the root alone
    barrier          exchange everything, adding up    reduce       spread, adding up; collect, to the root alone
    broadcast        a pipelined tree of split light, see `_ramp_broadcast`, or, where light cannot be split, spread from the
                     root alone; collect

Source: RAMP sections 5, 6.1, table 8.
Reading: "all-gather" sizes in table 8 are those of the buffer after each step, all others are bytes to one peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import needs_whole, register_algorithm
from opticcl.schedule._ramp_broadcast import STAGES, pipelined_broadcast
from opticcl.schedule._ramp_maps import Geometry, Variant, active_steps, geometry, has_field

__all__ = ["phases", "ramp"]

_SPREAD = {
    "all_reduce": Op.REDUCE,
    "reduce_scatter": Op.REDUCE,
    "reduce": Op.REDUCE,
    "barrier": Op.REDUCE,
    "all_to_all": Op.MOVE,
    "scatter": Op.COPY,
    "broadcast": Op.COPY,
}
_COLLECT = ("all_reduce", "all_gather", "gather", "reduce", "broadcast")
_FROM_ROOT, _TO_ROOT = ("scatter", "broadcast"), ("gather", "reduce")
_MOST_STAGES = 4096


def phases(maps: Geometry, collective: str, whole: bool = False) -> tuple[int, ...]:
    """Which of the steps 1 to 4 each step of a schedule is: spreading 1, 2, 3, 4, collecting 4, 3, 2, 1."""
    active = active_steps(maps)
    collects = collective in _COLLECT and not whole
    return active * (collective in _SPREAD) + active[::-1] * collects


def accepts(
    collective: Request, fabric: Fabric, variant: str = "auto", whole: bool = False, stages: int | None = STAGES
) -> str | None:
    """None, or the reason why not."""
    if reason := needs_whole(fabric, "ramp"):
        return reason
    if collective.name not in (*_SPREAD, *_COLLECT):
        return f"it has no {collective.name}"
    if whole and collective.name not in ("all_reduce", "barrier"):
        return f"whole messages are exchanged in an all_reduce or a barrier, not in a {collective.name}"
    if stages is not None and not 1 <= stages <= _MOST_STAGES:
        return f"stages={stages} is neither none nor in 1 to {_MOST_STAGES}"
    x, devices = fabric.parameters["groups"], fabric.parameters["wavelengths"]
    if variant == "field" and not has_field(x, devices):
        return f"no field of order {x} with more than {devices // x} non-zero elements; try variant=modular"
    return None


def _variants(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    """Up to 128 stages, powers of four come within 13 % of the best; whole messages win where they are small."""
    if collective.name == "broadcast":
        trees: tuple[dict[str, Any], ...] = ({"stages": 1}, {"stages": 4}, {}, {"stages": 64})
        return trees if fabric.parameters.get("subnet") != "route_switch" else (*trees, {"stages": None})
    return ({}, {"whole": True}) if collective.name == "all_reduce" else ({},)


@register_algorithm("ramp", accepts, _variants)
def ramp(
    collective: Request, fabric: Fabric, *, variant: Variant = "auto", whole: bool = False, stages: int | None = STAGES
) -> Schedule:
    """RAMP-x: at most four steps, eight for all_reduce and reduce, a pipeline for broadcast.

    Args:
        variant: field, modular, published, or auto: field where it exists and D > 1, else modular.
        whole: all_reduce by exchanging whole messages: half the steps, more bytes (ours; the barrier always does).
        stages: pieces that a broadcast is cut into, 1 to 4096 [count], see `_ramp_broadcast`; none: spread and collect,
            which takes eight steps but splits no light (ours; the faster way for large messages behind crossbars).
    """
    if collective.name == "broadcast" and stages is not None:
        return pipelined_broadcast(collective, fabric, stages)
    maps = geometry(fabric, variant)
    n, name = maps.num_nodes, collective.name
    whole = whole or name == "barrier"
    order, num_spreading = phases(maps, name, whole), len(active_steps(maps)) * (name in _SPREAD)
    if whole:
        return Schedule("ramp", collective.on(n), len(order), lambda i: _exchange(maps, order[i]))
    rank = maps.info()
    tree = maps.reached(collective.root) if name in _FROM_ROOT + _TO_ROOT else {}

    def step(i: int) -> Transfers:
        if i < num_spreading:
            senders = tree[order[i]] if name in _FROM_ROOT else maps.nodes()
            return _spread(maps, rank, order[i], senders, _SPREAD[name])
        receivers = tree[order[i]] if name in _TO_ROOT else maps.nodes()
        return _collect(maps, rank, order[i], receivers)

    return Schedule("ramp", collective.on(n, n, owner=np.argsort(rank)), len(order), step)


def _spread(maps: Geometry, rank: IntArray, phase: int, senders: IntArray, op: Op) -> Transfers:
    """To each peer the part of the sender's range that has the peer's digit."""
    src, dst = senders[:, None], maps.peers(phase, senders)
    size, radix = maps.chunks_left()[phase], maps.radices[phase - 1]
    above = size * radix
    lo = rank[src] // above * above + rank[dst] // size % radix * size
    gathered = maps.num_nodes // above  # nodes whose data of this range came here in the steps before
    return Transfers.of(src, dst, lo, size, op, gathered if op == Op.MOVE else None)


def _collect(maps: Geometry, rank: IntArray, phase: int, receivers: IntArray) -> Transfers:
    """From each peer the whole range that it has."""
    dst, src = receivers[:, None], maps.peers(phase, receivers)
    size = maps.chunks_left()[phase]
    return Transfers.of(src, dst, rank[src] // size * size, size, Op.COPY)


def _exchange(maps: Geometry, phase: int) -> Transfers:
    """To each peer everything: ways through the steps are unique, so every contribution is added once."""
    return Transfers.of(maps.nodes()[:, None], maps.peers(phase), 0, 1, Op.REDUCE)
