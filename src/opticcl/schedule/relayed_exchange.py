"""All-to-all with relays over few links a node, set once a job: blocks for a node take the same way from where they meet.

On a grid whose two sides are powers of two the links are a wrapped butterfly, `opticcl.schedule._butterfly`: 64, 256 and 1,024
nodes are 4.6, 7.6 and 9.5 hops apart on average, and a link sends a few runs of blocks a step.

On another grid every line is a ring in an order of its own, as on a twisted grid, but one with symmetries. A node leads to the
node that is m^c further on its line, c the sum of its other coordinates, for a multiplier m that is prime to all sides::

    8 x 8, m = 3    row 0, 2, 4, 6    0 - 1 - 2 - 3 - 4 - 5 - 6 - 7 - 0        and so are the columns
                    row 1, 3, 5, 7    0 - 3 - 6 - 1 - 4 - 7 - 2 - 5 - 0

64 nodes are 4.8 hops apart on average, on rings in the order of the coordinates 7.1; 256 are 7.4 and 15.1, 1,024 10.2 and 31.0.
With equal sides every block is then cut into a part a dimension. Part q has the ways of part 0 with the coordinates in turn,
so that all NICs carry as much. All links stand from the first step on.

On one line a node leads to the nodes s_1, s_2, ... further and to one of these at a time. A block takes all hops of the last
stride, then those of the one before, so that each is set once. The 15 others of 16 nodes are 46 hops away in all.

A hop takes as long as its block on the wavelengths of the link: W on a grid, floor(W / 2) with two strides.

Source: circulants of two strides are known as double loops, Wong and Coppersmith 1974. Lines of powers of a multiplier are our
own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, lcm

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers, concatenate_transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._butterfly import Butterfly, levels_and_degree
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, long_sides, reason_not_linked
from opticcl.units import Shape

__all__ = ["relayed_exchange"]

MOST_ROWS_TRIED = limit("relayed_exchange.MOST_ROWS_TRIED")
MOST_STRIDES = limit("relayed_exchange.MOST_STRIDES")


def accepts(
    collective: Request, fabric: Fabric, multiplier: int | None = None, strides: tuple[int, ...] | None = None
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        multiplier, strides: as of `relayed_exchange`.
    """
    if collective.name != "all_to_all":
        return "it does all_to_all only"
    sides, n = long_sides(fabric, None), fabric.num_nodes
    if n < 3:
        return "it needs three or more nodes; try mesh"
    if (rows := _num_parts(sides, multiplier) * n * (n - 1)) > MOST_TRANSFERS:
        return SizeLimit(f"{rows:,} transfers are more than {MOST_TRANSFERS:,}; try rotated_exchange")
    if reason := _reason_not_led(sides, multiplier, strides):
        return reason
    ways = _ways(sides, multiplier, strides)
    if ways is None:
        return "its links do not join all nodes; give another multiplier, or other strides"
    return next(filter(None, (reason_not_linked(fabric, np.arange(n), to) for to in ways.links)), None)


def _reason_not_led(sides: tuple[int, ...], multiplier: int | None, strides: tuple[int, ...] | None) -> str | None:
    """Why parameters say no links of a grid of these sides, or None."""
    text = "x".join(map(str, sides))
    if len(sides) == 1:
        if multiplier is not None:
            return f"multiplier={multiplier} is of grids; {text} nodes in line have strides"
        if strides and (not all(0 < stride < sides[0] for stride in strides) or gcd(sides[0], *strides) > 1):
            given = "x".join(map(str, strides))
            return f"strides={given} do not lead to all {text} nodes; give 1 to {sides[0] - 1}, without a common factor of all"
        return None
    if strides is not None:
        return f"strides are of nodes in line; a grid of {text} has a multiplier"
    if multiplier is None:
        led = levels_and_degree(sides) is not None or _multipliers(sides)
        return None if led else f"no multiplier is prime to all sides of {text}; try rotated_exchange"
    if _period(sides, multiplier) is None:
        return f"multiplier={multiplier} is not prime to all sides of {text}, or its powers repeat in no part of them"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """Two strides, a butterfly, or a multiplier."""
    sides, machine, n = long_sides(fabric, None), fabric.machine_as(Oddl), fabric.num_nodes
    if collective.name != "all_to_all" or n < 3:
        return []
    butterfly = levels_and_degree(sides)
    if not (butterfly or _multipliers(sides) if len(sides) > 1 else machine.num_wavelengths > 1):
        return []
    if (rows := _num_parts(sides, None) * n * (n - 1)) > MOST_ROWS_TRIED:
        return [left_out(rows, MOST_ROWS_TRIED)]
    uneven = butterfly is not None and len(set(butterfly)) == 1  # one kind of link carries more
    return [{}, *[dict[str, object](multiplier=m) for m in _multipliers(sides) if uneven]]


