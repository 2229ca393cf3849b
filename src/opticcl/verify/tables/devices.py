"""Device tables judged alone, of any origin: devices of the netlist are set as the tables say, and light is followed.

    settings   a device has one setting at a time, and its time to change (`setting_clash`, `set_again`, `off_slot`)
    data       a transmitter sends, and a photodiode receives, one thing at a time (`data_overlap`, `ready_early`, `off_slot`),
               and is done with it when it must be (`ready_wrong`), and no wavelength, or port whose rate circuits share,
               carries more than its rate (`rate_exceeded`)
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
from dataclasses import replace
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
from opticcl.ir.netlist import Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.signals import divides_ports
from opticcl.ir.tables import Tables, TableVerdict, TableViolation
from opticcl.optics.device_changes import places_of
from opticcl.optics.elements import KINDS
from opticcl.optics.emulator import NO_DATA, Arrivals, detectors
from opticcl.optics.rounds import emulator_of
from opticcl.units import counted, format_rate, format_seconds
from opticcl.verify.light.budget import check_budget
from opticcl.verify.sweep import runs_of, slack
from opticcl.verify.tables._data import check_result, due_ready_s
from opticcl.verify.tables._rows import broken, known_ranks, refuse_unknown_settings
from opticcl.verify.time._rows import path_latency_s
from opticcl.verify.time.programme import rules_of

__all__ = ["DeviceStates", "check_tables", "match_data"]

APART = {"light_does_not_close", "off_slot", "op_differs", "rate_exceeded", "ready_wrong", "total_too_small"}
"""Rules that say nothing against the light, so that what arrives can be added up."""

RATE_SLACK = 1 + 1e-6
"""How much more than its rate a wavelength or port may seem to carry, since times are rounded."""

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
    if judge.first_of_rule.keys() - APART:
        judge.notes.append("what arrives was not added up, since light or settings are wrong")
    else:
        judge.add(check_result(tables, judge.ranks, judge.sender))
        judge.notes.append(
            f"{tables.collective.name} of {counted(tables.collective.num_ranks, 'rank')}: every chunk followed"
        )
    return TableVerdict(
        tuple(judge.first_of_rule.values()), len(tables.settings), len(tables.data), judge.moments, tuple(judge.notes),
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
        place: device and index of every state that has a row, as rows without times.
        row_place: place of each row of the settings, int64 (rows,).
        once: whether each row is of a device that is set once a job, bool (rows,).
        done_s: end of each change, float64 (rows,) [s].
        times: at which a change begins or is done, ascending, float64 (k,) [s].
        old, new: states after the changes that are done, and after those that have begun, int64 (places,).
    Raises: ParameterError: a device or state that the netlist does not have.
    """

    def __init__(self, netlist: Netlist, tables: Tables) -> None:
        rows = tables.settings
        refuse_unknown_settings(netlist, rows)
        self.netlist, self.rows = netlist, rows
        times = {device.kind: device.setting_time_s for device in tables.fabric.devices}
        takes = [times.get(group.device or group.name, 0.0) for group in netlist.groups]
        self.once = np.array([group.once_per_job for group in netlist.groups])[rows.kind]
        stands = self.once | ((rows.begin_s <= 0) & tables.warm)
        self.done_s = np.where(stands, rows.begin_s, rows.begin_s + np.array(takes)[rows.kind])
        order, new = runs_of((rows.kind, rows.device, rows.index))
        self.row_place = np.empty(len(rows), np.int64)
        self.row_place[order] = np.cumsum(new) - 1
        self.place = rows.take(order[new])
        self.parked = np.array([KINDS[group.kind].parked for group in netlist.groups], np.int64)[self.place.kind]
        self.times = np.unique(np.concatenate([rows.begin_s, self.done_s]))
        self.old, self.new = self.parked.copy(), self.parked.copy()
        by_end, by_begin = (np.argsort(time_s, kind="stable") for time_s in (self.done_s, rows.begin_s))
        self._ahead = [(self.old, self.done_s[by_end], by_end), (self.new, rows.begin_s[by_begin], by_begin)]

    def go_to(self, time_s: float) -> bool:
        """Apply the changes up to a time that is not before the last; returns whether there are any."""
        count = 0
        for number, (state, times, order) in enumerate(self._ahead):
            stop = int(np.searchsorted(times, time_s + slack(time_s), "right"))
            state[self.row_place[order[:stop]]] = self.rows.setting[order[:stop]]
            self._ahead[number] = state, times[stop:], order[stop:]
            count += stop
        return count > 0

    def states(self, value: IntArray) -> DeviceTable:
        """Those of some states that are not parked."""
        on = value != self.parked
        return replace(self.place, setting=value).take(on)

    def name(self, place: int) -> str:
        """A device in words."""
        kind, number, index = (int(column[place]) for column in (self.place.kind, self.place.device, self.place.index))
        group = self.netlist.groups[kind]
        within = f" index {index}" if places_of(self.netlist, group) > 1 else ""
        return f"{group.name}:{number} ({group.place_of(number)}{within})"


