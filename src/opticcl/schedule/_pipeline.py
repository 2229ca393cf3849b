"""Pieces of a message that follow each other through the stages of a schedule: in step i, piece p is at stage i - p.

Three stages, two pieces:

    step         0          1          2          3
    stage 0   piece 0    piece 1
    stage 1              piece 0    piece 1
    stage 2                         piece 0    piece 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opticcl.ir import IntArray, Op, Transfers

MOST_PIECES = 1 << 20  # of a message, on all trees together


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


def along_trees(
    links: tuple[IntArray, IntArray, IntArray, IntArray], num_pieces: int, *, down: bool
) -> tuple[Pipeline, Callable[[int], Transfers]]:
    """Pipeline and step of a broadcast or a reduce in pieces: piece p of tree t is chunk t num_pieces + p.

    Args:
        links: child, parent, tree and level of the child, int64 (links,) each; a root's children are on level 1.
        num_pieces: of the share of each tree [count].
        down: whether pieces are copied from the roots, and not added up towards them.
    """
    child, parent, tree, level = links
    pipeline = Pipeline(int(level.max(initial=0)), num_pieces)
    src, dst, op = (parent, child, Op.COPY) if down else (child, parent, Op.REDUCE)
    levels = range(1, pipeline.num_stages + 1)
    rows_of = [np.flatnonzero(level == at) for at in (levels if down else reversed(levels))]

    def step(i: int) -> Transfers:
        busy = pipeline.busy(i)
        rows = np.concatenate([rows_of[stage] for stage in busy])
        piece = np.repeat([i - stage for stage in busy], [len(rows_of[stage]) for stage in busy])
        return Transfers.of(src[rows], dst[rows], tree[rows] * num_pieces + piece, 1, op)

    return pipeline, step
