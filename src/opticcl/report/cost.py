"""Bills of material: the parts of one fabric, several fabrics side by side, and cost against scale as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from opticcl.estimate.cost import Bill, Range, Sheet
from opticcl.plans.hardware import middle
from opticcl.report.kit.colours import fabric_colours
from opticcl.report.kit.columns import Column, FittedTable
from opticcl.report.kit.drawing import WIDTH, axes_at, new_figure, write_scale
from opticcl.report.kit.line_ends import End, label_ends, text_width
from opticcl.report.kit.result import Result
from opticcl.units import counted, format_quantity, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.ir import Timeline
    from opticcl.plans.machines import ExcludedFabric

__all__ = ["Billed", "Bills", "CollectiveTime", "bill_table", "bills_table", "cost_figure"]

_FAR = 1.005  # a range whose ends differ by less is shown as one number
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 3)), (0, (2, 2)), (0, (1, 3)))


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """A collective whose energy is computed.

    Args:
        algorithm: that carries it.
        timeline: its time.
        other: name of the set of assumptions beside, and the time of the same plan under it [s].
    """

    algorithm: str
    timeline: Timeline
    other: tuple[str, float]


@dataclass(frozen=True, slots=True)
class Billed:
    """A bill, with the energy of a collective if one is requested.

    Args:
        name: of the fabric, as the user wrote it.
        bill: cost and power of the fabric.
        collective: that runs on it, or None.
        declined: why no algorithm does the collective on it; "" if one does or none is requested.
    """

    name: str
    bill: Bill
    collective: CollectiveTime | None = None
    declined: str = ""

    @property
    def energy_j(self) -> Range:
        """Energy of the collective, with everything switched on [J]."""
        return (0.0, 0.0) if self.collective is None else self.bill.energy_j(self.collective.timeline.total_s)

    def record(self) -> dict[str, Any]:
        """Plain values; a range is [low, high]."""
        collective, row = self.collective, self.bill.record()
        if self.declined:
            row["declined"] = self.declined
        if collective is not None:
            row |= {
                "algorithm": collective.algorithm,
                "total_s": collective.timeline.total_s,
                f"{collective.other[0]}_s": collective.other[1],
                "energy_j": list(self.energy_j),
            }
        return row


@dataclass(frozen=True, slots=True)
class Bills(Result):
    """Bills of several fabrics.

    Args:
        rows: one a fabric.
        left_out: fabrics without a bill, with reasons.
        collective: whose energy is computed, in words.
        at_scales: bills of each fabric at several scales, smallest first, for the picture.
    """

    rows: tuple[Billed, ...]
    left_out: tuple[ExcludedFabric, ...] = ()
    collective: str = ""
    at_scales: Mapping[str, Sequence[Bill]] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl machine cost --json` prints them."""
        return {"rows": [row.record() for row in self.rows], "left_out": [one.record() for one in self.left_out]}

    @property
    def headline(self) -> str:
        """Price and power of one fabric, or which of several are the least per Gb/s and per bit."""
        first, *others = self.rows
        if not others:
            price, power = _range(first.bill.usd, "$"), _range(first.bill.w, "W")
            return f"{first.name} costs {price} and takes {power}."
        cheapest = min(self.rows, key=lambda row: middle(row.bill.usd_per_gbps))
        coolest = min(self.rows, key=lambda row: middle(row.bill.j_per_bit))
        if cheapest is coolest:
            return f"{cheapest.name} costs least per Gb/s and takes least energy per bit{self._rates}."
        return f"{cheapest.name} costs least per Gb/s; {coolest.name} takes least energy per bit{self._rates}."

    @property
    def _rates(self) -> str:
        """That node rates differ, where they do."""
        rates = sorted(row.bill.fabric.node_rate_bits_per_s for row in self.rows)
        return f"; node rates are {format_rate(rates[0])} to {format_rate(rates[-1])}" if rates[0] < rates[-1] else ""

    def table(self) -> FittedTable:
        """The parts of one fabric, or one row a fabric."""
        one = len(self.rows) == 1
        return bill_table(self.rows[0], self.collective) if one else bills_table(self.rows, self.collective)

    def lines(self) -> list[str]:
        """Fabrics without the energy of the collective, and without a bill, with reasons."""
        declined = [f"no energy: {row.name}: {row.declined}" for row in self.rows if row.declined]
        return [*declined, *map(str, self.left_out)]

    @property
    def label(self) -> str:
        """The picture in words."""
        return f"Price per Gb/s and energy per bit at scale: {', '.join(self.at_scales)}"

    def figure(self) -> Figure:
        """The picture of `cost_figure`."""
        return cost_figure(self.at_scales)


