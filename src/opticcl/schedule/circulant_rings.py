"""Reduce-scatter, all-gather and all-to-all on rings of several strides, both ways round each.

N = b_0 b_1 ... nodes on a ring of fibres; level l has the stride s_l = b_0 ... b_(l-1), and circuits lead from every node to
the nodes s_l ahead and s_l back. The distance of two nodes is a sum of d_l s_l, with d_l from -b_l/2 to b_l/2. So a reduce-
scatter takes the levels in turn, the shortest stride first: on level l partial sums reach their node from both sides, from
b_l / 2 nodes away, in floor(b_l / 2) steps. For an even b_l half of the chunks come from the opposite node on each side. All-
gather is the reversal; an all-to-all does the same, with contributions side by side. On its last level half of the chunks come
from the opposite node on each side, and each way those for one node travel with those for the node a place nearer that have
met as many contributions, so that a level costs b / 8 in place of (b + 2) / 8; on other levels with an even b those of the
opposite node all come from one side.

    T = c R + 2 sum floor(b_l / 2) alpha + V / B sum (b_l - 1) / (s_l b_l k_l)     all_reduce, k_l wavelengths of rate B

A circuit of stride s passes s segments, so a level takes s_l k_l wavelengths: what a longer stride costs is what the smaller
chunks save. Either all levels stand at once and share the wavelengths (c = 1), or one after the other has all of them (c = 2
L - 1, since the last one of the reduce-scatter is the first of the all-gather). With L = 1 this is `two_sided_ring`.

The first levels may be direct: every node sends to all nodes up to b / 2 places away on the rings of its level in one step of
V / (s b k B), in an all-to-all V / (b k B). One wavelength each takes s (b^2 - 1) / 8 for an odd b and s b^2 / 8, rounded up,
for an even one: the laps of `wavelength_exchange` among b nodes, repeated round the ring. For an even b two nodes are b / 2
places away, one on each side; nodes on even lanes, p mod (s b / 2), send to the one ahead and nodes on odd lanes to the one
behind, so that the circuits of a lane meet end to end.

Chunks are numbered by the digits d_0, d_1, ... of their node, the first most significant, so what a node passes on is a range.

Source: circulant graphs for reduce-scatter on switches, Träff 2023; Johnsson and Ho 1989 for all ports at once. Balanced digits
on the wavelengths of a ring are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from math import lcm, prod
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers, concatenate_transfers
from opticcl.ir.symmetry import Digits, Run, RunSteps, Symmetry, Table
from opticcl.schedule import NotTried, left_out, needs_whole, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule.wavelength_exchange import exchange_wavelengths
from opticcl.units import Shape

__all__ = ["Levels", "circulant_rings", "factorisations", "shared_wavelengths"]

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
MOST_VARIANTS = 40  # of a search
MOST_TRIED = 1 << 20  # transfers of all distinct steps that a search evaluates
MOST_TRIED_MOVES = 1 << 21  # the same of an all-to-all, which has no other algorithm as fast


def accepts(
    collective: Request, fabric: Fabric, radices: tuple[int, ...] | None = None, stands: bool = True, direct: int = 0
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radices: of the levels, the shortest stride first.
        stands: whether all levels stand at once.
        direct: levels of one step, the first ones [count].
    """
    if reason := needs_whole(fabric, "terarack"):
        return reason
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n, chosen = fabric.num_nodes, radices if radices is not None else (fabric.num_nodes,)
    if prod(chosen) != n or (min(chosen) < 2 and n > 1):
        return f"radices={'x'.join(map(str, chosen))} is not a product of factors above 1 that makes {n} nodes"
    if not 0 <= direct <= len(chosen):
        return f"direct={direct} is not from 0 to {len(chosen)}, the number of levels"
    levels = Levels(chosen, direct)
    if (most_sent := max((4, *chosen[:direct])) * n) > MOST_TRANSFERS:
        return SizeLimit(f"{most_sent:,} transfers a step are more than {MOST_TRANSFERS:,}")
    if (due := levels.due(stands)) > (most := fabric.lasers_per_port):
        each = "+".join(map(str, levels.wavelengths))
        return f"levels of {each} need {due} wavelengths of {most}; try other radices"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """On a TeraRack: up to three levels, of which none has another with as few settings, steps and bytes on the wire."""
    if needs_whole(fabric, "terarack") or collective.name not in COLLECTIVES or collective.name == "barrier":
        return []
    n, moves = fabric.num_nodes, collective.name == "all_to_all"
    most, most_tried = fabric.lasers_per_port, MOST_TRIED_MOVES if moves else MOST_TRIED
    front: list[tuple[tuple[float, ...], tuple[int, ...], int, bool]] = []
    skipped: dict[tuple[int, ...], int] = {}
    for radices in factorisations(n):
        ends = [at + 1 for at, b in enumerate(radices) if b > 3]  # a ring of three is direct
        for direct in (0, *ends):
            levels = Levels(radices, direct)
            for stands in (True, False)[: 1 if len(radices) == 1 or (direct and not moves) else 2]:
                if levels.due(stands) > most:
                    continue
                if (transfers := n * levels.distinct(moves)) > most_tried:
                    skipped[radices] = min(transfers, skipped.get(radices, transfers))
                    continue
                widths = levels.widths(most, stands, moves)
                load = sum(each / k for each, k in zip(levels.loads(moves), widths, strict=True))
                key = (1 if stands else len(radices), sum(levels.steps), load)
                if not any(all(x <= y for x, y in zip(other, key, strict=True)) for other, *_ in front):
                    front = [one for one in front if not all(x <= y for x, y in zip(key, one[0], strict=True))]
                    front.append((key, radices, direct, stands))
    found: list[dict[str, object] | NotTried] = [
        {"radices": radices, "stands": stands, **({"direct": direct} if direct else {})}
        for _, radices, direct, stands in _spaced(sorted(front), MOST_VARIANTS)
    ]
    if len(front) > MOST_VARIANTS:
        why = f"a search evaluates {MOST_VARIANTS} of {len(front)} that may be the fastest, evenly spaced"
        found.append(NotTried("other radices", why))
    if skipped:
        found.append(left_out(min(skipped.values()), most_tried, f"{len(skipped):,} choices of radices"))
    return found


