"""Light in a netlist: settings are loaded, light starts at the emitters and is followed through the elements to photodiodes.

The emulator knows elements, links and settings. It does not know circuits: settings have an owner, a number that the caller
gives them, which is only reported where two owners set one device in two ways.

    load     settings sorted by (group, device, index); two values are a clash; devices without a setting are parked
    light    rows (input port, wavelength, signal): the rows of a group pass it as one array operation, until none is left
    verdict  a photodiode that is listened to has to receive exactly its signal, and all others no data
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, numbered
from opticcl.ir.netlist import ElementGroup, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.optics.elements import ABSORBED, ALL, KINDS, InputRows, StateOf, splitting_db

__all__ = [
    "NO_DATA",
    "Arrivals",
    "Clash",
    "Emulator",
    "LightReport",
    "Listeners",
    "Loaded",
    "detectors",
    "load",
]

NO_DATA = 1 << 40
"""Signals from this number on carry no data: light of a laser that nothing modulates."""

FIRST_MARK = 64
"""Round at which the place of every row is kept for the first time, to notice when it comes back; then at every doubling."""

DARK, COLLIDED = -1, -2
"""In place of a signal: nothing, or more than one."""


@dataclass(frozen=True, slots=True)
class Clash:
    """A device that two owners set in two ways.

    Args:
        group: position in `Netlist.groups`.
        number, index: of the device, and within it.
        values: first and second state.
        owners: that need them.
    """

    group: int
    number: int
    index: int
    values: tuple[int, int]
    owners: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """Settings as devices hold them.

    Args:
        rows: one for each device and index, in their order; of several states the first.
        ends: first row of each group, and one after the last, int64 (groups + 1,).
        clashes: devices that are set in two ways, one entry each.
    """

    rows: DeviceTable
    ends: IntArray
    clashes: tuple[Clash, ...]

    def state(self, position: int, group: ElementGroup) -> StateOf:
        """States of the elements of a group."""
        number, indices, values = self.held(position)
        span = int(indices.max(initial=0)) + 1
        keys = number * span + indices

        def of(element: IntArray, index: IntArray, parked: int) -> IntArray:
            if not len(keys):
                return np.full(len(element), parked)
            wanted = group.device_of(element) * span + index
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            return np.where((keys[at] == wanted) & (index < span), values[at], parked)

        return of

    def held(self, position: int) -> tuple[IntArray, IntArray, IntArray]:
        """(device, index, state) of all devices of a group that are set, int64 (n,) each."""
        own = slice(self.ends[position], self.ends[position + 1])
        return self.rows.device[own], self.rows.index[own], self.rows.setting[own]


def load(netlist: Netlist, settings: DeviceTable) -> Loaded:
    """Load settings.

    Raises: ParameterError: a device that the netlist does not have.
    """
    most = np.array([group.num_devices for group in netlist.groups], np.int64)[settings.kind]
    bad = np.flatnonzero((settings.device < 0) | (settings.device >= most) | (settings.index < 0))
    if len(bad):
        group = netlist.groups[int(settings.kind[bad[0]])]
        raise ParameterError(
            f"{netlist.name}: {group.name}:{settings.device[bad[0]]} is not a device; {group.name} has 0 to "
            f"{group.num_devices - 1}"
        )
    before = np.cumsum([0, *(group.num_devices for group in netlist.groups)])[settings.kind]
    place = (before + settings.device) * (int(settings.index.max(initial=0)) + 1) + settings.index
    order = np.argsort(place, kind="stable")
    rows, new = settings.take(order), np.diff(place[order], prepend=-1) != 0
    first = np.flatnonzero(new)[np.cumsum(new) - 1]
    other = np.flatnonzero(rows.setting != rows.setting[first])
    one, at = np.unique(first[other], return_index=True)
    clashes = tuple(
        Clash(
            int(rows.kind[a]), int(rows.device[a]), int(rows.index[a]), (int(rows.setting[a]), int(rows.setting[b])),
            (int(rows.owner[a]), int(rows.owner[b])),
        )
        for a, b in zip(one.tolist(), other[at].tolist(), strict=True)
    )  # fmt: skip
    held = rows.take(new)
    return Loaded(held, np.searchsorted(held.kind, np.arange(len(netlist.groups) + 1)), clashes)


class _Rays(NamedTuple):
    """Light at input ports: one row for each signal that reaches one, with what it has passed."""

    port: IntArray
    wavelength: IntArray
    signal: IntArray
    splitting_db: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    trail: IntArray


class _Trails:
    """Hops that light has passed, each with the one before it; -1 is light that has passed none."""

    def __init__(self) -> None:
        self._before: list[IntArray] = []
        self._hop: list[IntArray] = []
        self._size = 0

    def onward(self, trail: IntArray, hop: IntArray) -> IntArray:
        """Trails with one more hop each, int64 (n,)."""
        self._before.append(trail)
        self._hop.append(hop)
        self._size += len(hop)
        return np.arange(self._size - len(hop), self._size)

    def paths(self, trail: IntArray) -> tuple[IntArray, IntArray]:
        """Hops of trails end to end, int64, and where those of each begin, int64 (n + 1,)."""
        none = np.zeros(0, np.int64)
        before, hop = (np.concatenate([none, *parts]) for parts in (self._before, self._hop))
        row = np.flatnonzero(trail >= 0)
        at, rows, hops = trail[row], [none], [none]
        while len(row):
            rows.append(row)
            hops.append(hop[at])
            at = before[at]
            row, at = row[at >= 0], at[at >= 0]
        owner = np.concatenate(rows[::-1])
        order = np.argsort(owner, kind="stable")
        return np.concatenate(hops[::-1])[order], np.searchsorted(owner[order], np.arange(len(trail) + 1))


class Arrivals(NamedTuple):
    """Light at photodiodes, one row for each signal that arrives.

    Args:
        photodiode: element, int64 (n,).
        wavelength, signal: int64 (n,).
        splitting_db: loss by division, float64 (n,) [dB].
        counts: pieces of each element of a light path that it has passed, float64 (n, keys); no keys unless requested.
        circulating: rows that came back to an input with their wavelength [count].
        hops, hop_offsets: hops of a circuit's path that they passed, as in `Circuits`; none unless requested.
    """

    photodiode: IntArray
    wavelength: IntArray
    signal: IntArray
    splitting_db: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    circulating: int
    hops: IntArray
    hop_offsets: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Listeners:
    """What photodiodes have to receive, as columns of equal length; every photodiode occurs at most once,
    or once for each channel where it distinguishes channels.

    Args:
        photodiode: element, int64 (n,).
        wavelength, signal: int64 (n,).
    """

    photodiode: IntArray
    wavelength: IntArray
    signal: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class LightReport:
    """What photodiodes receive, beside what they have to receive.

    Args:
        clashes: devices that would have to be set in two ways.
        missing, collided, wrong: listeners that receive nothing, more than one signal, or another signal, int64 (k,).
        stray: photodiodes that receive data and have no listener, int64 (k,).
        idle: rows of light without data at photodiodes without a listener [count].
        circulating: rows that never end [count].
        received: signal of each listener, `DARK` or `COLLIDED`, int64 (n,).
        rows: all light at photodiodes.
    """

    clashes: tuple[Clash, ...]
    missing: IntArray
    collided: IntArray
    wrong: IntArray
    stray: IntArray
    idle: int
    circulating: int
    received: IntArray
    rows: Arrivals

    @property
    def ok(self) -> bool:
        """Whether every listener receives its signal alone, and nothing else carries data."""
        wrong = (self.missing, self.collided, self.wrong, self.stray)
        return not (self.clashes or self.circulating or any(map(len, wrong)))


class Emulator:
    """A netlist whose links are made, so that light can be followed.

    Args: netlist: of up to `MOST_PORTS` input ports.
    Raises: ParameterError: too many ports; FabricError: a wrong link.
    """

    def __init__(self, netlist: Netlist) -> None:
        self.netlist = netlist
        self._next = netlist.targets()
        self._devices_of: dict[int, IntArray] = {}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Elements of light paths that the groups count as, in the order of the groups."""
        groups = self.netlist.groups
        return tuple(dict.fromkeys(key for g in groups for each in (g.loss, g.loss_moved) for key in each))

    def _devices(self, position: int) -> IntArray:
        """Device of every element of a group, computed once."""
        if position not in self._devices_of:
            group = self.netlist.groups[position]
            self._devices_of[position] = group.device_of(np.arange(group.count))
        return self._devices_of[position]

    def load(self, settings: DeviceTable) -> Loaded:
        """Load settings, as `load`."""
        return load(self.netlist, settings)

    def light(
        self, loaded: Loaded, *, count: bool = False, hops: bool = False, leaking: tuple[str, ...] = ()
    ) -> Arrivals:
        """Follow light from the emitters to the photodiodes.

        Where light goes follows from its input and wavelength alone, so light that comes back to both goes round for ever.

        Args:
            loaded: settings.
            count: whether to count the elements that each row passes.
            hops: whether to list the hops that each row passes.
            leaking: groups whose elements also send light to the outputs that they do not choose; light that has leaked
                leaks no further. `Arrivals.counts` then ends with a column a group, 1 for light that leaked in it.
        """
        net = self.netlist
        keys = (*(self.keys if count else ()), *(f"leaked in {name}" for name in leaking))
        states = [loaded.state(position, group) for position, group in enumerate(net.groups)]
        ahead = self._next.copy() if leaking else self._without_shut(loaded)
        choices = {
            p: _choices(g, ahead, int(net.first_out[p])) for p, g in enumerate(net.groups) if KINDS[g.kind].splits
        }
        rays = self._emitted(loaded, states, ahead, keys)
        diodes = net.position[net.photodiodes.name]
        ended: list[_Rays] = []
        trails = _Trails()
        circulating, rounds, next_mark = 0, 0, FIRST_MARK
        mark: IntArray | None = None  # where each row, or what it comes from, was at a round before
        while len(rays.port):
            rounds += 1
            here = rays.port * net.num_wavelengths + rays.wavelength
            if mark is not None and (mark == here).any():
                circulating += int((mark == here).sum())
                onward = mark != here
                rays, mark, here = _Rays(*(column[onward] for column in rays)), mark[onward], here[onward]
            if rounds == next_mark:
                mark, next_mark = here, 2 * next_mark
            marks = []
            owner = np.searchsorted(net.first_in, rays.port, "right") - 1
            parts = []
            used = np.flatnonzero(np.bincount(owner, minlength=len(net.groups))).tolist()
            for position in used:
                rows = np.flatnonzero(owner == position) if len(used) > 1 else np.arange(len(owner))
                group = net.groups[position]
                local = rays.port[rows] - net.first_in[position]
                if position == diodes:
                    ended.append(_Rays(local, *(column[rows] for column in rays[1:])))
                    continue
                element, way = np.divmod(local, max(group.n_in, 1))
                light = InputRows(element, way, rays.wavelength[rows], rays.signal[rows])
                output, behind, signal, moved = self._pass(position, light, states[position], choices)
                straight = output, behind, _pieces(group, keys, None if moved is None else moved[behind])
                ways = [straight]
                if group.name in leaking:
                    fresh = (rays.counts[rows, len(keys) - len(leaking) :] == 0).all(axis=1)
                    column = np.array([[float(key == f"leaked in {group.name}") for key in keys]])
                    ways.append(
                        (*self._leaked(position, light, straight[:2], fresh), _pieces(group, keys, None) + column)
                    )
                for output, behind, pieces in ways:
                    reached = ahead[output]
                    alive = np.flatnonzero(reached >= 0)
                    behind = behind[alive]
                    source = rows[behind]
                    trail = rays.trail[source]
                    if hops and group.hops is not None:
                        trail = trails.onward(trail, group.hops(element[behind]))
                    if mark is not None:
                        marks.append(mark[source])
                    parts.append(
                        _Rays(
                            reached[alive],
                            rays.wavelength[source],
                            signal[behind],
                            rays.splitting_db[source] + splitting_db(group),
                            rays.counts[source] + (pieces if len(pieces) == 1 else pieces[alive]),
                            trail,
                        )
                    )
            rays = _joined(parts, len(keys))
            mark = np.concatenate(marks) if marks else None
        last = _joined(ended, len(keys))
        return Arrivals(
            last.port,
            last.wavelength,
            last.signal,
            last.splitting_db,
            last.counts,
            circulating,
            *trails.paths(last.trail),
        )

    def _leaked(
        self, position: int, rows: InputRows, straight: tuple[IntArray, IntArray], fresh: npt.NDArray[np.bool_]
    ) -> tuple[IntArray, IntArray]:
        """(output port, row behind it) of light that leaks in a group: every output but the one that is chosen.

        Args:
            position: of the group.
            rows: of light at its inputs.
            straight: output ports that are chosen, and the rows behind them.
            fresh: rows that have not leaked before, bool (rows,).
        """
        group, first = self.netlist.groups[position], int(self.netlist.first_out[position])
        chosen = np.full(len(rows.element), ABSORBED)
        chosen[straight[1]] = straight[0] - first - rows.element[straight[1]] * group.n_out
        row = np.repeat(np.flatnonzero(fresh & _works(group, rows.element)), group.n_out)
        output = np.arange(len(row)) % max(group.n_out, 1)
        other = output != chosen[row]
        row, output = row[other], output[other]
        return first + rows.element[row] * group.n_out + output, row

    def _pass(
        self, position: int, rows: InputRows, state: StateOf, choices: dict[int, tuple[IntArray, IntArray]]
    ) -> tuple[IntArray, IntArray, IntArray, npt.NDArray[np.bool_] | None]:
        """(output port, row behind it, signals of the rows, rows that a ring moves) of one group.

        Args:
            position: of the group.
            rows: of light at its inputs.
            state: of its devices.
            choices: of splitters, outputs that are not shut, and where those of each element begin.
        """
        net = self.netlist
        group, first = net.groups[position], int(net.first_out[position])
        everything = np.arange(len(rows.element))
        if position in choices:
            outputs, begin = choices[position]
            many = (begin[1:] - begin[:-1])[rows.element]
            behind, nth = numbered(many)
            return outputs[begin[rows.element][behind] + nth], behind, rows.signal, None
        passing = KINDS[group.kind].passing
        if passing is None:
            return everything[:0], everything[:0], rows.signal, None
        passed = passing(group, rows, state, net.num_wavelengths)
        behind = np.flatnonzero((passed.output >= 0) & (passed.output < group.n_out) & _works(group, rows.element))
        output = first + rows.element[behind] * group.n_out + passed.output[behind]
        return output, behind, rows.signal if passed.signal is None else passed.signal, passed.moved

    def _emitted(self, loaded: Loaded, states: list[StateOf], ahead: IntArray, keys: tuple[str, ...]) -> _Rays:
        """InputRows at the inputs behind all emitters.

        Args:
            loaded: settings.
            states: of each group.
            ahead: input behind each output.
            keys: elements of a light path that are counted.
        """
        net, parts = self.netlist, []
        for position, group in enumerate(net.groups):
            if not KINDS[group.kind].emits:
                continue
            element = np.arange(group.count)
            if group.kind == "emitter":
                element, wavelength, signal = loaded.held(position)
                if "emits" in group.parameters:  # one wavelength alone
                    wavelength = np.where(wavelength == group.parameters["emits"](element), wavelength, -1)
            elif group.kind == "laser":
                wavelength = states[position](element, np.zeros_like(element), -1)
                signal = NO_DATA + element
            else:
                element = np.repeat(element, net.num_wavelengths)
                wavelength = np.tile(np.arange(net.num_wavelengths), group.count)
                signal = NO_DATA + element
            port = ahead[net.first_out[position] + element * group.n_out]
            alive = (wavelength >= 0) & (signal >= 0) & (port >= 0) & _works(group, element)
            zero = np.zeros(int(alive.sum()))
            pieces = np.repeat(_pieces(group, keys, None), len(zero), axis=0)
            nowhere = np.full(len(zero), -1)
            parts.append(_Rays(port[alive], wavelength[alive], signal[alive], zero, pieces, nowhere))
        return _joined(parts, len(keys))

    def _without_shut(self, loaded: Loaded) -> IntArray:
        """Input behind each output, `ABSORBED` where all light is absorbed behind it: shut gates, filters tuned to nothing.

        Light that enters such an input ends there whatever it is, so following it changes no arrival.
        """
        net = self.netlist
        ahead = self._next.copy()
        shut = np.zeros(net.num_inputs, bool)
        for position in range(
            len(net.groups) - 1, -1, -1
        ):  # from the photodiodes back, as far as the groups are in order
            group, kind = net.groups[position], KINDS[net.groups[position].kind]
            if not group.n_out or not group.count:
                continue
            outs = ahead[net.first_out[position] : net.first_out[position + 1]]
            outs[shut[outs] & (outs >= 0)] = ABSORBED
            if not (kind.splits or (kind.passing and group.n_out == 1)):
                continue
            ends = outs < 0 if group.n_out == 1 else (outs.reshape(group.count, group.n_out) < 0).all(axis=1)
            if group.kind in ("gate", "filter") and "fixed" not in group.parameters:
                number, index, value = loaded.held(position)
                closed = np.ones(group.num_devices, bool)
                passes = value == 1 if group.kind == "gate" else (value >= 0) | (value == ALL)
                closed[number[(index == 0) & passes]] = False
                ends |= closed if group.control is None else closed[self._devices(position)]
            ins = slice(net.first_in[position], net.first_in[position + 1])
            shut[ins] = ends if group.n_in == 1 else np.repeat(ends, group.n_in)
        return ahead

    def run(self, settings: DeviceTable, listeners: Listeners, *, count: bool = False) -> LightReport:
        """Load settings, follow light, and compare what arrives with what has to arrive.

        Args:
            settings: of all devices that are not parked.
            listeners: what photodiodes have to receive.
            count: whether to count the elements that light passes.
        """
        loaded = self.load(settings)
        return _verdict(loaded.clashes, self.light(loaded, count=count), listeners, self.netlist)


