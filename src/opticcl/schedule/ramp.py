"""RAMP-x: every collective in at most four steps, one for each way in which subgroups of nodes can differ.

Two movements make all of it, over the subgroups of `ramp_maps`. Spreading goes through steps 1 to 4: each peer receives the
part of the sender's range that has the peer's digit. Collecting goes through steps 4 to 1: each peer receives the whole range
of the sender.

    reduce_scatter   spread, adding                    all_gather   collect
    all_to_all       spread, contributions kept apart  all_reduce   spread, adding; collect
    scatter          spread, from the root             gather       collect, to the root
    barrier          exchange everything, adding       reduce       spread, adding; collect, to the root
    broadcast        a pipelined tree of split light, see `ramp_broadcast`, or, where light cannot be split, spread from the
                     root; collect

Source: RAMP sections 5, 6.1, table 8.
Reading: "all-gather" sizes in table 8 are those of the buffer after each step, all others are bytes to one peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Phase, Space, Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._walk import Visit, walk
from opticcl.schedule.ramp_broadcast import STAGES, pipelined_broadcast
from opticcl.schedule.ramp_maps import Geometry, Variant, active_steps, geometry, has_field

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
_WALKED = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
_FROM_ROOT, _TO_ROOT = ("scatter", "broadcast"), ("gather", "reduce")
_MOST_STAGES = limit("ramp.MOST_STAGES")


def phases(maps: Geometry, collective: str, whole: bool = False) -> tuple[int, ...]:
    """Which of the steps 1 to 4 each step of a schedule is: spreading 1, 2, 3, 4, collecting 4, 3, 2, 1.

    Args:
        maps: geometry of the machine.
        collective: its name.
        whole: whether whole messages are exchanged.
    """
    active = active_steps(maps)
    collects = collective in _COLLECT and not whole
    return active * (collective in _SPREAD) + active[::-1] * collects


def accepts(
    collective: Request, fabric: Fabric, variant: str = "auto", whole: bool = False, stages: int | None = STAGES
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        variant, whole, stages: as the algorithm takes them.
    """
    if collective.name not in (*_SPREAD, *_COLLECT):
        return f"it has no {collective.name}"
    if whole and collective.name not in ("all_reduce", "barrier"):
        return f"whole messages are exchanged in an all_reduce or a barrier, not in a {collective.name}"
    if stages is not None and not 1 <= stages <= _MOST_STAGES:
        return f"stages={stages} is neither none nor in 1 to {_MOST_STAGES}"
    machine = fabric.machine_as(Ramp)
    x, devices = machine.groups, machine.wavelengths
    if variant == "field" and not has_field(x, devices):
        return f"no field of order {x} with more than {devices // x} non-zero elements; try variant=modular"
    return None


def _variants(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    """Up to 128 stages, powers of two come within 3 % of the best; whole messages win where they are small."""
    if collective.name == "broadcast":
        trees = tuple({} if stages == STAGES else {"stages": stages} for stages in (1, 2, 4, 8, 16, 32, 64))
        machine = fabric.machine
        crossbars = isinstance(machine, Ramp) and machine.subnet == "route_switch"
        return trees if not crossbars else (*trees, {"stages": None})
    return ({}, {"whole": True}) if collective.name == "all_reduce" else ({},)


@register_algorithm("ramp", accepts, _variants, systems=("ramp",))
def ramp(
    collective: Request, fabric: Fabric, *, variant: Variant = "auto", whole: bool = False, stages: int | None = STAGES
) -> Schedule:
    """RAMP-x: at most four steps, eight for all_reduce and reduce, a pipeline for broadcast.

    Args:
        collective: any.
        fabric: a RAMP.
        variant: field, modular, published, or auto: field where it exists and D > 1, else modular.
        whole: all_reduce by exchanging whole messages: half the steps, more bytes (not in the paper; the barrier always does).
        stages: stages of a broadcast, 1 to 4096 [count], see `ramp_broadcast`; None: spread and collect, which takes eight
            steps but splits no light (not in the paper; faster for large messages behind crossbars).
    """
    if collective.name == "broadcast" and stages is not None:
        return pipelined_broadcast(collective, fabric, stages)
    maps = geometry(fabric, variant)
    n, name = maps.num_nodes, collective.name
    whole = whole or name == "barrier"
    if maps.variant != "published" and name in (*_WALKED, "reduce"):
        return _walk(collective, maps, whole)
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


def _walk(collective: Request, maps: Geometry, whole: bool) -> Schedule:
    """The steps as visits to the digits of the rank: first (with it the second), second, rack, device group.

    In a field of 2^k elements groups and places are added bit by bit, so the bits of both are digits.

    Args:
        collective: any of `_WALKED`, or reduce, whose sums are collected at the root.
        maps: geometry of the machine.
        whole: whether whole messages are exchanged.
    """
    x, _, racks, device_groups = maps.radices
    bits = maps.variant == "field" and x.bit_count() == 1
    of_group = (2,) * (x.bit_length() - 1) if bits else (x,)
    radices = (*of_group, *of_group, racks, device_groups)
    first, second = tuple(range(len(of_group))), tuple(range(len(of_group), 2 * len(of_group)))
    digits = {1: first, 2: second, 3: (2 * len(of_group),), 4: (2 * len(of_group) + 1,)}
    order = [
        (Visit(digits[step], maps.radices[step - 1], also=second if step == 1 else ()),) for step in active_steps(maps)
    ]
    rank = maps.info()
    steps, cut = walk(
        collective, Space(radices, np.argsort(rank).astype(np.int32)), [order], depth=0 if whole else None
    )
    if collective.name == "reduce":
        tree, collects = maps.reached(collective.root), active_steps(maps)[::-1]
        last = Phase(lambda k: _collect(maps, rank, collects[k], tree[collects[k]]), (), len(collects))
        steps = Steps(steps.space, steps.parts, [*steps.phases, *([last] if collects else [])])
    owner = None if whole else steps.owners
    return Schedule.of("ramp", collective.on(maps.num_nodes, steps.num_chunks, owner=owner), steps, cut=cut)


def _spread(maps: Geometry, rank: IntArray, phase: int, senders: IntArray, op: Op) -> Transfers:
    """Each peer receives the part of the sender's range that has the peer's digit.

    Args:
        maps: geometry of the machine.
        rank: rank of each node.
        phase: step 1 to 4.
        senders: nodes that send, int32 (n,).
        op: operation of the receivers.
    """
    src, dst = senders[:, None], maps.peers(phase, senders)
    size, radix = maps.chunks_left()[phase], maps.radices[phase - 1]
    above = size * radix
    part = rank[dst] // size
    lo = rank[src] // above * above + (part - part // radix * radix) * size  # quicker than part % radix
    gathered = maps.num_nodes // above  # nodes whose contributions to this range arrived in earlier steps
    return Transfers.of(src, dst, lo, size, op, gathered if op == Op.MOVE else None)


def _collect(maps: Geometry, rank: IntArray, phase: int, receivers: IntArray) -> Transfers:
    """From each peer its whole range.

    Args:
        maps: geometry of the machine.
        rank: rank of each node.
        phase: step 1 to 4.
        receivers: nodes that receive, int32 (n,).
    """
    dst, src = receivers[:, None], maps.peers(phase, receivers)
    size = maps.chunks_left()[phase]
    return Transfers.of(src, dst, rank[src] // size * size, size, Op.COPY)


def _exchange(maps: Geometry, phase: int) -> Transfers:
    """To each peer everything: paths through the steps are unique, so every contribution is added once."""
    return Transfers.of(maps.nodes()[:, None], maps.peers(phase), 0, 1, Op.REDUCE)
