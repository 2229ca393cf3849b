"""All dimensions of a grid at once: the walks of SiPCO on any fabric on the lines of whose grid all nodes are linked.

The message is cut into as many groups as the grid has sides; in every step the groups are on lines of different dimensions,
so a node sends to all its neighbours on all its lines in every step, and the same circuits serve them all. On a LIGHTPATH of
256 tiles the grid 2x2x2x2x2x2x2x2 gives every tile eight neighbours with two of its 16 lasers each: one reconfiguration for
an all-reduce of 16 steps, which carries 2 (N-1)/N of the message on all lasers, the least. Halving and doubling with
LUMORPH-2, which meets one neighbour a step with all lasers, reconfigures 15 times.

    collective       steps with k = L   circuits
    all_reduce       2 L                one to every node that differs in one coordinate; they stand
    reduce_scatter   L
    all_gather       L
    all_to_all       L

Source: SiPAC section V-A for the walks, of which `opticcl.schedule.sipco` has the table; halving and doubling on all ports of a
hypercube is in Johnsson and Ho 1989.
"""

from __future__ import annotations

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, Schedule
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import (
    MOST_TRANSFERS,
    SizeLimit,
    grid_of,
    pairs_on_lines,
    reason_any_not_linked,
    reason_not_shaped,
)
from opticcl.schedule.sipco import digit_walks, reason_unfit
from opticcl.units import Shape

__all__ = ["all_dimensions", "sides_within"]

TRIED = (
    "all_reduce",
    "barrier",
    "reduce_scatter",
    "all_gather",
    "all_to_all",
)  # the circuits of all steps are the same


def accepts(
    collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None, k: int | None = None
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: sides of the grid, numbered row by row; None: those of the machine.
        k: coordinates by which each group is scattered [count].
    """
    sides, n = shape or grid_of(fabric), fabric.num_nodes
    if reason := reason_not_shaped(sides, n):
        return reason
    if n * sum(side - 1 for side in sides) > MOST_TRANSFERS:
        return SizeLimit(
            f"{n * sum(side - 1 for side in sides):,} transfers a step are more than {MOST_TRANSFERS:,}; give a shape"
        )
    if reason := reason_unfit(collective, sides, k):
        return reason
    return reason_any_not_linked(fabric, pairs_on_lines(sides))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """On a LIGHTPATH: grids with at most as many neighbours as a tile has lasers, each with fewest steps and least volume."""
    if not isinstance(fabric.machine, Lightpath) or collective.name not in TRIED:
        return []
    shapes = sides_within(fabric.num_nodes, fabric.lasers_per_port)
    if collective.name != "all_reduce":
        return [{"shape": shape} for shape in shapes]
    return [{"shape": shape, "k": k} for shape in shapes for k in sorted({0, 1, len(shape)})]


def sides_within(num_nodes: int, neighbours: int) -> list[tuple[int, ...]]:
    """Grids of that many nodes with 2 or more sides and at most that many neighbours of a node; of each number of sides the
    one with the shortest longest side.

    >>> sides_within(64, 16)
    [(8, 8), (4, 4, 4), (4, 4, 2, 2), (4, 2, 2, 2, 2), (2, 2, 2, 2, 2, 2)]
    >>> sides_within(7, 16), sides_within(15, 16)
    ([], [(5, 3)])
    """
    best: dict[int, tuple[int, ...]] = {}

    def extend(chosen: tuple[int, ...], left: int, most: int) -> None:
        if left == 1:
            if len(chosen) > 1:
                best[len(chosen)] = min(best.get(len(chosen), chosen), chosen)
            return
        for side in range(2, min(most, left) + 1):
            if left % side == 0 and sum(chosen) - len(chosen) + side - 1 <= neighbours:
                extend((*chosen, side), left // side, side)

    extend((), num_nodes, neighbours + 1)
    return [best[count] for count in sorted(best)]


@register_algorithm("all_dimensions", accepts, variants)
def all_dimensions(
    collective: Request, fabric: Fabric, *, shape: Shape | None = None, k: int | None = None
) -> Schedule:
    """All-reduce on a grid of L dimensions in L + k steps, other collectives in L steps, in the order of SiPCO.

    Args:
        collective: any.
        fabric: one on the lines of whose grid all nodes are linked.
        shape: sides of the grid, numbered row by row; None: those of the machine.
        k: coordinates by which each group is scattered, 0 (fewest steps) to L (least volume) [count]; None: L for all_reduce,
            else as in `sipco`.
    """
    sides = shape or grid_of(fabric)
    if k is None and collective.name == "all_reduce":
        k = len(sides)
    return digit_walks(collective, tuple(sides[::-1]), k)