def detectors(netlist: Netlist, *ends: tuple[IntArray, IntArray]) -> tuple[int, list[IntArray]]:
    """Photodiodes, each apart for every channel where they distinguish channels.

    Args:
        netlist: with the photodiodes.
        ends: photodiode and wavelength of some rows, int64 (n,) each.
    Returns: their number, and for each of the ends a number below that, int64 (n,).
    """
    group = netlist.photodiodes
    if not group.per_wavelength:
        return group.count, [photodiode for photodiode, _ in ends]
    keys = [photodiode * netlist.num_wavelengths + wavelength for photodiode, wavelength in ends]
    known, number = np.unique(np.concatenate(keys), return_inverse=True)
    return len(known), np.split(number, np.cumsum([len(key) for key in keys])[:-1])


def _verdict(clashes: tuple[Clash, ...], rows: Arrivals, listeners: Listeners, netlist: Netlist) -> LightReport:
    """What photodiodes receive, beside what they have to receive.

    Args:
        clashes: of the settings.
        rows: light at photodiodes.
        listeners: what photodiodes have to receive.
        netlist: with the photodiodes.
    """
    places, (arrived, at) = detectors(
        netlist, (rows.photodiode, rows.wavelength), (listeners.photodiode, listeners.wavelength)
    )
    many = np.bincount(arrived, minlength=places)
    signal, wavelength = np.full(places, DARK), np.full(places, DARK)
    signal[arrived], wavelength[arrived] = rows.signal, rows.wavelength
    received = np.where(many[at] > 1, COLLIDED, signal[at])
    wrong = (many[at] == 1) & ((received != listeners.signal) | (wavelength[at] != listeners.wavelength))
    listened = np.zeros(places, bool)
    listened[at] = True
    others = ~listened[arrived]
    data = others & (rows.signal < NO_DATA)
    return LightReport(
        clashes,
        np.flatnonzero(many[at] == 0),
        np.flatnonzero(many[at] > 1),
        np.flatnonzero(wrong),
        rows.photodiode[data],
        int(others.sum() - data.sum()),
        rows.circulating,
        received,
        rows,
    )


