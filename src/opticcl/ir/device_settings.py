"""What the devices of a machine are set to before a plan starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir._common import IntArray, row_keys, row_numbers
from opticcl.ir.circuit_plan import CircuitPlan
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.programme import DeviceTable, Programme

__all__ = ["GIVEN", "DeviceSettings", "changing_settings", "stand_among"]

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
        rows = changing_settings(fabric, circuits)
        rows = rows.take(np.lexsort((rows.device, rows.kind)))
        place, pool = places_among([rows.device, rows.kind]), _pools(fabric)[rows.kind]
        table = replace(rows, device=rows.device * pool + place)  # circuits of a round take different members
        links = None if fabric.links_set(circuits) is None else circuits
        return cls(fabric, table.take((pool > 1) | (place == 0)), links)

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
    def _hash(self) -> int:
        columns = self.table.kind, self.table.device, self.table.setting
        return hash((repr(self.machine), *(column.tobytes() for column in columns)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSettings):
            return NotImplemented
        return self.machine == other.machine and self.table == other.table

    def __hash__(self) -> int:
        return self._hash

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
        pools, stands = _pools(self.machine), np.ones(len(circuits), bool)
        wanted = changing_settings(self.machine, circuits)
        known = replace(self.table, device=self.table.device // pools[self.table.kind])
        stands[wanted.owner[~stand_among(wanted, known, pools > 1)]] = False
        return stands


def changing_settings(fabric: Fabric, circuits: Circuits) -> DeviceTable:
    """Settings that circuits need, of the devices that change during a job; in pools, of groups of members.

    Args:
        fabric: that the circuits are on.
        circuits: of a round.
    """
    position = {device.kind: number for number, device in enumerate(fabric.devices)}
    rows = DeviceTable.needed(fabric.settings(circuits) if position else (), position)
    once = np.array([device.once_per_job for device in fabric.devices], bool)
    return rows.take(~once[rows.kind]) if once.any() else rows


def stand_among(wanted: DeviceTable, known: DeviceTable, pooled: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which settings are among others; of a pool as often as they are wanted, bool (n,).

    Args:
        wanted: settings of groups of members.
        known: likewise.
        pooled: whether a group has several members, of each kind, bool (kinds,).
    """
    pairs = ((wanted.kind, known.kind), (wanted.device, known.device), (wanted.setting, known.setting))
    mine, its = np.split(row_keys([np.concatenate(pair) for pair in pairs]), [len(wanted)])
    its = np.sort(its)
    first = np.searchsorted(its, mine)
    stands = its[np.minimum(first, len(its) - 1)] == mine if len(its) else np.zeros(len(mine), bool)
    if (several := pooled[wanted.kind]).any():
        standing = np.searchsorted(its, mine[several], "right") - first[several]
        stands[several] = places_among([mine[several]]) < standing
    return stands


def places_among(columns: Sequence[IntArray]) -> IntArray:
    """Position of each row among those that are equal to it in all columns, int64 (n,)."""
    number = row_numbers(columns)
    order = np.argsort(number, kind="stable")
    first = np.searchsorted(number[order], np.arange(len(number)))
    place = np.empty(len(number), np.int64)
    place[order] = np.arange(len(number)) - first[number[order]]
    return place


def _pools(fabric: Fabric) -> IntArray:
    """Members of a group, of each kind of device, int64 (kinds,)."""
    return np.array([device.pool for device in fabric.devices], np.int64)


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
