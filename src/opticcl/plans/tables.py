"""Device tables of a plan: absolute times at which each device of the netlist is set, and the data of each transmitter.

Light leaves at the times of the closed form; what a rank receives is ready once it has arrived and, where it adds, once the
rank has summed. A round that needs a setting which does not stand sets everything that it needs in time for its light, and
parks what it does not need; a round that finds all of its settings changes nothing: rows are changes. The rows of one round
after the other are made on demand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from opticcl.assumptions import DEFAULT_SET, LATENCY_KEYS, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics.ramp import Ramp
from opticcl.formats.nic_table import NicShape, NicTable, nic_rows
from opticcl.formats.table_files import DeviceHeader, TablesHeader, TablesToWrite, tables_header, write_tables
from opticcl.ir import Circuits, IntArray, Op, ProgressCallback, Transfers, concatenate_circuits, no_progress
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import ElementGroup, Netlist
from opticcl.ir.programme import Programme
from opticcl.ir.tables import DataRows, SettingRows, Tables
from opticcl.optics.device_changes import places_of
from opticcl.optics.elements import KINDS
from opticcl.optics.rounds import lanes_of, netlist_of
from opticcl.plans.plan import Plan
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import sums_s

__all__ = ["TableMaker", "TablePart", "settable", "wanted_part"]

FloatArray = npt.NDArray[np.float64]


class TablePart(NamedTuple):
    """Rows that are made.

    Args:
        nodes: of the machine, whose devices have rows; None: all, and the switches.
        devices: names of groups that have rows; None: all.
    """

    nodes: tuple[int, ...] | None = None
    devices: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.nodes is None and self.devices is None


ALL = TablePart()
"""Everything."""

_NEVER = np.zeros(0)


class _Round(NamedTuple):
    """A round with its times.

    Args:
        circuits: of the round.
        transfers: of its step.
        step: of the plan.
        start_s, left_s: first and last bit of each circuit leave, float64 (circuits,) [s].
        latency_s: of the path of each circuit, float64 (circuits,) [s].
        sent_s, summed_s: each rank has sent all of the step, and has summed all of it, float64 (ranks,) [s].
        again: equal for rounds with the same circuits, where that is known; else None.
    """

    circuits: Circuits
    transfers: Transfers
    step: int
    start_s: FloatArray
    left_s: FloatArray
    latency_s: FloatArray
    sent_s: FloatArray
    summed_s: FloatArray
    again: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Held:
    """What the devices of a group are set to, without those that are parked.

    Args:
        key: device x places + index, ascending, int64 (n,).
        value: int64 (n,).
    """

    key: IntArray
    value: IntArray

    def lacks(self, wanted: _Held, parked: int) -> npt.NDArray[np.bool_]:
        """Which rows of `wanted` are not set; what has no row is parked."""
        held = np.full(len(wanted.key), parked)
        if len(self.key):
            at = np.minimum(np.searchsorted(self.key, wanted.key), len(self.key) - 1)
            held = np.where(self.key[at] == wanted.key, self.value[at], parked)
        different: npt.NDArray[np.bool_] = held != wanted.value
        return different

    def without(self, parked: int) -> _Held:
        """What is not parked."""
        return _Held(self.key[self.value != parked], self.value[self.value != parked])


def settable(netlist: Netlist) -> list[int]:
    """Positions of the groups whose devices are set by a table of settings."""
    data = (netlist.transmitter, netlist.photodiodes.name)
    return [
        position
        for position, group in enumerate(netlist.groups)
        if KINDS[group.kind].about and "fixed" not in group.parameters and group.name not in data and group.num_devices
    ]


class TableMaker:
    """Rows of the device tables of a plan.

    Args:
        plan: verified.
        assumptions: named set of time assumptions, or a custom set.
        part: rows that are wanted.
    Raises: UnsupportedError: a fabric without netlist, or a collective without data; ParameterError: a node or device that
        the machine does not have.
    """

    def __init__(self, plan: Plan, assumptions: str | Assumptions = DEFAULT_SET, part: TablePart = ALL) -> None:
        self.plan, self.part, self.fabric = plan, part, plan.fabric
        self.assumed = assumptions_of(assumptions)
        self.netlist = netlist_of(plan.fabric)
        if not plan.size_bytes:
            raise UnsupportedError(f"tables: a {plan.schedule.collective.name} of 0 bytes carries no data")
        if self.assumed.initial not in ("cold", "warm"):
            raise UnsupportedError("tables: they begin with devices that are all unset, or all set; leave --start out")
        self.programme: Programme = plan.programme("closed_form", assumptions=self.assumed)
        self.warm = self.assumed.initial == "warm"
        self.settable = settable(self.netlist)
        self._transmitter = self.netlist.position[self.netlist.transmitter]
        self._photodiode = self.netlist.position[self.netlist.photodiodes.name]
        times = {device.kind: device.setting_time_s for device in self.fabric.devices}
        self.setting_s = {p: times.get(self._group(p).device or self._group(p).name, 0.0) for p in self.settable}
        self._check_part()

    def _group(self, position: int) -> ElementGroup:
        return self.netlist.groups[position]

    def _check_part(self) -> None:
        known = [self._group(p).name for p in (*self.settable, self._transmitter, self._photodiode)]
        for name in self.part.devices or ():
            if name not in known:
                raise ParameterError(
                    f"--device: {self.netlist.name} has no devices {name!r}; known: {', '.join(known)}"
                )
        most = self.fabric.num_machine_nodes
        for node in self.part.nodes or ():
            if not 0 <= node < most:
                raise ParameterError(f"--node: {node} is no node of {self.fabric.name}; try 0 to {most - 1}")

    def _kept(self, position: int, number: IntArray) -> npt.NDArray[np.bool_]:
        """Which devices of a group are in the wanted part."""
        group = self._group(position)
        if self.part.devices is not None and group.name not in self.part.devices:
            return np.zeros(len(number), bool)
        if self.part.nodes is None:
            return np.ones(len(number), bool)
        if group.node_of is None:
            return np.zeros(len(number), bool)
        kept: npt.NDArray[np.bool_] = np.isin(group.node_of(number), self.part.nodes)
        return kept

    def tables(self) -> Tables:
        """All rows at once."""
        return Tables(
            self.fabric, self.plan.schedule.collective, self.plan.size_bytes, self.programme.total_s, self.warm,
            SettingRows.joined([_columns(rows) for rows in self.settings()]),
            DataRows.joined([_columns(rows) for rows in self.data()]),
            self.part.whole, self._stated(),
        )  # fmt: skip

    def _stated(self) -> dict[str, str | float]:
        """The assumptions of latency and sums."""
        stated = self.assumed.record()
        return {
            key: stated[key] for key in (*LATENCY_KEYS, "latency", "compute", "memory_bytes_per_s") if key in stated
        }

    def header(self) -> TablesHeader:
        """What devices.json says."""
        devices = []
        for p in (*self.settable, self._transmitter, self._photodiode):
            group = self._group(p)
            does = "send" if p == self._transmitter else "receive" if p == self._photodiode else "set"
            setting_s = self.setting_s.get(p, 0.0)
            devices.append(DeviceHeader(
                group.name, group.kind, group.num_devices, does, KINDS[group.kind].about, self._index(group),
                KINDS[group.kind].parked, setting_s, group.once_per_job, group.place_of(0),
                group.place_of(group.num_devices - 1),
            ))  # fmt: skip
        plan = self.plan
        about = tables_header(
            plan.circuits, plan.size_bytes, plan.algorithm, self.programme.total_s, self.warm, devices, self._stated()
        )
        nodes, only = self.part
        return structs.replace(
            about, nodes=None if nodes is None else list(nodes), only=None if only is None else list(only)
        )

    def _index(self, group: ElementGroup) -> str:
        w = self.netlist.num_wavelengths
        if group.kind == "wss":
            own = f"input x {w} + wavelength"
            return f"{own}; ({group.n_in} + output) x {w} + wavelength" if "selects" in group.parameters else own
        return "wavelength" if group.per_wavelength and group.name in map(self._name, self.settable) else ""

    def _name(self, position: int) -> str:
        return self._group(position).name

    def write(self, path: Path | str, progress: ProgressCallback = no_progress) -> tuple[int, int]:
        """Write the directory of tables, whole or not at all.

        Returns: rows of settings and of data.
        Raises: OutputError: not writable, or not empty; ParameterError: as `settings`.
        """
        has_nic = isinstance(self.fabric.machine, Ramp) and self.fabric.slot_s > 0 and self.part.devices is None
        nic = self.nic_table if has_nic else None
        rows = TablesToWrite(self.header(), self.netlist, self.settings(progress), self.data(progress), nic)
        return write_tables(path, rows)

    def nic_table(self) -> NicTable:
        """Tables of RAMP's network interfaces, slot by slot.

        Raises: UnsupportedError: another fabric, or one without slots.
        """
        machine = self.fabric.machine
        if not isinstance(machine, Ramp) or not machine.slot_s:
            raise UnsupportedError(f"nic.bin: {machine.name} has no slots; ramp has")
        shape = NicShape(
            machine.num_machine_nodes,
            machine.ports_per_node,
            machine.groups,
            self.netlist.num_wavelengths,
            machine.slot_s,
        )
        return nic_rows(shape, self.netlist, self.settings(), self.data())

    # --- rounds with their times --------------------------------------------------------------------------------------

    def _rounds(self) -> Iterator[_Round]:
        """All rounds in order, those of repeated steps as often as they are repeated."""
        plan, times = self.plan.circuits, self.programme
        law = path_latency(self.fabric, self.assumed)
        c, runs = times.circuits, times.runs
        of_class = {steps.start: len(steps) > 1 for steps in plan.schedule.step_classes()}
        starts = np.array(sorted(of_class))
        for first, repeats, period_s in zip(
            runs.first.tolist(), runs.repeats.tolist(), runs.period_s.tolist(), strict=True
        ):
            class_start = int(starts[np.searchsorted(starts, first, "right") - 1])
            lo, hi = np.searchsorted(c.step, [first, first + 1])
            ends = lo + np.searchsorted(c.round[lo:hi], np.arange(len(rounds := plan.rounds(first)) + 1))
            transfers, found = plan.schedule.step(first), []
            for number, (circuits, a, b) in enumerate(zip(rounds, ends[:-1], ends[1:], strict=True)):
                if len(circuits):
                    latency_s, again = law.of_circuits(circuits), (class_start, number)
                    left_s = _left(c.start_s[a:b], c.end_s[a:b] - latency_s)
                    found.append(_Round(
                        circuits, transfers, first, c.start_s[a:b], left_s, latency_s, _NEVER, _NEVER,
                        again if of_class[class_start] else None,
                    ))  # fmt: skip
            sent_s, arrived_s = self._of_ranks(transfers, found)
            for turn in range(repeats):
                transfers, later_s = plan.schedule.step(first + turn), turn * period_s
                summed_s = arrived_s.copy()  # chunks that arrive twice in one step may arrive once in the next
                np.maximum.at(summed_s, transfers.dst, arrived_s[transfers.dst] + self._sums_s(transfers))
                for one in found:
                    yield one._replace(
                        transfers=transfers, step=first + turn, start_s=one.start_s + later_s,
                        left_s=one.left_s + later_s, sent_s=sent_s + later_s, summed_s=summed_s + later_s,
                    )  # fmt: skip

    def _of_ranks(self, transfers: Transfers, rounds: list[_Round]) -> tuple[FloatArray, FloatArray]:
        """When each rank has sent all of a step, and has all data that it adds, float64 (ranks,) [s].

        Data waits in a buffer until its rank has sent what it sends in the step. All sums of a rank are one pass over memory,
        once the last data for them is there.

        Args:
            transfers: of the step.
            rounds: of the step.
        """
        sent_s, arrived_s = np.full((2, self.plan.schedule.collective.num_ranks), -np.inf)
        carrying = [(one, np.flatnonzero(one.circuits.transfer >= 0)) for one in rounds]
        for one, rows in carrying:
            np.maximum.at(sent_s, transfers.src[one.circuits.transfer[rows]], one.left_s[rows])
        for one, rows in carrying:
            carried = one.circuits.transfer[rows]
            adds = transfers.op[carried] & Op.REDUCE > 0
            rows, carried = rows[adds], carried[adds]
            placed_s = np.maximum((one.left_s + one.latency_s)[rows], sent_s[transfers.dst[carried]])
            np.maximum.at(arrived_s, transfers.dst[carried], placed_s)
        return sent_s, arrived_s

    def _sums_s(self, transfers: Transfers) -> FloatArray:
        """Time of the sums of the receiver of each transfer, float64 (transfers,) [s]."""
        return sums_s(transfers, self.plan.size_bytes / self.plan.schedule.collective.num_chunks, self.assumed)

    # --- settings -----------------------------------------------------------------------------------------------------

    def settings(self, progress: ProgressCallback = no_progress) -> Iterator[SettingRows]:
        """Changes of devices, round by round; first those of the devices that are set once a job.

        Raises: ParameterError: circuits of a round that need one device in two states, or assumptions that leave no time for
            a setting.
        """
        yield from self._once()
        held: dict[int, _Held] = {}
        kept: dict[tuple[int, int], dict[int, _Held]] = {}
        gone_s = 0.0
        for one in self._rounds():
            if one.again is None or one.again not in kept:
                wanted = self._wanted(self.fabric.states(one.circuits))
                if one.again is not None:
                    kept = {again: held for again, held in kept.items() if again[0] == one.again[0]}
                    kept[one.again] = wanted
            else:
                wanted = kept[one.again]
            rows, held = self._changes(held, wanted, float(one.start_s.min()), gone_s)
            gone_s = max(gone_s, float(one.left_s.max()))
            yield from rows
            progress("write the settings")

    def _once(self) -> Iterator[SettingRows]:
        """Settings of the devices that are set once a job."""
        groups = [p for p in self.settable if self._group(p).once_per_job]
        if not groups:
            return
        plan = self.plan.circuits
        all_rounds = [c for steps in plan.schedule.step_classes() for c in plan.rounds(steps.start) if len(c)]
        if not all_rounds:
            return
        for position, one in self._wanted(self.fabric.states(concatenate_circuits(all_rounds)), once=True).items():
            yield from self._rows(position, one.key, one.value, 0.0)

    def _wanted(self, uses: Iterable[SettingUse], once: bool = False) -> dict[int, _Held]:
        """What circuits need, by group.

        Args:
            uses: of devices by the circuits.
            once: whether of devices that are set once a job; else of the others.
        """
        found: dict[int, list[tuple[IntArray, IntArray]]] = {}
        for use in uses:
            position = self.netlist.position[use.kind]
            group = self._group(position)
            if group.once_per_job == once:
                within = 0 if use.within is None else np.asarray(use.within, np.int64)
                key = np.asarray(use.index, np.int64) * places_of(self.netlist, group) + within
                found.setdefault(position, []).append((key, np.asarray(use.setting, np.int64)))
        return {p: self._one_value(p, *map(np.concatenate, zip(*parts, strict=True))) for p, parts in found.items()}

    def _one_value(self, position: int, key: IntArray, value: IntArray) -> _Held:
        order = np.argsort(key, kind="stable")
        key, value = key[order], value[order]
        new = np.ones(len(key), bool)
        new[1:] = key[1:] != key[:-1]
        both = np.flatnonzero(~new[1:] & (value[1:] != value[:-1]))
        if len(both):
            group = self._group(position)
            number = int(key[both[0]]) // places_of(self.netlist, group)
            raise ParameterError(
                f"tables: {group.name}:{number} would be in the states {value[both[0]]} and {value[both[0] + 1]} at once; "
                "opticcl verify --emulate names the circuits"
            )
        return _Held(key[new], value[new])

    def _changes(
        self, held: dict[int, _Held], wanted: dict[int, _Held], start_s: float, gone_s: float
    ) -> tuple[list[SettingRows], dict[int, _Held]]:
        """Changes before a round, and what is held then.

        Args:
            held: settings before.
            wanted: settings that the round needs.
            start_s: its first light [s].
            gone_s: when the light of all rounds before has left [s].
        """
        none = _Held(np.zeros(0, np.int64), np.zeros(0, np.int64))
        parked = {p: KINDS[self._group(p).kind].parked for p in self.settable}
        lacking = {p: held.get(p, none).lacks(one, parked[p]) for p, one in wanted.items()}
        if not any(rows.any() for rows in lacking.values()):
            return [], held
        rows = []
        for p in sorted(held.keys() | wanted.keys()):
            before, after = held.get(p, none), wanted.get(p, none)
            gone = before.key[~np.isin(before.key, after.key)]
            new = lacking.get(p, np.zeros(0, bool))
            key = np.concatenate([after.key[new], gone])
            value = np.concatenate([after.value[new], np.full(len(gone), parked[p])])
            if len(key):
                from_s = self._begin(p, start_s, gone_s, first=not held)
                rows += list(self._rows(p, key, value, from_s))
        return rows, {p: one.without(parked[p]) for p, one in wanted.items()}

    def _begin(self, position: int, start_s: float, gone_s: float, first: bool) -> float:
        """When a change begins, so that it is done as light comes [s].

        Raises: ParameterError: there is no time for it.
        """
        begin_s = start_s - self.setting_s[position]
        slack_s = 1e-9 * abs(start_s) + 1e-15
        if first and self.warm:
            return max(begin_s, 0.0)
        if begin_s < gone_s - slack_s:
            raise ParameterError(
                f"tables: {self._group(position).name}: a setting takes {self.setting_s[position]:g} s, and these assumptions "
                f"leave {start_s - gone_s:g} s before the light of {start_s:g} s; try --assumptions common"
            )
        return max(begin_s, gone_s)

    def _rows(self, position: int, key: IntArray, value: IntArray, from_s: float) -> Iterator[SettingRows]:
        number, index = np.divmod(key, places_of(self.netlist, self._group(position)))
        kept = self._kept(position, number)
        slot_s = 0.0 if self._group(position).once_per_job else self.fabric.slot_s
        if kept.any():
            yield SettingRows.of(
                from_s=np.full(int(kept.sum()), from_s), slot=round(from_s / slot_s) if slot_s else -1, device=position,
                number=number[kept], index=index[kept], value=value[kept],
            )  # fmt: skip

    # --- data ---------------------------------------------------------------------------------------------------------

    def data(self, progress: ProgressCallback = no_progress) -> Iterator[DataRows]:
        """Sends and receives, round by round; a signal that is split has one row at its transmitter."""
        for one in self._rounds():
            carrying = one.circuits.transfer >= 0
            if not carrying.any():
                continue
            circuits = one.circuits.take(carrying)
            lanes = lanes_of(self.fabric, circuits, one.transfers)
            if (lanes.behind - lanes.share != 1).any():
                raise UnsupportedError(
                    f"tables: weak parts of {self.fabric.name} divide a transfer into unequal shares, and tables have equal "
                    "ones; leave the weak parts out"
                )
            transfer, t = circuits.transfer[lanes.circuit], one.transfers
            if self.fabric.slot_s and t.chunk_step is not None:
                raise UnsupportedError(
                    f"tables: in slots of {self.fabric.name} a transfer carries neighbouring chunks; try another algorithm"
                )
            start, left, latency = (
                column[carrying][lanes.circuit] for column in (one.start_s, one.left_s, one.latency_s)
            )
            _, first = np.unique(lanes.signal, return_index=True)
            all_lanes = np.arange(len(lanes))
            for rows, position, number, sends in (
                (first, self._transmitter, lanes.transmitter, True),
                (all_lanes, self._photodiode, lanes.photodiode, False),
            ):
                rows = rows[self._kept(position, number[rows])]
                if len(rows):
                    ranges, row, from_s, until_s = _one_by_one(t.take(transfer[rows]), start[rows], left[rows])
                    rows, ready_s = rows[row], until_s
                    if not sends:
                        ready_s = np.maximum(until_s + latency[rows], one.sent_s[ranges.dst])
                        ready_s = np.where(ranges.op & Op.REDUCE > 0, one.summed_s[ranges.dst], ready_s)
                    yield DataRows.of(
                        from_s=from_s, until_s=until_s, ready_s=ready_s, step=one.step, device=position,
                        number=number[rows], wavelength=lanes.wavelength[rows], sends=sends, op=ranges.op,
                        chunk_lo=ranges.chunk_lo, chunk_n=ranges.chunk_n,
                        parts=1 if ranges.parts is None else ranges.parts, share=lanes.share[rows], shares=lanes.shares[rows],
                    )  # fmt: skip
            progress("write the data")


def _one_by_one(
    carried: Transfers, start_s: FloatArray, left_s: FloatArray
) -> tuple[Transfers, IntArray, FloatArray, FloatArray]:
    """Ranges of neighbouring chunks, the row of each, and when its first and last bit leave; chunks that are no neighbours
    leave one after the other.

    Args:
        carried: transfer of each row.
        start_s, left_s: of each row [s].
    """
    ranges, row = carried.ranges()
    if ranges is carried:
        return ranges, row, start_s, left_s
    many = np.bincount(row, minlength=len(carried))
    nth = np.arange(len(row)) - (np.cumsum(many) - many)[row]
    each_s = ((left_s - start_s) / many)[row]
    return ranges, row, start_s[row] + nth * each_s, start_s[row] + (nth + 1) * each_s


def _left(start_s: FloatArray, left_s: FloatArray) -> FloatArray:
    """When the last bit leaves; an idle circuit, which has no end, leaves at once."""
    return np.where(np.isnan(left_s), start_s, left_s)


def _columns(rows: SettingRows | DataRows) -> tuple[np.ndarray, ...]:
    return tuple(getattr(rows, name) for name in rows.KINDS)


def wanted_part(nodes: Collection[int] | None, devices: Collection[str]) -> TablePart:
    """The part that options select: none given, everything."""
    return TablePart(None if nodes is None else tuple(nodes), tuple(devices) or None)
