"""Picture of the load of a machine during a plan: distribution over parts, traffic between nodes, and load over time.

+-------------------------------+-----------------------+
| busy share of every part,     | bytes from each node  |
| the busiest first, a line a   | to each other         |
| kind of part                  |                       |
+-------------------------------+-----------------------+
| busy share of every kind of part over the time of the |
| plan (only if the engine records it)                  |
+-------------------------------------------------------+
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from opticcl.ir import CircuitPlan, IntArray, Transfers
from opticcl.ir.limits import MOST_LISTED
from opticcl.ir.representatives import StepImages, SymmetricRounds
from opticcl.report.kit.colours import INK
from opticcl.report.kit.drawing import axes_at, new_figure, write_scale
from opticcl.simulate.bottleneck import Load
from opticcl.simulate.over_time import busy_over_time
from opticcl.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticcl.plans.plan import Plan
    from opticcl.report.simulation import Simulation

__all__ = ["LoadView", "load_figure", "load_picture", "load_view"]

MOST_BLOCKS = 128  # rows and columns of the picture of nodes
MOST_BANDS = 120  # rows of the picture over time, all kinds together
SLICES = 240
_COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#aa3377",
    "#66ccee",
    "#882255",
    "#999933",
    "#332288",
    "#666666",
)


@dataclass(frozen=True)
class LoadKind:
    """Parts of one kind.

    Args:
        name: what they are or join.
        count: all of them, idle ones too [count].
        busy: share of the plan's time that each is busy, busiest first, float64 (k,); the others are idle.
    """

    name: str
    count: int
    busy: np.ndarray


@dataclass(frozen=True)
class LoadView:
    """Data of the picture.

    Args:
        title: first line above the picture.
        remark: second line.
        kinds: in the order of the fabric.
        sent: bytes from each block of nodes to each other, float64 (blocks, blocks).
        nodes_per_block: nodes of one row [count].
        over_time: busy share of each band of parts, float64 (bands, slices), or None.
        bands: bands of each kind [count].
        total_s: time of the plan [s].
    """

    title: str
    remark: str
    kinds: tuple[LoadKind, ...]
    sent: np.ndarray
    nodes_per_block: int
    over_time: np.ndarray | None
    bands: tuple[int, ...]
    total_s: float


def load_picture(found: Simulation) -> tuple[Callable[[], Figure], str]:
    """The picture of a simulated plan, as a function that draws it, and the picture in words."""
    view = load_view(found)
    return partial(load_figure, view), f"Load of {view.title}. {view.remark}"


def load_view(found: Simulation) -> LoadView:
    """Data of the picture of a simulated plan."""
    plan, result = found.plan, found.result
    total_s = result.timeline.total_s
    kinds, which = _kinds(plan, found.loads, total_s)
    block = ceil(plan.fabric.num_nodes / MOST_BLOCKS)
    sent = _sent(plan.circuits, plan.size_bytes, block)
    over_time = None
    bands = tuple(min(kind.count, max(1, MOST_BANDS // len(kinds))) for kind in kinds)
    if result.traffic is not None and kinds and total_s:
        first = np.concatenate([[0], np.cumsum(bands)])
        counts = np.array([kind.count for kind in kinds])

        def row_of(resource: int, index: IntArray) -> IntArray:
            kind, place = which[resource][0][index], which[resource][1][index]
            rows: IntArray = np.where(kind < 0, -1, first[kind] + place * np.array(bands)[kind] // counts[kind])
            return rows

        busy_s = busy_over_time(plan.circuits, result.traffic.transfers, total_s, row_of, int(first[-1]), SLICES)
        parts = np.concatenate(
            [np.bincount(np.arange(n) * b // n, minlength=b) for n, b in zip(counts, bands, strict=True)]
        )
        over_time = busy_s / (total_s / SLICES) / parts[:, None]
    return LoadView(str(plan), found.headline(), kinds, sent, block, over_time, bands, total_s)


def _kinds(
    plan: Plan, found: Sequence[Load], total_s: float
) -> tuple[tuple[LoadKind, ...], dict[int, tuple[IntArray, IntArray]]]:
    """Kinds of parts that carry something; for each resource the kind of every part and its place in that kind.

    Args:
        plan: that was simulated.
        found: load of each resource.
        total_s: time of the plan [s].
    """
    kinds: list[LoadKind] = []
    which = {
        i: (np.full(resource.count, -1), np.zeros(resource.count, np.int64))
        for i, resource in enumerate(plan.fabric.resources)
    }
    for load in found:
        every = np.arange(plan.fabric.resources[load.resource].count)
        names, kind_of = plan.fabric.kind_names(load.resource, every)
        share = np.zeros(len(every))
        share[load.index] = load.busy_s / total_s if total_s else 0.0
        for k, name in enumerate(names):
            mine = np.flatnonzero(kind_of == k)
            busy = share[mine]
            if busy.any():
                which[load.resource][0][mine] = len(kinds)
                which[load.resource][1][mine] = np.arange(len(mine))
                kinds.append(LoadKind(name, len(mine), -np.sort(-busy)))
    return tuple(kinds), which


def _sent(plan: CircuitPlan, size_bytes: int, nodes_per_block: int) -> np.ndarray:
    """Bytes from each block of nodes to each other, float64 (blocks, blocks).

    Args:
        plan: with its schedule.
        size_bytes: message of every rank [bytes].
        nodes_per_block: nodes of one block [count].
    """
    schedule = plan.schedule
    blocks = ceil(schedule.collective.num_ranks / nodes_per_block)
    sent = np.zeros(blocks * blocks)
    for steps in schedule.step_classes():
        step, sets = plan.images(steps.start), plan.symmetric(steps.start)
        if step is None or not sets:
            sent += _between_blocks(schedule.step(steps.start), nodes_per_block, blocks) * len(steps)
        else:
            sent += _by_images(step, sets, nodes_per_block, blocks) * len(steps)
    return sent.reshape(blocks, blocks) * (size_bytes / schedule.collective.num_chunks)


def _between_blocks(transfers: Transfers, nodes_per_block: int, blocks: int) -> np.ndarray:
    """Chunks from each block to each other, float64 (blocks * blocks,).

    Args:
        transfers: of a step.
        nodes_per_block: nodes of one block [count].
        blocks: number of them [count].
    """
    pair = transfers.src // nodes_per_block * np.int64(blocks) + transfers.dst // nodes_per_block
    return np.bincount(pair, transfers.size_chunks(), minlength=blocks * blocks)


def _by_images(step: StepImages, sets: Sequence[SymmetricRounds], nodes_per_block: int, blocks: int) -> np.ndarray:
    """The same for a step that is not listed: what some senders send, moved as blocks, where moves map blocks onto blocks.

    Args:
        step: that is not listed.
        sets: of senders, with their moves.
        nodes_per_block: nodes of one block [count].
        blocks: number of them [count].
    """
    ranks = step.steps.space.num_ranks
    moved = {move: move.nodes // nodes_per_block for rounds in sets for move in rounds.moves}
    if ranks % nodes_per_block or any(
        (one != np.repeat(one[::nodes_per_block], nodes_per_block)).any() for one in moved.values()
    ):
        every = np.array_split(np.arange(ranks), -(-len(step) // MOST_LISTED))
        return np.sum([_between_blocks(step.sent_by(some), nodes_per_block, blocks) for some in every], axis=0)
    every_set = np.zeros(blocks * blocks)
    for rounds in sets:
        bytes_between = _between_blocks(step.sent_by(rounds.senders), nodes_per_block, blocks).reshape(blocks, blocks)
        for move in rounds.moves:
            block, node, total = moved[move][::nodes_per_block], move.nodes, bytes_between.copy()
            while not np.array_equal(node, np.arange(ranks)):
                image = np.empty_like(bytes_between)
                image[np.ix_(block, block)] = bytes_between
                bytes_between, node = image, move.nodes[node]
                total += bytes_between
            bytes_between = total
        every_set += bytes_between.ravel()
    return every_set


# --- the figure -------------------------------------------------------------------------------------------------------


def load_figure(view: LoadView) -> Figure:
    """The figure of a load."""
    has_time = view.over_time is not None
    height = 7.6 if has_time else 4.2
    figure = new_figure(height, view.title, view.remark)
    if not view.kinds:
        figure.text(0.5, 0.45, "nothing is sent", ha="center")
        return figure
    tall = 2.75
    bottom = height - 0.78 - tall
    _draw_sorted(axes_at(figure, 0.62, bottom, 5.05, tall), view.kinds)
    _draw_nodes(axes_at(figure, 6.55, bottom, tall, tall), axes_at(figure, 6.63 + tall, bottom, 0.1, tall), view)
    if has_time:
        bottom -= 0.85 + tall
        _draw_time(axes_at(figure, 1.55, bottom, 7.75, tall), axes_at(figure, 9.38, bottom, 0.1, tall), view)
    return figure


def _percent(value: float) -> str:
    return f"{100 * value:g} %"


def _heading(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=8.5, fontweight="bold", pad=6)


def _draw_sorted(axes: Axes, kinds: Sequence[LoadKind]) -> None:
    """Busy share of every part, sorted, one line a kind."""
    _heading(axes, "Distribution: share of the time that a part is busy, the busiest first")
    most = max(float(kind.busy[0]) for kind in kinds)
    for number, (kind, colour) in enumerate(zip(kinds, _cycled(len(kinds)), strict=True)):
        line = "-" if number % 2 == 0 else (0, (4, 2))  # the two directions of a link often have the same load
        x = np.arange(len(kind.busy) + 1) / len(kind.busy)
        label = f"{kind.name}: {kind.count:,}, mean {100 * kind.busy.mean():.3g} %"
        y = [*kind.busy, kind.busy[-1]]
        axes.plot(100 * x, y, drawstyle="steps-post", color=colour, linewidth=1.7, linestyle=line, label=label)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, min(1.02, 1.12 * most))
    write_scale(axes, "x", "of the parts of its kind", "{:g} %".format)
    write_scale(axes, "y", "", _percent)
    axes.grid()
    axes.set_axisbelow(True)
    axes.tick_params(length=2)
    axes.legend(loc="best", fontsize=7.2, frameon=True, framealpha=0.85, edgecolor="none", handlelength=1.4)


def _draw_nodes(axes: Axes, bar: Axes, view: LoadView) -> None:
    """Bytes from node to node."""
    _heading(axes, "Traffic: bytes from sender to receiver")
    n = len(view.sent) * view.nodes_per_block
    extent = (-0.5, n - 0.5, n - 0.5, -0.5)
    shown = np.ma.masked_equal(view.sent / view.nodes_per_block**2, 0.0)
    _bar(axes.imshow(shown, cmap="viridis_r", extent=extent, interpolation="nearest", vmin=0.0), bar, format_bytes)
    axes.set_xlabel("receiver")
    axes.set_ylabel("sender", labelpad=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(_whole())
    axes.tick_params(length=2)
    axes.spines[:].set_visible(False)


def _draw_time(axes: Axes, bar: Axes, view: LoadView) -> None:
    """Busy share of bands of parts over time."""
    assert view.over_time is not None
    _heading(axes, "Over time: share of its rate that each part carries, parts of a kind by number")
    ends = np.cumsum(view.bands)
    tall = np.repeat(1.0 / np.array(view.bands), view.bands)  # all kinds have the same height
    edges = np.concatenate([[0.0], np.cumsum(tall)])
    times = np.linspace(0.0, view.total_s, view.over_time.shape[1] + 1)
    shown = np.ma.masked_less(view.over_time, 1e-9)
    mesh = axes.pcolormesh(times, edges, shown, cmap="viridis_r", vmin=0.0, vmax=1.0, rasterized=True)
    _bar(mesh, bar, _percent)
    for k in range(1, len(ends)):
        axes.axhline(k, color=INK, linewidth=0.5)
    axes.set_ylim(len(ends), 0)
    axes.set_yticks(np.arange(len(ends)) + 0.5, [f"{kind.name}\n{kind.count:,}" for kind in view.kinds], fontsize=7.2)
    about = "time since the start (the bytes of a transfer are spread evenly over its own time)"
    write_scale(axes, "x", about, format_seconds)
    axes.tick_params(length=2)
    axes.tick_params(axis="y", length=0)


def _bar(image: Any, bar: Axes, written: Any) -> None:
    """Draw the colour scale of an image.

    Args:
        image: with the colours.
        bar: axes of the scale.
        written: value -> text of a tick.
    """
    bar.figure.colorbar(image, cax=bar)
    write_scale(bar, "y", "", written)
    bar.tick_params(length=2, labelsize=7)
    bar.spines[:].set_visible(False)


def _whole() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, integer=True)


def _cycled(count: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(count)]