@register_algorithm("relayed_exchange", accepts, variants, systems=("oddl",))
def relayed_exchange(
    collective: Request, fabric: Fabric, *, multiplier: int | None = None, strides: Shape | None = None
) -> Schedule:
    """All-to-all with relays over links that are set once: as many steps as hops to the farthest node.

    Args:
        collective: all_to_all.
        fabric: an ODDL.
        multiplier: m on a grid, prime to all sides; None: a butterfly where the two sides are powers of two, else of two
            multipliers the one whose NICs are busy for less time.
        strides: of nodes in line; None: 1 and the one with the fewest hops to all nodes.
    """
    sides, n = long_sides(fabric, None), fabric.num_nodes
    ways = _ways(sides, multiplier, strides)
    assert ways is not None, "accepts has refused them"
    parts = _num_parts(sides, multiplier)
    node = np.arange(n).reshape(sides)
    turned = [np.moveaxis(node, range(len(sides)), np.roll(range(len(sides)), q)).ravel() for q in range(parts)]

    def step(number: int) -> Transfers:
        src, dst, block, many, size = ways.moved(ways.num_steps - number)
        return concatenate_transfers(
            Transfers.of(turn[src], turn[dst], q * n + block, many, Op.MOVE, size) for q, turn in enumerate(turned)
        )

    steps = Steps.listed(n, parts * n, ways.num_steps, step, sends=True)
    chunks = collective.on(n, parts * n, owner=np.concatenate([turn[ways.owner] for turn in turned]))
    return Schedule.of("relayed_exchange", chunks, steps)


def _num_parts(sides: tuple[int, ...], multiplier: int | None) -> int:
    """Parts of every block: one a dimension where all sides are equal, unless the links are a butterfly."""
    butterfly = multiplier is None and levels_and_degree(sides) is not None
    return len(sides) if len(set(sides)) == 1 and not butterfly else 1


def _period(sides: tuple[int, ...], multiplier: int) -> int | None:
    """After how many lines the powers of a multiplier repeat; None where it is not prime to all sides, or no part of each."""
    if multiplier < 1 or any(gcd(multiplier, side) > 1 for side in sides):
        return None
    period = lcm(*(len(_powers(multiplier, side)) for side in sides))
    return None if any(side % period for side in sides) else period


def _powers(multiplier: int, side: int) -> list[int]:
    """Powers of a number that is prime to a side, modulo that, until they repeat.

    >>> _powers(3, 16)
    [1, 3, 9, 11]
    """
    found = [1]
    while (power := found[-1] * multiplier % side) != 1:
        found.append(power)
    return found


