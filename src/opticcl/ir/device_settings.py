"""What the devices of a machine are set to before a plan starts."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Self

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir._common import IntArray
from opticcl.ir.circuit_plan import CircuitPlan
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.programme import DeviceTable, Programme

__all__ = ["GIVEN", "DeviceSettings"]

GIVEN = "given"
"""What `initial` is called in records where a configuration stands at the start."""


class DeviceSettings:
    """Settings of the devices of a machine: the circuits that stand at the start of a plan, or at the end of another.

    Equal configurations are equal by value. Devices that are set once a job are no part of it.

    Args:
        fabric: whose machine it is of.
        table: a row for each device that is set; times and steps are ignored.
        links: circuits of one round that the table was made from, on fabrics where circuits share what is set for them
            (`Fabric.links_set`); None otherwise.
    Raises: UnsupportedError: a fabric whose circuits take time to set and that names no devices. ParameterError: kinds or
        devices that the machine does not have, or a device that is set twice.
    """

    def __init__(self, fabric: Fabric, table: DeviceTable, links: Circuits | None = None) -> None:
        machine = fabric.machine
        if machine.reconfiguration_s and not machine.devices:
            raise UnsupportedError(
                f"{machine.name} names no devices, so that what stands is not known; try initial=warm"
            )
        _check(machine, table)
        once = np.array([device.once_per_job for device in machine.devices], bool)
        table = table.take(~once[table.kind]) if len(table) else table
        order = np.lexsort((table.device, table.kind))
        kind, device, setting = (column[order] for column in (table.kind, table.device, table.setting))
        if ((kind[1:] == kind[:-1]) & (device[1:] == device[:-1])).any():
            raise ParameterError("configuration: a device is set twice; give one row for each device")
        self.machine, self.links = machine, links
        self.table = DeviceTable.of(kind=kind, device=device, setting=setting)

    @classmethod
    def of_circuits(cls, fabric: Fabric, circuits: Circuits) -> Self:
        """The circuits of one round stand, and nothing else.

        Args:
            fabric: that they are on.
            circuits: of a round.
        """
        parts = []
        kinds = {device.kind: number for number, device in enumerate(fabric.devices)}
        for use in fabric.settings(circuits) if kinds else ():
            kind = kinds[use.kind]
            pool, index = fabric.devices[kind].pool, np.asarray(use.index, np.int64)
            setting = np.asarray(use.setting, np.int64)
            if pool == 1:
                device, first = np.unique(index, return_index=True)
            else:  # circuits of a round take different members
                first = np.argsort(index, kind="stable")
                device = index[first] * pool + place_in_group(index[first])
            parts.append(DeviceTable.of(kind=np.full(len(device), kind), device=device, setting=setting[first]))
        return cls(fabric, DeviceTable.joined(parts), None if fabric.links_set(circuits) is None else circuits)

    @classmethod
    def of_plan(cls, plan: CircuitPlan) -> Self:
        """The circuits of the last round of a plan.

        Raises: ParameterError: a plan without circuits.
        """
        for step in reversed(range(plan.schedule.num_steps)):
            rounds = plan.rounds(step)
            if rounds:
                return cls.of_circuits(plan.fabric, rounds[-1])
        raise ParameterError("the start is a plan without circuits; leave it out")

    @classmethod
    def of_programme(cls, fabric: Fabric, programme: Programme) -> Self:
        """What all devices are set to at the end of a programme.

        Args:
            fabric: of its plan.
            programme: times of a plan.
        """
        table, runs = programme.devices, programme.runs
        later_s = dict(zip(runs.first.tolist(), ((runs.repeats - 1) * runs.period_s).tolist(), strict=True))
        done_s = table.done_s + [later_s.get(step, 0.0) for step in table.step.tolist()]
        order = np.lexsort((done_s, table.device, table.kind))
        kind, device = table.kind[order], table.device[order]
        last = np.append((kind[1:] != kind[:-1]) | (device[1:] != device[:-1]), np.ones(min(len(kind), 1), bool))
        return cls(fabric, table.take(order[last]))

    @cached_property
    def digest(self) -> str:
        """Of the machine and the settings, as text."""
        found = blake2b(repr(self.machine).encode(), digest_size=16)
        for column in (self.table.kind, self.table.device, self.table.setting):
            found.update(np.ascontiguousarray(column).tobytes())
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSettings):
            return NotImplemented
        return self.machine == other.machine and self.table == other.table

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        return GIVEN

    def __repr__(self) -> str:
        return f"<DeviceSettings of {self.machine.name}: {len(self.table):,} devices set>"

    def require(self, fabric: Fabric) -> None:
        """Refuse a fabric of another machine; times and rates may differ, since a setting does not depend on them.

        Raises: ParameterError.
        """
        here, there = _shape(fabric.machine), _shape(self.machine)
        if here != there:
            same = here[:2] == there[:2]
            other = (
                [f"{name}={value}" for name, value in there[2].items() if value != here[2].get(name)] if same else []
            )
            raise ParameterError(
                f"the start is of {self.machine.name} with {self.machine.num_nodes} nodes{' and ' * bool(other)}"
                f"{', '.join(other)}, not of this {fabric.name} with "
                f"{fabric.num_machine_nodes}; give one of the same fabric and parameters"
            )

    def stand(self, circuits: Circuits) -> npt.NDArray[np.bool_]:
        """Which circuits of a round stand: every device on its path has its setting, in pools a member for each.

        Args: circuits: of a round.
        Returns: bool (circuits,).
        """
        stands = np.ones(len(circuits), bool)
        kinds = {device.kind: number for number, device in enumerate(self.machine.devices)}
        for use in self.machine.settings(circuits):
            number = kinds[use.kind]
            device = self.machine.devices[number]
            if device.once_per_job:
                continue
            mine = self.table.take(self.table.kind == number)
            owner = np.arange(len(use.index)) if use.circuit is None else np.asarray(use.circuit, np.int64)
            groups = np.concatenate([np.asarray(use.index, np.int64), mine.device.astype(np.int64) // device.pool])
            settings = np.concatenate([np.asarray(use.setting, np.int64), mine.setting])
            least = int(settings.min(initial=0))
            both = groups * (int(settings.max(initial=0)) - least + 1) + settings - least  # one number for each pair
            wanted, known = both[: len(use.index)], np.sort(both[len(use.index) :])
            low, high = np.searchsorted(known, wanted), np.searchsorted(known, wanted, side="right")
            if device.pool > 1:
                order = np.argsort(wanted, kind="stable")
                place = np.empty(len(order), np.int64)
                place[order] = place_in_group(wanted[order])
                found = place < high - low
            else:
                found = high > low
            stands[owner[~found]] = False
        return stands


def place_in_group(numbers: IntArray) -> IntArray:
    """Position of each row among those of its number, int64 (n,); equal numbers are next to each other."""
    new = np.ones(len(numbers), bool)
    new[1:] = numbers[1:] != numbers[:-1]
    place: IntArray = np.arange(len(numbers)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    return place


def _shape(machine: Fabric) -> tuple[type, int, dict[str, object]]:
    """What the meaning of a setting depends on: all parameters but times and rates."""
    parameters = {name: value for name, value in machine.parameters.items() if not isinstance(value, float)}
    return type(machine), machine.num_nodes, parameters


def _check(machine: Fabric, table: DeviceTable) -> None:
    """Raises: ParameterError: kinds or devices that a machine does not have."""
    kinds = machine.devices
    bad = np.flatnonzero((table.kind < 0) | (table.kind >= len(kinds)))
    if not len(bad):
        most = np.array([device.count * device.pool for device in kinds], np.int64)
        bad = np.flatnonzero((table.device < 0) | (table.device >= most[table.kind])) if len(table) else bad
    if len(bad):
        row = int(bad[0])
        raise ParameterError(
            f"configuration: row {row}: {machine.name} has no device {table.device[row]} of kind {table.kind[row]}; give the "
            "table of a programme of this machine"
        )
