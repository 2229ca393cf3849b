"""Device tables of a plan: absolute times at which each device of the netlist is set, and the data of each transmitter.

Light leaves at the times of the closed form; what a rank receives is ready once it has arrived and, where it adds, once the
rank has summed. A round that needs a setting which does not stand sets everything that it needs in time for its light, and
parks what it does not need; a round that finds all of its settings changes nothing: rows are changes. The rows of one round
after the other are made on demand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import DEFAULT_SET, LATENCY_KEYS, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics.ramp import Ramp
from opticcl.formats.nic_table import NicShape, NicTable, nic_rows
from opticcl.formats.table_files import DeviceHeader, TablesHeader, tables_header, write_tables
from opticcl.ir import Circuits, IntArray, Op, ProgressCallback, Transfers, concatenate_circuits, no_progress
from opticcl.ir.netlist import ElementGroup
from opticcl.ir.programme import DeviceTable, Programme
from opticcl.ir.tables import DataRows, Tables
from opticcl.optics.device_changes import places_of, settable
from opticcl.optics.elements import KINDS
from opticcl.optics.emulator import load
from opticcl.optics.rounds import lanes_of, needed_settings, netlist_of
from opticcl.plans.plan import Plan
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import sums_s

__all__ = ["TableMaker", "TablePart"]

FloatArray = npt.NDArray[np.float64]


class TablePart(NamedTuple):
    """Rows that are made.

    Args:
        nodes: of the machine, whose devices have rows; None: all, and the switches.
        devices: names of groups that have rows; None: all.
    """

    nodes: Collection[int] | None = None
    devices: Collection[str] | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.nodes is None and self.devices is None


ALL = TablePart()
"""Everything."""


class _Round(NamedTuple):
    """A round with its times.

    Args:
        circuits: of the round.
        transfers: of its step.
        step: of the plan.
        place: first step of its class and number in the step; equal for rounds with the same circuits.
        start_s, left_s: first and last bit of each circuit leave, float64 (circuits,) [s].
        latency_s: of the path of each circuit, float64 (circuits,) [s].
        sent_s, summed_s: each rank has sent all of the step, and has summed all of it, float64 (ranks,) [s].
    """

    circuits: Circuits
    transfers: Transfers
    step: int
    place: tuple[int, int]
    start_s: FloatArray
    left_s: FloatArray
    latency_s: FloatArray
    sent_s: FloatArray
    summed_s: FloatArray


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
        groups = self.netlist.groups
        self.settable = settable(self.netlist)
        self._transmitter = self.netlist.position[self.netlist.transmitter]
        self._photodiode = self.netlist.position[self.netlist.photodiodes.name]
        times = {device.kind: device.setting_time_s for device in self.fabric.devices}
        self.setting_s = np.array([times.get(group.device or group.name, 0.0) for group in groups])
        self._once_per_job = np.array([group.once_per_job for group in groups])
        self._parked = np.array([KINDS[group.kind].parked for group in groups], np.int64)
        self._places = np.array([places_of(self.netlist, group) for group in groups], np.int64)
        self._first_place = np.cumsum([0, *(self._places[:-1] * [group.num_devices for group in groups[:-1]])])
        self._named = np.array([part.devices is None or group.name in part.devices for group in groups])
        self._check_part()

    def _check_part(self) -> None:
        known = [self.netlist.groups[p].name for p in (*self.settable, self._transmitter, self._photodiode)]
        for name in self.part.devices or ():
            if name not in known:
                raise ParameterError(
                    f"--device: {self.netlist.name} has no devices {name!r}; known: {', '.join(known)}"
                )
        most = self.fabric.num_machine_nodes
        for node in self.part.nodes or ():
            if not 0 <= node < most:
                raise ParameterError(f"--node: {node} is not a node of {self.fabric.name}; try 0 to {most - 1}")

    def _kept(self, rows: DeviceTable | DataRows) -> npt.NDArray[np.bool_]:
        """Which rows are of devices in the wanted part."""
        kept: npt.NDArray[np.bool_] = self._named[rows.kind]
        if self.part.nodes is not None:
            nodes = list(self.part.nodes)
            for kind in np.unique(rows.kind).tolist():
                mine, node_of = rows.kind == kind, self.netlist.groups[kind].node_of
                kept[mine] &= node_of is not None and np.isin(node_of(rows.device[mine]), nodes)
        return kept

    def tables(self) -> Tables:
        """All rows at once."""
        return Tables(
            self.fabric, self.plan.schedule.collective, self.plan.size_bytes, self.programme.total_s, self.warm,
            DeviceTable.joined(self.settings()),
            DataRows.joined(self.data()),
            self.part.whole, self._stated(),
        )  # fmt: skip

    def _stated(self) -> dict[str, str | float]:
        """The assumptions of latency and sums."""
        stated = self.assumed.record()
        return {
            key: stated[key] for key in (*LATENCY_KEYS, "latency", "compute", "memory_bytes_per_s") if key in stated
        }

    def header(self) -> TablesHeader:
        """Content of devices.json."""
        devices = []
        for p in (*self.settable, self._transmitter, self._photodiode):
            group = self.netlist.groups[p]
            does = "send" if p == self._transmitter else "receive" if p == self._photodiode else "set"
            index, setting_s = (self._index(group), float(self.setting_s[p])) if does == "set" else ("", 0.0)
            devices.append(DeviceHeader(
                group.name, group.kind, group.num_devices, does, KINDS[group.kind].about, index, KINDS[group.kind].parked,
                setting_s, group.once_per_job, group.place_of(0), group.place_of(group.num_devices - 1),
            ))  # fmt: skip
        plan, total_s = self.plan, self.programme.total_s
        return tables_header(
            plan.circuits, plan.size_bytes, plan.algorithm, total_s, self.warm, devices, self._stated(), *self.part
        )

    def _index(self, group: ElementGroup) -> str:
        w = self.netlist.num_wavelengths
        if group.kind == "matrix":
            return f"input; {group.n_in} + output"
        if group.kind == "wss":
            own = f"input x {w} + wavelength"
            return f"{own}; ({group.n_in} + output) x {w} + wavelength" if "selects" in group.parameters else own
        return "channel" if group.kind == "relay" else "wavelength" if group.per_wavelength else ""

    def write(self, path: Path | str, progress: ProgressCallback = no_progress) -> tuple[int, int]:
        """Write the directory of tables, whole or not at all.

        Returns: rows of settings and of data.
        Raises: OutputError: not writable, or not empty; ParameterError: as `settings`.
        """
        nic = None if self._ramp is None or self.part.devices is not None else self.nic_table
        return write_tables(path, self.header(), self.netlist, self.settings(progress), self.data(progress), nic)

    @property
    def _ramp(self) -> Ramp | None:
        """The machine, if its network interfaces have tables."""
        machine = self.fabric.machine
        return machine if isinstance(machine, Ramp) and machine.slot_s else None

    def nic_table(self) -> NicTable:
        """Tables of RAMP's network interfaces, slot by slot.

        Raises: UnsupportedError: another fabric, or one without slots.
        """
        machine = self._ramp
        if machine is None:
            raise UnsupportedError(f"nic.bin: {self.fabric.machine.name} has no slots; ramp has")
        w, slot_s = self.netlist.num_wavelengths, machine.slot_s
        shape = NicShape(machine.num_machine_nodes, machine.ports_per_node, machine.groups, w, slot_s)
        return nic_rows(shape, self.netlist, self.tables())

    # --- rounds with their times --------------------------------------------------------------------------------------

    def _rounds(self) -> Iterator[_Round]:
        """All rounds in order."""
        plan, times = self.plan.circuits, self.programme.circuits
        law = path_latency(self.fabric, self.assumed)
        for steps in plan.schedule.step_classes():
            rounds = [
                (number, circuits, law.of_circuits(circuits))
                for number, circuits in enumerate(plan.rounds(steps.start))
                if len(circuits)
            ]
            for step in steps:
                transfers, made, later_s = plan.schedule.step(step), [], 0.0
                for number, circuits, latency_s in rounds:
                    rows, later_s = self.programme.rows_of_round(step, number)
                    start_s = times.start_s[rows]
                    left_s = times.end_s[rows] - latency_s
                    # an idle circuit, which has no end, leaves at once
                    left_s = np.where(np.isnan(left_s), start_s, left_s)
                    place = steps.start, number
                    made.append(_Round(circuits, transfers, step, place, start_s, left_s, latency_s, start_s, start_s))
                sent_s, summed_s = self._of_ranks(transfers, made)
                for one in made:
                    yield one._replace(
                        start_s=one.start_s + later_s, left_s=one.left_s + later_s, sent_s=sent_s + later_s,
                        summed_s=summed_s + later_s,
                    )  # fmt: skip

    def _of_ranks(self, transfers: Transfers, rounds: list[_Round]) -> tuple[FloatArray, FloatArray]:
        """When each rank has sent all of a step, and has summed all data that it adds, float64 (ranks,) [s].

        Data waits in a buffer until its rank has sent what it sends in the step. All sums of a rank are one pass over memory,
        once the last data for them is there.

        Args:
            transfers: of the step.
            rounds: of the step.
        """
        c = self.plan.schedule.collective
        sent_s, there_s = np.full((2, c.num_ranks), -np.inf)
        carrying = [(one, np.flatnonzero(one.circuits.transfer >= 0)) for one in rounds]
        for one, rows in carrying:
            np.maximum.at(sent_s, transfers.src[one.circuits.transfer[rows]], one.left_s[rows])
        for one, rows in carrying:
            carried = one.circuits.transfer[rows]
            adds = transfers.op[carried] & Op.REDUCE > 0
            rows, carried = rows[adds], carried[adds]
            placed_s = np.maximum((one.left_s + one.latency_s)[rows], sent_s[transfers.dst[carried]])
            np.maximum.at(there_s, transfers.dst[carried], placed_s)
        summed_s, lasts_s = there_s.copy(), sums_s(transfers, self.plan.size_bytes / c.num_chunks, self.assumed)
        np.maximum.at(summed_s, transfers.dst, there_s[transfers.dst] + lasts_s)
        return sent_s, summed_s

    # --- settings -----------------------------------------------------------------------------------------------------

    def settings(self, progress: ProgressCallback = no_progress) -> Iterator[DeviceTable]:
        """Changes of devices, round by round; first those of the devices that are set once a job.

        Raises: ParameterError: circuits of a round that need one device in two states, or assumptions that leave no time for
            a setting.
        """
        plan = self.plan.circuits
        if self._once_per_job[self.settable].any():
            rounds = [c for steps in plan.schedule.step_classes() for c in plan.rounds(steps.start) if len(c)]
            if rounds:
                yield self._rows(self._needed(concatenate_circuits(rounds), once=True), 0.0)
        held, first, gone_s = DeviceTable.empty(), True, 0.0
        known: dict[tuple[int, int], DeviceTable] = {}
        for one in self._rounds():
            if one.place not in known:
                known = {place: rows for place, rows in known.items() if place[0] == one.place[0]}
                known[one.place] = self._needed(one.circuits)
            changes = self._changes(held, known[one.place])
            if len(changes):
                start_s = float(one.start_s.min())
                yield self._rows(changes, self._begin_s(changes.kind, start_s, gone_s, first))
                wanted, first = known[one.place], False
                held = wanted.take(wanted.setting != self._parked[wanted.kind])
            gone_s = max(gone_s, float(one.left_s.max()))
            progress("write the settings")

    def _needed(self, circuits: Circuits, once: bool = False) -> DeviceTable:
        """Settings that circuits need, in the order of their places.

        Args:
            circuits: of a round, or of all.
            once: whether of devices that are set once a job; else of the others.
        Raises: ParameterError: a device in two states.
        """
        loaded = load(self.netlist, needed_settings(self.fabric, self.netlist, circuits, once))
        for clash in loaded.clashes[:1]:
            raise ParameterError(
                f"tables: {self.netlist.groups[clash.group].name}:{clash.number} would be in the states {clash.values[0]} and "
                f"{clash.values[1]} at once; opticcl verify --emulate names the circuits"
            )
        return loaded.rows

    def _place(self, rows: DeviceTable) -> IntArray:
        """A number for each device and index, ascending with the group, int64 (n,)."""
        place: IntArray = self._first_place[rows.kind] + rows.device * self._places[rows.kind] + rows.index
        return place

    def _changes(self, held: DeviceTable, wanted: DeviceTable) -> DeviceTable:
        """What a round changes: settings that do not stand, and beside them others that it parks; nothing, if all stand.

        Args:
            held: settings before that are not parked, in the order of their places.
            wanted: settings that the round needs, likewise.
        """
        place, before = self._place(wanted), self._place(held)
        at = _rows_among(before, place)
        now = np.where(at < 0, self._parked[wanted.kind], np.append(held.setting, 0)[at])
        new = wanted.take(wanted.setting != now)
        if not len(new):
            return new
        gone = held.take(_rows_among(place, before) < 0)
        both = DeviceTable.joined([new, replace(gone, setting=self._parked[gone.kind])])
        return both.take(np.argsort(both.kind, kind="stable"))

    def _begin_s(self, kind: IntArray, start_s: float, gone_s: float, first: bool) -> FloatArray:
        """When changes before a round begin, so that they are done as light comes, float64 (changes,) [s].

        Args:
            kind: of device, of each change.
            start_s: first light of the round [s].
            gone_s: when the light of all rounds before has left [s].
            first: whether nothing was set before.
        Raises: ParameterError: there is no time for them.
        """
        begin_s = start_s - self.setting_s[kind]
        if first and self.warm:
            return np.maximum(begin_s, 0.0)
        late = np.flatnonzero(begin_s < gone_s - (1e-9 * abs(start_s) + 1e-15))
        if len(late):
            position = int(kind[late[0]])
            raise ParameterError(
                f"tables: {self.netlist.groups[position].name}: a setting takes {self.setting_s[position]:g} s, and these "
                f"assumptions leave {start_s - gone_s:g} s before the light of {start_s:g} s; try --assumptions common"
            )
        return np.maximum(begin_s, gone_s)

    def _rows(self, settings: DeviceTable, begin_s: FloatArray | float) -> DeviceTable:
        """Settings that begin at a time, of the wanted part."""
        slot_s = self.fabric.slot_s
        rows = DeviceTable.of(
            kind=settings.kind, device=settings.device, index=settings.index, setting=settings.setting, begin_s=begin_s,
            done_s=begin_s, step=np.where(self._once_per_job[settings.kind], -1, np.rint(begin_s / slot_s)) if slot_s else -1,
        )  # fmt: skip
        return rows.take(self._kept(rows))

    # --- data ---------------------------------------------------------------------------------------------------------

    def data(self, progress: ProgressCallback = no_progress) -> Iterator[DataRows]:
        """Sends and receives, round by round; a signal that is split has one row at its transmitter."""
        for one in self._rounds():
            if not (one.circuits.transfer >= 0).any():
                continue
            lanes = lanes_of(self.fabric, one.circuits, one.transfers).carrying
            if (lanes.behind - lanes.share != 1).any():
                raise UnsupportedError(
                    f"tables: weak parts of {self.fabric.name} divide a transfer into unequal shares, and tables have equal "
                    "ones; leave the weak parts out"
                )
            transfer, t = one.circuits.transfer[lanes.circuit], one.transfers
            if self.fabric.slot_s and t.chunk_step is not None:
                raise UnsupportedError(
                    f"tables: in slots of {self.fabric.name} a transfer carries neighbouring chunks; try another algorithm"
                )
            start, left, latency = (column[lanes.circuit] for column in (one.start_s, one.left_s, one.latency_s))
            _, first = np.unique(lanes.signal, return_index=True)
            for lane, position, number, sends in (
                (first, self._transmitter, lanes.transmitter, True),
                (np.arange(len(lanes)), self._photodiode, lanes.photodiode, False),
            ):
                ranges, row, from_s, until_s = _one_by_one(t.take(transfer[lane]), start[lane], left[lane])
                lane, ready_s = lane[row], until_s
                if not sends:
                    ready_s = np.maximum(until_s + latency[lane], one.sent_s[ranges.dst])
                    ready_s = np.where(ranges.op & Op.REDUCE > 0, one.summed_s[ranges.dst], ready_s)
                rows = DataRows.of(
                    from_s=from_s, until_s=until_s, ready_s=ready_s, step=one.step, kind=position, device=number[lane],
                    wavelength=lanes.wavelength[lane], sends=sends, op=ranges.op, chunk_lo=ranges.chunk_lo,
                    chunk_n=ranges.chunk_n, parts=1 if ranges.parts is None else ranges.parts, share=lanes.share[lane],
                    shares=lanes.shares[lane],
                )  # fmt: skip
                kept = self._kept(rows)
                if kept.any():
                    yield rows.take(kept)
            progress("write the data")


def _rows_among(places: IntArray, wanted: IntArray) -> IntArray:
    """Row of each wanted place among others, which ascend; -1 where there is none, int64 (n,)."""
    at = np.searchsorted(places, wanted)
    return np.where(np.append(places, -1)[at] == wanted, at, -1)


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
