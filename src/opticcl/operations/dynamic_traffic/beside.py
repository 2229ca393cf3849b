"""A plan beside dynamic traffic: its rounds occupy cells of reserved slots or planes, over and over.

    slots=k     the plan lights its circuits in the first k slots of every epoch and rests in the others
    planes=k    its circuits are on the first k planes in every slot; a round that uses more planes takes several turns

A round lasts the slots of its slowest circuit, and the rounds follow each other without a pause, which is the most that the
plan can occupy. Cells of reserved slots or planes that no circuit of the plan uses carry traffic.

Reading: circuits of one plane never meet those of another (RAMP section 3.1: a plane has its own subnets, transmitters and
receivers), so a round may be moved from plane to plane and taken apart by planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Circuits, IntArray, Transfers
from opticcl.operations.dynamic_traffic.demand import Channels
from opticcl.operations.dynamic_traffic.flows import run_values
from opticcl.operations.dynamic_traffic.schedulers import FreeCells, all_free
from opticcl.plans.plan import Plan
from opticcl.units import counted, format_seconds

__all__ = ["BesidePlan"]

MOST_CIRCUITS = 1 << 22
"""Circuits of the distinct rounds of a plan [count]."""


@dataclass(frozen=True, eq=False)
class BesidePlan:
    """A plan that shares the machine.

    Args:
        plan: on that machine.
        kind: slots or planes.
        count: reserved slots of an epoch, or planes [count].
    Raises: ParameterError: another machine, nothing to reserve, or too many circuits.
    """

    plan: Plan
    kind: str
    count: int

    def __post_init__(self) -> None:
        machine = self.plan.fabric.machine
        if not isinstance(machine, Ramp) or not machine.slot:
            raise ParameterError(
                f"beside: the plan is for {machine.name} without slots; give a plan for a ramp with slots"
            )
        most = {"slots": run_values()["slots"], "planes": machine.groups}.get(self.kind)
        if most is None:
            raise ParameterError(f"reserve: {self.kind!r} is neither slots nor planes; write slots=3 or planes=2")
        if not 1 <= self.count <= most:
            raise ParameterError(f"reserve: {self.kind}={self.count} is not 1 to {most}")
        if not self._turns:
            raise ParameterError("beside: the plan has no circuits, so it needs no reserved cells")

    @property
    def machine(self) -> Ramp:
        """RAMP that both share."""
        return self.plan.fabric.machine_as(Ramp)

    @cached_property
    def _turns(self) -> list[tuple[Transfers, Circuits, int, int]]:
        """Transfers and circuits that stand together, their slots, and how often they follow each other, in order."""
        schedule, machine = self.plan.schedule, self.machine
        chunk_bytes = self.plan.size_bytes / schedule.collective.num_chunks
        turns, total = [], 0
        for steps in schedule.step_classes():
            ranks = schedule.step(steps.start)
            nodes = (self.plan.fabric.machine_nodes(column).astype(np.int32) for column in (ranks.src, ranks.dst))
            transfers = replace(ranks, src=next(nodes), dst=next(nodes), parts=None)
            of_step = []
            for circuits in self.plan.circuits.rounds(steps.start):
                total += len(circuits)
                if total > MOST_CIRCUITS:
                    raise ParameterError(
                        f"beside: the rounds of the plan have more than {MOST_CIRCUITS:,} circuits; give a smaller plan"
                    )
                slots = _slots(transfers, circuits, chunk_bytes / machine.slot_payload_bytes)
                of_step += [(transfers, turn, slots) for turn in self._on_planes(circuits)]
            turns += (
                [(*turn, len(steps)) for turn in of_step]
                if len(of_step) == 1
                else [(*turn, 1) for _ in steps for turn in of_step]
            )
        return turns

    def _on_planes(self, circuits: Circuits) -> list[Circuits]:
        """The circuits of a round as they stand: all at once, or the reserved planes full one after the other."""
        if self.kind == "slots":
            return [circuits] if len(circuits) else []
        b = self.machine.transceivers_per_group
        plane, place = np.divmod(circuits.port, b)
        used, which = np.unique(plane, return_inverse=True)
        turned = []
        for first in range(0, len(used), self.count):
            rows = np.flatnonzero((which >= first) & (which < first + self.count))
            turn = circuits.take(rows)
            turned.append(replace(turn, port=((which[rows] - first) * b + place[rows]).astype(np.int32)))
        return turned

    @cached_property
    def _ends(self) -> IntArray:
        """Reserved slots until the end of each turn, int64 (turns,)."""
        return np.cumsum([slots * times for _, _, slots, times in self._turns])

    @cached_property
    def slots_alone(self) -> int:
        """Slots in which the plan has light, all planes and slots at its disposal [count]."""
        chunk_bytes = self.plan.size_bytes / self.plan.schedule.collective.num_chunks
        total = 0
        for steps in self.plan.schedule.step_classes():
            transfers = self.plan.schedule.step(steps.start)
            rounds = self.plan.circuits.rounds(steps.start)
            slots = [_slots(transfers, c, chunk_bytes / self.machine.slot_payload_bytes) for c in rounds if len(c)]
            total += len(steps) * sum(slots)
        return total

    @property
    def slots_beside(self) -> float:
        """Slots that the same takes beside the traffic [count]."""
        slots = float(self._ends[-1])
        return slots * run_values()["slots"] / self.count if self.kind == "slots" else slots

    @cached_property
    def total_s(self) -> float:
        """Time of the plan alone [s]."""
        return self.plan.simulate().total_s

    @property
    def slow_down(self) -> float:
        """Time of the plan beside the traffic over that alone."""
        return 1 + (self.slots_beside - self.slots_alone) * self.machine.slot / self.total_s

    def light(self, epoch: int) -> Sequence[tuple[Transfers, Circuits]]:
        """Transfers and circuits of the plan in each slot of an epoch."""
        slots = run_values()["slots"]
        return [self._standing(epoch * slots + slot, slot) for slot in range(slots)]

    def _standing(self, number: int, slot: int) -> tuple[Transfers, Circuits]:
        first = self._turns[0]
        if self.kind == "slots":
            if slot >= self.count:
                return first[0], first[1].take(np.zeros(0, np.int64))
            number = number // run_values()["slots"] * self.count + slot
        which = int(np.searchsorted(self._ends, number % int(self._ends[-1]), side="right"))
        transfers, circuits, _, _ = self._turns[which]
        return transfers, circuits

    def free(self, epoch: int) -> FreeCells:
        """Cells of an epoch that the plan does not use."""
        machine, channels = self.machine, Channels(self.machine)
        whole = all_free(machine)
        parts = whole.send.shape[1]
        taken = [np.zeros((len(words), parts * 64), bool) for words in (whole.send, whole.receive, whole.channel)]
        for slot, (_, circuits) in enumerate(self.light(epoch)):
            bit = slot * machine.groups + circuits.port // machine.transceivers_per_group
            taken[0][circuits.src, bit] = True
            taken[1][circuits.dst, bit] = True
            taken[2][channels.send_part[circuits.src] + channels.receive_part[circuits.dst], bit] = True
        return FreeCells(
            *(words & ~_words(t) for words, t in zip((whole.send, whole.receive, whole.channel), taken, strict=True))
        )

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "plan": str(self.plan).partition("\n")[0],
            "reserved": self.kind,
            "count": self.count,
            "slots_alone": self.slots_alone,
            "slots_beside": self.slots_beside,
            "total_s": self.total_s,
            "beside_s": self.total_s * self.slow_down,
            "slow_down": self.slow_down,
        }

    def lines(self) -> list[str]:
        """The plan and its slow-down."""
        of = (
            f"{self.count} of {run_values()['slots']} slots"
            if self.kind == "slots"
            else f"{counted(self.count, 'plane')}"
        )
        return [
            f"beside: {str(self.plan).partition(chr(10))[0]}",
            f"  on {of}: {format_seconds(self.total_s * self.slow_down)} instead of {format_seconds(self.total_s)}, "
            f"slow-down {self.slow_down:.3f}",
        ]


def _slots(transfers: Transfers, circuits: Circuits, chunk_slots: float) -> int:
    """Slots of a round: its slowest circuit, where the circuits of a transfer share it evenly."""
    rows = circuits.transfer[circuits.transfer >= 0]
    if not len(rows):
        return 1
    shares = np.bincount(rows, minlength=len(transfers))[rows]
    return max(1, ceil(float((transfers.size_chunks()[rows] / shares).max()) * chunk_slots))


def _words(taken: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Words of bits of a table, uint64 (rows, parts)."""
    return np.packbits(taken, axis=1, bitorder="little").view(np.uint64)