def bill_table(billed: Billed, collective: str = "") -> FittedTable:
    """One row a kind of part, and one for all of them.

    Args:
        billed: one fabric.
        collective: in words, if its energy is requested.
    """
    bill = billed.bill
    items = bill.items
    usd, watts = [*(i.usd for i in items), bill.usd], [*(i.w for i in items), bill.w]
    largest = bill.usd[1] or 1.0
    columns = [
        Column("part", [*(_part_name(i.part.kind, i.sheet.assumed) for i in items), "all"], justify="left"),
        Column("count", [*(f"{i.part.count:,}" for i in items), ""]),
        Column("ports", [*(str(i.part.ports or "") for i in items), ""], 2),
        Column("rate", [*(_rate(i.part.rate_bits_per_s) for i in items), ""], 2),
        Column("price", [_range(r, "$") for r in usd]),
        Column("share", [f"{r[1] / largest:.0%}" for r in usd], 1),
        Column("power", [_range(r, "W") for r in watts]),
        Column("source", [*(_source(i.sheet) for i in items), ""], 3, "left"),
    ]
    return FittedTable(columns, "\n".join(_notes(billed, collective)), has_total=True)


def _rate(value: float) -> str:
    return format_rate(value) if value else ""


def _source(sheet: Sheet) -> str:
    """Source of the numbers of a part, in a few words."""
    given = sheet.source.startswith("given ")
    if sheet.assumed:
        return "given, assumed" if given else "assumed"
    return "given" if given else sheet.source.partition(":")[0]


def _notes(billed: Billed, collective: str) -> Iterator[str]:
    bill = billed.bill
    yield (
        f"{billed.name}, {bill.fabric.num_machine_nodes:,} nodes of {format_rate(bill.fabric.node_rate_bits_per_s)}: "
        f"{_range(bill.usd_per_gbps, '$')} per Gb/s, {_range(bill.j_per_bit, 'J')} per bit with all nodes sending"
    )
    if billed.collective is not None:
        time = format_seconds(billed.collective.timeline.total_s)
        energy = _range(billed.energy_j, "J")
        name, seconds = billed.collective.other
        beside = f"{format_seconds(seconds)} under {name}"
        yield f"{collective} by {billed.collective.algorithm}: {time} ({beside}), {energy} with everything switched on"
    if bill.assumed:
        yield "* assumed, no source prints it: see opticcl/estimate/prices.toml"


def _part_name(kind: str, assumed: bool) -> str:
    return kind.replace("_", " ") + ("*" if assumed else "")


def _range(ends: Range, unit: str) -> str:
    """Both ends of a range with their unit, or one number where they are the same."""
    low, high = ends
    if high <= low * _FAR:
        return _short(high, unit)
    return f"{_short(low, unit)} to {_short(high, unit)}"


def _short(value: float, unit: str) -> str:
    if unit != "$":
        return format_quantity(float(f"{value:.3g}"), unit)
    for size, name in ((1e9, "B$"), (1e6, "M$"), (1e3, "k$")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} $"


def bills_table(rows: Sequence[Billed], collective: str = "") -> FittedTable:
    """One row a fabric, the lowest price of a Gb/s first.

    Args:
        rows: bills.
        collective: in words, if its energy is requested.
    """
    rows = sorted(rows, key=lambda row: row.bill.usd_per_gbps[0])
    done = any(row.collective for row in rows)
    bills = [row.bill for row in rows]
    nodes = [b.fabric.num_machine_nodes for b in bills]
    columns = [
        Column("fabric", [row.name + ("*" if row.bill.assumed else "") for row in rows], justify="left"),
        *([Column("nodes", [f"{n:,}" for n in nodes])] if len(set(nodes)) > 1 else []),
        Column("node rate", [format_rate(b.fabric.node_rate_bits_per_s) for b in bills], 3),
        Column("parts", [f"{sum(i.part.count for i in b.items):,}" for b in bills], 5),
        Column("price", [_range(b.usd, "$") for b in bills]),
        Column("per Gb/s", [_range(b.usd_per_gbps, "$") for b in bills]),
        Column("power", [_range(b.w, "W") for b in bills]),
        Column("energy per bit", [_range(b.j_per_bit, "J") for b in bills], 2),
    ]
    if done:
        by = [row.collective for row in rows]
        columns += [
            Column("algorithm", [one.algorithm if one else "" for one in by], 6, "left"),
            Column("time", [format_seconds(one.timeline.total_s) if one else "" for one in by]),
            Column("energy", [_range(row.energy_j, "J") if row.collective else "" for row in rows]),
        ]
    notes = [f"{counted(nodes[0], 'node')} each"] if len(set(nodes)) == 1 else []
    notes += [f"time and energy of {collective}"] if done else []
    notes += ["* some parts assumed"] if any(b.assumed for b in bills) else []
    return FittedTable(columns, "; ".join(notes))


