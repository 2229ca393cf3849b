"""The ideal switch: every transfer has its route, all at once."""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.ir import Circuits, Fabric, Schedule, Transfers


@register_rule("ideal")
def ideal(fabric: Fabric, schedule: Schedule) -> Rounds:
    """One route a transfer, one round a step."""

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        return (Circuits.of(np.arange(len(transfers)), transfers.src, transfers.dst),)

    return rounds
