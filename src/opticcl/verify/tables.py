"""Device tables judged alone, of any origin: devices of the netlist are set as the tables say, and light is followed.

    settings   a device has one setting at a time, and its time to change (`setting_clash`, `set_again`, `off_slot`)
    data       a transmitter sends, and a photodiode receives, one thing at a time (`data_overlap`, `ready_early`, `off_slot`),
               and is done with it when it must be (`ready_wrong`)
    light      whenever anything begins, each photodiode receives the signal of its row alone (`light_missing`,
               `light_collided`, `light_wrong`, `light_stray`, `light_circulating`, `chunks_differ`, `op_differs`,
               `window_differs`); while devices change, light is followed with their old and with their new settings, and
               must not depend on them (`setting_late`, `set_in_flight`); controls without light hold what the data needs
               (`control_wrong`)
    power      where values of the optics are given, light has enough of it (`light_does_not_close`)
    result     chunks that arrive are stored or added in the order of time, and the collective is right at the end
               (`share_missing`, `overwritten_before_sent`, `data_wrong`, `total_too_small`)

The judge knows neither circuits nor schedules: the tables hold none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import (
    CircuitPlan,
    Circuits,
    IntArray,
    Op,
    ProgressCallback,
    Schedule,
    Transfers,
    concatenate_circuits,
    no_progress,
)
from opticcl.ir.light import Optics
from opticcl.ir.limits import limit
from opticcl.ir.netlist import ElementGroup, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import DataRows, Tables, TableVerdict, TableViolation
from opticcl.optics.device_changes import places_of, states_of
from opticcl.optics.elements import KINDS
from opticcl.optics.emulator import NO_DATA, Arrivals
from opticcl.optics.rounds import emulator_of
from opticcl.units import counted, format_seconds
from opticcl.verify._table_data import check_result, due_ready_s
from opticcl.verify._time_rows import path_latency_s
from opticcl.verify.budget import check_budget
from opticcl.verify.sweep import runs_of, slack
from opticcl.verify.time import rules_of

__all__ = ["DeviceStates", "check_tables", "match_data"]

APART = {"light_does_not_close", "off_slot", "op_differs", "ready_wrong", "total_too_small"}
"""Rules that say nothing against the light, so that what arrives can be added up."""

MOST_STEP = limit("tables.MOST_STEP")

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def check_tables(
    tables: Tables, *, budget: Optics | None = None, progress: ProgressCallback = no_progress
) -> TableVerdict:
    """Judge tables.

    Args:
        tables: of all nodes and devices.
        budget: values of the optics, to judge the power of the light too.
        progress: called at every time at which light is followed.
    Raises: ParameterError: tables of a part of a machine, rows of devices or states that it does not have, a time that is
        none, or more elements than light is followed through; or values of the optics are missing. UnsupportedError: no
        netlist.
    """
    if not tables.whole:
        raise ParameterError(
            "verify: these tables are of a part of the devices; light needs all, write them without --node"
        )
    judge = _Judge(tables, progress, budget is not None)
    judge.check_settings()
    judge.check_data()
    judge.follow_light()
    judge.check_ready()
    if budget is not None:
        judge.check_power(budget)
    if judge.found.keys() - APART:
        judge.notes.append("what arrives was not added up, since light or settings are wrong")
    else:
        check_result(tables, judge.ranks, judge.sender, judge.report)
        judge.notes.append(
            f"{tables.collective.name} of {counted(tables.collective.num_ranks, 'rank')}: every chunk followed"
        )
    return TableVerdict(
        tuple(judge.found.values()), len(tables.settings), len(tables.data), judge.moments, tuple(judge.notes),
        None if budget is None else budget.preset,
    )  # fmt: skip


def match_data(tables: Tables) -> IntArray:
    """For each row of data that receives, the row that sends what its photodiode receives; -1 elsewhere, int64 (rows,).

    Raises: as `check_tables`.
    """
    judge = _Judge(tables, no_progress)
    judge.follow_light()
    return judge.sender


class DeviceStates:
    """States of all devices over time, from rows of settings.

    Args:
        netlist: with the devices.
        tables: whose settings are replayed.

    Attributes:
        key: (device group, number, index) of every state that has a row, as positions in `group`, `number`, `index`.
        times: at which a change begins or is done, ascending, float64 (k,) [s].
    Raises: ParameterError: a device or state that the netlist does not have.
    """

    def __init__(self, netlist: Netlist, tables: Tables) -> None:
        rows = tables.settings
        self.netlist = netlist
        _known_states(netlist, rows)
        kinds = {device.kind: device for device in tables.fabric.devices}
        takes = [getattr(kinds.get(g.device or g.name), "setting_time_s", 0.0) for g in netlist.groups]
        takes_s, once = np.array(takes), np.array([g.once_per_job for g in netlist.groups])
        self.once = once[rows.kind]
        stands = self.once | ((rows.begin_s <= 0) & tables.warm)
        self.done_s = np.where(stands, rows.begin_s, rows.begin_s + takes_s[rows.kind])
        unique, self.row_key = np.unique(
            np.stack([rows.kind.astype(np.int64), rows.device, rows.index]), axis=1, return_inverse=True
        )
        self.row_key = self.row_key.reshape(-1)
        self.group, self.number, self.index = unique
        parked = np.array([KINDS[group.kind].parked for group in netlist.groups], np.int64)
        self.parked = parked[self.group]
        self.rows = rows
        self._by_begin = np.argsort(rows.begin_s, kind="stable")
        self._by_done = np.argsort(self.done_s, kind="stable")
        self.times = np.unique(np.concatenate([rows.begin_s, self.done_s]))
        self.restart()

    def restart(self) -> None:
        """Go back to before the first change."""
        self.old, self.new = self.parked.copy(), self.parked.copy()
        self.version = 0
        self._begun = self._finished = 0

    def go_to(self, time_s: float) -> None:
        """Apply the changes that have begun (`new`), and those that are done (`old`), at a time that is not before the last."""
        latest_s = time_s + slack(time_s)
        for name, order, times, at in (
            ("_begun", self._by_begin, self.rows.begin_s, self._begun),
            ("_finished", self._by_done, self.done_s, self._finished),
        ):
            stop = int(np.searchsorted(times, latest_s, "right", sorter=order))
            if stop > at:
                rows = order[at:stop]
                state = self.new if name == "_begun" else self.old
                state[self.row_key[rows]] = self.rows.setting[rows]
                setattr(self, name, stop)
                self.version += 1

    def states(self, value: IntArray) -> DeviceTable:
        """Columns of the states that are not parked."""
        on = np.flatnonzero(value != self.parked)
        return DeviceTable.of(kind=self.group[on], device=self.number[on], index=self.index[on], setting=value[on])

    def name(self, key: int) -> str:
        """A device in words."""
        group = self.netlist.groups[int(self.group[key])]
        place = f" index {self.index[key]}" if places_of(self.netlist, group) > 1 else ""
        return f"{group.name}:{self.number[key]} ({group.place_of(int(self.number[key]))}{place})"


class _Active(NamedTuple):
    """Rows of data at one time: those that send and those that receive."""

    send: IntArray
    receive: IntArray


@dataclass
class _Judge:
    """Tables with what is wrong with them.

    Args:
        tables: to be judged.
        progress: called at every time at which light is followed.
        power: whether the power of the light is to be judged.

    Attributes:
        found: first violation of each rule, with the count of all.
        sender: row that sends what each row receives, int64 (rows,); -1 until light is followed.
        flight_s: latency of the path of the light that each row receives, float64 (rows,) [s].
        rules: of latency and sums that the tables state; None: they state none.
        circuits: where the power is judged, those of light that rows receive, by step, each once for each state of the
            devices and set of senders.
        ranks: of each row of data, int64 (rows,).
    """

    tables: Tables
    progress: ProgressCallback
    power: bool = False
    found: dict[str, TableViolation] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    moments: int = 0

    def __post_init__(self) -> None:
        tables = self.tables
        self.emulator = emulator_of(tables.fabric.machine)
        self.netlist = self.emulator.netlist
        self.devices = DeviceStates(self.netlist, tables)
        self.ranks = _known_data(self.netlist, tables)
        self.sender = np.full(len(tables.data), -1)
        self.flight_s = np.zeros(len(tables.data))
        self.rules = None if tables.assumptions is None else rules_of(tables)
        self.circuits: dict[int, list[Circuits]] = {}

    def report(self, rule: str, at_s: float, where: str, expected: str, found: str, count: int = 1) -> None:
        """Add a violation, or count it beside the first of its rule."""
        before = self.found.get(rule)
        one = TableViolation(rule, float(at_s), where, expected, found, int(count))
        if before is not None:
            one = replace(before, count=before.count + int(count))
        self.found[rule] = one

    # --- rows alone ---------------------------------------------------------------------------------------------------

    def check_settings(self) -> None:
        """Changes of a device follow each other, each in its slot; those of a job happen once."""
        rows, devices = self.tables.settings, self.devices
        order, new = runs_of((devices.row_key,), (rows.begin_s,))
        same = ~new[1:]
        key, begin, done, value = (
            devices.row_key[order],
            rows.begin_s[order],
            devices.done_s[order],
            rows.setting[order],
        )
        early = same & (begin[1:] <= done[:-1] - slack(done[:-1]))
        early |= same & (begin[1:] - begin[:-1] <= slack(begin[1:]))
        for at in np.flatnonzero(early)[:1]:
            self.report(
                "setting_clash", begin[at + 1], devices.name(int(key[at])),
                f"one change at a time; the one to {value[at]} is done at {format_seconds(float(done[at]))}",
                f"a change to {value[at + 1]}", int(early.sum()),
            )  # fmt: skip
        again = (devices.once & (rows.begin_s > 0)) | _in_order(order, same & devices.once[order][1:])
        for at in np.flatnonzero(again)[:1]:
            where = devices.name(int(devices.row_key[at]))
            self.report(
                "set_again", rows.begin_s[at], where, "a setting at 0 for the whole job", "a change", again.sum()
            )
        self._slots(rows.begin_s, rows.step, ~devices.once, "a setting")
        repeated = same & (value[1:] == value[:-1])
        if repeated.any():
            self.notes.append(f"{counted(int(repeated.sum()), 'row')} of settings change nothing")

    def check_data(self) -> None:
        """Rows of one transmitter or photodiode follow each other."""
        d = self.tables.data
        slot_s = self.tables.fabric.slot_s
        if slot_s:
            self._slots(d.from_s, np.rint(d.from_s / slot_s).astype(np.int64), np.ones(len(d), bool), "data")
        transmitter = self.netlist.groups[self.netlist.position[self.netlist.transmitter]]
        wavelength = np.where(d.sends, d.wavelength if transmitter.per_wavelength else 0, 0)
        key = (d.sends, d.device, wavelength)
        order, new = runs_of(key[::-1], (d.from_s,))
        over = ~new[1:] & (d.until_s[order[:-1]] - d.from_s[order[1:]] > slack(d.until_s[order[:-1]]))
        for at in np.flatnonzero(over)[:1]:
            first, second = int(order[at]), int(order[at + 1])
            expected = f"nothing before {format_seconds(float(d.until_s[first]))}, the end of chunk {d.chunk_lo[first]}"
            self.report(
                "data_overlap", d.from_s[second], self._end(second), expected, f"chunk {d.chunk_lo[second]}", over.sum()
            )
        early = ~d.sends & (d.until_s - d.ready_s > slack(d.until_s))
        for at in np.flatnonzero(early)[:1]:
            expected = f"data that is ready after its last bit, at {format_seconds(float(d.until_s[at]))}"
            found = format_seconds(float(d.ready_s[at]))
            self.report("ready_early", d.ready_s[at], self._end(int(at)), expected, found, early.sum())
        self._ready(np.where(d.sends, d.until_s, d.ready_s), "as its last bit leaves")
        last_s = float(max(d.ready_s.max(initial=0), d.until_s.max(initial=0)))
        if last_s - self.tables.total_s > slack(last_s):
            total = format_seconds(self.tables.total_s)
            self.report(
                "total_too_small", last_s, "devices.json", f"total_s of {format_seconds(last_s)} or more", total
            )

    def _ready(self, due_s: FloatArray, when: str) -> None:
        """Report rows that are not ready when they are due.

        Args:
            due_s: of each row, float64 (rows,) [s].
            when: this is, in words.
        """
        d = self.tables.data
        wrong = np.abs(d.ready_s - due_s) > slack(due_s)
        for at in np.flatnonzero(wrong)[:1]:
            expected = f"ready_s of {format_seconds(float(due_s[at]))}, {when}"
            found = format_seconds(float(d.ready_s[at]))
            self.report("ready_wrong", d.ready_s[at], self._end(int(at)), expected, found, int(wrong.sum()))

    def check_ready(self) -> None:
        """What is received is ready once it is there and summed; judged where all light arrives as it should."""
        if self.rules is None:
            self.notes.append("ready_s of what is received was not judged: devices.json states no assumptions")
        elif not self.found.keys() - APART:
            due_s = due_ready_s(self.tables, self.ranks, self.flight_s, self.rules)
            self._ready(
                np.where(self.tables.data.sends, self.tables.data.ready_s, due_s), "once it is there and summed"
            )

    def check_power(self, values: Optics) -> None:
        """The power of each circuit that the settings make, by the light path of the fabric.

        Args: values: losses and gains of its elements.
        """
        steps = sorted(self.circuits)
        nothing = Transfers.of([], [], [], [], [])
        plan = CircuitPlan(
            self.tables.fabric,
            Schedule("tables", self.tables.collective, 1 + max(steps, default=-1), lambda step: nothing),
            lambda step: (concatenate_circuits(self.circuits[step]),) if step in self.circuits else (),
        )
        found = check_budget(plan, values)
        d = self.tables.data
        for one in found.violations:
            at_s = float(d.from_s[np.maximum(d.step, 0) == one.step].min())
            self.report(one.rule, at_s, one.where, one.expected, one.found, one.count)
        self.notes += found.notes

    def _slots(self, from_s: FloatArray, slot: IntArray, slotted: BoolArray, what: str) -> None:
        """Report rows that are not in their slot.

        Args:
            from_s, slot: of each row.
            slotted: rows whose begin is that of a slot, where the fabric has slots; the others have slot -1.
            what: the rows are, in words.
        """
        slot_s = self.tables.fabric.slot_s
        slotted = slotted & (slot_s > 0)
        wrong = np.where(slotted, np.abs(slot * slot_s - from_s) > slack(from_s) + 1e-6 * slot_s, slot != -1)
        for at in np.flatnonzero(wrong)[:1]:
            start = format_seconds(float(slot[at] * slot_s))
            expected = f"the start of slot {slot[at]}, {start}" if slotted[at] else "no slot, -1"
            found = f"{what} in slot {slot[at]} at {format_seconds(float(from_s[at]))}"
            self.report("off_slot", from_s[at], self.netlist.name, expected, found, wrong.sum())

    # --- light --------------------------------------------------------------------------------------------------------

    def follow_light(self) -> None:
        """Follow light at every time at which a row begins or a device changes while data is on its way."""
        devices = self.devices
        seen: dict[tuple[bytes, ...], tuple[Arrivals, FloatArray]] = {}
        version = -1
        for time_s, active in self._times():
            devices.go_to(time_s)
            if devices.version != version:
                seen, version = {}, devices.version
            self.moments += 1
            moving = not np.array_equal(devices.old, devices.new)
            bad = []
            for value in (devices.old, devices.new)[: 1 + moving]:
                signal = _signals(self.tables.data, active.send)
                known = (value.tobytes() if moving else b"", *(column.tobytes() for column in signal))
                if known not in seen:
                    light = self._light(value, *signal)
                    seen[known] = light, self._flight_s(light, active)
                bad.append(list(self._wrong(time_s, *seen[known], active)))
            if moving and bool(bad[0]) != bool(bad[1]):
                change = np.flatnonzero(devices.old != devices.new)
                late = bool(bad[0])
                self.report(
                    "setting_late" if late else "set_in_flight", time_s, devices.name(int(change[0])),
                    "its setting before the light" if late else "no change while light passes",
                    f"a change from {devices.old[change[0]]} to {devices.new[change[0]]}, one of {len(change)}: "
                    + str((bad[0] or bad[1])[0][2]),
                )  # fmt: skip
            else:
                for violation in bad[0]:
                    self.report(violation[0], time_s, *violation[1:])
            self._controls(time_s, active)
            self.progress("follow the light")
        self._operations()

    def _times(self) -> Iterator[tuple[float, _Active]]:
        """Times at which light is followed, with the rows of data at each."""
        d = self.tables.data
        times = np.unique(np.concatenate([d.from_s, self.devices.times]))
        times = times[np.r_[True, np.diff(times) > slack(times[1:])]] if len(times) else times
        order = np.argsort(d.from_s, kind="stable")
        upto = np.searchsorted(d.from_s, times + slack(times), "right", sorter=order)
        active, begun = np.zeros(0, np.int64), 0
        for time_s, stop in zip(times.tolist(), upto.tolist(), strict=True):
            active = np.concatenate([active, order[begun:stop]])
            begun = stop
            active = active[d.until_s[active] > time_s + slack(time_s)]
            if len(active):
                sends = d.sends[active]
                yield time_s, _Active(active[sends], active[~sends])

    def _controls(self, time_s: float, active: _Active) -> None:
        """Settings without light are those that the data needs: wavelengths of a transmitter, source of a receiver."""
        d, w = self.tables.data, self.netlist.num_wavelengths
        for position, group in enumerate(self.netlist.groups):
            if "tunes" in group.parameters:
                control = group.parameters["tunes"](d.device[active.send])
                number, which, count = np.unique(control, return_inverse=True, return_counts=True)
                first = np.full(len(number), w)
                np.minimum.at(first, which, d.wavelength[active.send])
                self._compare(time_s, position, number, first * (w + 1) + count)
            elif "receives" in group.parameters:
                rows = active.receive[self.sender[active.receive] >= 0]
                node_of = self.netlist.groups[self.netlist.position[self.netlist.transmitter]].node_of
                assert node_of is not None
                source = node_of(d.device[self.sender[rows]])
                self._compare(time_s, position, group.parameters["receives"](d.device[rows]), source)

    def _compare(self, time_s: float, position: int, number: IntArray, due: IntArray) -> None:
        """Report controls that are not set as they should be.

        Args:
            time_s: of the light.
            position: of the group.
            number: controls, int64 (n,).
            due: setting of each, int64 (n,).
        """
        devices, group = self.devices, self.netlist.groups[position]
        held = np.full((2, group.num_devices), KINDS[group.kind].parked)
        own = devices.group == position
        held[:, devices.number[own]] = devices.old[own], devices.new[own]
        old, new = held[:, number]
        for rule, bad in (("setting_late", (new == due) & (old != due)), ("control_wrong", new != due)):
            for at in np.flatnonzero(bad)[:1]:
                where = f"{group.name}:{number[at]} ({group.place_of(int(number[at]))})"
                found = f"a change from {old[at]}" if rule == "setting_late" else f"setting {new[at]}"
                self.report(rule, time_s, where, f"setting {due[at]}", found, int(bad.sum()))

    def _light(self, value: IntArray, number: IntArray, wavelength: IntArray) -> Arrivals:
        """Light of transmitters that send, signal k from the k-th.

        Args:
            value: state of every device that has rows.
            number: transmitters that send.
            wavelength: of each.
        """
        position = self.netlist.position[self.netlist.transmitter]
        group = self.netlist.groups[position]
        n = len(number)
        index = wavelength if group.per_wavelength else np.zeros(n, np.int64)
        sent = DeviceTable.of(kind=np.full(n, position), device=number, index=index, setting=np.arange(n))
        settings = DeviceTable.joined([self.devices.states(value), sent])
        return self.emulator.light(self.emulator.load(settings), hops=True)

    def _flight_s(self, light: Arrivals, active: _Active) -> FloatArray:
        """Latency of the path of light with data, float64 (arrivals,) [s]; keeps the circuits that rows receive.

        Args:
            light: at photodiodes.
            active: rows of data.
        """
        d, groups = self.tables.data, self.netlist.groups
        send = _in_order_of_signals(d, active.send)
        data = np.flatnonzero(light.signal < NO_DATA)
        row = send[light.signal[data]]
        src, dst = groups[self.netlist.position[self.netlist.transmitter]].node_of, self.netlist.photodiodes.node_of
        assert src is not None
        assert dst is not None
        paths = light.hops, light.hop_offsets
        circuits = Circuits.of(-1, np.zeros(len(light.signal)), 0, 0, light.wavelength, 1, paths).take(data)
        circuits = replace(circuits, src=src(d.device[row]), dst=dst(light.photodiode[data]))
        flight_s = np.zeros(len(light.signal))
        if self.rules is not None:
            flight_s[data] = path_latency_s(self.tables, circuits, self.rules.latency)
        if self.power:
            received = np.flatnonzero(np.isin(light.photodiode[data], d.device[active.receive]))
            step = np.maximum(d.step[row[received]], 0)
            for one in np.unique(step).tolist():
                self.circuits.setdefault(one, []).append(circuits.take(received[step == one]))
        return flight_s

    def _operations(self) -> None:
        """A row that sends has the operation of one of the rows that receive it."""
        d = self.tables.data
        received = np.flatnonzero(self.sender >= 0)
        source = self.sender[received]
        same = d.op[received] == d.op[source]
        wrong = np.setdiff1d(source, source[same])
        for row in wrong[:1].tolist():
            expected, found = (Op(d.op[i]).name.lower() for i in (received[source == row][0], row))
            self.report("op_differs", d.from_s[row], self._end(row), f"{expected}, as received", found, len(wrong))

    def _wrong(
        self, time_s: float, light: Arrivals, flight_s: FloatArray, active: _Active
    ) -> Iterator[tuple[str, str, str, str, int]]:
        """Rule, place, what is expected and what is found for light that does not arrive as it should.

        Args:
            time_s: of the light.
            light: at photodiodes; signal k is that of row k of `active.send`.
            flight_s: latency of its path, float64 (arrivals,) [s].
            active: rows of data.
        """
        d, receive = self.tables.data, active.receive
        send = _in_order_of_signals(d, active.send)
        diodes = self.netlist.photodiodes
        many = np.bincount(light.photodiode, minlength=diodes.count)
        arrived = np.full(diodes.count, -1)
        arrived[light.photodiode] = np.arange(len(light.photodiode))
        at = arrived[d.device[receive]]
        count = many[d.device[receive]]
        if light.circulating:
            yield (
                "light_circulating",
                self.netlist.name,
                "light that ends",
                "light that comes back to where it was",
                light.circulating,
            )
        for rule, rows, found in (
            ("light_missing", count == 0, "darkness"), ("light_collided", count > 1, "several signals")
        ):  # fmt: skip
            yield from self._of_rows(rule, receive[rows], "its light alone", found)
        single = np.flatnonzero(count == 1)
        rows, signal, wavelength = receive[single], light.signal[at[single]], light.wavelength[at[single]]
        data = (signal >= 0) & (signal < NO_DATA)
        source = send[np.where(data, signal, 0)] if len(send) else np.full(len(rows), -1)
        tuned = data & (wavelength == d.wavelength[rows])
        tuned[data] &= wavelength[data] == d.wavelength[source[data]]
        wrong = rows[~tuned]
        if len(wrong):
            seen = wavelength[~tuned][0] if data[~tuned][0] else "no data"
            expected = f"a signal on wavelength {d.wavelength[wrong[0]]}"
            yield "light_wrong", self._end(int(wrong[0])), expected, f"wavelength {seen}", len(wrong)
        rows, source, late_s = rows[tuned], source[tuned], flight_s[at[single]][tuned]
        same = np.ones(len(rows), bool)
        for name in ("step", "chunk_lo", "chunk_n", "parts", "share", "shares"):
            column = getattr(d, name)
            same &= column[rows] == column[source]
        same &= (self.sender[rows] == -1) | (self.sender[rows] == source)
        if not same.all():
            row, its = int(rows[~same][0]), int(source[~same][0])
            yield (
                "chunks_differ",
                self._end(row),
                self._chunks(row),
                f"{self._chunks(its)} of {self._end(its)}",
                int((~same).sum()),
            )
        rows, source = rows[same], source[same]
        self.sender[rows], self.flight_s[rows] = source, late_s[same]
        late = np.maximum(np.abs(d.from_s[rows] - d.from_s[source]), np.abs(d.until_s[rows] - d.until_s[source]))
        off = late > slack(d.until_s[rows])
        if off.any():
            row, its = int(rows[off][0]), int(source[off][0])
            windows = [
                f"{format_seconds(float(d.from_s[i]))} to {format_seconds(float(d.until_s[i]))}" for i in (row, its)
            ]
            yield (
                "window_differs",
                self._end(row),
                f"light from {windows[0]}",
                f"light from {windows[1]}",
                int(off.sum()),
            )
        listened = np.zeros(diodes.count, bool)
        listened[d.device[receive]] = True
        stray = np.flatnonzero(~listened[light.photodiode] & (light.signal < NO_DATA))
        if len(stray):
            where = f"photodiode of {diodes.place(int(light.photodiode[stray[0]]))}"
            its = int(send[light.signal[stray[0]]])
            yield "light_stray", where, "no data", f"{self._chunks(its)} of {self._end(its)}", len(stray)

    def _of_rows(
        self, rule: str, rows: IntArray, expected: str, found: str
    ) -> Iterator[tuple[str, str, str, str, int]]:
        if len(rows):
            yield rule, self._end(int(rows[0])), f"{self._chunks(int(rows[0]))}, {expected}", found, len(rows)

    def _end(self, row: int) -> str:
        """Transmitter or photodiode of a row of data, in words."""
        d = self.tables.data
        group = self.netlist.groups[int(d.kind[row])]
        return f"{group.name}:{d.device[row]} ({group.place_of(int(d.device[row]))}), wavelength {d.wavelength[row]}"

    def _chunks(self, row: int) -> str:
        d = self.tables.data
        lo, n = int(d.chunk_lo[row]), int(d.chunk_n[row])
        chunks = f"chunk {lo}" if n == 1 else f"chunks {lo} to {lo + n - 1}"
        return chunks if d.shares[row] == 1 else f"share {d.share[row]} of {d.shares[row]} of {chunks}"


def _signals(d: DataRows, send: IntArray) -> tuple[IntArray, IntArray]:
    """Transmitter and wavelength of the rows that send, in the order of their signals."""
    ordered = _in_order_of_signals(d, send)
    return d.device[ordered], d.wavelength[ordered]


def _in_order_of_signals(d: DataRows, send: IntArray) -> IntArray:
    """Rows that send, in the order of the signals of their light."""
    ordered: IntArray = send[np.lexsort((d.wavelength[send], d.device[send]))]
    return ordered


def _in_order(order: IntArray, follows: BoolArray) -> BoolArray:
    """Rows that follow another of their key, as a mask over the rows as they were given."""
    found = np.zeros(len(order), bool)
    found[order[1:][follows]] = True
    return found


def _known_states(netlist: Netlist, rows: DeviceTable) -> None:
    """Refuse settings of devices, places or states that a netlist does not have."""
    _known_times("settings", rows.begin_s)
    for position in np.unique(rows.kind).tolist():
        group = netlist.groups[position]
        mine = np.flatnonzero(rows.kind == position)
        states = states_of(netlist, group)
        if (group.kind != "control" and states is None) or group.name in (
            netlist.transmitter,
            netlist.photodiodes.name,
        ):
            raise ParameterError(f"settings row {mine[0]}: {group.name} has no states that can be set")
        _known_numbers("settings", group, rows.device, mine)
        places = places_of(netlist, group)
        for name, column, lowest, highest in (
            ("index", rows.index, 0, places - 1),
            ("value", rows.setting, *((-1, 1 << 40) if states is None else (states[0], states[-1]))),
        ):
            bad = mine[(column[mine] < lowest) | (column[mine] > highest)]
            if len(bad):
                raise ParameterError(
                    f"settings row {bad[0]}: {name}={column[bad[0]]}; {group.name} has {lowest} to {highest}"
                )


def _known_data(netlist: Netlist, tables: Tables) -> IntArray:
    """Rank of each row of data; refuses rows of what neither the netlist nor the collective has."""
    d, c = tables.data, tables.collective
    for name in ("from_s", "until_s", "ready_s"):
        _known_times("data", getattr(d, name), name)
    ranks = np.empty(len(d), np.int64)
    for sends, name in ((True, netlist.transmitter), (False, netlist.photodiodes.name)):
        position = netlist.position[name]
        mine = np.flatnonzero(d.sends == sends)
        wrong = mine[d.kind[mine] != position]
        if len(wrong):
            action = "sends" if sends else "receives"
            given = netlist.groups[int(d.kind[wrong[0]])].name
            raise ParameterError(f"data row {wrong[0]}: {given} {action}, but in {netlist.name} only {name} does")
        _known_numbers("data", netlist.groups[position], d.device, mine)
        node_of = netlist.groups[position].node_of
        assert node_of is not None
        nodes = node_of(d.device[mine])
        ranks[mine] = tables.fabric.ranks_at(nodes)
    outside = np.flatnonzero(ranks < 0)
    if len(outside):
        raise ParameterError(f"data row {outside[0]}: its device is on no node of the job")
    for name, low, high in (
        ("step", -1 if tables.assumptions is None else 0, MOST_STEP), ("wavelength", 0, netlist.num_wavelengths - 1),
        ("op", 0, max(Op)), ("chunk_lo", 0, c.num_chunks - 1),
        ("chunk_n", 1, c.num_chunks), ("parts", 1, c.num_ranks), ("shares", 1, 1 << 20), ("share", 0, 1 << 20),
    ):  # fmt: skip
        column = getattr(d, name)
        bad = np.flatnonzero((column < low) | (column > high))
        if len(bad):
            raise ParameterError(f"data row {bad[0]}: {name}={column[bad[0]]} is none of {low} to {high}")
    for over, what in (
        (d.chunk_lo + d.chunk_n > c.num_chunks, f"ends beyond the {c.num_chunks} chunks"),
        (d.share >= d.shares, "has a share beyond its shares"),
        (d.until_s < d.from_s, "has until_s before from_s"),
    ):
        rows = np.flatnonzero(over)
        if len(rows):
            raise ParameterError(f"data row {rows[0]}: {what}")
    bad_op = np.flatnonzero(np.isin(d.op, (Op.REDUCE, Op.REDUCE_MOVE) if c.keeps_apart else (Op.MOVE,)))
    if len(bad_op):
        raise ParameterError(f"data row {bad_op[0]}: op={d.op[bad_op[0]]} is none of the operations of {c.name}")
    return ranks


def _known_times(table: str, times: FloatArray, name: str = "from_s") -> None:
    bad = np.flatnonzero(~((times >= 0) & np.isfinite(times)))
    if len(bad):
        raise ParameterError(f"{table} row {bad[0]}: {name}={times[bad[0]]} is no time from 0 on")


def _known_numbers(table: str, group: ElementGroup, number: IntArray, rows: IntArray) -> None:
    bad = rows[(number[rows] < 0) | (number[rows] >= group.num_devices)]
    if len(bad):
        raise ParameterError(
            f"{table} row {bad[0]}: {group.name}:{number[bad[0]]} does not exist; {group.name} has 0 to {group.num_devices - 1}"
        )
