"""WRHT: a tree of groups along the ring; a representative in the middle of each collects from both sides at the same time.

    level 0   0 1 2 3 4 | 5 6 7 8 9 | 10 11 12 13 14      groups of m = 5, light from the left and from the right
    level 1       2     |     7     |       12            the representatives: groups again, or all-to-all
    and back on the same path

A group of m needs floor(m / 2) wavelengths, so m = 2w + 1 is the most that w wavelengths serve; groups share no fibre
and reuse them. Once w wavelengths are enough for an all-to-all exchange of the R representatives of a level, they exchange
in a single step, and no further level is needed. On a torus or mesh every row has such a tree, and the
tops of the rows, which form one column, continue along it.

Every collective consists of collecting up the tree, exchanging and distributing down the tree, or some of these. Where there
is a root, the tree is shifted round the ring until its top is the root, and there is no exchange. A member of level i
represents the m^i nodes around it, so that a transfer carries all blocks or a range of them:

                      collect            exchange           distribute
    all_reduce        all, added         all, added         all
    reduce            all, added
    broadcast                                               all
    gather            the sender's
    scatter                                                 the receiver's
    all_gather        the sender's       the sender's       all
    reduce_scatter    all, added         the receiver's     the receiver's
    all_to_all        all, kept apart    the receiver's     the receiver's

Source: WRHT sections 4.1, 4.2, 6.1 for all_reduce, whose two stages are a reduce and a broadcast; the others are own
constructions.
Reading: the paper places the exchange on the last level only and states 2 ceil(log_m N) as a lower bound (lemma 1),
which its own table 1 contradicts. Here the first level i whose exchange fits ends the tree, in 2 i + 1 steps; where none
does, 2 ceil(log_m N). With m = 2w + 1 no other m is better. variant=published never exchanges, as the paper's
evaluation counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from opticcl.collective import ROOTED, Request
from opticcl.fabrics.terarack import Terarack
from opticcl.fabrics.terarack_torus import TerarackTorus
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.light import Limit, count_in_words
from opticcl.ir.limits import limit
from opticcl.schedule import register_algorithm
from opticcl.schedule.wavelength_exchange import CLOCKWISE, channels, exchange_wavelengths, lap_of

__all__ = [
    "Step",
    "Tree",
    "TreeLine",
    "Variant",
    "WrhtPhase",
    "longest_lightpath",
    "middle_places",
    "one_step_wavelengths",
    "sides",
    "stripes",
    "tree",
    "wraps",
    "wrht",
]

ALL_SIZES_UP_TO = limit("wrht.ALL_SIZES_UP_TO")

Variant = Literal["optimal", "published"]


class WrhtPhase(IntEnum):
    """What a step does with a level of the tree."""

    COLLECT = 0
    EXCHANGE = 1
    DISTRIBUTE = 2


class _Work(NamedTuple):
    """What a transfer carries (blocks of all nodes, or of those that its sender or receiver represents) and its operation."""

    part: Literal["all", "sender's", "receiver's"]
    op: Op


_ALL, _ALL_ADDED, _ALL_MOVED = (_Work("all", op) for op in (Op.COPY, Op.REDUCE, Op.MOVE))
_OWN = _Work("sender's", Op.COPY)
_THEIRS, _THEIRS_ADDED, _THEIRS_MOVED = (_Work("receiver's", op) for op in (Op.COPY, Op.REDUCE, Op.MOVE))

_WORK: dict[str, tuple[_Work | None, _Work | None, _Work | None]] = {  # by stage
    "all_reduce": (_ALL_ADDED, _ALL_ADDED, _ALL),
    "barrier": (_ALL_ADDED, _ALL_ADDED, _ALL),
    "reduce": (_ALL_ADDED, None, None),
    "broadcast": (None, None, _ALL),
    "gather": (_OWN, None, None),
    "scatter": (None, None, _THEIRS),
    "all_gather": (_OWN, _OWN, _ALL),
    "reduce_scatter": (_ALL_ADDED, _THEIRS_ADDED, _THEIRS),
    "all_to_all": (_ALL_MOVED, _THEIRS_MOVED, _THEIRS_MOVED),
}


@dataclass(frozen=True, slots=True, eq=False)
class TreeLine:
    """The representatives along a row, or along the column of the rows' tops; a ring is a single row.

    Nodes have places along the line, counted from coordinate `first`.

    Args:
        side: places [count].
        stride: distance between the numbers of neighbours.
        levels: places that take part in each level, ascending; the first are all.
        first: coordinate of place 0.
    """

    side: int
    stride: int
    levels: tuple[IntArray, ...]
    first: int

    @property
    def top(self) -> int:
        """Place of the first (on a tree without exchange the only) member of the last level."""
        return int(self.levels[-1][0])

    def member(self, level: int, node: IntArray) -> IntArray:
        """Number of each node among the members of a level."""
        return np.searchsorted(self.levels[level], (node // self.stride - self.first) % self.side)


class Step(NamedTuple):
    """One step: phase, line (0 the rows, 1 the column) and level."""

    stage: WrhtPhase
    line: int
    level: int


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The tree and its steps.

    Args:
        lines: of the rows, which are identical, and of the column of their tops.
        group_size: nodes m of a full group [count].
        steps: in order.
    """

    lines: tuple[TreeLine, ...]
    group_size: int
    steps: tuple[Step, ...]

    def node(self, position: IntArray) -> IntArray:
        """Nodes at the given positions; position r * columns + c is place c of the row at place r of the column."""
        nodes = np.zeros_like(position)
        for line in self.lines:
            nodes += (position // line.stride + line.first) % line.side * line.stride
        return nodes


def sides(fabric: Fabric) -> tuple[int, int]:
    """Nodes of a row and of a column; a ring is a single row."""
    rows, columns = (1, *fabric.machine.dimensions)[-2:]
    return columns, rows


def wraps(fabric: Fabric) -> bool:
    """Whether the last node of a row or column is followed by the first; a mesh has ends."""
    machine = fabric.machine
    return machine.wrap if isinstance(machine, TerarackTorus) else True


def stripes(fabric: Fabric) -> bool:
    """Whether a transfer may use several wavelengths."""
    machine = fabric.machine
    return isinstance(machine, (Terarack, TerarackTorus)) and machine.striping


def one_step_wavelengths(fabric: Fabric, num_nodes: int) -> int:
    """Wavelengths for an all-to-all exchange of `num_nodes` nodes on a ring or, floor(R^2 / 4), on a line of a mesh.

    Source: WRHT sections 4.1.2, 6.1. The middle segment of a line is on the path of every pair with a node on each side.
    """
    return exchange_wavelengths(num_nodes) if wraps(fabric) else num_nodes**2 // 4


def tree(fabric: Fabric, collective: Request, group_size: int | None = None, variant: Variant = "optimal") -> Tree:
    """The tree over all nodes: along every row, then along the column of the rows' tops.

    Args:
        fabric: a TeraRack ring, torus or mesh.
        collective, group_size, variant: as in `wrht`.
    """
    w = channels(fabric)
    m = 2 * w + 1 if group_size is None else group_size
    rooted = collective.name in ROOTED

    def fits(num_nodes: int) -> bool:
        if rooted or variant == "published" or num_nodes == 1:
            return False
        return one_step_wavelengths(fabric, num_nodes) <= w

    lines: list[TreeLine] = []
    inner: list[Step] = []
    exchange: list[Step] = []
    columns, rows = sides(fabric)
    for number, (side, stride) in enumerate(((columns, 1), (rows, columns))):
        last = number == 1 or rows == 1
        levels = [np.arange(side)]
        while len(levels[-1]) > 1 and not (last and fits(len(levels[-1]))):
            members = levels[-1]
            levels.append(members[np.unique(middle_places(len(members), m))])
        first = (collective.root // stride - int(levels[-1][0])) % side if rooted else 0
        lines.append(TreeLine(side, stride, tuple(levels), first))
        inner += [Step(WrhtPhase.COLLECT, number, level) for level in range(len(levels) - 1)]
        exchange += [Step(WrhtPhase.EXCHANGE, number, len(levels) - 1)] * (len(levels[-1]) > 1)
    order = inner + exchange + [step._replace(stage=WrhtPhase.DISTRIBUTE) for step in reversed(inner)]
    steps = tuple(step for step in order if _WORK[collective.name][step.stage])
    return Tree(tuple(lines), m, steps)


def middle_places(count: int, group_size: int) -> IntArray:
    """Place of the middle member of the group of each of `count` members; the last group may be shorter."""
    first = np.arange(count) // group_size * group_size
    return np.asarray(first + np.minimum(group_size, count - first) // 2)


def accepts(
    collective: Request, fabric: Fabric, group_size: int | None = None, variant: Variant = "optimal"
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        group_size, variant: as the algorithm takes them.
    """
    if collective.name not in _WORK:
        return f"it does {', '.join(_WORK)}"
    if collective.name in ROOTED and not wraps(fabric):
        return "a mesh cannot be turned to have the root at the top of its tree; try tree"
    if group_size is None:
        return None
    if group_size < 2:
        return f"group_size={group_size} collects nothing; at least 2"
    if group_size // 2 > channels(fabric):
        most = 2 * channels(fabric) + 1
        return f"group_size={group_size} needs {group_size // 2} wavelengths of {channels(fabric)}; at most {most}"
    return None


def _variants(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    """The largest groups; also the smallest with the same number of steps, where these carry less or leave wavelengths free."""
    yield {}
    if accepts(collective, fabric) or not (_carries_blocks(collective) or stripes(fabric)):
        return
    fewest = len(tree(fabric, collective).steps)
    largest = min(2 * channels(fabric) + 1, max(sides(fabric)))
    for size in range(2, largest):
        if len(tree(fabric, collective, size).steps) == fewest:
            yield {"group_size": size}
            return


def _carries_blocks(collective: Request) -> bool:
    """Whether the message is cut into blocks, one a node; otherwise every transfer carries all of it."""
    return any(work is not None and work.part != "all" for work in _WORK[collective.name])


def longest_lightpath(fabric: Fabric, group_size: int) -> int:
    """Interfaces that the longest lightpath of WRHT's all-reduce passes on a ring.

    Members of a group send straight to the one in their middle, and the last level exchanges each to each, mostly the shorter
    way. Equation 7 gives up to 32 times less; see docs/papers/wrht.md.
    """
    levels = tree(fabric, Request("all_reduce"), group_size).lines[0].levels
    longest = 0
    for members, middles in pairwise(levels):
        first = np.arange(0, len(members), group_size)
        last = np.minimum(first + group_size, len(members)) - 1
        longest = max(longest, int((middles - members[first]).max()), int((members[last] - middles).max()))
    tops = levels[-1]
    if len(tops) > 1:
        src, dst = np.nonzero(~np.eye(len(tops), dtype=bool))
        direction, _ = lap_of(len(tops), src, dst)
        ahead = np.where(direction == CLOCKWISE, 1, -1) * (tops[dst] - tops[src])
        longest = max(longest, int((ahead % fabric.num_nodes).max()))
    return longest


def _limits(fabric: Fabric, of_machine: tuple[Limit, ...]) -> tuple[Limit, ...]:
    """Longest lightpath with the largest groups, and the largest groups whose longest lightpath closes."""
    if not isinstance(fabric.machine, Terarack) or fabric.num_nodes < 2 or fabric.node_of_rank is not None:
        return ()
    hops = [limit.value or 0 for limit in of_machine if limit.name in ("reach_interfaces", "crosstalk_interfaces")]
    reach = min(hops, default=0)
    largest = min(2 * channels(fabric) + 1, max(2, fabric.num_nodes))
    sizes = range(2, largest + 1) if fabric.num_nodes <= ALL_SIZES_UP_TO else (largest,)
    longest = {m: longest_lightpath(fabric, m) for m in sizes}
    least = min(longest, key=lambda m: longest[m])
    fits = [m for m, passed in longest.items() if passed <= reach]
    if fits:
        text = f"largest groups of WRHT that close: m' = {fits[-1]}"
    elif fabric.num_nodes <= ALL_SIZES_UP_TO:
        text = (
            "no group size of WRHT closes: the smallest longest lightpath is "
            f"{count_in_words(longest[least], 'interface')} (m = {least})"
        )
    else:
        text = (
            "the largest groups of WRHT do not close; smaller ones are evaluated on rings of up to "
            f"{ALL_SIZES_UP_TO:,} nodes"
        )
    farthest = count_in_words(longest[largest], "interface")
    return (
        Limit("longest_lightpath", longest[largest], f"longest lightpath of WRHT: {farthest} (m = {largest})"),
        Limit("largest_group", fits[-1] if fits else None, text),
    )


@register_algorithm("wrht", accepts, _variants, _limits, systems=("terarack", "terarack_torus"))
def wrht(
    collective: Request, fabric: Fabric, *, group_size: int | None = None, variant: Variant = "optimal"
) -> Schedule:
    """WRHT: collect level by level, exchange, distribute level by level.

    All sends of a step see the data before the step: in the exchange of an all-reduce every representative adds the
    old sums of all others.

    Args:
        collective: any but send_recv.
        fabric: a TeraRack ring, torus or mesh.
        group_size: nodes m of a group [count]; None: 2w + 1.
        variant: optimal, or published: collect to one node and distribute, 2 ceil(log_m N) steps.
    """
    n = fabric.num_nodes
    plan = tree(fabric, collective, group_size, variant)
    blocks = _carries_blocks(collective)

    def step(i: int) -> Transfers:
        stage, number, level = plan.steps[i]
        work = _WORK[collective.name][stage]
        assert work is not None
        line = plan.lines[number]
        row = np.arange(0, n, line.side * line.stride)[:, None]  # where each line of that direction begins
        tops = sum(below.top * below.stride for below in plan.lines[:number])
        src, dst = _members(plan, plan.steps[i])
        each = plan.group_size**level * line.stride  # nodes that a member represents, but for the last
        all_of_line = line.side * line.stride
        lo, count = 0, n if blocks else 1
        if work.part != "all":
            whose = src if work.part == "sender's" else dst
            lo, count = row + whose * each, np.minimum(each, all_of_line - whose * each)
        # contributions that the sender holds, where they are kept apart
        held = n if stage == WrhtPhase.DISTRIBUTE else np.minimum(each, all_of_line - src * each)
        sender, receiver = (plan.node(row + tops + line.levels[level][who] * line.stride) for who in (src, dst))
        return Transfers.of(sender, receiver, lo, count, work.op, parts=held if work.op == Op.MOVE else None)

    owner = plan.node(np.arange(n)) if blocks else None
    return Schedule("wrht", collective.on(n, n if blocks else 1, owner), len(plan.steps), step)


def _members(plan: Tree, step: Step) -> tuple[IntArray, IntArray]:
    """Sender and receiver of each transfer along a line, as numbers among the members of the level."""
    members = np.arange(len(plan.lines[step.line].levels[step.level]))
    if step.stage == WrhtPhase.EXCHANGE:
        return np.repeat(members, len(members)), np.tile(members, len(members))
    middle = middle_places(len(members), plan.group_size)
    return (members, middle) if step.stage == WrhtPhase.COLLECT else (middle, members)
