"""WRHT's tree on circuits that all stand at once: one reconfiguration, and none if the same collective follows.

Groups of m_0 neighbours collect to their middle node, groups of m_1 of these nodes to theirs, and so on; the R nodes of the
last level exchange, and the sums go back. WRHT retunes between the levels. Here every level has wavelengths of its own; what is
collected from before the middle node travels on one fibre, what is sent back to there on the other, so they are the same ones:

    sum of k_i floor(m_i / 2) + k W(R) <= w      W(R): wavelengths of an exchange among R nodes
    T = R + (2 L + 1) alpha + V / B (2 sum 1 / k_i + 1 / k)

Where one node is left there is no exchange: 2 L steps.

A broadcast goes down such a tree from its root, turned so that the root is the last middle node, without an exchange; a reduce
goes up. With S pieces that follow each other it takes (L + S - 1) (alpha + V / (S B) max 1 / k_i).

With `cut`, the exchange is a reduce-scatter and an all-gather on the same circuits: a step more, V / B x 2 / (R k).

A reduce-scatter collects whole messages, exchanges what the groups of each of the R nodes need, and sends every node what is
for the nodes that collect at it; an all-gather is the reversal. The nodes of a group are neighbours, so what is for them is a
range. V / B (sum 1 / k_i + 1 / (R k)) and little more.

Source: WRHT section 4.1 for the tree and its wavelengths; that it may stand is our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import inf, prod, sqrt

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._pipeline import MOST_PIECES, PipelineStage, pipelined
from opticcl.schedule._shares import widths_of_circuits
from opticcl.schedule.wavelength_exchange import exchange_wavelengths
from opticcl.schedule.wrht import middle_places
from opticcl.units import Shape

__all__ = ["BLOCKS", "StandingTree", "groups_of", "shared_among", "standing_tree", "tree_of"]

COLLECTIVES = ("all_reduce", "broadcast", "reduce", "reduce_scatter", "all_gather", "barrier")
ROOTED = ("broadcast", "reduce")
BLOCKS = ("reduce_scatter", "all_gather")
PIECES = (1, 2, 3, 4, 6, 8)
MOST_EXCHANGING = limit("standing_tree.MOST_EXCHANGING")


def accepts(
    collective: Request,
    fabric: Fabric,
    groups: tuple[int, ...] | None = None,
    cut: bool = False,
    pipeline: int = 1,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        groups: nodes of a group of each level but the last.
        cut: whether the exchange cuts the message.
        pipeline: pieces of the message [count].
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    rooted = collective.name in ROOTED
    if cut and rooted:
        return f"{collective.name} has no exchange to cut; leave cut out"
    if cut and collective.name in BLOCKS:
        return f"{collective.name} exchanges blocks as it is; leave cut out"
    if not 1 <= pipeline <= MOST_PIECES:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES:,}"
    if pipeline > 1 and not rooted:
        return "pipeline is for broadcast and reduce only"
    if groups is None:
        if not any(_fitting(fabric.num_nodes, fabric.lasers_per_port, rooted)):
            return f"no groups of {fabric.num_nodes} nodes fit {fabric.lasers_per_port} wavelengths; try wrht"
        return None
    if min(groups, default=2) < 2:
        return f"groups={'x'.join(map(str, groups))}: a group of fewer than 2 nodes collects nothing"
    tree = tree_of(fabric.num_nodes, groups)
    if rooted and tree.top > 1:
        return f"groups={'x'.join(map(str, groups))} leave {tree.top} nodes of {fabric.num_nodes}, not one; try more levels"
    if tree.top > MOST_EXCHANGING:
        return f"{tree.top} nodes would exchange; at most {MOST_EXCHANGING}"
    if tree.fewest_wavelengths > fabric.lasers_per_port:
        return f"the tree needs {tree.fewest_wavelengths} wavelengths of {fabric.lasers_per_port}; try more levels"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """On a TeraRack: of trees with up to three collecting levels those on which some message is fastest."""
    if collective.name not in COLLECTIVES[:-1] or fabric.num_nodes < 3:
        return []
    pieces = PIECES if collective.name in ROOTED else (1,)
    return [
        {"cut": cut} | ({"groups": groups} if groups else {}) | ({"pipeline": many} if many > 1 else {})
        for groups, cut in _tried(fabric, collective)
        for many in pieces[: None if len(groups) > 1 else 1]
    ]


def _tried(fabric: Fabric, collective: Request) -> tuple[tuple[tuple[int, ...], bool], ...]:
    rooted, blocks = collective.name in ROOTED, collective.name in BLOCKS
    front = _front(fabric.num_nodes, fabric.lasers_per_port, rooted, blocks)
    return tuple((groups, False) for groups, _ in front) if blocks else front


@cache
def _front(n: int, w: int, rooted: bool, blocks: bool = False) -> tuple[tuple[tuple[int, ...], bool], ...]:
    """Groups and cuts of which none has another with as few steps and less time on the wire.

    Args:
        n: nodes [count].
        w: wavelengths of a fibre [count].
        rooted: whether one node is left, and nothing is exchanged.
        blocks: whether the exchange is always cut, in one step.
    """
    candidates = []
    for groups, top, loads in _fitting(n, w, rooted):
        for cut in (True,) if blocks else (False, True)[: 1 + (top > 2)]:
            candidates.append((_least_load(loads, top, w, cut), groups, cut, top, loads))
    best: dict[int, tuple[float, tuple[int, ...], bool]] = {}
    for least, groups, cut, top, loads in sorted(candidates):
        steps = 2 * len(groups) + (top > 1) + (cut and not blocks)
        if least * (1 - 1e-9) > best.get(steps, (inf,))[0]:
            continue
        widths = widths_of_circuits(loads, _gains(loads, top, cut), w)
        load = 2 * sum(1 / k for k in widths[:-1]) + ((2 / top if cut else 1) / widths[-1] if top > 1 else 0)
        best[steps] = min(best.get(steps, (inf, (), False)), (load, groups, cut))
    front, least = list[tuple[tuple[int, ...], bool]](), inf
    for steps in sorted(best):
        load, groups, cut = best[steps]
        if load < least:
            front.append((groups, cut))
            least = load
    return tuple(front)


def _fitting(n: int, w: int, rooted: bool) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """Groups whose tree fits the wavelengths, with the nodes that are left to exchange and the loads of its levels.

    Args: n, w, rooted: as of `_front`.
    """
    for groups in _groups(n, w):
        counts = _counts(n, groups)
        top, loads = counts[-1], _loads(counts, groups)
        if top <= (1 if rooted else MOST_EXCHANGING) and sum(loads) <= w:
            yield groups, top, loads


def _groups(n: int, w: int) -> Iterator[tuple[int, ...]]:
    """Group sizes to consider: none, or one to three levels of odd sizes, for which no side has more nodes than the other."""
    sizes = range(3, min(2 * w + 1, n) + 1, 2)
    few = [m for m in sizes if m <= 17]
    yield ()
    yield from ((a,) for a in sizes)
    yield from ((a, b) for a in sizes for b in sizes if a // 2 + b // 2 <= w)
    yield from ((a, b, c) for a in few for b in few for c in few if a // 2 + b // 2 + c // 2 < w)


def groups_of(fabric: Fabric, groups: tuple[int, ...] | None, collective: Request) -> tuple[int, ...]:
    """Groups as given, or those with the fewest steps.

    Args:
        fabric: a TeraRack.
        groups: nodes of a group, by level.
        collective: requested.
    """
    if groups is not None:
        return groups
    front = _tried(fabric, collective)
    return front[0][0] if front else ()


@register_algorithm("standing_tree", accepts, variants, systems=("terarack",))
def standing_tree(
    collective: Request, fabric: Fabric, *, groups: Shape | None = None, cut: bool = False, pipeline: int = 1
) -> Schedule:
    """WRHT's tree with all its circuits at once: 2 L + 1 steps, L of a broadcast or a reduce.

    Args:
        collective: all_reduce, broadcast, reduce, reduce_scatter, all_gather or barrier.
        fabric: a TeraRack.
        groups: nodes of a group of each level but the last, which exchanges; None: those with the fewest steps.
        cut: whether the exchange cuts the message, in two steps.
        pipeline: pieces of a broadcast or a reduce, which follow each other [count].
    """
    n = fabric.num_nodes
    rooted = collective.name in ROOTED
    tree = tree_of(n, groups_of(fabric, groups, collective))
    if rooted:
        links = [tree.turned(tree.collect(level), collective.root) for level in range(tree.levels)]
        adds = collective.name == "reduce"
        ends = links if adds else [(parent, child) for child, parent in reversed(links)]
        made = pipelined(n, [PipelineStage(*pair, 0, Op.REDUCE if adds else Op.COPY) for pair in ends], pipeline)
        return Schedule.of("standing_tree", collective.on(n, pipeline), made, stands=True)
    tops = tree.members[-1]
    sender, receiver = tree.exchange()
    if collective.name in BLOCKS:
        moves = _of_blocks(tree, collective.name == "reduce_scatter")
        return Schedule.of("standing_tree", collective.on(n, n), Steps.of_lists(n, n, moves), stands=True)
    count = tree.top if cut else 1
    steps: list[Transfers] = [Transfers.of(*tree.collect(level), 0, count, Op.REDUCE) for level in range(tree.levels)]
    back = [Transfers.of(there.dst, there.src, 0, count, Op.COPY) for there in reversed(steps)]
    if tree.top > 1 and cut:
        steps.append(Transfers.of(tops[sender], tops[receiver], receiver, 1, Op.REDUCE))
        steps.append(Transfers.of(tops[sender], tops[receiver], sender, 1, Op.COPY))
    elif tree.top > 1:
        steps.append(Transfers.of(tops[sender], tops[receiver], 0, 1, Op.REDUCE))
    steps += back
    return Schedule.of("standing_tree", collective.on(n, count), Steps.of_lists(n, count, steps), stands=True)


def _of_blocks(tree: StandingTree, adds: bool) -> list[Transfers]:
    """Steps of a reduce-scatter, or of an all-gather.

    Args:
        tree: the tree.
        adds: whether contributions are summed.
    """
    n, op, transfers = len(tree.members[0]), Op.REDUCE if adds else Op.COPY, list[Transfers]()
    for level in range(tree.levels):
        child, parent = tree.collect(level)
        first, size = tree.below(level, child)
        lo, count = (0, n) if adds else (first, size)
        transfers.append(Transfers.of(child, parent, lo, count, op))
    if tree.top > 1:
        place, peer = tree.exchange()
        src, dst = tree.members[-1][place], tree.members[-1][peer]
        transfers.append(Transfers.of(src, dst, *tree.below(tree.levels, dst if adds else src), op))
    for level in reversed(range(tree.levels)):
        child, parent = tree.collect(level)
        first, size = tree.below(level, child)
        lo, count = (first, size) if adds else (0, n)
        transfers.append(Transfers.of(parent, child, lo, count, Op.COPY))
    return transfers


@dataclass(frozen=True, eq=False)
class StandingTree:
    """The levels of a tree.

    Args:
        groups: nodes of a group, by level.
        members: nodes of each level, ascending; the last exchange.
    """

    groups: tuple[int, ...]
    members: tuple[IntArray, ...]

    @property
    def levels(self) -> int:
        """That collect [count]."""
        return len(self.groups)

    @property
    def top(self) -> int:
        """Nodes that exchange [count]."""
        return len(self.members[-1])

    @property
    def loads(self) -> tuple[int, ...]:
        """Wavelengths of each level and of the exchange with one each [count]."""
        return _loads(tuple(map(len, self.members)), self.groups)

    @property
    def fewest_wavelengths(self) -> int:
        """With one for each circuit [count]."""
        return sum(self.loads)

    def collect(self, level: int) -> tuple[IntArray, IntArray]:
        """Senders and receivers of a level, int64 (transfers,) each."""
        place = np.arange(len(self.members[level]))
        middle = middle_places(len(place), self.groups[level])
        sends = place != middle
        return self.members[level][place[sends]], self.members[level][middle[sends]]

    def below(self, level: int, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """First and number of the nodes that collect at some members of a level, themselves included, int64 (nodes,) each.

        Args:
            level: number.
            nodes: members of it.
        """
        size = prod(self.groups[:level])
        first = nodes // size * size
        return first, np.minimum(size, len(self.members[0]) - first)

    def turned(self, nodes: tuple[IntArray, IntArray], root: int) -> tuple[IntArray, IntArray]:
        """The same nodes where the tree is turned so that the root is the only node of the last level.

        Args:
            nodes: senders and receivers.
            root: node.
        """
        n, by = len(self.members[0]), root - int(self.members[-1][0])
        return (nodes[0] + by) % n, (nodes[1] + by) % n

    def exchange(self) -> tuple[IntArray, IntArray]:
        """Places of senders and receivers among the nodes that exchange, int64 (transfers,) each."""
        place = np.arange(self.top)
        sender, receiver = np.repeat(place, self.top), np.tile(place, self.top)
        return sender[sender != receiver], receiver[sender != receiver]


def tree_of(num_nodes: int, groups: tuple[int, ...]) -> StandingTree:
    """The tree of groups of these sizes.

    Args:
        num_nodes: on the ring.
        groups: nodes of a group, by level.
    """
    members: list[IntArray] = [np.arange(num_nodes)]
    for m in groups:
        members.append(members[-1][middle_places(len(members[-1]), m)[::m]])
    return StandingTree(groups, tuple(members))


def shared_among(tree: StandingTree, wavelengths: int, cut: bool) -> tuple[int, ...]:
    """Wavelengths of a circuit of each level and of the exchange: each of the others goes where it saves most [count].

    Args:
        tree: the tree.
        wavelengths: of a fibre [count].
        cut: whether the exchange cuts the message.
    """
    return widths_of_circuits(tree.loads, _gains(tree.loads, tree.top, cut), wavelengths)


def _counts(num_nodes: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """Members of each level [count]."""
    counts = [num_nodes]
    for m in groups:
        counts.append(-(-counts[-1] // m))
    return tuple(counts)


def _loads(counts: tuple[int, ...], groups: tuple[int, ...]) -> tuple[int, ...]:
    """Wavelengths of each level and of the exchange with one for each circuit [count].

    Args:
        counts: members of each level [count].
        groups: nodes of a group, by level.
    """
    collecting = (min(m, count) // 2 for m, count in zip(groups, counts, strict=False))
    return (*collecting, exchange_wavelengths(counts[-1]) if counts[-1] > 1 else 0)


def _gains(loads: tuple[int, ...], top: int, cut: bool) -> list[float]:
    """Messages of each level and of the exchange, on one wavelength [count].

    Args:
        loads: of each with one wavelength a circuit [count].
        top: nodes that exchange [count].
        cut: whether the exchange cuts the message.
    """
    return [2.0] * (len(loads) - 1) + [2 / top if cut else 1.0]


def _least_load(loads: tuple[int, ...], top: int, wavelengths: int, cut: bool) -> float:
    """Lower bound on the time on the wire of `_front`: circuits of any width, not of whole wavelengths.

    The least sum of g / x where the sum of l x is w is the square of the sum of sqrt(g l), over w (Cauchy and Schwarz).

    Args:
        loads, top, cut: as of `_gains`.
        wavelengths: of a fibre [count].
    """
    gains = _gains(loads, top, cut)
    return sum(sqrt(gain * load) for gain, load in zip(gains, loads, strict=True)) ** 2 / wavelengths
