"""Devices that are set in another way than a plan needs: `tx_gate:17=0`, or `drop:3.1=0` for one wavelength of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir.netlist import ElementGroup, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.optics.elements import KINDS

__all__ = ["NO_OWNER", "DeviceChange", "device_change", "places_of", "settable", "states_of"]

NO_OWNER = -1
"""Owner of a changed state."""
FORM = re.compile(r"(\w+):([0-9]{1,9})(?:\.([0-9]{1,9}))?=(-?[0-9]{1,9})")
PARKED = -1
"""State of an emitter, a laser or a switch without light."""


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """A state that replaces what a plan needs.

    Args:
        group: position in `Netlist.groups`.
        number: device of the group.
        index: wavelength, input or similar within the device; None: all of them.
        value: state.
    """

    group: int
    number: int
    index: int | None
    value: int

    def applied(self, netlist: Netlist, settings: DeviceTable) -> DeviceTable:
        """The settings with this state in place of others."""
        mine = (settings.kind == self.group) & (settings.device == self.number)
        index = np.array([self.index])
        if self.index is None:
            group = netlist.groups[self.group]
            span = netlist.num_wavelengths if group.per_wavelength else 1
            index = np.unique(np.concatenate([settings.index[mine], np.arange(span)]))
        kept = settings.take(~(mine & np.isin(settings.index, index)))
        new = DeviceTable.of(kind=self.group, device=self.number, index=index, setting=self.value, owner=NO_OWNER)
        return DeviceTable.joined([kept, new])


def device_change(netlist: Netlist, text: str) -> DeviceChange:
    """A change as a user writes it.

    Args:
        netlist: that has the device.
        text: `group:device=state` or `group:device.index=state`.
    Raises: ParameterError: another form, or a group, device or state that the netlist does not have; known ones are named.
    """
    match = FORM.fullmatch(text.strip())
    can_be_set = [group for group in netlist.groups if states_of(netlist, group) is not None]
    if not can_be_set:
        raise ParameterError(f"--set-device: {netlist.name} has no devices that can be set")
    example = f"{can_be_set[0].name}:0={states_of(netlist, can_be_set[0])[0]}"  # type: ignore[index]
    if match is None:
        raise ParameterError(f"--set-device: {text!r} is not group:device=state; try {example}")
    name, number, index, value = match[1], int(match[2]), match[3], int(match[4])
    group = next((group for group in can_be_set if group.name == name), None)
    if group is None:
        known = ", ".join(group.name for group in can_be_set)
        raise ParameterError(f"--set-device: {netlist.name} has no devices {name!r} that can be set; known: {known}")
    if number >= group.num_devices:
        raise ParameterError(f"--set-device: {name}:{number} does not exist; {name} has 0 to {group.num_devices - 1}")
    states = states_of(netlist, group)
    assert states is not None
    if value not in states:
        raise ParameterError(f"--set-device: {text}: a state of {name} is {states[0]} to {states[-1]}, not {value}")
    spans = places_of(netlist, group)
    if index is not None and int(index) >= spans:
        raise ParameterError(f"--set-device: {text}: {name} has places 0 to {spans - 1}, not {index}")
    return DeviceChange(netlist.position[name], number, None if index is None else int(index), value)


def states_of(netlist: Netlist, group: ElementGroup) -> range | None:
    """States that a user can give a device; None: it cannot be set."""
    if not group.num_devices or not KINDS[group.kind].about or "fixed" in group.parameters:
        return None
    return {
        "emitter": range(PARKED, 0),
        "modulator": range(PARKED, 0),
        "laser": range(PARKED, netlist.num_wavelengths),
        "filter": range(PARKED, netlist.num_wavelengths),
        "gate": range(2),
        "ringbank": range(2),
        "wss": range(PARKED, max(group.n_out, group.n_in)),
        "matrix": range(PARKED, group.n_out),
        "relay": range(PARKED, group.n_in),
        "mzi": range(PARKED, group.n_out),
        "select": range(PARKED, group.n_in),
    }.get(group.kind)


def places_of(netlist: Netlist, group: ElementGroup) -> int:
    """Places of a device that are set apart [count]."""
    ports = group.n_in + group.n_out if group.kind in ("wss", "matrix") else 1
    return ports * (netlist.num_wavelengths if group.per_wavelength else 1)


def settable(netlist: Netlist) -> list[int]:
    """Positions of the groups whose devices a table of settings sets."""
    data = (netlist.transmitter, netlist.photodiodes.name)
    return [
        position
        for position, group in enumerate(netlist.groups)
        if KINDS[group.kind].about and "fixed" not in group.parameters and group.name not in data and group.num_devices
    ]
