"""Steps that are evaluated many at a time: a schedule of 32,768 steps of 512 transfers takes a function call for each block of
256 steps, not for each step.

It is a definition: step i is the block of step i alone. So are its circuits, whose paths are straight: the links of one line
from the sender on, in the direction of the port (`Fabric.straight_usage`), so that no path is listed link by link. A rule that
has the circuits of blocks makes those of a step from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opticcl.ir._common import IntArray
from opticcl.ir.schedule import Schedule, Transfers

__all__ = ["ArcBlock", "BlockSteps", "StepBlock", "step_blocks"]

ROWS = 1 << 15
"""Transfers of a block: columns that the second cache of a processor holds [count]."""

FEWEST = 16
"""Steps of a schedule from which blocks are quicker than steps [count]."""


@dataclass(frozen=True, slots=True, eq=False)
class StepBlock:
    """Consecutive steps.

    Args:
        first: number of the first step.
        transfers: of all of them, step after step.
        starts: row at which each step begins, and the number of rows, int64 (steps + 1,).
    """

    first: int
    transfers: Transfers
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ArcBlock:
    """Circuits of a `StepBlock` with straight paths, one for each transfer in its order, each step in one round.

    Args:
        src, dst: nodes, int32 (n,) each.
        port: of the sender and of the receiver, int32 (n,).
        wavelength: the only one of each circuit, int32 (n,).
    """

    src: IntArray
    dst: IntArray
    port: IntArray
    wavelength: IntArray


class BlockSteps:
    """The step function of a schedule whose steps are evaluated many at a time.

    Args: block: (first step, number of steps) -> these steps, or the first of them; pure.
    """

    def __init__(self, block: Callable[[int, int], StepBlock]) -> None:
        self.block = block

    def __call__(self, i: int) -> Transfers:
        """Step i."""
        return self.block(i, 1).transfers


def step_blocks(schedule: Schedule) -> Iterator[StepBlock] | None:
    """All steps of a schedule in blocks, in order; None where its steps are evaluated one by one."""
    inner = getattr(schedule.step, "function", schedule.step)
    if not isinstance(inner, BlockSteps) or schedule.num_steps < FEWEST or schedule.classes:
        return None
    return _blocks(inner, schedule.num_steps)


def _blocks(steps: BlockSteps, num_steps: int) -> Iterator[StepBlock]:
    """As `step_blocks`.

    Args:
        steps: the step function.
        num_steps: of the schedule [count].
    """
    at_once = max(1, ROWS // max(1, len(steps(0))))
    done = 0
    while done < num_steps:
        block = steps.block(done, min(at_once, num_steps - done))
        yield block
        done += len(block)
