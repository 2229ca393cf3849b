"""All-to-all on a grid along rows and columns at once: nodes are coloured as a chessboard, and a colour has its own order.

Blocks of black nodes go along a row, then along a column; those of white nodes along a column, then along a row. They are
relayed by nodes of their own colour, so that no node relays for both: the black nodes of two rows side by side, one of each
column, and the white nodes of two columns, one of each row::

    4 x 4    # . # .    from the black node in the corner, step 0:    # . 2 .    the nodes that relay for columns 0 to 3,
             . # . #                                                  . 1 . 3
             # . # .    step 1: each along its column, whatever
             . # . #    the colour

In a step every node sends to one node for each place of a line but its own, R or C in all, what is for one line of nodes: two
steps of (n - 1) / n of the message. Of the nodes of a line half send along it, so that its edges carry half as much at a time
as with all rows before all columns, and both rows and columns are busy.

Source: our own.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, grid_of, reason_any_not_linked

__all__ = ["chessboard_exchange"]


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
    """
    if collective.name != "all_to_all":
        return "it does all_to_all only"
    sides, n = grid_of(fabric), fabric.num_nodes
    if len(sides) != 2 or any(side % 2 for side in sides):
        return "it needs a grid of two even sides; try by_dimension"
    if (rows := n * (max(sides) - 1)) > MOST_TRANSFERS:
        return SizeLimit(f"{rows:,} transfers a step are more than {MOST_TRANSFERS:,}; try lumorph")
    steps = _steps(sides)
    pairs = ((some.src, some.dst) for i in range(2) for some in steps.ends(i, MOST_TRANSFERS, np.arange(n)))
    return reason_any_not_linked(fabric, pairs)


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """Where lines are so long that the lasers of a node meet their nodes in several rounds, and nothing has failed."""
    sides = grid_of(fabric)
    long = len(sides) == 2 and not any(side % 4 for side in sides) and max(sides) > fabric.lasers_per_port
    return [{}] if collective.name == "all_to_all" and long and not fabric.conditions else []


@register_algorithm("chessboard_exchange", accepts, variants, systems=("lightpath",))
def chessboard_exchange(collective: Request, fabric: Fabric) -> Schedule:
    """All-to-all in two steps, black nodes along rows and white ones along columns, then the other way round.

    Args:
        collective: all_to_all.
        fabric: a LIGHTPATH.
    """
    steps = _steps(grid_of(fabric))
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("chessboard_exchange", chunks, steps)


def _steps(sides: tuple[int, ...]) -> Steps:
    """Both steps; digits of a node are pairs of rows, the row of the pair, and the same of columns.

    Args: sides: rows and columns.
    """
    space = Space((sides[0] // 2, 2, sides[1] // 2, 2))
    phases = []
    for step in range(2):
        rows = [_rows(space, sides, step, colour) for colour in range(2)]
        columns = [np.concatenate(both) for both in zip(*rows, strict=True)]
        sent = PhaseRows.of(4, *columns[:4], op=int(Op.MOVE), parts=columns[4])
        phases.append(Phase(sent, (True, False, True, False)))
    return Steps(space, [part(space.radices, range(4))], phases)


def _rows(space: Space, sides: tuple[int, ...], step: int, colour: int) -> tuple[np.ndarray, ...]:
    """Senders, receivers, boxes of chunks (first and count) and contributions of each, of a colour in a step.

    Args:
        space: digits of the nodes.
        sides: rows and columns.
        step: 0 or 1.
        colour: 0 along a row first, 1 along a column first.
    """
    along = 1 - (step ^ colour)  # 0: along a column, whose places are rows
    across, relayed = 1 - along, step == 0
    low, place = (ends.ravel() for ends in np.mgrid[:2, : sides[along]])
    low, place = low[low != place], place[low != place]
    src, dst, count = (np.zeros((len(low), 4), np.int64) for _ in range(3))
    src[:, 2 * along + 1], src[:, 2 * across + 1] = low, low ^ colour
    dst[:, 2 * along], dst[:, 2 * along + 1] = np.divmod(place, 2)
    dst[:, 2 * across + 1] = (place % 2 if relayed else low) ^ colour
    lo, count[:] = dst.copy(), 1
    if relayed:  # all that are on the other line through it
        lo[:, 2 * across + 1], count[:, [2 * across, 2 * across + 1]] = 0, (space.radices[2 * across], 2)
    return src, dst, lo, count, np.full(len(low), 1 if relayed else sides[across])
