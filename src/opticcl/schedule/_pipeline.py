"""Pieces of a message that follow each other through the stages of a schedule: in step i, piece p is at stage i - p.

Three stages, two pieces:

    step         0          1          2          3
    stage 0   piece 0    piece 1
    stage 1              piece 0    piece 1
    stage 2                         piece 0    piece 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray, Op
from opticcl.ir.limits import limit
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps

MOST_PIECES = limit("pipeline.MOST_PIECES")


@dataclass(frozen=True)
class Pipeline:
    """Steps of a pipeline.

    Args:
        num_stages: that every piece passes [count]; without any there are no steps.
        num_pieces: 1 or more [count].

    >>> Pipeline(3, 2).num_steps
    4
    """

    num_stages: int
    num_pieces: int

    @property
    def num_steps(self) -> int:
        """One step for each stage, and one more for each piece after the first [count]."""
        return self.num_stages + self.num_pieces - 1 if self.num_stages else 0

    def busy(self, step: int) -> range:
        """Stages that have a piece in a step.

        >>> Pipeline(3, 2).busy(1), Pipeline(3, 2).busy(3)
        (range(0, 2), range(2, 3))
        """
        return range(max(0, step - self.num_pieces + 1), min(step + 1, self.num_stages))

    @property
    def classes(self) -> tuple[range, ...]:
        """Runs of steps in which the same stages are busy: those in which all are, and each other step alone.

        >>> Pipeline(2, 5).classes
        (range(0, 1), range(1, 5), range(5, 6))
        """
        if not self.num_stages:
            return ()
        last = self.num_stages - 1
        full = range(last, max(self.num_pieces, self.num_stages))
        alone = [[range(i, i + 1) for i in steps] for steps in (range(last), range(full.stop, self.num_steps))]
        return (*alone[0], full, *alone[1])


class PipelineStage(NamedTuple):
    """Transfers that every piece passes at the same time after it began.

    Args:
        src, dst: senders and receivers, int (n,).
        part: part of the message that each carries, int (n,), or one of all.
        op: of the receivers.
    """

    src: IntArray
    dst: IntArray
    part: IntArray | int
    op: Op


def pipelined(num_ranks: int, stages: Sequence[PipelineStage], num_pieces: int, num_parts: int = 1) -> Steps:
    """Steps in which every part of the message passes through the stages piece by piece.

    Args:
        num_ranks: ranks [count].
        stages: in order.
        num_pieces: of each part [count].
        num_parts: of the message [count].
    """
    parts = [MessagePart(((UNIT, 1, num_pieces),), num_pieces)] * num_parts
    if not stages:
        return Steps(Space((num_ranks,)), parts, [])
    counts = [len(stage.src) for stage in stages]
    src, dst = (np.concatenate([stage[end] for stage in stages])[:, None] for end in (0, 1))
    part = np.concatenate([np.broadcast_to(stage.part, count) for stage, count in zip(stages, counts, strict=True)])
    rows = PhaseRows.of(
        1,
        src,
        dst,
        0,
        part=part,
        unit_lo=-np.repeat(np.arange(len(stages)), counts),
        unit_shift=1,
        op=np.repeat([stage.op for stage in stages], counts),
    )
    return Steps(Space((num_ranks,)), parts, [Phase(rows, (), len(stages) + num_pieces - 1)])


def along_trees(
    links: tuple[IntArray, IntArray, IntArray, IntArray], num_ranks: int, num_pieces: int, num_trees: int, *, down: bool
) -> Steps:
    """Steps of a broadcast or a reduce in pieces, each tree with its part of the message.

    Args:
        links: child, parent, tree and level of the child, int64 (links,) each; a root's children are on level 1.
        num_ranks: ranks [count].
        num_pieces: of the share of each tree [count].
        num_trees: trees [count].
        down: whether pieces are copied from the roots, and not added up towards them.
    """
    child, parent, tree, level = links
    src, dst, op = (parent, child, Op.COPY) if down else (child, parent, Op.REDUCE)
    levels = range(1, int(level.max(initial=0)) + 1)
    rows = [np.flatnonzero(level == at) for at in (levels if down else reversed(levels))]
    return pipelined(num_ranks, [PipelineStage(src[at], dst[at], tree[at], op) for at in rows], num_pieces, num_trees)
