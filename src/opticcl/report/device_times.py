"""Devices over time: a bar for each state that a device holds and for the data of each transmitter and photodiode.

The rows are those of the tables of a plan, so `--node` and `--device` of `opticcl compile` select what is shown: the devices of
some nodes, or one kind of device of all nodes or switches. The same bars are tracks of a trace for Perfetto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opticcl.formats.perfetto import name_event, slice_event, write_events
from opticcl.ir import IntArray
from opticcl.ir.tables import Tables
from opticcl.optics.elements import KINDS
from opticcl.report.kit.colours import FAINT
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure
from opticcl.units import counted, format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.plans.tables import TableMaker

__all__ = ["DeviceTimes", "device_times", "device_times_figure", "write_device_trace"]

MOST_ROWS = 64
"""Devices of a picture [count]."""
MOST_BARS = 50_000
"""Bars of a trace [count]."""
CHANGE, SET, SENDS, RECEIVES = range(4)
_NAMES = ("changes", "is set", "sends", "receives")
_COLOURS = ("#ee6677", "#4477aa", "#228833", "#ccbb44")

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTimes:
    """Bars of devices, sorted by device and start.

    Args:
        title: what is shown.
        names: of the devices that have bars, in words.
        device: of each bar, int64 (n,).
        begin_s, end_s: float64 (n,) [s].
        what: change, state, send or receive, int64 (n,).
        value: state or first chunk, int64 (n,).
        index: wavelength or place within the device, int64 (n,).
        total_s: of the plan [s].
    """

    title: str
    names: tuple[str, ...]
    device: IntArray
    begin_s: FloatArray
    end_s: FloatArray
    what: IntArray
    value: IntArray
    index: IntArray
    total_s: float

    @property
    def label(self) -> str:
        """The picture in words."""
        return f"{self.title}: {counted(len(self.names), 'device')} over {format_seconds(self.total_s)}"


def device_times(maker: TableMaker) -> DeviceTimes:
    """Bars of the devices of a plan; those that are set once a job have one from beginning to end."""
    tables, netlist = maker.tables(), maker.netlist
    parked = np.array([KINDS[group.kind].parked for group in netlist.groups])
    s, d = tables.settings, tables.data
    order = np.lexsort((s.begin_s, s.index, s.device, s.kind))
    key = np.stack([s.kind.astype(np.int64), s.device, s.index])[:, order]
    begin, value = s.begin_s[order], s.setting[order]
    until = np.full(len(order), tables.total_s)
    same = (key[:, 1:] == key[:, :-1]).all(axis=0)
    until[:-1][same] = begin[1:][same]
    takes = maker.setting_s[key[0]] * ~(tables.warm & (begin <= 0))
    done = np.minimum(begin + takes, until)
    on = value != parked[key[0]]
    parts = [
        (key[0][takes > 0], key[1][takes > 0], key[2][takes > 0], begin[takes > 0], done[takes > 0], CHANGE, value[takes > 0]),
        (key[0][on], key[1][on], key[2][on], done[on], until[on], SET, value[on]),
    ]  # fmt: skip
    for sends, what in ((True, SENDS), (False, RECEIVES)):
        own = d.sends == sends
        parts.append((
            d.kind[own].astype(np.int64), d.device[own], d.wavelength[own], d.from_s[own], d.until_s[own], what,
            d.chunk_lo[own],
        ))  # fmt: skip
    group, number, index, begin_s, end_s, what_of, value_of = (
        np.concatenate([np.broadcast_to(part[k], len(part[0])) for part in parts]) for k in range(7)
    )
    unique, device = np.unique(np.stack([group, number]), axis=1, return_inverse=True)
    names = tuple(f"{netlist.groups[g].name}:{n} {_place(tables, g, n)}" for g, n in unique.T.tolist())
    by = np.lexsort((what_of, begin_s, device.reshape(-1)))
    title = f"{tables.collective.name} of {format_bytes(tables.size_bytes)} on {tables.fabric.name}"
    return DeviceTimes(
        title,
        names,
        device.reshape(-1)[by],
        begin_s[by],
        end_s[by],
        what_of[by],
        value_of[by],
        index[by],
        tables.total_s,
    )


def _place(tables: Tables, group: int, number: int) -> str:
    netlist = tables.fabric.netlist()
    assert netlist is not None
    one = netlist.groups[group]
    if one.control is not None and one.node_of is not None:
        return f"of node {one.node_of(np.array([number]))[0]}"
    return one.place_of(number)


def device_times_figure(times: DeviceTimes) -> Figure:
    """The bars of up to `MOST_ROWS` devices, one below the other."""
    shown = min(len(times.names), MOST_ROWS)
    height = 1.35 + 0.14 * max(shown, 3)
    beyond = f"; the first {shown} of {len(times.names):,}, --node and --device select others" * (
        shown < len(times.names)
    )
    figure = new_figure(height, times.title, f"Devices over time{beyond}.")
    axes = axes_at(figure, 2.6, 0.65, WIDTH - 2.75, height - 1.3)
    axes.set_xlim(0, times.total_s * 1e6 or 1)
    axes.set_ylim(max(shown, 1) - 0.4, -0.6)
    axes.set_yticks(range(shown), [_short(name) for name in times.names[:shown]], fontsize=6)
    axes.set_xlabel("time [us]")
    axes.grid(axis="x", color=FAINT)
    for what, (name, colour) in enumerate(zip(_NAMES, _COLOURS, strict=True)):
        rows = np.flatnonzero((times.what == what) & (times.device < shown) & (times.end_s > times.begin_s))
        bars = np.unique(np.stack([times.device, times.begin_s, times.end_s])[:, rows], axis=1)
        if bars.size:
            device, begin_s, end_s = bars
            axes.barh(
                device, 1e6 * (end_s - begin_s), left=1e6 * begin_s, height=0.45 if what == SET else 0.7, color=colour,
                label=name, linewidth=0,
            )  # fmt: skip
    if shown:
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.4, -0.32 / max(height - 1.3, 0.4)), ncols=4, fontsize=7, frameon=False
        )
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 48 else name[:45] + "..."


def write_device_trace(path: Path, times: DeviceTimes) -> str:
    """Write the bars as a trace for Perfetto: a process for each group of devices, a track for each device.

    Returns: what it has, in words.
    Raises: OutputError: the file cannot be written.
    """
    devices = int(times.device[MOST_BARS]) if len(times.device) > MOST_BARS else len(times.names)
    kept = times.device < devices
    write_events(path, _events(times, np.flatnonzero(kept), devices), {"plan": times.title}, "ns")
    of_all = "" if devices == len(times.names) else f" of {len(times.names):,}; --node and --device select others"
    return f"{counted(int(kept.sum()), 'bar')} of {counted(devices, 'device')}{of_all}"


def _events(times: DeviceTimes, rows: IntArray, devices: int) -> Iterator[dict[str, Any]]:
    groups = {name.partition(":")[0]: None for name in times.names[:devices]}
    process = {name: number for number, name in enumerate(groups)}
    for name, number in process.items():
        yield name_event("process", number, 0, name)
    for device, name in enumerate(times.names[:devices]):
        yield name_event("thread", process[name.partition(":")[0]], device, name)
    for row in rows.tolist():
        device, what = int(times.device[row]), int(times.what[row])
        group = process[times.names[device].partition(":")[0]]
        value = "chunk" if what in (SENDS, RECEIVES) else "state"
        about = {value: int(times.value[row]), "index": int(times.index[row])}
        title = f"{_NAMES[what]} {times.value[row]}"
        yield slice_event(title, _NAMES[what], float(times.begin_s[row]), float(times.end_s[row]), group, device, about)
