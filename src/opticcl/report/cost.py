"""Bills: a table of one fabric's parts, a table of several fabrics side by side, and a picture of cost against scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.evaluate.cost import Bill, Range
from opticcl.report._columns import Column, Fitting
from opticcl.report.colours import fabric_colours
from opticcl.report.svg import new_figure
from opticcl.units import format_quantity, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from opticcl.ir import Timeline

__all__ = ["bill_row", "bill_table", "bills_table", "cost_figure"]

_FAR = 1.005  # ends of a range that are nearer to each other are told as one number


def bill_table(bill: Bill) -> Table:
    """One row a kind of part, and one for the whole."""
    items = bill.items
    usd, watts = [*(i.usd for i in items), bill.usd], [*(i.w for i in items), bill.w]
    dearest = bill.usd[1] or 1.0
    sources = ["assumed" if i.sheet.assumed else i.sheet.source.partition(":")[0] for i in items] + [""]
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
        Column("source", sources, 3, "left"),
    ]
    return Fitting(columns, _note(bill), has_total=True)


def _note(bill: Bill) -> str:
    each = f"{_range(bill.usd_per_gbps, '$')} a Gb/s, {_range(bill.j_per_bit, 'J')} a bit with all nodes sending"
    told = f"{bill.fabric.num_machine_nodes:,} nodes of {format_rate(bill.fabric.node_rate_bits_per_s)}: {each}"
    return told + ("; * assumed, no source prints it: see data/parts.toml" if bill.assumed else "")


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


def bills_table(bills: Sequence[Bill], timelines: Mapping[str, Timeline], doing: str) -> Table:
    """One row a fabric, the cheapest for each Gb/s first.

    Args:
        timelines: by fabric, of the collective whose energy is told; may be empty.
        doing: that collective, in words.
    """
    bills = sorted(bills, key=lambda bill: bill.usd_per_gbps[0])
    columns = [
        Column("fabric", [b.fabric.name + ("*" if b.assumed else "") for b in bills], justify="left"),
        Column("node rate", [format_rate(b.fabric.node_rate_bits_per_s) for b in bills], 3),
        Column("parts", [f"{sum(i.part.count for i in b.items):,}" for b in bills], 4),
        Column("price", [_range(b.usd, "$") for b in bills], 1),
        Column("a Gb/s", [_range(b.usd_per_gbps, "$") for b in bills]),
        Column("power", [_range(b.w, "W") for b in bills], 2),
        Column("a bit", [_range(b.j_per_bit, "J") for b in bills]),
    ]
    if timelines:
        seconds = [timelines[b.fabric.name].total_s if b.fabric.name in timelines else None for b in bills]
        energy = ["" if s is None else _range(b.energy_j(s), "J") for b, s in zip(bills, seconds, strict=True)]
        columns += [
            Column("time", ["" if s is None else format_seconds(s) for s in seconds], 5),
            Column("energy", energy),
        ]
    note = f"{bills[0].fabric.num_machine_nodes:,} nodes each" + (f"; time and energy of {doing}" if timelines else "")
    marked = "; * some parts assumed" if any(b.assumed for b in bills) else ""
    return Fitting(columns, note + marked)


def bill_row(bill: Bill, timeline: Timeline | None = None) -> dict[str, Any]:
    """A bill as plain values; ranges are [low, high]."""
    row: dict[str, Any] = {
        "fabric": bill.fabric.name,
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
    if timeline is not None:
        row |= {"total_s": timeline.total_s, "energy_j": list(bill.energy_j(timeline.total_s))}
    return row


def cost_figure(bills: Mapping[str, Sequence[Bill]]) -> Figure:
    """Price of a Gb/s and energy of a bit against the number of nodes, a band where the source gives a range.

    Args: bills: of each fabric at several scales, smallest first.
    """
    figure = new_figure(4.4)
    colours = fabric_colours(bills)
    sides = (("price of a Gb/s that nodes can send", "$", "usd_per_gbps"), ("energy of a bit", "J", "j_per_bit"))
    for place, (title, unit, of) in enumerate(sides):
        axes = figure.add_axes((0.07 + 0.4 * place, 0.11, 0.33, 0.79))
        for name, at_scales in bills.items():
            nodes = [b.fabric.num_machine_nodes for b in at_scales]
            low, high = zip(*(getattr(b, of) for b in at_scales), strict=True)
            axes.plot(nodes, high, color=colours[name], linewidth=1.6, marker="o", markersize=2.5, label=name)
            if any(h > _FAR * lo for lo, h in zip(low, high, strict=True)):
                axes.fill_between(nodes, low, high, color=colours[name], alpha=0.1, linewidth=0)
        axes.set_xscale("log", base=4)
        axes.set_yscale("log")
        axes.set_xlabel("nodes")
        axes.set_title(title, loc="left", fontsize=9)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_locator(_steps_of_1_2_5())
        axes.yaxis.set_major_formatter(_formatter(unit))
        axes.minorticks_off()
        axes.grid(axis="y")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="center left", bbox_to_anchor=(0.83, 0.5), frameon=False)
    return figure


def _steps_of_1_2_5() -> Any:
    from matplotlib.ticker import LogLocator

    return LogLocator(subs=(1.0, 2.0, 5.0))


def _formatter(unit: str) -> Callable[[float, float], str]:
    return lambda value, _: _short(value, unit)
