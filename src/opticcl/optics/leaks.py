"""Crosstalk in a netlist: light that elements send to outputs that they do not choose, and what of it reaches photodiodes.

    first pass     every signal goes where the elements send it
    second pass    rings, gates, filters and switches also send it to every other output, weakened by their isolation; such
                   light follows the elements like any other and leaks no further

Reading: an isolation is one number of decibels for all elements of a group, and losses other than by division are the same
for what leaks and for the signal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray
from opticcl.ir.netlist import Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.optics.decibels import ratio_of_db
from opticcl.optics.emulator import Emulator, Listeners

__all__ = ["LEAKING", "Crosstalk", "crosstalk", "isolation_of"]

LEAKING = ("gate", "filter", "cross", "ringbank", "wss", "mzi", "select", "demux")
"""Kinds of elements that choose an output."""


@dataclass(frozen=True, slots=True, eq=False)
class Crosstalk:
    """What leaks to the photodiodes that are listened to.

    Args:
        ratio: power that leaks over power of the signal, of each listener, float64 (n,); infinite in darkness.
        leaks: rows of light that leak, of each listener, int64 (n,).
    """

    ratio: npt.NDArray[np.float64]
    leaks: IntArray


def isolation_of(netlist: Netlist, given: Mapping[str, float]) -> dict[str, float]:
    """Isolation of every group of a netlist that leaks.

    Args:
        netlist: with the groups.
        given: isolation by name of a group or by kind of element, the former first [dB].
    Raises: ParameterError: a name that the netlist does not have, one of elements that choose no output, or a value below 0.
    """
    groups = [group for group in netlist.groups if group.kind in LEAKING]
    known = {group.name for group in groups} | {group.kind for group in groups}
    for name, value in given.items():
        if name not in known:
            raise ParameterError(
                f"isolation: {netlist.name} has no elements {name!r} that leak; known: {', '.join(sorted(known)) or 'none'}"
            )
        if not 0 <= value < np.inf:
            raise ParameterError(f"isolation: {name}={value:g} dB; 0 or more, try {name}=30dB")
    return {
        group.name: given.get(group.name, given.get(group.kind, 0.0))
        for group in groups
        if group.name in given or group.kind in given
    }


def crosstalk(
    emulator: Emulator, settings: DeviceTable, listeners: Listeners, isolation_db: Mapping[str, float]
) -> Crosstalk:
    """Power that leaks to each listener over the power of its signal.

    Args:
        emulator: of the machine.
        settings: of all devices that are not parked.
        listeners: photodiodes that are listened to.
        isolation_db: of each group that leaks, as `isolation_of` returns it [dB].
    """
    names = tuple(isolation_db)
    rows = emulator.light(emulator.load(settings), leaking=names)
    leaked = rows.counts.any(axis=1)
    loss_db = rows.splitting_db + rows.counts @ np.array([isolation_db[name] for name in names])
    count = emulator.netlist.photodiodes.count
    signal, other = (
        np.bincount(rows.photodiode[mine], ratio_of_db(-loss_db[mine]), minlength=count) for mine in (~leaked, leaked)
    )
    at = listeners.photodiode
    ratio = np.full(len(at), np.inf)
    np.divide(other[at], signal[at], out=ratio, where=signal[at] > 0)
    return Crosstalk(ratio, np.bincount(rows.photodiode[leaked], minlength=count)[at])