def factorisations(n: int) -> list[tuple[int, ...]]:
    """One to three factors above 1, in every order."""
    firsts = [b for b in range(2, n // 2 + 1) if n % b == 0]
    twos = [(b, n // b) for b in firsts]
    return [(n,)] * (n > 1) + twos + [(a, b, m // b) for a, m in twos for b in firsts if m % b == 0 and b < m]


def _spaced(items: list[Any], most: int) -> list[Any]:
    """At most that many of them, evenly spaced, the first and the last included."""
    if len(items) <= most:
        return items
    return [items[round(at * (len(items) - 1) / (most - 1))] for at in range(most)]


@register_algorithm("circulant_rings", accepts, variants)
def circulant_rings(
    collective: Request, fabric: Fabric, *, radices: Shape | None = None, stands: bool = True, direct: int = 0
) -> Schedule:
    """Rings of several strides: floor(b / 2) steps a level, or one if it is direct; twice as many for all_reduce.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all or barrier.
        fabric: a TeraRack.
        radices: b of each level, the shortest stride first; their product is the number of nodes; None: one level.
        stands: whether the circuits of all levels stand at once, and share the wavelengths; else one after the other.
        direct: levels of one step, the first ones [count].
    """
    levels = Levels(radices or (fabric.num_nodes,), direct)
    moves, units = collective.name == "all_to_all", levels.units
    phases: list[_Phase] = []
    for number in range(len(levels.radices)) if fabric.num_nodes > 1 else ():
        phases += levels.reducing(number, moves)
    if collective.name in ("all_reduce", "barrier", "all_gather"):
        gathering = [phase.reversed() for phase in reversed(phases)]
        phases = gathering if collective.name == "all_gather" else phases + gathering
    starts = np.cumsum([0, *(phase.count for phase in phases)])
    n = fabric.num_nodes
    return Schedule(
        "circulant_rings",
        collective.on(n, n * units, owner=levels.owners(moves)),
        int(starts[-1]),
        RunSteps(tuple(run for phase in phases for run in phase.runs()), n * units),
        tuple(range(int(a), int(b)) for a, b in pairwise(starts)),
        symmetries=levels.symmetries(moves),
        stands=stands,
    )


def shared_wavelengths(levels: Levels, wavelengths: int, moves: bool) -> tuple[int, ...]:
    """Wavelengths of a circuit of each level if all stand: each of the others goes where it saves most [count].

    Args:
        levels: of the rings.
        wavelengths: of a fibre [count].
        moves: whether contributions are kept apart.

    >>> shared_wavelengths(Levels((32, 32)), 64, False)
    (32, 1)
    """
    loads, needs = levels.loads(moves), levels.wavelengths
    widths = [1] * len(loads)
    left = wavelengths - sum(needs)
    while fitting := [at for at, need in enumerate(needs) if need <= left]:
        best = max(fitting, key=lambda at: loads[at] * (1 / widths[at] - 1 / (widths[at] + 1)) / needs[at])
        widths[best] += 1
        left -= needs[best]
    return tuple(widths)


WAYS = (1, -1)  # to the nodes ahead, and to those back


@dataclass(frozen=True)
class _Phase:
    """Steps of a level in which equal bytes go the same ways.

    Args:
        count: steps.
        transfers: step of the phase, ways -> transfers.
        shift: of the chunks that go ahead, from step to step; those that go back move the other way. None: each step is a
            run of its own.
        mirrored: the transfers whose reversals use the same circuits, where it is not these.
    """

    count: int
    transfers: Callable[[int, Sequence[int]], Transfers]
    shift: Digits | None = None
    mirrored: Callable[[int, Sequence[int]], Transfers] | None = None

    def reversed(self) -> _Phase:
        """Every transfer backwards, in the opposite order, stored."""

        def back(i: int, ways: Sequence[int]) -> Transfers:
            there = (self.mirrored or self.transfers)(self.count - 1 - i, ways)
            return Transfers.of(
                there.dst, there.src, there.chunk_lo, there.chunk_n, Op.COPY, chunk_step=there.chunk_step
            )

        return _Phase(self.count, back, _inverse(self.shift) if self.shift else None)

    def runs(self) -> list[Run]:
        """The steps, by the first of them if it says what the others are."""
        if self.shift is None or self.count == 1:
            return [Run(partial(self.transfers, i, WAYS)) for i in range(self.count)]
        shifts = (self.shift, _inverse(self.shift))
        ahead, behind = (
            Run(partial(self.transfers, 0, (way,)), self.count, shift) for way, shift in zip(WAYS, shifts, strict=True)
        )
        return [replace(ahead, beside=(behind,))]


def _inverse(shift: Digits) -> Digits:
    """The permutation backwards."""
    return replace(shift, add=-shift.add)


@dataclass(frozen=True)
class Levels:
    """Rings of several strides.

    Args:
        radices: of the levels, the shortest stride first, 2 or more each; (1,) for a single node.
        direct: levels of one step, the first ones [count].
    """

    radices: tuple[int, ...]
    direct: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """Nodes from one member of a ring to the next, by level."""
        return tuple(prod(self.radices[:number]) for number in range(len(self.radices)))

    @property
    def num_nodes(self) -> int:
        """Product of the radices [count]."""
        return prod(self.radices)

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each level [count]."""
        return tuple(1 if number < self.direct else b // 2 for number, b in enumerate(self.radices))

    @property
    def wavelengths(self) -> tuple[int, ...]:
        """Wavelengths of each level whose circuits have one wavelength each [count]."""
        return tuple(
            stride * self.laps(number) + -(-self.lanes(number) // 2) if number < self.direct else stride
            for number, stride in enumerate(self.strides)
        )

    def laps(self, number: int) -> int:
        """Wavelengths for one member in each b of a direct level, without those for the opposite node [count].

        Args: number: of the level.
        """
        b = self.radices[number]
        return exchange_wavelengths(b) if b % 2 else (b // 2) * (b // 2 - 1) // 2

    def lanes(self, number: int) -> int:
        """Lanes for the opposite nodes of a direct level, half of them ahead: node p is on lane p modulo lanes [count].

        Args: number: of the level.
        """
        return 0 if self.radices[number] % 2 else self.radices[number] // 2 * self.strides[number]

    def due(self, stands: bool) -> int:
        """Wavelengths without which the circuits do not fit [count].

        Args: stands: whether all levels stand at once.
        """
        return sum(self.wavelengths) if stands else max(self.wavelengths)

    def widths(self, wavelengths: int, stands: bool, moves: bool) -> tuple[int, ...]:
        """Wavelengths of a circuit of each level [count].

        Args:
            wavelengths: of a fibre [count].
            stands: whether all levels stand at once.
            moves: whether contributions are kept apart.
        """
        if stands:
            return shared_wavelengths(self, wavelengths, moves)
        return tuple(wavelengths // needed for needed in self.wavelengths)

    def distinct(self, moves: bool) -> int:
        """Transfers of a node in all distinct steps, or somewhat more [count].

        Args: moves: whether contributions are kept apart.
        """
        rings = self.radices[self.direct :]
        return sum(self.radices[: self.direct]) + 2 * (sum(b // 2 for b in rings) if moves else 4 * len(rings))

    @property
    def units(self) -> int:
        """Chunks of a node: two if some go round one side and some round the other [count]."""
        return 1 + any(b % 2 == 0 for b in self.radices[self.direct :])

    def loads(self, moves: bool) -> tuple[float, ...]:
        """Messages that the circuits of each level carry on one wavelength.

        Args: moves: whether contributions are kept apart.
        """
        found = []
        for number, (b, s) in enumerate(zip(self.radices, self.strides, strict=True)):
            if number < self.direct:
                found.append(1 / (b if moves else s * b))
            elif not moves:
                found.append((b - 1) / (2 * s * b))
            elif self.halves_move and number == len(self.radices) - 1:
                found.append(b / 8)
            else:
                found.append(b // 2 * (b // 2 + 1) / (2 * b))
        return tuple(found)

    @property
    def halves_move(self) -> bool:
        """Whether half of the chunks of an all-to-all come from the opposite node on each side, on the last level."""
        return self.direct < len(self.radices) and self.radices[-1] % 2 == 0

    def owners(self, moves: bool) -> IntArray:
        """Node that each chunk is for, int64 (chunks,).

        Args: moves: whether contributions are kept apart.
        """
        owner = np.repeat(np.argsort(self.label), self.units)
        if not (moves and self.halves_move):
            return owner
        # the second chunk of a node is followed by the first one of the next node of its ring on the last level
        return np.roll(owner.reshape(-1, self.units * self.radices[-1]), -1, axis=1).ravel()

    @cached_property
    def label(self) -> IntArray:
        """Place of each node's chunks among all, int64 (nodes,)."""
        node = np.arange(self.num_nodes)
        label = np.zeros_like(node)
        for b, s in zip(self.radices, self.strides, strict=True):
            label = label * b + node // s % b
        return label

    def reducing(self, number: int, moves: bool) -> list[_Phase]:
        """The steps of a level in a reduce-scatter or an all-to-all.

        Args:
            number: of the level.
            moves: whether contributions are kept apart.
        """
        b, far = self.radices[number], self.radices[number] // 2
        if number < self.direct:
            one, mirrored = (partial(self._direct_step, number, moves, even) for even in (1, -1))
            return [_Phase(1, lambda _, ways: one(ways), None, lambda _, ways: mirrored(ways))]
        if moves:
            halves = number == len(self.radices) - 1 and self.halves_move
            step = self._half_step if halves else partial(self._step, number, True)
            return [_Phase(1, lambda _, ways, at=at: step(at, ways)) for at in range(far, 0, -1)]  # type: ignore[misc]
        last = number == len(self.radices) - 1  # no digit is carried, so that the shift commutes with the symmetry
        shift = Digits((*self.radices, self.units), number, -1) if last else None
        whole = far - 1 + b % 2  # the farthest first; on an even ring that step is another
        first = [] if b % 2 else [_Phase(1, lambda _, ways: self._step(number, False, far, ways))]
        rest = _Phase(whole, lambda i, ways: self._step(number, False, whole - i, ways), shift)
        return [*first, rest] if whole else first

    def _step(self, number: int, moves: bool, away: int, ways: Sequence[int]) -> Transfers:
        """Sums for the nodes that number of places away on the ring of the level, one place on.

        Args:
            number: of the level.
            moves: whether contributions are kept apart.
            away: places, 1 to half of the ring.
            ways: 1 for the nodes ahead, -1 for those back.
        """
        n, b, stride = self.num_nodes, self.radices[number], self.strides[number]
        size = self.units * (n // (stride * b))  # chunks of all nodes that the target of this level serves later
        node, opposite, parts = np.arange(n), 2 * away == b, []
        for way in ways:
            if opposite and moves and way < 0:  # whole blocks, by one side
                continue
            lo = self.label[(node + way * away * stride) % n] // (n // (stride * b)) * size
            count, step = size, None
            if opposite and not moves:  # of two chunks of a node one by each side, so that all nodes do the same
                count, step, lo = size // 2, 2, lo + (way < 0)
            met = (b // 2 if way > 0 else (b - 1) // 2) - away + 1  # nodes of the ring whose contributions it has
            op, held = (Op.MOVE, met * stride) if moves else (Op.REDUCE, None)
            parts.append(Transfers.of(node, (node + way * stride) % n, lo, count, op, held, step))
        return concatenate_transfers(parts)

    def _direct_step(self, number: int, moves: bool, even: int, ways: Sequence[int]) -> Transfers:
        """Sums for all nodes up to half of the ring of the level away.

        Args:
            number: of the level.
            moves: whether contributions are kept apart.
            even: way of even lanes to the opposite node; odd lanes go the other.
            ways: 1 for the nodes ahead, -1 for those back.
        """
        n, b, stride = self.num_nodes, self.radices[number], self.strides[number]
        node, rest = np.arange(n), n // (stride * b)
        src, dst = [], []
        for way in ways:
            for away in range(1, b // 2 + 1):
                mine = node
                if 2 * away == b:
                    mine = node[node % self.lanes(number) % 2 == (0 if way == even else 1)]
                src.append(mine)
                dst.append((mine + way * away * stride) % n)
        target = np.concatenate(dst)
        size = self.units * rest
        lo = self.label[target] // rest * size
        op, held = (Op.MOVE, stride) if moves else (Op.REDUCE, None)
        return Transfers.of(np.concatenate(src), target, lo, size, op, held)

    def _half_step(self, away: int, ways: Sequence[int]) -> Transfers:
        """Contributions on the last level for the nodes that number of places away, and for those a place nearer.

        Args:
            away: places, 1 to half of the ring.
            ways: 1 for the nodes ahead, -1 for those back.
        """
        n, b, stride = self.num_nodes, self.radices[-1], self.strides[-1]
        node, met, parts = np.arange(n), (b // 2 - away + 1) * stride, []
        for way in ways:
            target = (node + way * away * stride) % n
            first = 2 * self.label[target if way < 0 else (target - stride) % n]  # the second chunk of that node
            own = away == 1  # those for the node a place nearer are there
            lo = first + (way > 0) if own else first
            parts.append(Transfers.of(node, (node + way * stride) % n, lo, 1 if own else 2, Op.MOVE, met))
        return concatenate_transfers(parts)

    def symmetries(self, moves: bool) -> tuple[Symmetry, ...]:
        """One node on along the ring, or as far as the next node that does the same.

        Args: moves: whether contributions are kept apart.
        """
        n, units = self.num_nodes, self.units
        lanes = [self.lanes(number) for number in range(self.direct) if self.lanes(number)]
        on = lcm(*(2 if many % 2 == 0 else many for many in lanes))
        node, chunk = np.arange(n), np.arange(n * units)
        place = chunk
        if moves and self.halves_move:  # as in `owners`
            block = units * self.radices[-1]
            place = chunk // block * block + (chunk - 1) % block
        of_label = place.reshape(n, units)
        images = np.empty(n * units, np.int64)
        images[of_label[self.label]] = of_label[self.label[(node + on) % n]]
        return (Symmetry(Table((node + on) % n), Table(images)),)
