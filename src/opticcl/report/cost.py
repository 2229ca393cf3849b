"""Bills: a table of one fabric's parts, a table of several fabrics side by side, and a picture of cost against scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from opticcl.evaluate.cost import Bill, Range, Sheet
from opticcl.registry import write_call
from opticcl.report._columns import Column, Fitting
from opticcl.report._line_ends import End, label_ends, text_width
from opticcl.report.colours import fabric_colours
from opticcl.report.svg import WIDTH, new_figure, write_heading
from opticcl.units import counted, format_quantity, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

    from opticcl.ir import Timeline

__all__ = ["Billed", "Collecting", "bill_row", "bill_table", "bills_table", "cost_figure"]

_FAR = 1.005  # ends of a range that are nearer to each other are told as one number
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 3)), (0, (2, 2)), (0, (1, 3)))


@dataclass(frozen=True, slots=True)
class Collecting:
    """A collective whose energy is told.

    Args:
        algorithm: that does it.
        timeline: how long it takes.
    """

    algorithm: str
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Billed:
    """A bill and what is told of it.

    Args:
        name: of the fabric, as the reader calls it.
        bill: what it costs and draws.
        does: a collective on it, or None.
        declined: why no algorithm does the collective on it, empty if one does or none is asked for.
    """

    name: str
    bill: Bill
    does: Collecting | None = None
    declined: str = ""

    @property
    def energy_j(self) -> Range:
        """Of the collective [J]."""
        return (0.0, 0.0) if self.does is None else self.bill.energy_j(self.does.timeline.total_s)


def bill_table(billed: Billed, doing: str = "") -> Table:
    """One row a kind of part, and one for the whole.

    Args: doing: the collective, in words, if its energy is told.
    """
    bill = billed.bill
    items = bill.items
    usd, watts = [*(i.usd for i in items), bill.usd], [*(i.w for i in items), bill.w]
    dearest = bill.usd[1] or 1.0
    columns = [
        Column("part", [*(_part_name(i.part.kind, i.sheet.assumed) for i in items), "all"], justify="left"),
        Column("count", [*(f"{i.part.count:,}" for i in items), ""]),
        Column("ports", [*(str(i.part.ports or "") for i in items), ""], 2),
        Column(
            "rate", [*(format_rate(i.part.rate_bits_per_s) if i.part.rate_bits_per_s else "" for i in items), ""], 2
        ),
        Column("price", [_range(r, "$") for r in usd]),
        Column("share", [f"{r[1] / dearest:.0%}" for r in usd], 1),
        Column("power", [_range(r, "W") for r in watts]),
        Column("source", [*(_source(i.sheet) for i in items), ""], 3, "left"),
    ]
    return Fitting(columns, "\n".join(_notes(billed, doing)), has_total=True)


def _source(sheet: Sheet) -> str:
    """Where the numbers of a part come from, in a few words."""
    given = sheet.source.startswith("given ")
    if sheet.assumed:
        return "given, assumed" if given else "assumed"
    return "given" if given else sheet.source.partition(":")[0]


def _notes(billed: Billed, doing: str) -> Iterator[str]:
    bill = billed.bill
    yield (
        f"{billed.name}, {bill.fabric.num_machine_nodes:,} nodes of {format_rate(bill.fabric.node_rate_bits_per_s)}: "
        f"{_range(bill.usd_per_gbps, '$')} a Gb/s, {_range(bill.j_per_bit, 'J')} a bit with all nodes sending"
    )
    if billed.does is not None:
        time = format_seconds(billed.does.timeline.total_s)
        yield f"{doing} by {billed.does.algorithm}: {time}, {_range(billed.energy_j, 'J')} with everything on"
    if bill.assumed:
        yield "* assumed, no source prints it: see data/parts.toml"


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


def bills_table(rows: Sequence[Billed], doing: str = "") -> Table:
    """One row a fabric, the cheapest for each Gb/s first.

    Args: doing: the collective, in words, if its energy is told.
    """
    rows = sorted(rows, key=lambda row: row.bill.usd_per_gbps[0])
    bills = [row.bill for row in rows]
    nodes = [b.fabric.num_machine_nodes for b in bills]
    columns = [
        Column("fabric", [row.name + ("*" if row.bill.assumed else "") for row in rows], justify="left"),
        *([Column("nodes", [f"{n:,}" for n in nodes])] if len(set(nodes)) > 1 else []),
        Column("node rate", [format_rate(b.fabric.node_rate_bits_per_s) for b in bills], 3),
        Column("parts", [f"{sum(i.part.count for i in b.items):,}" for b in bills], 4),
        Column("price", [_range(b.usd, "$") for b in bills], 1),
        Column("a Gb/s", [_range(b.usd_per_gbps, "$") for b in bills]),
        Column("power", [_range(b.w, "W") for b in bills], 2),
        Column("a bit", [_range(b.j_per_bit, "J") for b in bills]),
    ]
    if any(row.does for row in rows):
        columns += [
            Column("algorithm", [row.does.algorithm if row.does else "" for row in rows], 6, "left"),
            Column("time", [format_seconds(row.does.timeline.total_s) if row.does else "" for row in rows], 5),
            Column("energy", [_range(row.energy_j, "J") if row.does else "" for row in rows]),
        ]
    notes = [f"{nodes[0]:,} node{'s' * (nodes[0] > 1)} each"] if len(set(nodes)) == 1 else []
    notes += [f"time and energy of {doing}"] if any(row.does for row in rows) else []
    notes += ["* some parts assumed"] if any(b.assumed for b in bills) else []
    return Fitting(columns, "; ".join(notes))


def bill_row(billed: Billed) -> dict[str, Any]:
    """A bill as plain values; ranges are [low, high]."""
    bill, does = billed.bill, billed.does
    given = {key: value for key, value in bill.fabric.parameters.items() if value is not None}
    row: dict[str, Any] = {
        "fabric": bill.fabric.name,
        "specification": write_call(bill.fabric.name, given),
        "num_nodes": bill.fabric.num_machine_nodes,
        "node_rate_bits_per_s": bill.fabric.node_rate_bits_per_s,
        "prices": bill.prices,
        "usd": list(bill.usd),
        "w": list(bill.w),
        "usd_per_gbps": list(bill.usd_per_gbps),
        "j_per_bit": list(bill.j_per_bit),
        "assumed": list(bill.assumed),
        "parts": [
            {
                "part": i.part.kind,
                "count": i.part.count,
                "ports": i.part.ports,
                "rate_bits_per_s": i.part.rate_bits_per_s,
                "usd": list(i.usd),
                "w": list(i.w),
                "source": i.sheet.source,
                "assumed": i.sheet.assumed,
            }
            for i in bill.items
        ],
    }
    if billed.declined:
        row["declined"] = billed.declined
    if does is not None:
        row |= {"algorithm": does.algorithm, "total_s": does.timeline.total_s, "energy_j": list(billed.energy_j)}
    return row


def cost_figure(bills: Mapping[str, Sequence[Bill]]) -> Figure:
    """Price of a Gb/s and energy of a bit against the number of nodes, each line named at its end.

    Where the source gives a range the line is its high end. Of a few fabrics the range is shaded; of more the shades would
    hide each other, and the name tells it at the largest scale.

    Args: bills: of each fabric at several scales, smallest first.
    """
    ranges = any(_is_range(getattr(b, of)) for of, _, _ in _SIDES for at_scales in bills.values() for b in at_scales)
    shaded = len(bills) <= MOST_SHADED
    ends = [[_end_name(name, at_scales[-1], of, unit) for name, at_scales in bills.items()] for of, unit, _ in _SIDES]
    right = max(text_width(names, 7.5) for names in ends) + 0.1
    wide = WIDTH / 2 - _LEFT - right
    height = max(4.6, 1.2 + 0.16 * max(sum(1 + name.count("\n") for name in names) for names in ends))
    figure = new_figure(height)
    write_heading(figure, _title(bills), _remark(bills, ranges, shaded))
    colours = fabric_colours(bills)
    for place, (of, unit, title) in enumerate(_SIDES):
        box = ((_LEFT + place * WIDTH / 2) / WIDTH, 0.45 / height, wide / WIDTH, 1 - 1.3 / height)
        axes = figure.add_axes(box)
        _draw_side(axes, bills, of, colours, shaded)
        axes.set_title(title, loc="left", fontsize=9)
        axes.yaxis.set_major_formatter(_formatter(unit))
        last = [(at_scales[-1], colours[name]) for name, at_scales in bills.items()]
        lines = zip(ends[place], last, strict=True)
        label_ends(axes, [End(n, b.fabric.num_machine_nodes, getattr(b, of)[1], c) for n, (b, c) in lines])
    return figure


MOST_SHADED = 4
"""Fabrics up to which the shades of their ranges can be told apart."""

_LEFT = 0.65  # of each side, for the numbers [inches]
_SIDES = (
    ("usd_per_gbps", "$", "price of a Gb/s that nodes can send"),
    ("j_per_bit", "J", "energy of a bit with all nodes sending"),
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
        low = "shaded down to its low end" if shaded else "both ends at the largest scale stand beside the name"
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
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    scales = sorted({n for points in drawn for n in points})
    axes.set_xticks(scales[:: 1 + (len(scales) > _MOST_TICKS)])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
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


def _formatter(unit: str) -> Callable[[float, float], str]:
    return lambda value, _: _short(value, unit)
