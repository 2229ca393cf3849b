"""Uses of devices by the circuits of a round, numbered over all kinds of devices of a fabric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.ir.device_settings import DeviceSettings, changing_settings
from opticcl.ir.limits import limit
from opticcl.ir.programme import DeviceTable

__all__ = ["MOST_MEMBERS", "DeviceUses", "Devices"]

MOST_MEMBERS = limit("device_uses.MOST_MEMBERS")


@dataclass(frozen=True, slots=True)
class DeviceUses:
    """Uses of devices by the circuits of a round, as columns of equal length.

    Args:
        circuit: row of the round, int64 (n,); ascending.
        first_member: number of the first member of the group, int64 (n,).
        pool: members of the group, int64 (n,).
        setting: int64 (n,).
        offset_s: from the start of the circuit until its light reaches the device, float64 (n,) [s].
        setting_s: time that a change takes, float64 (n,) [s].
    """

    circuit: IntArray
    first_member: IntArray
    pool: IntArray
    setting: IntArray
    offset_s: npt.NDArray[np.float64]
    setting_s: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.circuit)


@dataclass(frozen=True)
class Devices:
    """Members of all kinds of devices of a fabric that change during a job.

    Args: fabric: with its devices.
    """

    fabric: Fabric

    @cached_property
    def first_member(self) -> IntArray:
        """Number of the first member of each kind, and one behind the last, int64 (kinds + 1,)."""
        return np.cumsum([0, *(device.count * device.pool for device in self.fabric.devices)]).astype(np.int64)

    @property
    def num_members(self) -> int:
        """All members of all kinds [count].

        Raises: UnsupportedError: more than can be followed.
        """
        count = int(self.first_member[-1])
        if count > MOST_MEMBERS:
            raise UnsupportedError(
                f"programme: {self.fabric.name} has {count:,} devices, and at most {MOST_MEMBERS:,} are followed; "
                "take fewer nodes"
            )
        return count

    def table(self, member: IntArray, setting: IntArray, begin_s: Any, done_s: Any) -> DeviceTable:
        """Changes of members, which happen once.

        Args:
            member: of each change, int64 (n,).
            setting: from then on, int64 (n,).
            begin_s, done_s: start and end, float64 (n,) or one for all [s].
        """
        kind = np.searchsorted(self.first_member, member, side="right") - 1
        device = member - self.first_member[kind]
        return DeviceTable.of(kind=kind, device=device, begin_s=begin_s, done_s=done_s, setting=setting)

    def set_at_start(self, initial: DeviceSettings | None) -> tuple[IntArray, IntArray]:
        """Members that are set at the start and their settings, int64 (n,) each.

        Args: initial: what stands.
        """
        if initial is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        initial.require(self.fabric)
        return self.first_member[initial.table.kind] + initial.table.device, initial.table.setting

    def uses(self, circuits: Circuits) -> DeviceUses:
        """Uses of the circuits of a round, without devices that are set once a job."""
        rows = changing_settings(self.fabric, circuits)
        rows = rows.take(np.argsort(rows.owner, kind="stable"))
        pool = np.array([device.pool for device in self.fabric.devices], np.int64)[rows.kind]
        setting_s = np.array([device.setting_time_s for device in self.fabric.devices], np.float64)[rows.kind]
        first = self.first_member[rows.kind] + rows.device * pool
        return DeviceUses(rows.owner, first, pool, rows.setting, rows.begin_s, setting_s)
