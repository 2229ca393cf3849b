"""A SiPAC whose loop-back group leads to the next node: a ring a switch, beside the direct channels, and all lines carry data.

With `channels=ring` the first group of lines of input i of a switch leads to output i + 1 instead of back. In a reduce-scatter
at one level a node owes each of its r - 1 peers a block. Each block is cut into r parts; in step t = 0 ... r-2

    direct channels     part t + 1 of its block to every peer
    ring                part 0 of the block of node i - 1 - t, with what nodes before have added, to node i + 1

so each of the r channels carries one part in every step. An all-gather has the same steps with the own block and that of node
i - t. Message groups visit the levels as in `opticcl.schedule.sipco`, so all levels are busy. With rings at all L levels, p
nodes of rate L B each, an all-reduce of n takes

    T = 2 L (r - 1) alpha + 2 (p - 1)/p n / (L B)

which is the bound of all lines; without the rings it is r/(r - 1) of that. With rings at the first levels of the walk only,
where most data are moved, there are fewer steps.

Source: own construction; the ring is a bucket algorithm: Chan, Heimlich, Purkayastha, van de Geijn 2007, Collective
communication: theory, practice, and experience.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.sipac import Sipac
from opticcl.ir import Fabric, Op, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import MessagePart, Phase, PhaseRows, Space, Steps, join, part
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
MOST_CHUNKS = limit("loop_back_rings.MOST_CHUNKS")


def accepts(collective: Request, fabric: Fabric, rings: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        rings: levels of the walk with rings [count]; None: all.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    machine = fabric.machine_as(Sipac)
    levels, radix = len(machine.sides), machine.sides[0]
    if machine.channels != "ring":
        return f"with channels={machine.channels} no group of lines is left for a ring; try sipac:channels=ring"
    if len(set(machine.sides)) > 1 or radix < 2:
        return "it needs switches of one radix, 2 or more; try sipco"
    if rings is not None and not 1 <= rings <= levels:
        return f"rings={rings} is not 1 to levels={levels}"
    if machine.num_nodes * levels * radix > MOST_CHUNKS:
        return SizeLimit(f"{machine.num_nodes * levels * radix:,} chunks are more than {MOST_CHUNKS:,}")
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Rings at the first levels of the walk, for every number of them; none without the channels for rings."""
    machine = fabric.machine
    if not isinstance(machine, Sipac) or machine.channels != "ring":
        return []
    return [{"rings": count} for count in range(1, machine.ports_per_node + 1)]


@register_algorithm("loop_back_rings", accepts, variants, systems=("sipac",))
def loop_back_rings(collective: Request, fabric: Fabric, *, rings: int | None = None) -> Schedule:
    """All-gather or reduce-scatter in r - 1 steps a level with rings and one a level without, all_reduce in twice as many.

    Args:
        collective: all_reduce, reduce_scatter or all_gather.
        fabric: a SiPAC with channels=ring.
        rings: levels of each group's walk with rings, from the first [count]; None: all.
    """
    radices = fabric.machine_as(Sipac).sides
    levels, radix = len(radices), radices[0]
    rings = levels if rings is None else rings
    space = Space(radices[::-1])  # the first level is the lowest digit
    units = radix if rings == levels else 1  # the last block has parts too
    orders = [[levels - 1 - (group - j) % levels for j in range(levels)] for group in range(levels)]
    parts = [part(space.radices, order, units) for order in orders]
    stages = range(levels)
    phases = [_phase(space, parts, orders, stage, stage < rings, Op.REDUCE) for stage in stages]
    back = [_phase(space, parts, orders, stage, stage < rings, Op.COPY) for stage in reversed(stages)]
    some = {"all_reduce": phases + back, "reduce_scatter": phases, "all_gather": back}[collective.name]
    steps = Steps(space, parts, some)
    chunks = collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners)
    cut = levels if collective.name == "all_reduce" else None
    return Schedule.of("loop_back_rings", chunks, steps, cut=cut)


def _phase(space: Space, parts: list[MessagePart], orders: list[list[int]], stage: int, ring: bool, op: Op) -> Phase:
    """The steps of a stage.

    Args:
        space: digits of the nodes, a level each.
        parts: of the message, as many as levels.
        orders: digits in the order in which each part is reduced at them.
        stage: how many levels each part has been reduced at.
        ring: whether there are rings; else all is direct.
        op: REDUCE for reduce-scatter, COPY for all-gather.
    """
    levels, radix = len(orders), space.radices[0]
    rows, bundles = [], [0]
    for level in range(levels):
        number = (level + stage) % levels
        order = orders[number]
        digit, later = order[stage], order[stage + 1] if ring and stage + 1 < levels else None
        ends = np.arange(1, radix)
        dst, lo = np.zeros((2, radix - 1, levels), np.int64)
        count = np.ones(levels, np.int64)
        dst[:, digit] = ends
        lo[:, digit] = ends if op == Op.REDUCE else 0
        count[order[stage + 1 :]] = radix
        units, every = parts[number].units, {"part": number, "op": op}
        if not ring:
            rows.append(PhaseRows.of(levels, 0, dst, lo, count, unit_count=units, **every))
            bundles.append(bundles[-1] + len(rows[-1]))
            continue
        next_one, behind, turn = dst[:1], lo[:1].copy(), np.zeros(levels, np.int64)
        behind[:, digit] = radix - 1 if op == Op.REDUCE else 0  # the block of the node behind, then of that behind it
        turn[digit] = -1
        if later is None:  # part 0 of a block goes round, parts 1, 2, ... go straight
            rows.append(PhaseRows.of(levels, 0, dst, lo, count, unit_lo=1, unit_shift=1, **every))
            rows.append(PhaseRows.of(levels, 0, next_one, behind, count, shift=turn, **every))
        else:  # parts are numbered by the digit of the next level, so that nodes of all lines do the same
            count[later] = 1
            lo[:, later], behind[:, later], straight = (radix - 2) % radix, radix - 1, np.zeros(levels, np.int64)
            straight[later] = -1
            rows.append(PhaseRows.of(levels, 0, dst, lo, count, unit_count=units, shift=straight, **every))
            rows.append(PhaseRows.of(levels, 0, next_one, behind, count, unit_count=units, shift=turn, **every))
        bundles += [bundles[-1] + radix - 1, bundles[-1] + radix]
    return Phase(join(rows), (True,) * levels, radix - 1 if ring else 1, tuple(bundles[:-1]))
