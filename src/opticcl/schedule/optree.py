"""OpTree: an all-gather on a ring of fibres in k stages, first among nodes far apart, at last among neighbours.

A stage among m nodes at a distance s is an exchange of all with all of them, in s interleaved sets:

    N = 16, 4 x 4    stage 1    0 4 8 12 | 1 5 9 13 | 2 6 10 14 | 3 7 11 15     round the ring, a block each
                     stage 2    0 1 2 3 | 4 5 6 7 | 8 9 10 11 | 12 13 14 15     within segments, four blocks each

The sets of the first stage all pass every segment: s W(m) wavelengths, W(m) those of an exchange on a ring. Those of a later
stage, within segments that reuse wavelengths, take s floor(m^2 / 4). With more wavelengths than w a stage takes several
rounds, with fewer a transfer takes several wavelengths. Either way the B blocks that a node holds before a stage pass on the
busiest wavelength in

    B ceil(s W / w)    or    B / floor(w / (s W))

steps of one block, about (2 k - 1) N^(1 + 1/k) / 8 w in all for equal stages. `stages` chooses others; by default these steps
are the fewest, then the rounds.

Source: Dai, Chen, Huang, Zhang, "OpTree: an efficient algorithm for all-gather operation in optical interconnect systems",
IEEE Open Journal of the Communications Society, 2024 (arXiv 2211.15119): the abstract, which has an m-ary tree with the number
of stages that takes the least time.
Reading: the text is not at hand, so that neither its order of the stages, its assignment of wavelengths nor its way with
numbers of nodes that are no power of m could be checked. The order is the one that sends the fewest blocks far. Numbers of
nodes are divided into the factors that they have; the reductions that the abstract prints need 70 steps at N = 1024 with 64
wavelengths, where powers of two take 72.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import NamedTuple

from opticcl.collective import Request
from opticcl.ir import Fabric, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import visits, walk
from opticcl.schedule.wavelength_exchange import channels, exchange_wavelengths
from opticcl.units import Shape

__all__ = ["OpTreeStage", "optree", "stages_of"]

MAX_SEGMENTS = limit("optree.MAX_SEGMENTS")


class OpTreeStage(NamedTuple):
    """An exchange among m nodes, in interleaved sets.

    Args:
        radix: m [count].
        stride: distance of neighbours in a set, and number of the sets that pass a segment [count].
        around: whether a set goes round the ring: the first stage.
    """

    radix: int
    stride: int
    around: bool

    @property
    def wavelengths(self) -> int:
        """Of one set, each in both directions [count]."""
        return exchange_wavelengths(self.radix) if self.around else self.radix**2 // 4

    def rounds(self, w: int) -> int:
        """Rounds with w wavelengths [count]."""
        return -(-self.stride * self.wavelengths // w)

    def width(self, w: int) -> int:
        """Wavelengths of a transfer, of w [count]."""
        return max(1, w // (self.stride * self.wavelengths))


def stages_of(num_nodes: int, w: int, stages: tuple[int, ...] | None = None) -> tuple[OpTreeStage, ...]:
    """Stages in their order; none for a single node.

    Args:
        num_nodes: N [count].
        w: wavelengths of a direction [count].
        stages: m of each, product N; None: those with the fewest steps of one block.

    >>> [stage.radix for stage in stages_of(1024, 64)]
    [4, 2, 2, 4, 4, 4]
    """
    made, rest = list[OpTreeStage](), num_nodes
    for radix in _fewest_steps(num_nodes, w) if stages is None else (m for m in stages if m > 1):
        rest //= radix
        made.append(OpTreeStage(radix, rest, not made))
    return tuple(made)


@cache
def _fewest_steps(num_nodes: int, w: int) -> tuple[int, ...]:
    """Radices of the stages whose blocks take the fewest steps, then the fewest rounds, then the fewest stages."""

    @cache
    def best(rest: int) -> tuple[float, int, tuple[int, ...]]:
        """Steps, rounds and radices of the stages that gather among the last `rest` nodes."""
        if rest == 1:
            return 0.0, 0, ()
        blocks = num_nodes // rest
        choices = []
        for radix in (m for m in range(2, rest + 1) if rest % m == 0):
            stage, (steps, rounds, radices) = OpTreeStage(radix, rest // radix, blocks == 1), best(rest // radix)
            own = stage.rounds(w)
            choices.append((steps + blocks * own / stage.width(w), rounds + own, (radix, *radices)))
        return min(choices, key=lambda one: (*one[:2], len(one[2])))

    return best(num_nodes)[2]


def accepts(collective: Request, fabric: Fabric, stages: Shape | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        stages: as in `optree`.
    """
    n = fabric.num_nodes
    if collective.name != "all_gather":
        return "it does all_gather"
    if stages is not None and prod(stages) != n:
        right = "x".join(str(stage.radix) for stage in stages_of(n, channels(fabric))) or "1"
        return f"stages={'x'.join(map(str, stages))} make {prod(stages)} nodes, not {n}; try stages={right}"
    for stage in stages_of(n, channels(fabric), stages):
        sent = n * (stage.radix - 1)
        if sent > MOST_TRANSFERS:
            return SizeLimit(
                f"a stage among {stage.radix} nodes means {sent:,} transfers, more than {MOST_TRANSFERS:,}"
            )
        passed = sent * stage.radix * stage.stride // 4  # half of the way to the farthest node, in the mean
        if passed > MAX_SEGMENTS:
            return SizeLimit(
                f"a stage among {stage.radix} nodes passes {passed:,} segments, more than {MAX_SEGMENTS:,}"
            )
    return None


@register_algorithm("optree", accepts, systems=("terarack",))
def optree(collective: Request, fabric: Fabric, *, stages: Shape | None = None) -> Schedule:
    """OpTree's all-gather on an optical ring, one step for each stage.

    Args:
        collective: all_gather.
        fabric: a TeraRack ring.
        stages: nodes that exchange in each stage, such as 4x4x4x4x4 for 1024; None: those with the fewest steps of one block.
    """
    radices = [stage.radix for stage in stages_of(fabric.num_nodes, channels(fabric), stages)]
    space = Space(tuple(radices) or (1,))  # the first stage has the highest digit
    steps, cut = walk(collective, space, [visits(space.radices, range(len(radices))[::-1])])
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("optree", chunks, steps, parameters={"stages": stages}, cut=cut)
