"""All-gather on a grid of any sides whose lines are closed: every block spreads in all directions at once, a hop a step.

Where a block goes is the same for every node, so it is enough to say how the block of one node spreads. In step t it reaches
the nodes t hops away, each over one of the links, or several, through which a shortest way comes. Blocks are cut into slices,
and slices are shared among those links so that all 2k directions carry the least possible in every step:

    3 x 8, t = 2        +2       down the column that it starts in, only along the column
                     +1 +1       along the row from its neighbour, or along the column from the neighbour of another

In step t the links of the dimensions D carry at least what only they can bring, the nodes at distance t within the grid of D:

    load of step t  =  max over D of  (nodes at distance t in the grid of D) / (links of a node in D)

On all grids tried these loads have the sum (N-1) / (links of a node), so that an all-gather of V takes, with c links of rate B

    T = diameter x alpha + (N - 1)/N x V / (c B)

which is the bound of the latency and that of the ports at the same time; c is two a dimension, one where a side is 2.
Reduce-scatter is the reversal: every transfer backwards, in the opposite order, added. All-reduce is both.

Source: Zhao, Pal, Chugh, Wang, Fantl, Basu, Khoury, Krishnamurthy 2025, Efficient direct-connect topologies for collective
communications (NSDI): schedules breadth first, with shares by a linear programme a step, and their optimality on tori. Here the
shares are integers and the same for all nodes, by shifting load along paths of directions.
Reading: `opticcl.schedule.torus_all_ports` is as fast where all sides are equal, in far fewer transfers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, long_sides, reason_not_linked, reason_not_shaped
from opticcl.schedule._shares import least_shares
from opticcl.units import Shape

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "barrier")
MOST_DIMENSIONS = 6
MOST_SLICES = 24  # of a block
MOST_CHUNKS = limit("breadth_first.MOST_CHUNKS")
MOST_TRIED = limit("breadth_first.MOST_TRIED")


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: sides of the grid; None: those of the machine.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if shape is not None and (reason := reason_not_shaped(shape, fabric.num_nodes)):
        return reason
    sides = long_sides(fabric, shape)
    if not 2 <= len(sides) <= MOST_DIMENSIONS:
        return f"it needs a grid of 2 to {MOST_DIMENSIONS} dimensions; try torus_all_ports or two_sided_ring"
    spread = Spread(sides)
    if prod(sides) * MOST_SLICES > MOST_CHUNKS or spread.num_nodes * int(spread.reached.max()) > MOST_TRANSFERS:
        return SizeLimit(
            f"{spread.num_nodes:,} nodes are too many for a transfer each of every block; try torus_all_ports"
        )
    node = np.arange(spread.num_nodes)
    for dimension, way in spread.directions:
        if reason := reason_not_linked(fabric, node, spread.moved(dimension, way)):
            return reason
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """Where sides differ and the transfers of all distinct steps are few enough to be evaluated."""
    sides = long_sides(fabric, None)
    if collective.name not in COLLECTIVES or len(set(sides)) < 2 or len(sides) > MOST_DIMENSIONS:
        return []
    spread = Spread(sides)
    first = [steps.start for steps in spread.run_steps]
    transfers = spread.num_nodes * int(spread.reached[first].sum())
    return [{}] if transfers <= MOST_TRIED else [left_out(transfers, MOST_TRIED)]


@register_algorithm("breadth_first", accepts, variants)
def breadth_first(collective: Request, fabric: Fabric, *, shape: Shape | None = None) -> Schedule:
    """All-gather or reduce-scatter in as many steps as the diameter has hops, all_reduce in twice as many.

    Args:
        collective: all_reduce, reduce_scatter, all_gather or barrier.
        fabric: the fabric.
        shape: sides of the grid; None: those of the machine.
    """
    spread = Spread(long_sides(fabric, shape))
    phases: list[Phase] = []
    if collective.name != "all_gather":
        phases += [spread.phase(steps, adds=True) for steps in reversed(spread.run_steps)]
    cut = len(phases)
    if collective.name != "reduce_scatter":
        phases += [spread.phase(steps, adds=False) for steps in spread.run_steps]
    space = Space(spread.sides)
    steps = Steps(space, [part(space.radices, range(len(space.radices)), spread.slices)], phases)
    chunks = collective.on(spread.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("breadth_first", chunks, steps, cut=cut if collective.name == "all_reduce" else None)


@dataclass(frozen=True)
class Spread:
    """How the block of one node spreads over a grid; chunk = (position of its node) x slices + slice.

    Args: sides: of the grid, 2 or more each.
    """

    sides: tuple[int, ...]

    @property
    def num_nodes(self) -> int:
        """Product of the sides [count]."""
        return prod(self.sides)

    @cached_property
    def directions(self) -> tuple[tuple[int, int], ...]:
        """Dimension and way, 1 or -1, of every link of a node; one way where a side is 2."""
        return tuple((d, way) for d, side in enumerate(self.sides) for way in ((1, -1) if side > 2 else (1,)))

    @cached_property
    def distance(self) -> IntArray:
        """Hops to each position from position 0, int64 (num_nodes,)."""
        return _distances(self.sides)

    @cached_property
    def reached(self) -> IntArray:
        """Positions at each distance, int64 (diameter + 1,)."""
        return np.bincount(self.distance)

    @cached_property
    def loads(self) -> np.ndarray:
        """The least that a link can carry in each step, in blocks, float64 (diameter,)."""
        least = np.zeros(len(self.reached))
        every = range(len(self.sides))
        for some in (some for count in every for some in combinations(every, count + 1)):
            at = np.bincount(_distances(tuple(self.sides[d] for d in some)))
            least[: len(at)] = np.maximum(least[: len(at)], at / sum(d in some for d, _ in self.directions))
        return least[1:]

    @cached_property
    def slices(self) -> int:
        """Fewest slices that share all blocks evenly; of those allowed, the ones that come nearest [count]."""
        count = np.arange(1, MOST_SLICES + 1)
        whole = np.ceil(self.loads[:, None] * count - 1e-9).sum(0) / count
        return int(count[np.argmax(whole <= whole.min() * (1 + 1e-9))])

    @cached_property
    def run_steps(self) -> tuple[range, ...]:
        """Steps, numbered by distance from 1, in runs: between these distances only the longest dimension goes on."""
        longest, diameter = max(self.sides), len(self.reached) - 1
        start, stop = diameter - longest // 2 + 1, (longest + 1) // 2
        if stop - start < 2:
            start = stop = diameter + 1
        alone = [range(t, t + 1) for t in range(1, diameter + 1) if not start <= t < stop]
        between = [range(start, stop)] if start < stop else []
        return tuple(sorted(alone + between, key=lambda steps: steps.start))

    def moved(self, dimension: int, way: int) -> IntArray:
        """The position next to each in that direction, int64 (num_nodes,)."""
        node, stride, side = np.arange(self.num_nodes), prod(self.sides[dimension + 1 :]), self.sides[dimension]
        at = node // stride % side
        nodes: IntArray = node + ((at + way) % side - at) * stride
        return nodes

    def phase(self, steps: range, adds: bool) -> Phase:
        """The transfers of consecutive distances; from one to the next, blocks are one node further in the longest dimension.

        Args:
            steps: distances.
            adds: the reversal, for reduce-scatter.
        """
        columns: list[tuple[IntArray, ...]] = []
        longest = self.sides.index(max(self.sides))
        coordinates = np.stack(np.unravel_index(np.arange(self.num_nodes), self.sides), axis=1)
        for direction, at, first, count in self._shares(steps[-1] if adds else steps[0]):
            dimension, way = self.directions[direction]
            end, behind = np.zeros((len(at), len(self.sides)), np.int64), -coordinates[at]
            end[:, dimension] = -way if adds else way
            if not adds:  # seen from the sender, which is a hop nearer
                behind[:, dimension] += way
            shift = np.zeros_like(end)
            if len(steps) > 1:
                ahead = 2 * coordinates[at, longest] < self.sides[longest]
                shift[:, longest] = np.where(ahead == adds, 1, -1)
            columns.append((end, behind, shift, first, count, (shift[:, longest] == (-1 if adds else 1)).astype(int)))
        end, behind, shift, first, count, back = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(back, kind="stable")  # those that go ahead stand before the others
        end, behind, shift, first, count = (column[order] for column in (end, behind, shift, first, count))
        radices, op = np.array(self.sides), Op.REDUCE if adds else Op.COPY
        rows = PhaseRows.of(
            len(self.sides), 0, end % radices, behind % radices, unit_lo=first, unit_count=count, op=op, shift=shift
        )
        return Phase(rows, (True,) * len(self.sides), len(steps), tuple(range(len(rows))))

    def _shares(self, distance: int) -> Iterator[tuple[int, IntArray, IntArray, IntArray]]:
        """For each direction: positions at that distance that it brings to, first slice and number of slices of each.

        Positions that the same directions can bring to are of one kind; their slices follow each other and are cut among the
        directions.
        """
        position = np.flatnonzero(self.distance == distance)
        can = np.stack([self.distance[self.moved(d, -way)][position] < distance for d, way in self.directions], axis=1)
        kinds, kind = np.unique(can, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        shares = least_shares(kinds, np.bincount(kind) * self.slices)
        for number, of_kind in enumerate(shares):
            mine, ends = position[kind == number], np.cumsum(of_kind)
            for direction in np.flatnonzero(of_kind):
                start, stop = ends[direction] - of_kind[direction], ends[direction]
                which = np.arange(start // self.slices, -(-stop // self.slices))
                first = np.maximum(start - which * self.slices, 0)
                last = np.minimum(stop - which * self.slices, self.slices)
                yield int(direction), mine[which], first, last - first


def _distances(sides: tuple[int, ...]) -> IntArray:
    """Hops to each position of a grid with closed lines from position 0, int64 (product of the sides,).

    >>> _distances((2, 4)).tolist()
    [0, 1, 2, 1, 1, 2, 3, 2]
    """
    distances = np.zeros(1, np.int64)
    for side in sides:
        along = np.minimum(np.arange(side), side - np.arange(side))
        distances = (distances[:, None] + along).ravel()
    return distances
