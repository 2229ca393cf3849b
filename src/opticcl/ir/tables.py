"""Device tables of a plan: when each device of a netlist is set to what, and which data each transmitter and photodiode has.

Times are seconds from the start of the plan, float64, in the clock of the sender: light that leaves at t is at every device of
its path at t. A device elsewhere adds the time of flight of its light.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray
from opticcl.ir.collective import Collective
from opticcl.ir.fabric import Fabric
from opticcl.ir.programme import DeviceTable, _Columns

__all__ = ["DataRows", "TableVerdict", "TableViolation", "Tables"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DataRows(_Columns):
    """Data at transmitters and photodiodes, a row for each wavelength.

    Args:
        from_s, until_s: first and last bit leave the sender, float64 (n,) [s].
        ready_s: received: stored or added; sent: as `until_s`, float64 (n,) [s].
        step: of the plan, int64 (n,); -1 where it is not known.
        kind: position in `Netlist.groups`, of transmitters or photodiodes, int32 (n,).
        device: of the group, int64 (n,).
        wavelength: int64 (n,).
        sends: whether the row sends; else it receives, bool (n,).
        op: `Op` of the transfer, uint8 (n,); sent: of one of its receivers.
        chunk_lo, chunk_n, parts: chunks that the transfer carries, and contributions of each, int64 (n,).
        share, shares: part of the transfer that this wavelength carries, of how many equal parts, int64 (n,).
    """

    from_s: FloatArray
    until_s: FloatArray
    ready_s: FloatArray
    step: IntArray
    kind: IntArray
    device: IntArray
    wavelength: IntArray
    sends: npt.NDArray[np.bool_]
    op: npt.NDArray[np.uint8]
    chunk_lo: IntArray
    chunk_n: IntArray
    parts: IntArray
    share: IntArray
    shares: IntArray

    KINDS: ClassVar[Mapping[str, type]] = {
        "from_s": np.float64, "until_s": np.float64, "ready_s": np.float64, "step": np.int64, "kind": np.int32,
        "device": np.int64, "wavelength": np.int64, "sends": np.bool_, "op": np.uint8, "chunk_lo": np.int64,
        "chunk_n": np.int64, "parts": np.int64, "share": np.int64, "shares": np.int64,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Device tables of a plan.

    Args:
        fabric: that has the devices.
        collective: what the data is to become.
        size_bytes: message of every rank [bytes].
        total_s: last event [s].
        warm: whether the settings of time 0 stand from the start.
        settings: changes of devices, by groups of the netlist; how long a change lasts, they do not say.
        data: at transmitters and photodiodes.
        whole: whether they are of all nodes and devices.
        assumptions: of latency and sums, by name, which `ready_s` of what is received rests on; None: not known.
    """

    fabric: Fabric
    collective: Collective
    size_bytes: int
    total_s: float
    warm: bool
    settings: DeviceTable
    data: DataRows
    whole: bool = True
    assumptions: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TableViolation:
    """A rule that tables break.

    Args:
        rule: name of the rule.
        at_s: when it is broken for the first time [s].
        where: device, photodiode or rank in words.
        expected: what the rule requires.
        found: what the tables do.
        count: how often the rule is broken.
    """

    rule: str
    at_s: float
    where: str
    expected: str
    found: str
    count: int = 1

    def __str__(self) -> str:
        from opticcl.units import format_seconds

        times = f" ({self.count} times)" if self.count > 1 else ""
        at = format_seconds(self.at_s)
        return f"{self.rule}: at {at}, {self.where}: expected {self.expected}, found {self.found}{times}"


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """Result of the verification of tables.

    Args:
        violations: empty if the tables are right; one of each rule.
        settings, data: rows that were judged [count].
        moments: times at which light was followed [count].
        notes: totals and remarks, a line each.
        budget: preset of the values by which the power of the light was judged; None: it was not judged.
    """

    violations: tuple[TableViolation, ...]
    settings: int
    data: int
    moments: int
    notes: tuple[str, ...] = ()
    budget: str | None = None

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    def __str__(self) -> str:
        head = "right" if self.ok else "WRONG"
        power = "; power not judged" if self.budget is None else ""
        counts = f"{self.settings:,} settings, {self.data:,} rows of data, light followed at {self.moments:,} times"
        lines = [f"{head}: {counts}{power}"]
        return "\n".join(lines + [f"  {one}" for one in (*self.violations, *self.notes)])

    def record(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "ok": self.ok,
            "violations": [asdict(one) for one in self.violations],
            "checked": {"settings": self.settings, "data": self.data, "moments": self.moments, "budget": self.budget},
            "notes": list(self.notes),
        }