def _multipliers(sides: tuple[int, ...]) -> list[int]:
    """The least multiplier from 3 on, and the largest below half of a side whose square is 1, if there are.

    >>> _multipliers((16, 16)), _multipliers((8, 8)), _multipliers((6, 4)), _multipliers((5, 5))
    ([3, 7], [3], [5], [])
    """
    least = [m for m in range(3, max(sides)) if _period(sides, m)][:1]
    square = [m for m in (max(sides) // 2 - 1,) if m > 1 and _period(sides, m) == 2]
    return list(dict.fromkeys(least + square))


@lru_cache(maxsize=8)
def _ways(sides: tuple[int, ...], multiplier: int | None, strides: tuple[int, ...] | None) -> _Ways | Butterfly | None:
    """Ways over the links of a grid or a line; None if they do not join all nodes.

    Args:
        sides: of the grid, or the nodes in line.
        multiplier, strides: as of `relayed_exchange`.
    """
    if len(sides) == 1:
        n = sides[0]
        chosen = strides or (1, _second_stride(n))
        links = np.add.outer(np.array(chosen), np.arange(n)) % n
        return _Ways.of(_Orbits(sides, 1, links), in_turn=True)
    if multiplier is None:
        if levels_and_degree(sides) is not None:
            return Butterfly.of(sides)
        found = [ways for m in _multipliers(sides) if isinstance(ways := _ways(sides, m, None), _Ways)]
        return min(found, key=lambda ways: ways.busy, default=None)
    period = _period(sides, multiplier)
    assert period is not None, "accepts has refused the multiplier"
    place = np.indices(sides).reshape(len(sides), -1)
    links = []
    for d, side in enumerate(sides):
        powers, ahead = np.array(_powers(multiplier, side)), place.copy()
        ahead[d] = (place[d] + powers[(place.sum(0) - place[d]) % len(powers)]) % side
        links.append(np.ravel_multi_index(tuple(ahead), sides))
    return _Ways.of(_Orbits(sides, period, np.stack(links)), in_turn=False)


def _second_stride(num_nodes: int) -> int:
    """The stride that has, with 1, the fewest hops to all nodes.

    >>> _second_stride(16)
    7
    """
    tried = range(2, min(num_nodes, MOST_STRIDES + 2))
    hops = [int(_hops_in_turn(num_nodes, (1, stride)).sum()) for stride in tried]
    return tried[int(np.argmin(hops))]


def _hops_in_turn(num_nodes: int, strides: tuple[int, ...]) -> IntArray:
    """Hops of each stride to the node so far ahead, the fewest in all and of the last strides, int64 (strides, nodes)."""
    far = np.full(num_nodes, num_nodes * len(strides), np.int64)
    far[0] = 0
    found = np.zeros((len(strides), num_nodes), np.int64)
    for at, stride in enumerate(strides):
        many = num_nodes // gcd(num_nodes, stride)
        hops = np.arange(many)[:, None]
        before = (np.arange(num_nodes) - hops * stride) % num_nodes
        total = far[before] + hops
        best = total.argmin(axis=0)
        found[:at] = found[:at, before[best, np.arange(num_nodes)]]
        found[at] = best
        far = total[best, np.arange(num_nodes)]
    return found


@dataclass(frozen=True, eq=False)
class _Orbits:
    """Pairs of nodes up to the translations by a period along every side, which keep the links.

    A pair is the class of its first node, the coordinates modulo the period, and the second node once the first one is moved to
    the block at the origin.

    Args:
        sides: of the grid.
        period: divides every side.
        links: node that each link of every node leads to, int64 (links, nodes).
    """

    sides: tuple[int, ...]
    period: int
    links: IntArray

    @cached_property
    def place(self) -> IntArray:
        """Coordinates of every node, int64 (dimensions, nodes)."""
        return np.indices(self.sides).reshape(len(self.sides), -1)

    @cached_property
    def first(self) -> IntArray:
        """First node of each class, int64 (classes,)."""
        places = np.indices((self.period,) * len(self.sides)).reshape(len(self.sides), -1)
        return self._moved(places)

    @cached_property
    def ahead(self) -> tuple[IntArray, IntArray]:
        """Class of the node that each link leads to, int64 (links, classes), and of each pair the second node of the one that
        it becomes there, int64 (links, classes, nodes)."""
        to = self.place[:, self.links[:, self.first]]  # (dimensions, links, classes)
        base = to % self.period
        classes = np.ravel_multi_index(tuple(base), (self.period,) * len(self.sides))
        return classes, self._moved(self.place[:, None, None, :] - (to - base)[..., None])

    def _moved(self, place: IntArray) -> IntArray:
        """Nodes of coordinates modulo the sides."""
        found: IntArray = np.ravel_multi_index(tuple(place), self.sides, mode="wrap")
        return found

    def all_of(self, classes: IntArray, seconds: IntArray) -> tuple[IntArray, IntArray]:
        """Nodes of all translations of pairs, int64 (pairs, translations) each."""
        blocks = np.indices(tuple(side // self.period for side in self.sides)).reshape(len(self.sides), 1, -1)
        firsts = self.place[:, self.first[classes], None] + blocks * self.period
        return self._moved(firsts), self._moved(self.place[:, seconds, None] + blocks * self.period)


@dataclass(frozen=True, eq=False)
class _Ways:
    """The first link of each pair's way, on which the ways of all who pass there agree.

    Args:
        orbits: of the pairs.
        stage: of each pair, counted from the last: all of a stage are sent on at once, to an earlier one, int64 (classes,
            nodes).
        link: that is taken, int64 (classes, nodes).
        size: blocks that are sent on there, the own one and others', int64 (classes, nodes).
    """

    orbits: _Orbits
    stage: IntArray
    link: IntArray
    size: IntArray

    @property
    def links(self) -> IntArray:
        """Node that each link of every node leads to, int64 (links, nodes)."""
        return self.orbits.links

    @property
    def num_steps(self) -> int:
        """Stages [count]."""
        return int(self.stage.max())

    @property
    def busy(self) -> int:
        """Blocks that the busiest of all classes sends in turn, of all links together."""
        total = 0
        for stage in range(1, self.num_steps + 1):
            classes, seconds = np.nonzero(self.stage == stage)
            sizes = self.size[classes, seconds]
            order = np.lexsort((-sizes, classes))
            turn = np.arange(len(order)) - np.searchsorted(classes[order], classes[order])
            most = np.zeros(int(turn.max()) + 1, np.int64)
            np.maximum.at(most, turn, sizes[order])
            total += int(most.sum())
        return total

    @classmethod
    def of(cls, orbits: _Orbits, in_turn: bool) -> _Ways | None:
        """Ways of fewest hops; None where links do not join all nodes.

        Args:
            orbits: of the pairs.
            in_turn: whether all hops over the last link come first, of one class; else ways are those that load links evenly.
        """
        found = _stages_in_turn(orbits) if in_turn else _stages_by_distance(orbits)
        if found is None:
            return None
        stage, may = found
        size, link = np.ones_like(stage), np.full_like(stage, -1)
        for number in range(int(stage.max()), 0, -1):
            _choose(orbits, np.nonzero(stage == number), may, size, link)
        return cls(orbits, stage, link, size)

    @property
    def owner(self) -> IntArray:
        """Node that each block is for, int64 (nodes,)."""
        return np.arange(self.links.shape[1])

    def moved(self, stage: int) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """As `Butterfly.moved`; no blocks are neighbours."""
        classes, seconds = np.nonzero(self.stage == stage)
        src, target = self.orbits.all_of(classes, seconds)
        dst = self.links[self.link[classes, seconds][:, None], src]
        size = np.broadcast_to(self.size[classes, seconds][:, None], src.shape)
        return src.ravel(), dst.ravel(), target.ravel(), np.ones(src.size, np.int64), size.ravel()


def _stages_by_distance(orbits: _Orbits) -> tuple[IntArray, npt.NDArray[np.bool_]] | None:
    """Hops of each pair, and links that lead nearer, bool (links, classes, nodes)."""
    classes, seconds = orbits.ahead
    far = np.full(seconds.shape[1:], -1, np.int64)
    far[np.arange(len(far)), orbits.first] = 0
    hops = 0
    while (far < 0).any():
        reached = (far[classes[:, :, None], seconds] == hops).any(axis=0) & (far < 0)
        if not reached.any():
            return None
        hops += 1
        far[reached] = hops
    return far, far[classes[:, :, None], seconds] == far - 1


def _stages_in_turn(orbits: _Orbits) -> tuple[IntArray, npt.NDArray[np.bool_]] | None:
    """Stages of ways in line, the hops of the last stride first, and the link that each takes, bool (links, classes, nodes)."""
    n, strides = orbits.links.shape[1], tuple(orbits.links[:, 0].tolist())
    hops = _hops_in_turn(n, strides)
    behind = np.concatenate([[0], np.cumsum(hops.max(axis=1))])
    last = len(strides) - 1 - (hops[::-1] > 0).argmax(axis=0)
    stage = np.where(hops.any(axis=0), behind[last] + hops[last, np.arange(n)], 0)
    return stage[None], (np.arange(len(strides))[:, None] == last)[:, None]


def _choose(
    orbits: _Orbits, pairs: tuple[IntArray, ...], may: npt.NDArray[np.bool_], size: IntArray, link: IntArray
) -> None:
    """Choose links for the pairs of a stage, so that those of a node carry about as much; `size` and `link` are written.

    Pairs with one link come first, then the largest; each takes the link that has least so far.

    Args:
        orbits: of the pairs.
        pairs: classes and second nodes.
        may: links that pairs may take, bool (links, classes, nodes).
    """
    classes, seconds = pairs
    choices, blocks = may[:, classes, seconds].T, size[classes, seconds]
    order = np.lexsort((-blocks, choices.sum(axis=1) > 1, classes))
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.searchsorted(classes[order], classes[order])
    load = np.zeros((len(orbits.first), len(orbits.links)), np.int64)
    for rows in _groups(turn):  # one pair of each class
        mine = classes[rows]
        taken = np.where(choices[rows], load[mine], np.iinfo(np.int64).max).argmin(axis=1)
        load[mine, taken] += blocks[rows]
        link[mine, seconds[rows]] = taken
    chosen = link[classes, seconds]
    to, second = orbits.ahead
    np.add.at(size, (to[chosen, classes], second[chosen, classes, seconds]), blocks)


def _groups(number: IntArray) -> Iterator[IntArray]:
    """Rows of each number from 0 on."""
    order = np.argsort(number, kind="stable")
    yield from np.split(order, np.cumsum(np.bincount(number))[:-1])
