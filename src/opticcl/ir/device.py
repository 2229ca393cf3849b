"""Devices that hold a setting while light passes them: modulators, filters, switches, gates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.ir._common import IntArray

__all__ = ["Device", "SettingUse"]


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of device, `count` groups of `pool` identical members each.

    Args:
        kind: name, unique in its fabric, such as "modulator".
        count: groups of members that can replace each other; without a pool, devices [count].
        setting_time_s: from the start of a change until light may pass [s].
        pool: members of each group; a circuit uses one of them, which one is decided when its light passes [count].
        once_per_job: set before the job starts and never again.
    Raises: FabricError: no members, or a negative time.
    """

    kind: str
    count: int
    setting_time_s: float = 0.0
    pool: int = 1
    once_per_job: bool = False

    def __post_init__(self) -> None:
        if self.count < 0 or self.pool < 1:
            raise FabricError(f"Device {self.kind}: count={self.count}, pool={self.pool}; at least 0 and 1")
        if not self.setting_time_s >= 0:
            raise FabricError(f"Device {self.kind}: setting_time_s={self.setting_time_s} is not a duration")


@dataclass(frozen=True, slots=True)
class SettingUse:
    """Settings of one kind of device that circuits need while their light passes it.

    Args:
        kind: `Device.kind`; for the states of a netlist, the name of a group of elements.
        index: group of the pool (without a pool: device), 0 to count - 1, int64 (m,).
        setting: what it must be set to, int64 (m,); uses of one setting may overlap.
        circuit: row of the `Circuits`, int64 (m,), or None if row i of `index` belongs to circuit i.
        offset_s: from the start of the circuit until its light reaches the device, float64 (m,) or one for all [s].
        within: wavelength, input or similar within the device, int64 (m,); None: it has one setting.
    """

    kind: str
    index: IntArray
    setting: IntArray
    circuit: IntArray | None = None
    offset_s: npt.NDArray[np.float64] | float = 0.0
    within: IntArray | None = None
