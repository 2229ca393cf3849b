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

A folded ring goes out along every second node and back along the others, 0, 2, 4, ..., 5, 3, 1, so that no circuit passes more
than one of the nodes. Each of its two ways has half of the wavelengths. A job on neighbours of a long ring of
fibres has light that closes by it, where from its last node to its first there are many interfaces.

Chunks are numbered by the digits d_0, d_1, ... of their node, the first most significant, so what a node passes on is a range.

Source: circulant graphs for reduce-scatter on switches, Träff 2023; Johnsson and Ho 1989 for all ports at once. Balanced digits
on the wavelengths of a ring are our own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps, join
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._shares import widths_of_circuits
from opticcl.schedule.wavelength_exchange import exchange_wavelengths
from opticcl.units import Shape

__all__ = ["Levels", "circulant_rings", "factorisations", "folded_ring", "shared_wavelengths"]

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
MOST_VARIANTS = 40  # of a search
MOST_TRIED = limit("circulant_rings.MOST_TRIED")
MOST_TRIED_MOVES = limit("circulant_rings.MOST_TRIED_MOVES")


def accepts(
    collective: Request,
    fabric: Fabric,
    radices: tuple[int, ...] | None = None,
    stands: bool = True,
    direct: int = 0,
    folded: bool = False,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radices: of the levels, the shortest stride first.
        stands: whether all levels stand at once.
        direct: levels of one step, the first ones [count].
        folded: whether the ring is folded.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    one_level = len(radices or (1,)) == 1 and not direct
    if folded and not (one_level and collective.name != "all_to_all" and fabric.num_nodes > 3):
        return "a folded ring has one level of 4 nodes or more, and no all_to_all; try folded=false"
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
    """On a TeraRack: up to three levels, of which none has another with as few settings, steps and bytes on the wire; a folded
    ring, whose light passes the fewest interfaces."""
    if collective.name not in COLLECTIVES or collective.name == "barrier":
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
    tried: list[dict[str, object] | NotTried] = [
        {"radices": radices, "stands": stands, **({"direct": direct} if direct else {})}
        for _, radices, direct, stands in _spaced(sorted(front), MOST_VARIANTS)
    ]
    if n > 3 and not moves:
        tried.append({"folded": True})
    if len(front) > MOST_VARIANTS:
        why = f"a search evaluates {MOST_VARIANTS} of {len(front)} that may be the fastest, evenly spaced"
        tried.append(NotTried("other radices", why))
    if skipped:
        tried.append(left_out(min(skipped.values()), most_tried, f"{len(skipped):,} choices of radices"))
    return tried


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


@register_algorithm("circulant_rings", accepts, variants, systems=("terarack",))
def circulant_rings(
    collective: Request,
    fabric: Fabric,
    *,
    radices: Shape | None = None,
    stands: bool = True,
    direct: int = 0,
    folded: bool = False,
) -> Schedule:
    """Rings of several strides: floor(b / 2) steps a level, or one if it is direct; twice as many for all_reduce.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all or barrier.
        fabric: a TeraRack.
        radices: b of each level, the shortest stride first; their product is the number of nodes; None: one level.
        stands: whether the circuits of all levels stand at once, and share the wavelengths; else one after the other.
        direct: levels of one step, the first ones [count].
        folded: whether the ring of the one level is folded, so that each circuit passes one node at most.
    """
    levels = Levels(radices or (fabric.num_nodes,), direct)
    moves, phases = collective.name == "all_to_all", list[Phase]()
    if fabric.num_nodes > 1:
        out = [one for number in range(len(levels.radices)) for one in levels.moments(number, moves)]
        gathers = collective.name in ("all_reduce", "barrier", "all_gather")
        back = [one.reversed() for one in reversed(out)] if gathers else []
        phases = [levels.phase(one) for one in ([] if collective.name == "all_gather" else out) + back]
        cut = len(out) if collective.name == "all_reduce" else None
    else:
        cut = None
    space = Space(levels.space.radices, folded_ring(fabric.num_nodes)) if folded else levels.space
    steps = Steps(space, [levels.part], phases)
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=levels.owners(moves, steps))
    return Schedule.of("circulant_rings", chunks, steps, stands=stands, cut=cut)


def folded_ring(num_nodes: int) -> IntArray:
    """Nodes in the order of a folded ring, int32 (num_nodes,).

    >>> folded_ring(7).tolist()
    [0, 2, 4, 6, 5, 3, 1]
    """
    out = np.arange(0, num_nodes, 2, dtype=np.int32)
    return np.concatenate([out, np.arange(1, num_nodes, 2, dtype=np.int32)[::-1]])


