"""The programme of a plan: absolute times of its circuits, data, control messages and device settings.

Times are seconds from the start of the plan, float64. Rows are sorted by (step, round, row). Identical steps that follow each
other are stored once, as a run of steps: `CircuitTimes`, `DataTimes`, `ControlTimes` and the rows of `DeviceTable` with that
step hold the first of them, and step number `first + k` of the run happens `k * period_s` later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir._common import NO_PARAMETERS, IntArray
from opticcl.ir.device import SettingUse

__all__ = ["CircuitTimes", "ControlTimes", "DataTimes", "DeviceTable", "Programme", "StepRuns"]

FloatArray = npt.NDArray[np.float64]


class _Columns:
    """Columns of equal length.

    Attributes:
        KINDS: type of each column.
        DEFAULTS: values of columns that need not be given.
        STORED: type of each column in files and records of programmes; empty: as `KINDS`.
    """

    __slots__ = ()
    KINDS: ClassVar[Mapping[str, type]] = {}
    DEFAULTS: ClassVar[Mapping[str, float]] = {}
    STORED: ClassVar[Mapping[str, type]] = {}

    @classmethod
    def stored(cls) -> Mapping[str, type]:
        """Type of each column in files and records of programmes."""
        return cls.STORED or cls.KINDS

    @classmethod
    def of(cls, **columns: Any) -> Self:
        """Columns from array-likes of a common length, or numbers that hold for all rows.

        Raises: ParameterError: a column is missing or unknown, or lengths differ.
        """
        columns = {**cls.DEFAULTS, **columns}
        if columns.keys() != cls.KINDS.keys():
            odd = sorted(columns.keys() ^ cls.KINDS.keys())
            raise ParameterError(f"{cls.__name__}: columns are {', '.join(cls.KINDS)}; check {', '.join(odd)}")
        arrays: dict[str, IntArray] = {n: np.asarray(columns[n], kind) for n, kind in cls.KINDS.items()}
        lengths = {len(array) for array in arrays.values() if array.ndim == 1} or {1}
        if len(lengths) > 1 or any(array.ndim > 1 for array in arrays.values()):
            raise ParameterError(f"{cls.__name__}: columns of different lengths: {sorted(lengths)}")
        (length,) = lengths
        return cls(**{name: array if array.ndim else np.full(length, array) for name, array in arrays.items()})

    @classmethod
    def empty(cls) -> Self:
        """No rows."""
        return cls(**{name: np.zeros(0, kind) for name, kind in cls.KINDS.items()})

    @classmethod
    def joined(cls, parts: Iterable[Iterable[npt.NDArray[Any]]]) -> Self:
        """Several tables, or their columns in the order of the fields, one below the other."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if not columns:
            return cls.empty()
        return cls.of(**dict(zip(cls.KINDS, columns, strict=True)))

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """All columns, in the order of the fields."""
        return (getattr(self, name) for name in self.KINDS)

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.KINDS))))

    def __eq__(self, other: object) -> bool:
        """Equal columns; a time that does not exist equals itself."""
        if type(other) is not type(self):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.KINDS)
        return all(np.array_equal(mine, its, equal_nan=mine.dtype == np.float64) for mine, its in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self):,}>"

    def take(self, rows: Any) -> Self:
        """The given rows (indices, slice or mask); the same table, if a mask takes all."""
        if isinstance(rows, np.ndarray) and rows.dtype == bool and rows.all() and len(rows) == len(self):
            return self
        return type(self)(**{name: getattr(self, name)[rows] for name in self.KINDS})

    def as_stored(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of files, by name."""
        return {name: getattr(self, name).astype(kind, copy=False) for name, kind in self.stored().items()}

    def record(self) -> dict[str, list[Any]]:
        """Columns as lists; times that do not exist are None."""
        return {name: [None if v != v else v for v in column.tolist()] for name, column in self.as_stored().items()}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StepRuns(_Columns):
    """Runs of identical steps, in order; together they are all steps of the plan.

    Args:
        first: first step of each run, int32 (n,).
        repeats: steps of the run, int32 (n,) [count].
        period_s: from one step of the run to the next, float64 (n,) [s].
    """

    first: IntArray
    repeats: IntArray
    period_s: FloatArray

    KINDS: ClassVar[Mapping[str, type]] = {"first": np.int32, "repeats": np.int32, "period_s": np.float64}

    @classmethod
    def single(cls, num_steps: int) -> StepRuns:
        """Every step a run of its own."""
        return cls.of(first=np.arange(num_steps), repeats=np.ones(num_steps), period_s=np.zeros(num_steps))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CircuitTimes(_Columns):
    """When circuits carry light.

    Args:
        step, round, row: of the plan's circuits, int32 (n,); `step` is the first of its run.
        start_s: first bit leaves the sender, or an idle circuit begins to stand, float64 (n,) [s].
        end_s: last bit arrives; NaN for an idle circuit, float64 (n,) [s].
        slot, slots: first slot and number of slots, int64 (n,); -1 on fabrics without slots.
    """

    step: IntArray
    round: IntArray
    row: IntArray
    start_s: FloatArray
    end_s: FloatArray
    slot: IntArray
    slots: IntArray

    KINDS: ClassVar[Mapping[str, type]] = {
        "step": np.int32, "round": np.int32, "row": np.int32, "start_s": np.float64, "end_s": np.float64,
        "slot": np.int64, "slots": np.int64,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DataTimes(_Columns):
    """When the data of transfers can be used.

    Args:
        step, transfer: of the schedule, int32 (n,); `step` is the first of its run.
        arrived_s: last bit received, float64 (n,) [s].
        summed_s: added to what the receiver holds, float64 (n,) [s]; equal to `arrived_s` where nothing is added.
    """

    step: IntArray
    transfer: IntArray
    arrived_s: FloatArray
    summed_s: FloatArray

    KINDS: ClassVar[Mapping[str, type]] = {
        "step": np.int32, "transfer": np.int32, "arrived_s": np.float64, "summed_s": np.float64
    }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DeviceTable(_Columns):
    """Settings of devices, a row each: what circuits need, what stands, and changes over time.

    Args:
        kind: position in the fabric's `devices`, or in `Netlist.groups`, int32 (n,).
        device: of this kind, in pools index x pool + member, int64 (n,).
        step: first step of the run with which the change is repeated; of the tables of a netlist, the slot that begins then;
            -1: none, int64 (n,).
        begin_s, done_s: start and end of the change, float64 (n,) [s].
        setting: from then on, int64 (n,).
        index: wavelength, input or similar within the device, int64 (n,); 0 where it has one setting.
        owner: circuit that needs the setting, int64 (n,); -1: none.
    """

    kind: IntArray
    device: IntArray
    step: IntArray
    begin_s: FloatArray
    done_s: FloatArray
    setting: IntArray
    index: IntArray
    owner: IntArray

    KINDS: ClassVar[Mapping[str, type]] = {
        "kind": np.int32, "device": np.int64, "step": np.int64, "begin_s": np.float64, "done_s": np.float64,
        "setting": np.int64, "index": np.int64, "owner": np.int64,
    }  # fmt: skip
    DEFAULTS: ClassVar[Mapping[str, float]] = {"step": -1, "begin_s": 0.0, "done_s": 0.0, "index": 0, "owner": -1}
    STORED: ClassVar[Mapping[str, type]] = {
        "kind": np.int32, "device": np.int32, "step": np.int32, "begin_s": np.float64, "done_s": np.float64,
        "setting": np.int64,
    }  # fmt: skip

    @classmethod
    def needed(cls, uses: Iterable[SettingUse], position: Mapping[str, int], owner: int = 0) -> Self:
        """What circuits need; `begin_s` is from the start of a circuit until its light reaches the device.

        Args:
            uses: of devices.
            position: of each kind.
            owner: number of circuit 0.
        """
        parts = []
        for use in uses:
            circuit = np.arange(len(use.index)) if use.circuit is None else np.asarray(use.circuit, np.int64)
            parts.append(
                cls.of(
                    kind=position[use.kind], device=use.index, index=0 if use.within is None else use.within,
                    setting=use.setting, begin_s=use.offset_s, owner=circuit + owner,
                )
            )  # fmt: skip
        return cls.joined(parts)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ControlTimes(_Columns):
    """Control exchanges that set up the circuits of a round.

    Args:
        step, round: of the plan, int32 (n,); `step` is the first of its run.
        begin_s, end_s: float64 (n,) [s].
    """

    step: IntArray
    round: IntArray
    begin_s: FloatArray
    end_s: FloatArray

    KINDS: ClassVar[Mapping[str, type]] = {
        "step": np.int32, "round": np.int32, "begin_s": np.float64, "end_s": np.float64
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Programme:
    """Absolute times of a plan under named assumptions. `opticcl.verify.time.programme.check_programme` verifies it.

    Args:
        engine: that made it.
        size_bytes: message of every rank [bytes].
        total_s: last event [s].
        runs: runs of identical steps.
        circuits: times of the circuits.
        data: times of the data.
        devices: changes of device settings.
        control: control exchanges.
        assumptions: values by name.
    """

    engine: str
    size_bytes: int
    total_s: float
    runs: StepRuns
    circuits: CircuitTimes
    data: DataTimes
    devices: DeviceTable = field(default_factory=DeviceTable.empty)
    control: ControlTimes = field(default_factory=ControlTimes.empty)
    assumptions: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMETERS)

    def rows_of_round(self, step: int, number: int) -> tuple[slice, float]:
        """Rows of `circuits` with a round, and how much later than there it happens, where steps are stored once [s].

        Args:
            step: of the round.
            number: of the round in its step.
        """
        run = int(np.searchsorted(self.runs.first, step, "right")) - 1
        first = int(self.runs.first[run])
        lo, hi = np.searchsorted(self.circuits.step, [first, first + 1])
        begin, end = lo + np.searchsorted(self.circuits.round[lo:hi], [number, number + 1])
        return slice(int(begin), int(end)), (step - first) * float(self.runs.period_s[run])

    def __repr__(self) -> str:
        from opticcl.units import counted, format_seconds

        sizes = ", ".join((counted(len(self.circuits), "circuit"), counted(len(self.devices), "device change")))
        return f"<Programme by {self.engine}: {format_seconds(self.total_s)}, {sizes}>"

    def record(self) -> dict[str, Any]:
        """All tables as plain values, for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            name: value.record() if isinstance(value, _Columns) else dict(value) if name == "assumptions" else value
            for name, value in plain.items()
        }
