"""WRHT: a tree of groups along the ring; a representative in the middle of each collects from both sides at once.

    level 0   0 1 2 3 4 | 5 6 7 8 9 | 10 11 12 13 14      groups of m = 5, light from the left and from the right
    level 1       2     |     7     |       12            the representatives: groups again, or each to each at once
    and back the same way

A group of m needs floor(m / 2) wavelengths, so m = 2w + 1 is the most that w wavelengths serve; groups share no fibre
and reuse them. Once the R representatives of a level can all talk to each other in w wavelengths, they exchange their
sums in a single step, and no further level is needed. Every transfer is the whole message.

Source: WRHT sections 4.1, 4.2.
Reading: the paper places the exchange on the last level only and states 2 ceil(log_m N) as a lower bound (lemma 1),
which its own table 1 undercuts. Here the first level i whose exchange fits ends the tree, in 2 i + 1 steps; where none
does, 2 ceil(log_m N). With m = 2w + 1 no other m does better. variant=published never exchanges, as the paper's
evaluation counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm

__all__ = ["Tree", "Variant", "channels", "exchange_wavelengths", "tree", "wrht"]

Variant = Literal["optimal", "published"]


def exchange_wavelengths(num_nodes: int) -> int:
    """Wavelengths (each in both directions) in which that many nodes of a ring all talk to each other.

    Args: num_nodes: R >= 1; where they sit on the ring does not matter.
    Source: WRHT section 4.1.2, ceil(R^2 / 8).
    Reading: for odd R (R^2 - 1) / 8 suffice, by the construction of `circuits.terarack`; first fit needs more.

    >>> [exchange_wavelengths(r) for r in (2, 3, 4, 5, 8, 22)]
    [1, 1, 2, 3, 8, 61]
    """
    return -(-(num_nodes**2 - num_nodes % 2) // 8)


def channels(fabric: Fabric) -> int:
    """Wavelengths w of one direction, over all rings [count]."""
    return fabric.num_wavelengths * fabric.ports_per_node // 2


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Who represents whom.

    Args:
        levels: nodes that take part in each level, ascending; the first are all.
        group_size: nodes m of a full group [count].
        exchanges: whether the nodes of the last level exchange their sums; if not, the last level is one node.
    """

    levels: tuple[IntArray, ...]
    group_size: int
    exchanges: bool

    @property
    def num_collects(self) -> int:
        """Steps in which groups collect, and in which they are told again."""
        return len(self.levels) - 1

    @property
    def num_steps(self) -> int:
        """Steps in all."""
        return 2 * self.num_collects + self.exchanges

    def level_of_step(self, step: int) -> int:
        """Level on which a step works; level `num_collects` is the exchange."""
        return min(step, self.num_steps - 1 - step)


def tree(fabric: Fabric, group_size: int | None = None, variant: Variant = "optimal") -> Tree:
    """The tree over all nodes of a ring.

    Args: group_size, variant: as in `wrht`.
    """
    w = channels(fabric)
    m = 2 * w + 1 if group_size is None else group_size

    def fits(num_nodes: int) -> bool:
        return variant == "optimal" and num_nodes > 1 and exchange_wavelengths(num_nodes) <= w

    levels = [np.arange(fabric.num_nodes)]
    while len(levels[-1]) > 1 and not fits(len(levels[-1])):
        nodes = levels[-1]
        levels.append(nodes[np.unique(_middle(len(nodes), m))])
    return Tree(tuple(levels), m, exchanges=fits(len(levels[-1])))


def _middle(count: int, group_size: int) -> IntArray:
    """Position of the representative of each of `count` positions cut into groups; the last group may be shorter."""
    first = np.arange(count) // group_size * group_size
    return np.asarray(first + np.minimum(group_size, count - first) // 2)


def accepts(collective: str, fabric: Fabric, group_size: int | None = None, variant: Variant = "optimal") -> str | None:
    """None, or the reason why not."""
    if fabric.name != "terarack":
        return "it needs a terarack fabric"
    if collective != "all_reduce":
        return "it does all_reduce only"
    if group_size is None:
        return None
    if group_size < 2:
        return f"group_size={group_size} collects nothing; at least 2"
    if group_size // 2 > channels(fabric):
        most = 2 * channels(fabric) + 1
        return f"group_size={group_size} needs {group_size // 2} wavelengths of {channels(fabric)}; at most {most}"
    return None


@register_algorithm("wrht", accepts)
def wrht(collective: str, fabric: Fabric, *, group_size: int | None = None, variant: Variant = "optimal") -> Schedule:
    """WRHT all-reduce: collect level by level, exchange, tell level by level.

    All sends of a step are of the sums before it: in the exchange every representative adds the old sums of all others.

    Args:
        group_size: nodes m of a group [count]; none for 2w + 1.
        variant: optimal, or published: collect to one node and tell, 2 ceil(log_m N) steps.
    """
    plan = tree(fabric, group_size, variant)

    def step(i: int) -> Transfers:
        level = plan.level_of_step(i)
        nodes = plan.levels[level]
        if level == plan.num_collects:
            return Transfers.of(nodes[:, None], nodes[None, :], 0, 1, Op.REDUCE)
        representative = nodes[_middle(len(nodes), plan.group_size)]
        if i < plan.num_collects:
            return Transfers.of(nodes, representative, 0, 1, Op.REDUCE)
        return Transfers.of(representative, nodes, 0, 1, Op.COPY)

    return Schedule("wrht", make_collective(collective, fabric.num_nodes), plan.num_steps, step)
