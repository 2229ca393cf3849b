"""Steps whose circuits would not fit into memory are declined before any of them is made."""

from __future__ import annotations

from opticcl.errors import TooLargeError
from opticcl.ir import Fabric, Schedule
from opticcl.ir.limits import limit
from opticcl.units import format_bytes

__all__ = ["MOST_BYTES", "decline_too_many"]

MOST_BYTES = limit("size.MOST_BYTES")


def decline_too_many(fabric: Fabric, schedule: Schedule, bytes_each: int) -> None:
    """Refuse a schedule with a step that has too many transfers.

    Args:
        fabric: that would carry it.
        schedule: between nodes of the machine.
        bytes_each: that a rule takes for a transfer, its circuits included [bytes].
    Raises: UnsupportedError: with the bytes that the circuits of the step would take.
    """
    for steps in schedule.step_classes():
        count = schedule.steps.num_transfers(steps.start)
        if count * bytes_each > MOST_BYTES:
            raise TooLargeError(
                f"{schedule.name} on {fabric.name}: the circuits of the {count:,} transfers of step {steps.start} take "
                f"{format_bytes(count * bytes_each)}, at most {format_bytes(MOST_BYTES)} are supported; try an algorithm "
                f"of more steps"
            )
