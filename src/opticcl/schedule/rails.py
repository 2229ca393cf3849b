"""All-reduce, reduce-scatter and all-gather by short rings first, then by trees and rings on rails, on circuits that all stand.

N = b n nodes on a ring of fibres make b rails; rail r is of the nodes r, r + b, ... On rings of stride 1 every node first sums
what its b neighbours have for its rail, both ways, in floor(b / 2) steps, as in `circulant_rings`. Rail r then
has 1/b of the message: groups of m neighbours on it collect to their middle node, and the R middle nodes form a ring, both ways
round:

    b = 2, m = 3    0 1 2 3 4 5 6 7 8 9 10 11     rings of stride 1: all
                    0   2   4   6   8   10        rail 0: 0 and 4 collect at 2, 6 and 10 at 8
                      1   3   5   7   9    11     rail 1: 1 and 5 collect at 3, 7 and 11 at 9

    k_0 + b (sum of k_i floor(m_i / 2) + k) <= w        wavelengths
    T = R + alpha (2 floor(b / 2) + 2 L + 2 floor(R / 2))
          + V / B ((b - 1) / (b k_0) + (2 sum 1 / k_i + (R - 1) / (R k)) / b)       all_reduce

It fills the gap between trees, which send whole messages, and rings, which take many steps. Chunks are numbered by rail and
place on it, so what collects at a node is a range. Where the groups divide n, the schedule is the same one group further on.

Source: multi-rail collectives of two levels are known from BlueConnect, Cho et al. 2019. That rails, trees and rings share the
wavelengths of a ring of fibres at once is our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phase_rows import translated
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import SizeLimit
from opticcl.schedule.circulant_rings import Levels, factorisations, shared_wavelengths
from opticcl.schedule.standing_tree import StandingTree, tree_of
from opticcl.units import Shape

__all__ = ["Rails", "rails", "rails_of"]

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather")
MOST_NODES = limit("rails.MOST_NODES")
WAYS = (1, -1)  # to the nodes ahead, and to those back
ALONG_RAILS, ACROSS_RAILS = (True, False), (False, True)
"""Translations of a phase: of the place on every rail, or of the rail."""

_Ends = tuple[IntArray | int, IntArray | int]  # place and rail
_Transfers = tuple[_Ends, _Ends, _Ends, IntArray | int]  # sender, receiver, first chunk, places of chunks


class Rails(NamedTuple):
    """The rails of a ring of nodes.

    Args:
        radix: nodes that first sum for each other, and number of rails [count].
        tree: of the places of a rail.
        widths: wavelengths of the short rings, of each level of the tree and of the ring of middle nodes [count].
    """

    radix: int
    tree: StandingTree
    widths: tuple[int, ...]

    @property
    def num_nodes(self) -> int:
        """Of all rails [count]."""
        return self.radix * len(self.tree.members[0])

    @property
    def num_steps(self) -> int:
        """Of a reduce-scatter, up to the middle nodes [count]."""
        return self.radix // 2 + self.tree.levels + self.tree.top // 2

    @property
    def load(self) -> float:
        """Messages that the circuits of a reduce-scatter carry on one wavelength."""
        return sum(gain / k for (_, gain), k in zip(_levels(self.radix, self.tree), self.widths, strict=True))


def _levels(radix: int, tree: StandingTree) -> list[tuple[int, float]]:
    """Wavelengths with one for each circuit, and messages on one wavelength: short rings, levels of the tree, ring.

    Args:
        radix: number of rails [count].
        tree: of the places of a rail.
    """
    collected = [(radix * load, 1 / radix) for load in tree.loads[:-1]]
    return [(1, (radix - 1) / (2 * radix)), *collected, (radix, (tree.top - 1) / (2 * tree.top * radix))]


@lru_cache(maxsize=4096)
def rails_of(num_nodes: int, wavelengths: int, radix: int, groups: tuple[int, ...]) -> Rails | str:
    """The rails, each further wavelength where it saves most, or why there are none.

    Args:
        num_nodes: on the ring [count].
        wavelengths: of a fibre [count].
        radix: number of rails [count].
        groups: nodes of a group, by level.
    """
    if radix < 2 or num_nodes % radix or num_nodes // radix < 2:
        return f"radix={radix} does not divide {num_nodes} nodes into rails of 2 or more; try a divisor"
    if min(groups, default=1) < 2:
        return f"groups={'x'.join(map(str, groups))}: a rail needs groups of 2 or more nodes; else try circulant_rings"
    tree = tree_of(num_nodes // radix, groups)
    if tree.top < 3:
        return (
            f"groups={'x'.join(map(str, groups))} leave {tree.top} nodes on a rail; a ring needs 3; try smaller groups"
        )
    levels = _levels(radix, tree)
    widths, left = [1] * len(levels), wavelengths - sum(load for load, _ in levels)
    if left < 0:
        return f"rails need {wavelengths - left} wavelengths of {wavelengths}; try a smaller radix or smaller groups"
    while fitting := [at for at, (load, _) in enumerate(levels) if load <= left]:
        best = max(fitting, key=lambda at: levels[at][1] * (1 / widths[at] - 1 / (widths[at] + 1)) / levels[at][0])
        widths[best] += 1
        left -= levels[best][0]
    return Rails(radix, tree, tuple(widths))


def accepts(collective: Request, fabric: Fabric, radix: int = 2, groups: tuple[int, ...] = (3,)) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radix: number of rails [count].
        groups: nodes of a group, by level.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if fabric.num_nodes > MOST_NODES:
        return SizeLimit(f"{fabric.num_nodes:,} nodes are more than {MOST_NODES:,}; try circulant_rings")
    made = rails_of(fabric.num_nodes, fabric.lasers_per_port, radix, groups)
    return made if isinstance(made, str) else None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """On a TeraRack: those that are fastest of all rails, and of rings of several strides, for some message."""
    if collective.name not in COLLECTIVES:
        return []
    if fabric.num_nodes > MOST_NODES:
        return [{}]  # declined, with the reason
    front = _front(fabric.num_nodes, fabric.lasers_per_port)
    return [{"radix": radix, "groups": groups} for radix, groups in front]


@lru_cache(maxsize=64)
def _front(num_nodes: int, wavelengths: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Radix and groups of those that are fastest of all rails and rings of several strides for some message.

    These are the corners of the lower convex hull of steps and messages on the wire.

    Args:
        num_nodes: on the ring [count].
        wavelengths: of a fibre [count].
    """
    tried: list[tuple[int, float, int, tuple[int, ...]]] = []
    for radices in factorisations(num_nodes):
        if sum((levels := Levels(radices)).strides) <= wavelengths:
            widths = shared_wavelengths(levels, wavelengths, False)
            load = sum(each / k for each, k in zip(levels.loads(False), widths, strict=True))
            tried.append((sum(b // 2 for b in radices), load, 0, radices))
    for radix, groups in _grammar(num_nodes, wavelengths):
        made = rails_of(num_nodes, wavelengths, radix, groups)
        if not isinstance(made, str):
            tried.append((made.num_steps, made.load, radix, groups))
    hull: list[tuple[int, float, int, tuple[int, ...]]] = []
    for one in sorted(tried):
        if hull and one[1] >= hull[-1][1]:
            continue
        while len(hull) > 1 and _above(hull[-1], hull[-2], one):
            hull.pop()
        if hull and hull[-1][0] == one[0]:
            hull.pop()
        hull.append(one)
    return tuple((radix, groups) for _, _, radix, groups in hull if radix)


def _above(middle: tuple[Any, ...], left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Whether a point is on or above the line between two others.

    Args:
        middle: first and second coordinate, and more.
        left, right: the same.
    """
    rise = (right[1] - left[1]) * (middle[0] - left[0])
    return bool((middle[1] - left[1]) * (right[0] - left[0]) >= rise)


def _grammar(num_nodes: int, wavelengths: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Radices from 4 on and one or two levels of odd groups, for which wavelengths may do.

    Args:
        num_nodes: on the ring [count].
        wavelengths: of a fibre [count].
    """
    for radix in range(4, min(wavelengths, num_nodes // 6) + 1):
        if num_nodes % radix:
            continue
        most = (wavelengths - 1) // radix - 1  # wavelengths of a rail for its groups
        for m in range(3, 2 * most + 2, 2):
            yield radix, (m,)
            yield from ((radix, (m, other)) for other in range(3, 2 * (most - m // 2) + 2, 2))


@register_algorithm("rails", accepts, variants, systems=("terarack",))
def rails(collective: Request, fabric: Fabric, *, radix: int = 2, groups: Shape = (3,)) -> Schedule:
    """Rings of b neighbours, trees of L levels, rings of R rails: floor(b / 2) + L + floor(R / 2) steps, all_reduce twice.

    Args:
        collective: all_reduce, reduce_scatter or all_gather.
        fabric: a TeraRack.
        radix: number b of rails [count].
        groups: nodes of a rail that collect to their middle one, by level; R nodes are left, which form a ring.
    """
    made = rails_of(fabric.num_nodes, fabric.lasers_per_port, radix, groups)
    assert not isinstance(made, str), "accepts has refused them"
    moves = _Moves(made)
    phases = list(moves.reducing())
    if collective.name == "all_reduce":
        phases += [moves.stored(phase) for phase in reversed(phases)]
    else:
        phases += moves.handing_out()
    if collective.name == "all_gather":
        phases = [moves.stored(phase) for phase in reversed(phases)]
    steps = Steps(moves.space, [part(moves.space.radices, (1, 0), moves.units)], phases)
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("rails", chunks, steps, stands=True)


class _Moves:
    """Steps of rails, a phase each, whose digits are the place on a rail and the rail.

    Args: made: the rails.
    """

    def __init__(self, made: Rails) -> None:
        self.radix, self.tree = made.radix, made.tree
        self.places = len(made.tree.members[0])
        self.space = Space((self.places, self.radix))
        self.units = 1 + (made.radix % 2 == 0 or made.tree.top % 2 == 0)  # chunks of a node

    def reducing(self) -> Iterator[Phase]:
        """Sums to the middle nodes: short rings, the tree, the ring."""
        rail = np.arange(self.radix)
        for away in range(self.radix // 2, 0, -1):
            transfers: list[_Transfers] = []
            for way in WAYS:
                place, to = np.divmod(rail + way, self.radix)
                transfers.append(
                    ((0, rail), (place % self.places, to), (0, (rail + way * away) % self.radix), self.places)
                )
            yield self._phase(ALONG_RAILS, transfers, halves=2 * away == self.radix)
        for level in range(self.tree.levels):
            child, parent = self.tree.collect(level)
            yield self._phase(ACROSS_RAILS, [((child, 0), (parent, 0), (0, 0), self.places)])
        place, top, middle = np.arange(self.tree.top), self.tree.top, self.tree.members[-1]
        first, size = self.tree.below(self.tree.levels, middle)
        for away in range(top // 2, 0, -1):
            transfers = []
            for way in WAYS:
                to, of = middle[(place + way) % top], (place + way * away) % top
                transfers.append(((middle, 0), (to, 0), (first[of], 0), size[of]))
            yield self._phase(ACROSS_RAILS, transfers, halves=2 * away == top)

    def handing_out(self) -> Iterator[Phase]:
        """From the middle nodes down the trees: to every node the chunks of those that collect at it."""
        for level in reversed(range(self.tree.levels)):
            child, parent = self.tree.collect(level)
            first, size = self.tree.below(level, child)
            yield self._phase(ACROSS_RAILS, [((parent, 0), (child, 0), (first, 0), size)], Op.COPY)

    def stored(self, phase: Phase) -> Phase:
        """Every transfer of a phase backwards, stored."""
        rows = phase.rows
        assert isinstance(rows, PhaseRows)
        back = replace(rows, src=rows.dst, dst=rows.src, op=np.full_like(rows.op, Op.COPY))
        return replace(phase, rows=translated(self.space, back, -rows.dst * np.array(phase.moves)))

    def _phase(
        self,
        moves: tuple[bool, bool],
        transfers: Sequence[_Transfers],
        op: Op = Op.REDUCE,
        *,
        halves: bool = False,
    ) -> Phase:
        """A step of transfers of chunks for some places of one rail.

        Args:
            moves: translations.
            transfers: place and rail of the sender, of the receiver and of the first chunk; places that chunks are for [count].
            op: what happens at the receiver.
            halves: whether the transfers of each way carry one chunk of each place, those ahead the first.
        """
        columns: list[list[IntArray]] = [[], [], [], []]
        for src, dst, lo, places in transfers:
            *each, _ = np.broadcast_arrays(*src, *dst, *lo, places, 1, np.zeros(1))
            for column, at in zip(columns, range(0, 8, 2), strict=True):
                column.append(np.column_stack(each[at : at + 2]))
        unit = np.repeat(np.arange(len(transfers)), list(map(len, columns[0]))) if halves else 0
        digits = map(np.concatenate, columns)
        return Phase(PhaseRows.of(2, *digits, unit_lo=unit, unit_count=1 if halves else self.units, op=op), moves)
