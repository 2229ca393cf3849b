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

from dataclasses import replace
from itertools import pairwise

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.sipac import Sipac, strides_of
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers, concatenate_transfers
from opticcl.schedule import needs_whole, register_algorithm
from opticcl.schedule._grid import SizeLimit
from opticcl.schedule._sipco_groups import ChunkGroups
from opticcl.schedule.sipco import digit_claims

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
MOST_CHUNKS = 1 << 24  # of a schedule: 128 MB for each permutation of them


def accepts(collective: Request, fabric: Fabric, rings: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        rings: levels of the walk with rings [count]; None: all.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if reason := needs_whole(fabric, "sipac"):
        return reason
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


@register_algorithm("loop_back_rings", accepts, variants)
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
    whole = ChunkGroups.of(radices, levels)
    groups = replace(whole, size=whole.size * radix) if rings == levels else whole  # the last block has parts too
    steps = [(stage, turn) for stage in range(levels) for turn in range(radix - 1 if stage < rings else 1)]
    adds, stores = collective.name != "all_gather", collective.name != "reduce_scatter"
    backwards = sorted(steps, key=lambda one: (-one[0], one[1]))
    order = [(*one, Op.REDUCE) for one in steps * adds] + [(*one, Op.COPY) for one in backwards * stores]

    def step(i: int) -> Transfers:
        stage, turn, op = order[i]
        return _step(groups, stage, turn if stage < rings else None, op)

    run = [(stage, op) for stage, _, op in order]
    edges = [0, *(i for i in range(1, len(run)) if run[i] != run[i - 1]), len(run)]
    return Schedule(
        "loop_back_rings",
        collective.on(len(groups.digit[0]), levels * groups.size, owner=_owners(groups)),
        len(order),
        step,
        classes=tuple(range(a, b) for a, b in pairwise(edges)),
        symmetries=digit_claims(groups),
    )


def _step(groups: ChunkGroups, stage: int, turn: int | None, op: Op) -> Transfers:
    """All transfers of a step.

    Args:
        groups: numbering of the chunks.
        stage: how many levels each group has been reduced at.
        turn: step of the rings; None: a level without.
        op: REDUCE for reduce-scatter, COPY for all-gather.
    """
    radix = groups.radices[0]
    parts = []
    for level, stride in enumerate(strides_of(groups.radices).tolist()):
        group = (level + stage) % len(groups.radices)
        first, width = groups.first(group, stage + 1), groups.width(group, stage + 1)
        src, dst = groups.pairs(level)
        lo = first[dst if op == Op.REDUCE else src]
        if turn is None:
            parts.append(Transfers.of(src, dst, lo, width, op))
            continue
        part, digit = width // radix, groups.digit[level]
        node = np.arange(len(digit))
        later = groups.digit[groups.level(group, stage + 1)] if stage + 1 < len(groups.radices) else 0 * digit
        own = -later  # part 0, so that nodes of all lines do the same in the numbering of the next level
        parts.append(Transfers.of(src, dst, lo + (own + turn + 1)[:, None] % radix * part, part, op))
        of_digit = (digit - turn - (op == Op.REDUCE)) % radix
        of_node = node + (of_digit - digit) * stride
        following = node + ((digit + 1) % radix - digit) * stride
        parts.append(Transfers.of(node, following, first[of_node] + own % radix * part, part, op))
    return concatenate_transfers(parts)


def _owners(groups: ChunkGroups) -> IntArray:
    """The node whose digits each chunk has, int32 (num_chunks,)."""
    levels, nodes = groups.digit.shape
    each = groups.size // nodes
    owner = np.empty(levels * groups.size, np.int32)
    for group in range(levels):
        owner[groups.first(group, levels)[:, None] + np.arange(each)] = np.arange(nodes)[:, None]
    return owner
