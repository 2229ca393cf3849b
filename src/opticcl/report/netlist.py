"""Netlists: a table of the groups of elements, a record, and a drawing of the elements or, of many, of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.ir.netlist import ElementGroup
from opticcl.optics.elements import KINDS
from opticcl.report.kit.colours import BAND, INK, MUTED, PART_COLOURS
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import axes_at, new_figure
from opticcl.report.kit.result import Result
from opticcl.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.ir import Fabric, IntArray
    from opticcl.ir.netlist import Netlist

__all__ = ["MOST_DRAWN", "NetlistReport"]

MOST_DRAWN = 200
"""Elements that are drawn one by one [count]."""
BACK = PART_COLOURS["reconfiguration"]
"""Links that lead to a group before."""


@dataclass(frozen=True, slots=True, eq=False)
class NetlistReport(Result):
    """The netlist of a fabric.

    Args:
        fabric: the machine.
        netlist: of it.
    """

    fabric: Fabric
    netlist: Netlist

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl machine netlist --json` prints them."""
        return {
            "fabric": self.netlist.name,
            "nodes": self.fabric.num_machine_nodes,
            "wavelengths": self.netlist.num_wavelengths,
            "elements": self.netlist.num_elements,
            "inputs": self.netlist.num_inputs,
            "groups": [
                {
                    "name": group.name,
                    "kind": group.kind,
                    "count": group.count,
                    "inputs": group.n_in,
                    "outputs": group.n_out,
                    "devices": group.num_devices if _state(group) else 0,
                    "state": _state(group),
                    "per_wavelength": group.per_wavelength,
                    "once_per_job": group.once_per_job,
                    "loss": dict(group.loss),
                    "moved_loss": None if group.moved is None else dict(group.moved),
                    "part": group.bill and group.bill.kind,
                    "first": group.place(0) if group.count else "",
                    "source": group.source,
                }
                for group in self.netlist.groups
            ],
        }

    @property
    def headline(self) -> str:
        """Of how many optical elements the fabric is made."""
        nodes = counted(self.fabric.num_machine_nodes, "node")
        return f"{self.fabric.name} with {nodes} has {counted(self.netlist.num_elements, 'optical element')}."

    def blocks(self) -> tuple[str, FittedTable]:
        """Heading and table of the groups."""
        net, groups = self.netlist, self.netlist.groups
        heading = (
            f"{self.fabric!r}: {counted(net.num_elements, 'element')} in {counted(len(groups), 'group')}, "
            f"{counted(net.num_wavelengths, 'wavelength')}"
        )
        rows = self.record()["groups"]
        columns = [
            *columns_of(rows, Shown("name", "group"), Shown("kind"), Shown("count", "elements")),
            Column("ports", [f"{group.n_in}:{group.n_out}" for group in groups], 2),
            *columns_of(
                rows, Shown("devices", rank=1, form=lambda count: f"{count:,}" if count else ""), Shown("state", rank=3)
            ),
            Column("light passes", [_passed(group) for group in groups], 4, "left"),
            *columns_of(rows, Shown("part", rank=5, none=""), Shown("first", rank=6)),
        ]
        sources = "; ".join(dict.fromkeys(group.source for group in groups if group.source))
        return heading, FittedTable(columns, f"sources: {sources}")

    @property
    def label(self) -> str:
        """Text of the picture for readers who cannot see it."""
        groups = ", ".join(f"{group.count:,} {group.name}" for group in self.netlist.groups)
        return f"Optical elements of {self.netlist.name} with {self.fabric.num_machine_nodes} nodes: {groups}"

    def figure(self) -> Figure:
        """Every element and link where there are at most `MOST_DRAWN` elements; else the groups and the links between.

        Light goes from left to right, and back where a link leads to a group before.
        """
        net = self.netlist
        groups = [group for group in net.groups if group.count and group.n_in + group.n_out]
        each = net.num_elements <= MOST_DRAWN
        title = f"{net.name}, {self.fabric.num_machine_nodes} nodes: {counted(net.num_elements, 'optical element')}"
        remark = (
            "A box is an element, a line a link."
            if each
            else "A box is a group of elements, an arrow the links between two."
        )
        height = 5.4 if each else 2.6
        figure = new_figure(height, title, f"{remark} Light goes from left to right; red lines lead back.")
        axes = axes_at(figure, 0.1, 0.02 * height, 9.8, height - 0.62)
        axes.set_axis_off()
        axes.set_xlim(-0.6, len(groups) - 0.4)
        axes.set_ylim(-0.16, 1.02)
        if each:
            _draw_elements(axes, net, groups)
        else:
            _draw_groups(axes, net, groups)
        for x, group in enumerate(groups):
            axes.text(x, -0.1, f"{group.name}\n{group.kind}, {group.count:,}", ha="center", va="center", fontsize=6.5)
        return figure


