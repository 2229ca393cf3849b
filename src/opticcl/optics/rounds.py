"""The light of a round of circuits: settings that a fabric derives from them, signals at transmitters, and who listens.

A lane is a circuit on one wavelength; which lanes are one signal, `opticcl.ir.signals` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import MOST_PORTS, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.signals import signals_of
from opticcl.optics.device_changes import DeviceChange
from opticcl.optics.emulator import NO_DATA, Emulator, LightReport, Listeners
from opticcl.optics.leaks import Crosstalk, crosstalk
from opticcl.registry import is_of_library

__all__ = [
    "IDLE",
    "Lanes",
    "RoundLight",
    "emulator_of",
    "followable",
    "lanes_of",
    "needed_settings",
    "netlist_of",
    "round_light",
    "round_settings",
    "settings_of",
]

IDLE = NO_DATA << 1
"""Signals from this number on are light of circuits that stand idle."""


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Circuits by wavelength, as columns of equal length.

    Args:
        circuit: row of the circuits, int64 (n,).
        wavelength: int64 (n,).
        transmitter: element of the group that holds signals, int64 (n,).
        photodiode: element, int64 (n,).
        signal: equal for lanes that carry the same; from `IDLE` on for circuits that stand idle, int64 (n,).
        share, behind, shares: as of `Signals`.
    """

    circuit: IntArray
    wavelength: IntArray
    transmitter: IntArray
    photodiode: IntArray
    signal: IntArray
    share: IntArray
    behind: IntArray
    shares: IntArray

    def __len__(self) -> int:
        return len(self.circuit)

    @property
    def carrying(self) -> Lanes:
        """Those of circuits that carry data."""
        kept = self.signal < IDLE
        return Lanes(*(getattr(self, column.name)[kept] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class RoundLight:
    """What the light of a round does.

    Args:
        lanes: of the circuits.
        report: on them; its listeners are the lanes.
        crosstalk: at the photodiodes of the lanes, None where it is not followed.
    """

    lanes: Lanes
    report: LightReport
    crosstalk: Crosstalk | None = None


def emulator_of(fabric: Fabric) -> Emulator:
    """An emulator of the machine.

    Raises: as `followable`.
    """
    return Emulator(followable(fabric))


def followable(fabric: Fabric) -> Netlist:
    """The netlist of a machine whose light can be followed.

    Raises: UnsupportedError: the fabric has no light from end to end, no netlist, or one without links; ParameterError: it
        is too large.
    """
    netlist = netlist_of(fabric)
    if netlist.unlinked:
        raise UnsupportedError(netlist.unlinked)
    if netlist.num_inputs > MOST_PORTS:
        raise ParameterError(
            f"{fabric.name}: {netlist.num_inputs:,} input ports of optical elements; light is followed through up to "
            f"{MOST_PORTS:,}; {_nearest(fabric)}"
        )
    return netlist


def netlist_of(fabric: Fabric) -> Netlist:
    """The netlist of the machine.

    Raises: UnsupportedError: it has none.
    """
    netlist = fabric.netlist()
    if netlist is None:
        reason = "no netlist of its elements"
        if fabric.is_packet_switched:
            reason = "no light from end to end"
        elif not is_of_library(system := type(fabric.machine)):
            reason += f": class {system.__name__} does not define `netlist`"
        raise UnsupportedError(
            f"{fabric.name}: {reason}; netlists have lightpath, ocs, oddl, ramp, sipac, terarack, terarack_torus"
        )
    return netlist


def _nearest(fabric: Fabric) -> str:
    """The largest size below that fits, in words."""
    nodes = fabric.num_machine_nodes
    while (nodes := nodes // 2) > 1:
        try:
            netlist = type(fabric.machine).at_scale(nodes).netlist()
        except FabricError:
            continue
        if netlist is not None and netlist.num_inputs <= MOST_PORTS:
            return f"nearest: {nodes} nodes"
    return "try fewer nodes"


def settings_of(netlist: Netlist, uses: Iterable[SettingUse], owner: int = 0) -> DeviceTable:
    """Settings that circuits need, without times.

    Args:
        netlist: that has the groups.
        uses: states of devices by group.
        owner: number of circuit 0.
    Raises: ParameterError: a group that the netlist does not have.
    """
    wanted = list(uses)
    for use in wanted:
        if use.kind not in netlist.position:
            known = ", ".join(netlist.position)
            raise ParameterError(f"{netlist.name}: no elements {use.kind!r}; known: {known}")
    return DeviceTable.needed(wanted, netlist.position, owner)


def needed_settings(fabric: Fabric, netlist: Netlist, circuits: Circuits, once: bool, owner: int = 0) -> DeviceTable:
    """Settings that circuits need, without signals.

    Args:
        fabric: that derives settings from circuits.
        netlist: of it.
        circuits: of a round, or of all.
        once: whether of the devices that are set once a job; else of the others.
        owner: number of circuit 0.
    """
    rows = settings_of(netlist, fabric.states(circuits), owner)
    return rows.take(np.array([group.once_per_job for group in netlist.groups])[rows.kind] == once)


def lanes_of(fabric: Fabric, circuits: Circuits, transfers: Transfers) -> Lanes:
    """Lanes of circuits.

    Args:
        fabric: with the ends of its circuits.
        circuits: of a round.
        transfers: of the step.
    """
    signals = signals_of(fabric, circuits, transfers)
    transmitter, photodiode = fabric.ends(circuits)
    signal = np.where(signals.shares > 0, signals.signal, signals.signal + IDLE)
    return Lanes(
        signals.circuit,
        signals.wavelength,
        transmitter,
        photodiode,
        signal,
        signals.share,
        signals.behind,
        signals.shares,
    )


def round_settings(fabric: Fabric, netlist: Netlist, circuits: Circuits, lanes: Lanes, owner: int = 0) -> DeviceTable:
    """Settings of a round: states that the circuits need, signals at transmitters, and lanes at photodiodes.

    Args:
        fabric: that derives states from circuits.
        netlist: of it.
        circuits: of the round.
        lanes: of the circuits.
        owner: number of circuit 0.
    """
    signals = [
        SettingUse(group.name, number, values, lanes.circuit, within=lanes.wavelength * group.per_wavelength)
        for group, number, values in (
            (netlist.groups[netlist.position[netlist.transmitter]], lanes.transmitter, lanes.signal),
            (netlist.photodiodes, lanes.photodiode, np.arange(len(lanes))),
        )
    ]
    return DeviceTable.joined([
        needed_settings(fabric, netlist, circuits, False, owner), settings_of(netlist, signals, owner)
    ])  # fmt: skip


def round_light(
    fabric: Fabric,
    emulator: Emulator,
    circuits: Circuits,
    transfers: Transfers,
    standing: Sequence[DeviceTable] = (),
    changed: Sequence[DeviceChange] = (),
    count: bool = False,
    owner: int = 0,
    isolation_db: Mapping[str, float] | None = None,
) -> RoundLight:
    """Load the settings of a round and follow its light.

    Args:
        fabric: that derives settings from circuits.
        emulator: of its netlist.
        circuits: of the round.
        transfers: of the step.
        standing: settings of devices that are set once a job; without them the round is a job of its own.
        changed: states that replace what the round needs.
        count: whether to count the elements that light passes.
        owner: number of circuit 0, in clashes.
        isolation_db: as in `crosstalk`; None: what leaks is not followed.
    """
    lanes = lanes_of(fabric, circuits, transfers)
    netlist = emulator.netlist
    own = [*standing] or [needed_settings(fabric, netlist, circuits, True)]
    settings = DeviceTable.joined([round_settings(fabric, netlist, circuits, lanes, owner), *own])
    for change in changed:
        settings = change.applied(netlist, settings)
    listeners = Listeners(lanes.photodiode, lanes.wavelength, lanes.signal)
    leaks = None if isolation_db is None else crosstalk(emulator, settings, listeners, isolation_db)
    return RoundLight(lanes, emulator.run(settings, listeners, count=count), leaks)