class _Active(NamedTuple):
    """Rows of data at one time: those that send, in the order of the signals of their light, and those that receive."""

    send: IntArray
    receive: IntArray


class _Judge:
    """Tables with what is wrong with them.

    Args:
        tables: to be judged.
        progress: called at every time at which light is followed.
        power: whether the power of the light is to be judged.

    Attributes:
        first_of_rule: first violation of each rule, with the count of all.
        sender: row that sends what each row receives, int64 (rows,); -1 until light is followed.
        flight_s: latency of the path of the light that each row receives, float64 (rows,) [s].
        rules: of latency and sums that the tables state; None: they state none.
        circuits: where the power is judged, those of light that rows receive, by step, each once for each state of the
            devices and set of senders.
        ranks: of each row of data, int64 (rows,).
        rates: of each row of data, while its light leaves, float64 (rows,) [bit/s].
        shared: whether circuits share the rates of ports, so that these bound sums of `rates`.
    """

    def __init__(self, tables: Tables, progress: ProgressCallback, power: bool = False) -> None:
        self.tables, self.progress, self.power = tables, progress, power
        self.first_of_rule: dict[str, TableViolation] = {}
        self.notes: list[str] = []
        self.moments = 0
        self.emulator = emulator_of(tables.fabric.machine)
        self.netlist = self.emulator.netlist
        self.transmitter = self.netlist.groups[self.netlist.position[self.netlist.transmitter]]
        self.devices = DeviceStates(self.netlist, tables)
        self.ranks = known_ranks(self.netlist, tables)
        self.sender = np.full(len(tables.data), -1)
        self.flight_s = np.zeros(len(tables.data))
        self.rules = None if tables.assumptions is None else rules_of(tables)
        self.circuits: dict[int, list[Circuits]] = {}
        d, chunk_bytes = tables.data, tables.size_bytes / tables.collective.num_chunks
        with np.errstate(divide="ignore"):
            self.rates = 8 * chunk_bytes * d.chunk_n / d.shares / (d.until_s - d.from_s + slack(d.until_s))
        self.shared = divides_ports(tables.fabric)

    def add(self, violations: list[TableViolation]) -> None:
        """Add violations, or count them beside the first of their rules."""
        for one in violations:
            before = self.first_of_rule.get(one.rule)
            self.first_of_rule[one.rule] = one if before is None else replace(before, count=before.count + one.count)

    # --- rows alone ---------------------------------------------------------------------------------------------------

    def check_settings(self) -> None:
        """Changes of a device follow each other, each in its slot; those of a job happen once."""
        rows, devices = self.tables.settings, self.devices
        begin_s, done_s, setting = rows.begin_s, devices.done_s, rows.setting
        before, after = _pairs((devices.row_place,), begin_s)
        early = begin_s[after] <= done_s[before] - slack(done_s[before])
        early |= begin_s[after] - begin_s[before] <= slack(begin_s[after])
        self.add(broken("setting_clash", np.flatnonzero(early), lambda pair: (
            begin_s[after[pair]], devices.name(devices.row_place[after[pair]]),
            f"one change at a time; the one to {setting[before[pair]]} is done at {_time(done_s[before[pair]])}",
            f"a change to {setting[after[pair]]}",
        )))  # fmt: skip
        again = devices.once & (begin_s > 0)
        again[after] |= devices.once[after]
        self.add(broken("set_again", np.flatnonzero(again), lambda row: (
            begin_s[row], devices.name(devices.row_place[row]), "a setting at 0 for the whole job", "a change"
        )))  # fmt: skip
        self._slots(begin_s, rows.step, ~devices.once, "a setting")
        repeated = int((setting[after] == setting[before]).sum())
        if repeated:
            self.notes.append(f"{counted(repeated, 'row')} of settings change nothing")

    def check_data(self) -> None:
        """Rows of one transmitter or photodiode follow each other."""
        d = self.tables.data
        slot_s = self.tables.fabric.slot_s
        if slot_s:
            self._slots(d.from_s, np.rint(d.from_s / slot_s).astype(np.int64), np.ones(len(d), bool), "data")
        apart = np.where(d.sends, self.transmitter.per_wavelength, self.netlist.photodiodes.per_wavelength)
        before, after = _pairs((d.wavelength * apart, d.device, d.sends), d.from_s)
        over = d.until_s[before] - d.from_s[after] > slack(d.until_s[before])
        self.add(broken("data_overlap", np.flatnonzero(over), lambda pair: (
            d.from_s[after[pair]], self._end(after[pair]),
            f"nothing before {_time(d.until_s[before[pair]])}, the end of chunk {d.chunk_lo[before[pair]]}",
            f"chunk {d.chunk_lo[after[pair]]}",
        )))  # fmt: skip
        early = ~d.sends & (d.until_s - d.ready_s > slack(d.until_s))
        self.add(broken("ready_early", np.flatnonzero(early), lambda row: (
            d.ready_s[row], self._end(row), f"data that is ready after its last bit, at {_time(d.until_s[row])}",
            _time(d.ready_s[row]),
        )))  # fmt: skip
        self._ready(np.where(d.sends, d.until_s, d.ready_s), "as its last bit leaves")
        if not self.shared:
            most = self.tables.fabric.rate_bits_per_s
            self.add(broken("rate_exceeded", np.flatnonzero(d.sends & (self.rates > most * RATE_SLACK)), lambda row: (
                d.from_s[row], self._end(row), f"at most {format_rate(most)}", format_rate(self.rates[row])
            )))  # fmt: skip
        total_s, last_s = self.tables.total_s, max(d.ready_s.max(initial=0), d.until_s.max(initial=0))
        late = np.flatnonzero([last_s - total_s > slack(last_s)])
        self.add(broken("total_too_small", late, lambda _: (
            last_s, "devices.json", f"total_s of {_time(last_s)} or more", _time(total_s)
        )))  # fmt: skip

    def _ready(self, due_s: FloatArray, when: str) -> None:
        """Report rows that are not ready when they are due.

        Args:
            due_s: of each row, float64 (rows,) [s].
            when: this is, in words.
        """
        d = self.tables.data
        wrong = np.abs(d.ready_s - due_s) > slack(due_s)
        self.add(broken("ready_wrong", np.flatnonzero(wrong), lambda row: (
            d.ready_s[row], self._end(row), f"ready_s of {_time(due_s[row])}, {when}", _time(d.ready_s[row])
        )))  # fmt: skip

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
        self.add(broken("off_slot", np.flatnonzero(wrong), lambda row: (
            from_s[row], self.netlist.name,
            f"the start of slot {slot[row]}, {_time(slot[row] * slot_s)}" if slotted[row] else "no slot, -1",
            f"{what} in slot {slot[row]} at {_time(from_s[row])}",
        )))  # fmt: skip

    def check_ready(self) -> None:
        """What is received is ready once it is there and summed; judged where all light arrives as it should."""
        if self.rules is None:
            self.notes.append("ready_s of what is received was not judged: devices.json states no assumptions")
        elif not self.first_of_rule.keys() - APART:
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
        report = check_budget(plan, values)
        d = self.tables.data
        for one in report.violations:
            at_s = float(d.from_s[np.maximum(d.step, 0) == one.step].min())
            self.add([TableViolation(one.rule, at_s, one.where, one.expected, one.found, one.count)])
        self.notes += report.notes

    # --- light --------------------------------------------------------------------------------------------------------

    def follow_light(self) -> None:
        """Follow light at every time at which a row begins or a device changes while data is on its way."""
        devices, d = self.devices, self.tables.data
        seen: dict[tuple[bytes, ...], tuple[Arrivals, FloatArray]] = {}
        for time_s, active in self._times():
            if devices.go_to(time_s):
                seen = {}
            self.moments += 1
            moving = np.flatnonzero(devices.old != devices.new)
            signals = d.device[active.send].tobytes(), d.wavelength[active.send].tobytes()
            bad = []
            for value in (devices.old, devices.new)[: 1 + bool(len(moving))]:
                known = (value.tobytes(), *signals)
                if known not in seen:
                    light = self._light(value, active.send)
                    seen[known] = light, self._flight_s(light, active)
                bad.append(self._wrong(time_s, *seen[known], active))
                if self.shared and not bad[-1]:
                    bad[-1] += self._overfull(time_s, seen[known][0], active)
            if bool(bad[0]) == bool(bad[-1]):
                self.add(bad[0])
            else:
                place, why = int(moving[0]), (bad[0] or bad[1])[0].expected
                rule, due = "set_in_flight", "no change while light passes"
                if bad[0]:
                    rule, due = "setting_late", "its setting before the light"
                change = f"a change from {devices.old[place]} to {devices.new[place]}, one of {len(moving)}: {why}"
                self.add([TableViolation(rule, time_s, devices.name(place), due, change)])
            self._controls(time_s, active)
            self.progress("follow the light")
        self._operations()

    def _times(self) -> Iterator[tuple[float, _Active]]:
        """Times at which light is followed, with the rows of data at each."""
        d = self.tables.data
        times = np.unique(np.concatenate([d.from_s, self.devices.times]))
        times = times[np.diff(times, prepend=-np.inf) > slack(times)]
        order = np.argsort(d.from_s, kind="stable")
        upto = np.searchsorted(d.from_s, times + slack(times), "right", sorter=order)
        active, begun = np.zeros(0, np.int64), 0
        for time_s, stop in zip(times.tolist(), upto.tolist(), strict=True):
            active = np.concatenate([active, order[begun:stop]])
            begun = stop
            active = active[d.until_s[active] > time_s + slack(time_s)]
            if len(active):
                send = active[d.sends[active]]
                yield time_s, _Active(send[np.lexsort((d.wavelength[send], d.device[send]))], active[~d.sends[active]])

    def _controls(self, time_s: float, active: _Active) -> None:
        """Settings without light are those that the data needs: wavelengths of a transmitter, source of a receiver."""
        d, w, source_of = self.tables.data, self.netlist.num_wavelengths, self.transmitter.node_of
        assert source_of is not None
        for position, group in enumerate(self.netlist.groups):
            if "tunes" in group.parameters:
                control = group.parameters["tunes"](d.device[active.send])
                number, which, count = np.unique(control, return_inverse=True, return_counts=True)
                first = np.full(len(number), w)
                np.minimum.at(first, which, d.wavelength[active.send])
                self._compare(time_s, position, number, first * (w + 1) + count)
            elif "receives" in group.parameters:
                rows = active.receive[self.sender[active.receive] >= 0]
                number = group.parameters["receives"](d.device[rows])
                self._compare(time_s, position, number, source_of(d.device[self.sender[rows]]))

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
        own = devices.place.kind == position
        held[:, devices.place.device[own]] = devices.old[own], devices.new[own]
        old, new = held[:, number]

        def words(at: int, found: str) -> tuple[float, str, str, str]:
            return time_s, f"{group.name}:{number[at]} ({group.place_of(int(number[at]))})", f"setting {due[at]}", found

        late, wrong = np.flatnonzero((new == due) & (old != due)), np.flatnonzero(new != due)
        self.add(broken("setting_late", late, lambda at: words(at, f"a change from {old[at]}")))
        self.add(broken("control_wrong", wrong, lambda at: words(at, f"setting {new[at]}")))

    def _light(self, value: IntArray, send: IntArray) -> Arrivals:
        """Light of rows that send, signal k from the k-th.

        Args:
            value: state of every device that has rows.
            send: rows of data.
        """
        d, position = self.tables.data, self.netlist.position[self.netlist.transmitter]
        sent = DeviceTable.of(
            kind=position, device=d.device[send], index=d.wavelength[send] * self.transmitter.per_wavelength,
            setting=np.arange(len(send)),
        )  # fmt: skip
        return self.emulator.light(
            self.emulator.load(DeviceTable.joined([self.devices.states(value), sent])), hops=True
        )

    def _circuits(self, light: Arrivals, active: _Active) -> tuple[IntArray, IntArray, Circuits]:
        """Light with data: its rows at photodiodes, the rows of data that send it, and the circuits that it makes.

        Args:
            light: at photodiodes.
            active: rows of data.
        """
        d, src, dst = self.tables.data, self.transmitter.node_of, self.netlist.photodiodes.node_of
        assert src is not None
        assert dst is not None
        data = np.flatnonzero(light.signal < NO_DATA)
        row = active.send[light.signal[data]]
        paths = light.hops, light.hop_offsets
        circuits = Circuits.of(-1, np.zeros(len(light.signal)), 0, 0, light.wavelength, 1, paths).take(data)
        return data, row, replace(circuits, src=src(d.device[row]), dst=dst(light.photodiode[data]))

    def _overfull(self, time_s: float, light: Arrivals, active: _Active) -> list[TableViolation]:
        """Ports whose circuits together carry more than their rate.

        Args:
            time_s: of the light.
            light: at photodiodes.
            active: rows of data.
        """
        _, row, circuits = self._circuits(light, active)
        machine, wrong = self.tables.fabric.machine, []
        for number, usage in enumerate(machine.usage(circuits)):
            rates = self.rates[row] if usage.circuit is None else self.rates[row[usage.circuit]]
            load = np.bincount(usage.index, rates, minlength=usage.resource.count)
            most = usage.resource.capacity * machine.rate_bits_per_s
            over = np.flatnonzero(load > most * RATE_SLACK)
            place = machine.place_names(number, over[:1])
            wrong += broken("rate_exceeded", over, lambda at, place=place, most=most, load=load: (  # type: ignore[misc]
                time_s, place[0], f"at most {format_rate(most)}", format_rate(load[at])
            ))  # fmt: skip
        return wrong

    def _flight_s(self, light: Arrivals, active: _Active) -> FloatArray:
        """Latency of the path of light with data, float64 (arrivals,) [s]; keeps the circuits that rows receive.

        Args:
            light: at photodiodes.
            active: rows of data.
        """
        d = self.tables.data
        data, row, circuits = self._circuits(light, active)
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
        wrong = np.setdiff1d(source, source[d.op[received] == d.op[source]])
        self.add(broken("op_differs", wrong, lambda row: (
            d.from_s[row], self._end(row), f"{_op(d.op[received[source == row][0]])}, as received", _op(d.op[row])
        )))  # fmt: skip

    def _wrong(self, time_s: float, light: Arrivals, flight_s: FloatArray, active: _Active) -> list[TableViolation]:
        """Light that does not arrive as it should; keeps the rows that send what rows receive.

        Args:
            time_s: of the light.
            light: at photodiodes; signal k is that of row k of `active.send`.
            flight_s: latency of its path, float64 (arrivals,) [s].
            active: rows of data.
        """
        d, receive, send, diodes = self.tables.data, active.receive, active.send, self.netlist.photodiodes
        ends = (light.photodiode, light.wavelength), (d.device[receive], d.wavelength[receive])
        places, (reached, awaited) = detectors(self.netlist, *ends)
        arrived = np.zeros(places, np.int64)
        arrived[reached] = np.arange(len(reached))
        at = arrived[awaited]
        count = np.bincount(reached, minlength=places)[awaited]
        wrong = []
        if light.circulating:
            words = self.netlist.name, "light that ends", "light that comes back to where it was"
            wrong.append(TableViolation("light_circulating", time_s, *words, light.circulating))

        def alone(row: int, found: str) -> tuple[float, str, str, str]:
            return time_s, self._end(row), f"{self._chunks(row)}, its light alone", found

        wrong += broken("light_missing", receive[count == 0], lambda row: alone(row, "darkness"))
        wrong += broken("light_collided", receive[count > 1], lambda row: alone(row, "several signals"))
        single = count == 1
        rows = receive[single]
        signal, wavelength, late_s = (column[at[single]] for column in (light.signal, light.wavelength, flight_s))
        data = signal < NO_DATA
        source = send[np.where(data, signal, 0)] if len(send) else np.zeros_like(rows)
        tuned = data & (wavelength == d.wavelength[rows]) & (wavelength == d.wavelength[source])
        wrong += broken("light_wrong", np.flatnonzero(~tuned), lambda i: (
            time_s, self._end(rows[i]), f"a signal on wavelength {d.wavelength[rows[i]]}",
            f"wavelength {wavelength[i] if data[i] else 'no data'}",
        ))  # fmt: skip
        mine, its, late_s = rows[tuned], source[tuned], late_s[tuned]
        same = (self.sender[mine] == -1) | (self.sender[mine] == its)
        for name in ("step", "chunk_lo", "chunk_n", "parts", "share", "shares"):
            same &= getattr(d, name)[mine] == getattr(d, name)[its]
        wrong += broken("chunks_differ", np.flatnonzero(~same), lambda i: (
            time_s, self._end(mine[i]), self._chunks(mine[i]), f"{self._chunks(its[i])} of {self._end(its[i])}"
        ))  # fmt: skip
        got, sent = mine[same], its[same]
        self.sender[got], self.flight_s[got] = sent, late_s[same]
        late = np.maximum(np.abs(d.from_s[got] - d.from_s[sent]), np.abs(d.until_s[got] - d.until_s[sent]))

        def window(row: int) -> str:
            return f"light from {_time(d.from_s[row])} to {_time(d.until_s[row])}"

        off = np.flatnonzero(late > slack(d.until_s[got]))
        wrong += broken("window_differs", off, lambda i: (time_s, self._end(got[i]), window(got[i]), window(sent[i])))
        listened = np.zeros(places, bool)
        listened[awaited] = True
        stray = np.flatnonzero(~listened[reached] & (light.signal < NO_DATA))
        return wrong + broken("light_stray", stray, lambda i: (
            time_s, f"photodiode of {diodes.place(int(light.photodiode[i]))}", "no data",
            f"{self._chunks(send[light.signal[i]])} of {self._end(send[light.signal[i]])}",
        ))  # fmt: skip

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


def _pairs(keys: tuple[IntArray, ...], time_s: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows that follow each other among those of equal keys: earlier and later ones, int64 (pairs,) each."""
    order, new = runs_of(keys, (time_s,))
    return order[:-1][~new[1:]], order[1:][~new[1:]]


def _time(time_s: float) -> str:
    return format_seconds(float(time_s))


def _op(op: int) -> str:
    return Op(op).name.lower()