def _state(group: ElementGroup) -> str:
    """What the devices of a group are set to, "" if they are not."""
    if "fixed" in group.parameters:
        return ""
    about = KINDS[group.kind].about
    if about and group.per_wavelength and "wavelength" not in about:
        about += " of each wavelength"
    return about + " (once a job)" * group.once_per_job


def _passed(group: ElementGroup) -> str:
    """Elements of a light path in one element."""

    def listed(loss: Any) -> str:
        return ", ".join(f"{pieces:g} {kind}" if pieces != 1 else kind for kind, pieces in loss.items() if pieces)

    straight = listed(group.loss)
    return straight if group.moved is None else f"{straight} or {listed(group.moved)}"


# --- drawing --------------------------------------------------------------------------------------------------------------


def _heights(count: int) -> Any:
    """Place of each element of a group from top to bottom."""
    return 1 - (np.arange(count) + 0.5) / count


def _draw_elements(axes: Axes, net: Netlist, groups: Sequence[ElementGroup]) -> None:
    """Boxes and links.

    Args:
        axes: to draw on.
        net: all elements.
        groups: that are drawn, from left to right.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Rectangle

    column = {group.name: x for x, group in enumerate(groups)}
    output, target = net.links()
    lines = np.stack([_ends(net, output, "n_out", column, 0.16), _ends(net, target, "n_in", column, -0.16)], axis=1)
    back = lines[:, 1, 0] < lines[:, 0, 0]
    axes.add_collection(LineCollection(list(lines[~back]), colors=MUTED, linewidths=0.4, alpha=0.7, zorder=1))
    axes.add_collection(LineCollection(_arcs(lines[back]), colors=BACK, linewidths=0.4, alpha=0.7, zorder=1))
    for x, group in enumerate(groups):
        tall = min(0.7 / group.count, 0.05)
        for y in _heights(group.count):
            axes.add_patch(
                Rectangle((x - 0.16, y - tall / 2), 0.32, tall, facecolor=BAND, edgecolor=INK, linewidth=0.4)
            )


def _arcs(lines: Any) -> list[Any]:
    """Curves below straight lines, from float (n, 2, 2), in 12 pieces each."""
    along = np.linspace(0, 1, 13)
    below = 0.04 * 4 * along * (1 - along)
    return [
        np.stack([begin[0] + along * (end[0] - begin[0]), begin[1] + along * (end[1] - begin[1]) - below], axis=1)
        for begin, end in lines
    ]


def _ends(net: Netlist, port: IntArray, each: str, column: dict[str, int], aside: float) -> Any:
    """Where links begin or end, float (n, 2).

    Args:
        net: all elements.
        port: of each link.
        each: field with the ports of an element.
        column: of each group.
        aside: from the middle of an element.
    """
    first = net.first_out if each == "n_out" else net.first_in
    owner = np.searchsorted(first, port, "right") - 1
    places = np.zeros((len(port), 2))
    for i, group in enumerate(net.groups):
        mine = owner == i
        if mine.any():
            places[mine, 0] = column[group.name] + aside
            places[mine, 1] = _heights(group.count)[(port[mine] - first[i]) // getattr(group, each)]
    return places


def _draw_groups(axes: Axes, net: Netlist, groups: Sequence[ElementGroup]) -> None:
    """A box a group, and an arrow for each pair of groups that are linked.

    Args:
        axes: to draw on.
        net: all elements.
        groups: that are drawn, from left to right.
    """
    from matplotlib.patches import Rectangle

    column = {group.name: x for x, group in enumerate(groups)}
    pairs = (
        {(bundle.source, bundle.target) for bundle in net.bundles()}
        if net.num_inputs < 1 << 22 and not net.unlinked
        else set()
    )
    pairs = {pair for pair in pairs if column.keys() >= set(pair)}
    if not pairs:
        pairs = {(a.name, b.name) for a, b in pairwise(groups)}
    for x in column.values():
        axes.add_patch(Rectangle((x - 0.3, 0.35), 0.6, 0.3, facecolor=BAND, edgecolor=INK, linewidth=0.6))
    for source, target in sorted(pairs):
        begin, end = column[source], column[target]
        straight = end == begin + 1
        ahead = 0.3 if end > begin else -0.3
        axes.annotate(
            "",
            xy=(end - ahead, 0.5) if straight else (end, 0.65 if end > begin else 0.35),
            xytext=(begin + ahead, 0.5) if straight else (begin, 0.65 if end > begin else 0.35),
            arrowprops={
                "arrowstyle": "->", "color": MUTED if end > begin else BACK, "linewidth": 0.8,
                "connectionstyle": "arc3" if straight else "arc3,rad=-0.35",
            },
        )  # fmt: skip