def _works(group: ElementGroup, element: IntArray) -> npt.NDArray[np.bool_]:
    """Whether elements are not broken, bool (n,)."""
    works = group.parameters.get("works")
    return np.ones(len(element), bool) if works is None else works(element) != 0


def _choices(group: ElementGroup, ahead: IntArray, first: int) -> tuple[IntArray, IntArray]:
    """Output ports of splitters that light can go on from, and where those of each element begin.

    Args:
        group: of splitters.
        ahead: input behind each output.
        first: output port of the group.
    """
    outs = ahead[first : first + group.count * group.n_out].reshape(group.count, group.n_out)
    begin = np.concatenate([[0], np.cumsum((outs >= 0).sum(axis=1))])
    return first + np.flatnonzero(outs.ravel() >= 0), begin


def _pieces(group: ElementGroup, keys: tuple[str, ...], moved: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.float64]:
    """Elements of a light path in one element of a group, (1 or rows, keys).

    Args:
        group: of elements.
        keys: elements that are counted.
        moved: rows that a ring moves, bool (rows,); None: none.
    """
    straight, swapped = (
        np.array([float(loss.get(key, 0)) for key in keys])[None] for loss in (group.loss, group.loss_moved)
    )
    return straight if moved is None else np.where(moved[:, None], swapped, straight)


def _joined(parts: Sequence[_Rays], keys: int) -> _Rays:
    """InputRows of several lists, one below the other; of elements that are counted there are `keys`."""
    if not parts:
        none = np.zeros(0, np.int64)
        return _Rays(none, none, none, np.zeros(0), np.zeros((0, keys)), none)
    return parts[0] if len(parts) == 1 else _Rays(*map(np.concatenate, zip(*parts, strict=True)))
