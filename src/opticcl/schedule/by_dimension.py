"""All-to-all on a grid, one dimension after the other: a block is sent to the node of the same line that has the coordinate of
its destination.

    2 x 3    0 1 2    step 0, columns: 0 sends to 3 the blocks for 3, 4, 5, and receives from 3 those for 0, 1, 2
             3 4 5    step 1, rows: 0 sends to 1 and 2 the blocks for them, from itself and from 3

In the step of a side n every node sends n - 1 times N / n blocks, (n-1)/n of its buffer.

Source: ODDL section 6 (all-to-all in groups, a dimension each).
"""

from __future__ import annotations

from opticcl.collective import Request
from opticcl.ir import Fabric, Schedule
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import (
    MOST_TRANSFERS,
    SizeLimit,
    grid_of,
    pairs_on_lines,
    reason_any_not_linked,
    reason_not_shaped,
)
from opticcl.schedule._walk import visits, walk
from opticcl.units import Shape


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: sides of the grid; None: those of the machine.
    """
    if collective.name != "all_to_all":
        return "it does all_to_all only"
    n, sides = fabric.num_nodes, shape or grid_of(fabric)
    if reason := reason_not_shaped(sides, n):
        return reason
    if n * (max(sides) - 1) > MOST_TRANSFERS:
        return SizeLimit(f"{n * (max(sides) - 1):,} transfers a step are more than {MOST_TRANSFERS:,}; give a shape")
    return reason_any_not_linked(fabric, pairs_on_lines(sides))


@register_algorithm("by_dimension", accepts)
def by_dimension(collective: Request, fabric: Fabric, *, shape: Shape | None = None) -> Schedule:
    """All-to-all in one step for each dimension of a grid.

    Args:
        collective: all_to_all.
        fabric: the fabric.
        shape: sides of the grid; None: those of the machine, or a single line where it has none.
    """
    space = Space(tuple(shape or grid_of(fabric)))
    steps, _ = walk(collective, space, [visits(space.radices, range(len(space.radices)))])
    return Schedule.of("by_dimension", collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners), steps)