def cost_figure(bills: Mapping[str, Sequence[Bill]]) -> Figure:
    """Price of a Gb/s and energy of a bit against the number of nodes, each line named at its end.

    Where the source gives a range the line is its high end. With few fabrics the range is shaded; with more the shades would
    hide each other, so both ends are written beside the name at the largest scale.

    Args: bills: of each fabric at several scales, smallest first.
    """
    ranges = any(_is_range(getattr(b, of)) for of, _, _ in _SIDES for at_scales in bills.values() for b in at_scales)
    shaded = len(bills) <= MOST_SHADED
    ends = [[_end_name(name, at_scales[-1], of, unit) for name, at_scales in bills.items()] for of, unit, _ in _SIDES]
    right = max(text_width(names, 7.5) for names in ends) + 0.1
    wide = WIDTH / 2 - _LEFT - right
    height = max(4.6, 1.2 + 0.16 * max(sum(1 + name.count("\n") for name in names) for names in ends))
    figure = new_figure(height, _title(bills), _remark(bills, ranges, shaded))
    colours = fabric_colours(bills)
    for place, (of, unit, title) in enumerate(_SIDES):
        axes = axes_at(figure, _LEFT + place * WIDTH / 2, 0.45, wide, height - 1.3)
        _draw_side(axes, bills, of, colours, shaded)
        axes.set_title(title, loc="left", fontsize=9)
        write_scale(axes, "y", "", partial(_short, unit=unit))
        last = [(at_scales[-1], colours[name]) for name, at_scales in bills.items()]
        lines = zip(ends[place], last, strict=True)
        label_ends(axes, [End(n, b.fabric.num_machine_nodes, getattr(b, of)[1], c) for n, (b, c) in lines])
    return figure


MOST_SHADED = 4
"""Fabrics up to which shaded ranges are distinguishable [count]."""

_LEFT = 0.65  # margin of each side, for the numbers [inches]
_SIDES = (
    ("usd_per_gbps", "$", "price per Gb/s that nodes can send"),
    ("j_per_bit", "J", "energy per bit with all nodes sending"),
)


def _title(bills: Mapping[str, Sequence[Bill]]) -> str:
    every = [b for at_scales in bills.values() for b in at_scales]
    nodes = [b.fabric.num_machine_nodes for b in every]
    scale = f"{min(nodes):,} to {max(nodes):,} nodes" if min(nodes) < max(nodes) else counted(nodes[0], "node")
    lists = ", ".join(dict.fromkeys(b.prices for b in every))
    return f"Price and power of {counted(len(bills), 'fabric')} at {scale}, price list {lists}"


def _remark(bills: Mapping[str, Sequence[Bill]], ranges: bool, shaded: bool) -> str:
    said = ["* some prices or powers are assumed, no source prints them"] * any(
        b.assumed for at_scales in bills.values() for b in at_scales
    )
    if ranges:
        low = "shaded down to its low end" if shaded else "both ends at the largest scale are beside the name"
        said.append(f"lines: the high end of a range, {low}")
    return " · ".join(said)


def _end_name(name: str, bill: Bill, of: str, unit: str) -> str:
    """A fabric with its value: "ramp*  1.63 $ to 3.17 $"; the arguments of a long name on lines of their own."""
    long = len(name) > 24
    broken = name.replace(":", ":\n").replace(",", ",\n") if long else name
    return f"{broken}{'*' if bill.assumed else ''}" + ("\n" if long else "  ") + _range(getattr(bill, of), unit)


def _is_range(ends: Range) -> bool:
    return ends[1] > _FAR * ends[0]


def _draw_side(
    axes: Axes, bills: Mapping[str, Sequence[Bill]], of: str, colours: Mapping[str, str], shaded: bool
) -> None:
    """The lines of one quantity, and the scales."""
    drawn: list[dict[int, float]] = []
    for name, at_scales in bills.items():
        nodes = [b.fabric.num_machine_nodes for b in at_scales]
        ends = [getattr(b, of) for b in at_scales]
        low, high = zip(*ends, strict=True)
        drawn.append(dict(zip(nodes, high, strict=True)))
        style: dict[str, Any] = {"color": colours[name], "linewidth": 1.6, "marker": "o", "markersize": 2.5}
        axes.plot(nodes, high, linestyle=_DASHES[_hidden(drawn) % len(_DASHES)], **style)
        if shaded and any(map(_is_range, ends)):
            shade, edge = (colours[name], 0.1), (colours[name], 0.6)
            axes.fill_between(nodes, low, high, facecolor=shade, edgecolor=edge, linewidth=0.7)
    axes.set_xscale("log", base=4)
    write_scale(axes, "x", "nodes", "{:,.0f}".format)
    write_scale(axes, "y", "", log=True)
    scales = sorted({n for points in drawn for n in points})
    axes.set_xticks(scales[:: 1 + (len(scales) > _MOST_TICKS)])
    axes.yaxis.set_major_locator(_steps_of_1_2_5())
    axes.minorticks_off()
    axes.grid(axis="y")


_MOST_TICKS = 5


def _hidden(drawn: Sequence[Mapping[int, float]]) -> int:
    """How many of the other lines the last one would hide were it solid: those with mostly the same points."""
    last = drawn[-1]
    same = [sum(abs(line.get(n, inf) - value) <= 0.03 * value for n, value in last.items()) for line in drawn[:-1]]
    return sum(2 * count > len(last) for count in same)


def _steps_of_1_2_5() -> Any:
    from matplotlib.ticker import LogLocator

    return LogLocator(subs=(1.0, 2.0, 5.0))