def shared_wavelengths(levels: Levels, wavelengths: int, moves: bool) -> tuple[int, ...]:
    """Wavelengths of a circuit of each level if all stand: each of the others goes where it saves most [count].

    Args:
        levels: of the rings.
        wavelengths: of a fibre [count].
        moves: whether contributions are kept apart.

    >>> shared_wavelengths(Levels((32, 32)), 64, False)
    (32, 1)
    """
    return widths_of_circuits(levels.wavelengths, levels.loads(moves), wavelengths)


@dataclass(frozen=True)
class _Way:
    """Transfers of every node to the node so far ahead, or back.

    Args:
        move: nodes to the receiver.
        target: nodes to the node that the chunks are for, or from.
        fixed: chunks are carried for the target and every node that many behind another.
        unit, units: first of the chunks of each node, and how many.
        met: contributions of each chunk [count].
        shift: added to `target` from step to step.
        meets: added to `met` from step to step.
        lane: of how many, node p is on lane p modulo lanes; the transfers are those of nodes on even (0) or odd lanes (1).
    """

    move: int
    target: int
    fixed: int
    unit: int
    units: int
    met: int = 1
    shift: int = 0
    meets: int = 0
    lane: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Moment:
    """Steps of a level in which equal bytes go the same ways.

    Args:
        count: steps.
        op: of the receivers.
        ways: transfers, in the order of the list.
        mirrored: the transfers whose reversals use the same circuits, where it is not these.
    """

    count: int
    op: Op
    ways: tuple[_Way, ...]
    mirrored: tuple[_Way, ...] | None = None

    def reversed(self) -> _Moment:
        """Every transfer backwards, in the opposite order, stored."""

        def back(way: _Way) -> _Way:
            last = way.target + (self.count - 1) * way.shift
            return replace(way, move=-way.move, target=last - way.move, shift=-way.shift, met=1, meets=0)

        return _Moment(self.count, Op.COPY, tuple(map(back, self.mirrored or self.ways)))


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
        shares = []
        for number, (b, s) in enumerate(zip(self.radices, self.strides, strict=True)):
            if number < self.direct:
                shares.append(1 / (b if moves else s * b))
            elif not moves:
                shares.append((b - 1) / (2 * s * b))
            elif self.halves_move and number == len(self.radices) - 1:
                shares.append(b / 8)
            else:
                shares.append(b // 2 * (b // 2 + 1) / (2 * b))
        return tuple(shares)

    @property
    def halves_move(self) -> bool:
        """Whether half of the chunks of an all-to-all come from the opposite node on each side, on the last level."""
        return self.direct < len(self.radices) and self.radices[-1] % 2 == 0

    @cached_property
    def apart(self) -> int:
        """Neighbouring nodes that do not all do the same, where lanes differ: the least number of them that divides strides."""
        lanes = [self.lanes(number) for number in range(self.direct) if self.lanes(number)]
        on = lcm(*(2 if many % 2 == 0 else many for many in lanes))
        below = 1
        for radix in self.radices:
            for factor in range(1, radix + 1):
                if radix % factor == 0 and (below * factor) % on == 0:
                    return below * factor
            below *= radix
        return below

    @property
    def space(self) -> Space:
        """One digit, or the nodes that do the same and the nodes between them."""
        return Space((self.num_nodes // self.apart, self.apart))

    @property
    def part(self) -> MessagePart:
        """Chunks numbered by the digits of their node, the first level most significant."""
        fields: list[tuple[int, int, int]] = []
        for radix, stride in zip(self.radices, self.strides, strict=True):
            if stride >= self.apart:
                fields.append((0, stride // self.apart, radix))
            elif stride * radix <= self.apart:
                fields.append((1, stride, radix))
            else:
                fields += [(0, 1, stride * radix // self.apart), (1, stride, self.apart // stride)]
        return MessagePart((*fields, (UNIT, 1, self.units)), self.units)

    def owners(self, moves: bool, steps: Steps) -> IntArray:
        """Node that each chunk is for, int (chunks,).

        Args:
            moves: whether contributions are kept apart.
            steps: with the part.
        """
        owner = steps.owners.copy()
        if moves and self.halves_move:  # the second chunk beside a node's own is that of the next node of its ring
            second = steps.parts[0].labels(np.arange(len(owner)), 2)[1] == 1
            owner[second] = (owner[second] + self.strides[-1]) % self.num_nodes
        return owner

    def moments(self, number: int, moves: bool) -> list[_Moment]:
        """The steps of a level in a reduce-scatter or an all-to-all.

        Args:
            number: of the level.
            moves: whether contributions are kept apart.
        """
        b, stride, op = self.radices[number], self.strides[number], Op.MOVE if moves else Op.REDUCE
        if number < self.direct:
            return [_Moment(1, op, self._direct(number, moves, 0), self._direct(number, moves, 1))]
        if moves and number == len(self.radices) - 1 and self.halves_move:
            return self._halves()
        far, fixed, even = b // 2, stride * b, b % 2 == 0
        whole = far - even  # the farthest first; on an even ring that step is another
        first: list[_Moment] = []
        if even and moves:  # whole blocks, by one side
            first = [_Moment(1, op, (_Way(stride, far * stride, fixed, 0, self.units, stride),))]
        elif even:  # of two chunks of a node one by each side, so that all nodes do the same
            ways = tuple(_Way(way * stride, way * far * stride, fixed, int(way < 0), 1) for way in (1, -1))
            first = [_Moment(1, op, ways)]
        met = {1: far - whole + 1, -1: (b - 1) // 2 - whole + 1} if moves else {1: 1, -1: 1}
        rest = tuple(
            _Way(
                way * stride,
                way * whole * stride,
                fixed,
                0,
                self.units,
                met[way] * stride if moves else 1,
                -way * stride,
                stride if moves else 0,
            )
            for way in (1, -1)
        )
        return first + ([_Moment(whole, op, rest)] if whole else [])

    def _direct(self, number: int, moves: bool, odd: int) -> tuple[_Way, ...]:
        """Sums for all nodes up to half of the ring of the level away.

        Args:
            number: of the level.
            moves: whether contributions are kept apart.
            odd: whether nodes on odd lanes send to the opposite node ahead, and those on even lanes to the one back.
        """
        b, stride, ways = self.radices[number], self.strides[number], list[_Way]()
        for way in (1, -1):
            for away in range(1, b // 2 + 1):
                move = way * away * stride
                lane = (self.lanes(number), odd if way == 1 else 1 - odd) if 2 * away == b else None
                met = stride if moves else 1
                ways.append(_Way(move, move, stride * b, 0, self.units, met, lane=lane))
        return tuple(ways)

    def _halves(self) -> list[_Moment]:
        """Contributions on the last level for the nodes that number of places away, and for those a place nearer."""
        b, stride = self.radices[-1], self.strides[-1]
        far, moments = b // 2, list[_Moment]()
        if far > 1:
            ahead = _Way(stride, (far - 1) * stride, self.num_nodes, 0, 2, stride, -stride, stride)
            behind = _Way(-stride, -far * stride, self.num_nodes, 0, 2, stride, stride, stride)
            moments = [_Moment(far - 1, Op.MOVE, (ahead, behind))]
        own = _Way(stride, 0, self.num_nodes, 1, 1, far * stride)  # those for the node a place nearer are there
        other = _Way(-stride, -stride, self.num_nodes, 0, 1, far * stride)
        return [*moments, _Moment(1, Op.MOVE, (own, other))]

    def phase(self, moment: _Moment) -> Phase:
        """The phase of a moment.

        Args: moment: of one of the levels.
        """
        n, apart = self.num_nodes, self.apart
        rows, bundles = [], [0]
        for way in moment.ways:
            sender = np.arange(apart)
            if way.lane is not None:
                lanes, odd = way.lane
                sender = sender[sender % lanes % 2 == odd]
            target, receiver = (sender + way.target) % n, (sender + way.move) % n
            count = n // max(way.fixed, apart), max(apart // way.fixed, 1)
            step = max(way.fixed // apart, 1), way.fixed if way.fixed < apart else 1
            lo = np.stack([target // apart % max(way.fixed // apart, 1), target % min(way.fixed, apart)], axis=1)
            rows.append(
                PhaseRows.of(
                    2,
                    np.stack([0 * sender, sender], axis=1),
                    np.stack([receiver // apart, receiver % apart], axis=1),
                    lo,
                    count,
                    step,
                    unit_lo=way.unit,
                    unit_count=way.units,
                    op=int(moment.op),
                    parts=way.met,
                    shift=np.array([way.shift // apart, 0]),
                    parts_step=way.meets,
                )
            )
            bundles.append(bundles[-1] + len(sender))
        return Phase(join(rows), (True, False), moment.count, tuple(bundles[:-1]))
