"""Light budget of a path: a table of its elements, and a waterfall chart of the power."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from opticcl.estimate.budget import Budget, Line
from opticcl.report.kit.colours import INK, MUTED, PART_COLOURS
from opticcl.report.kit.columns import FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import new_figure, write_scale
from opticcl.report.kit.result import Verbatim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["budget_answer", "budget_blocks", "legend", "waterfall_figure", "waterfall_label"]

_BASIS = {"assumed": "*", "fitted": "°"}
_LOST, _ADDED = PART_COLOURS["reconfiguration"], PART_COLOURS["transfer"]


def budget_blocks(budget: Budget, note: str, limits: Sequence[str]) -> list[Any]:
    """Title, table, verdict and limits.

    Args:
        budget: of a path.
        note: on the preset; "" for none.
        limits: of the machine, in words.
    """
    below = [_required(budget), *limits]
    tables = [budget_title(budget), *filter(None, [note]), budget_table(budget), *filter(None, [legend(budget)])]
    return [*tables, *map(Verbatim, below)]


def budget_answer(budget: Budget) -> str:
    """Whether enough light arrives, in a sentence."""
    margin = f"{abs(budget.margin_db):.2f} dB"
    if budget.closes:
        return f"Enough light arrives on {budget.fabric}, with a margin of {margin} ({budget.preset} values)."
    return f"Too little light arrives on {budget.fabric}: {margin} is missing ({budget.preset} values)."


def budget_table(budget: Budget) -> FittedTable:
    """One row an element with the power behind it, and a last row with the sums at the detector."""
    basis, received = budget.basis, {"power": budget.received_dbm}
    rows = [
        {"element": _marked("launch", basis["launch"]), "power": budget.launch_dbm, "values": basis["launch"]},
        *(
            {"element": _name(line), "power": line.power_dbm, "values": line.basis, **_changes(line)}
            for line in budget.lines
        ),
    ]
    if budget.penalty_db:
        name = _marked("penalty", basis["penalty"])
        rows.append({"element": name, "loss": budget.penalty_db, "values": basis["penalty"], **received})
    name, added = _marked("all, to the detector", basis["sensitivity"]), sum(line.gain_db for line in budget.lines)
    rows.append({"element": name, "loss": budget.loss_db, "gain": added, "values": basis["sensitivity"], **received})
    columns = columns_of(
        rows,
        Shown("element"),
        Shown("count", form=",.4g", none=""),
        Shown("loss", form=_db, none=""),
        *([Shown("gain", rank=2, form=_db, none="")] if added else []),
        Shown("power", "power behind", form=_dbm),
        Shown("values", rank=3),
    )
    return FittedTable(columns, has_total=True)


def _changes(line: Line) -> dict[str, float]:
    return {"count": line.count, "loss": line.loss_db, "gain": line.gain_db}


def budget_title(budget: Budget) -> str:
    """Fabric and path."""
    return f"{budget.fabric}, {budget.path}"


def _name(line: Line) -> str:
    return _marked(line.element.replace("_", " "), line.basis)


def _marked(name: str, basis: str) -> str:
    return name + "".join(mark for word, mark in _BASIS.items() if word in basis)


def legend(budget: Budget) -> str:
    """Meaning of the marks in the table, "" if there are none."""
    meanings = {
        "assumed": "* assumed, the paper does not print it",
        "fitted": "° fitted to a printed result, not a prediction",
    }
    bases = [*budget.basis.values(), *(line.basis for line in budget.lines)]
    used = [text for word, text in meanings.items() if any(word in basis for basis in bases)]
    return "; ".join(used)


def _db(value: float) -> str:
    return f"{value:.2f} dB" if value else ""


def _dbm(value: float) -> str:
    return f"{value:z.2f} dBm"


def _required(budget: Budget) -> str:
    """What is required, and the noise."""
    required = [f"the detector needs {budget.sensitivity_dbm:g} dBm"]
    if budget.floor_dbm is not None:
        required.append(f"every place needs {budget.floor_dbm:g} dBm (lowest {budget.lowest_dbm:.2f} dBm)")
    noise = "" if budget.optical_snr_db is None else f"; optical SNR {budget.optical_snr_db:.1f} dB in 12.5 GHz"
    if noise and budget.joined_amplifiers > 1:
        noise += f" with the noise of {budget.joined_amplifiers} amplifiers that a coupler joins"
    return f"{', '.join(required)}{noise}"


def waterfall_label(budget: Budget) -> str:
    """Text of the picture for readers who cannot see it."""
    return (
        f"Power along the path of light on {budget.fabric}, {budget.path}: from {_dbm(budget.launch_dbm)} to "
        f"{_dbm(budget.received_dbm)} at the detector. {budget_answer(budget)}"
    )


def waterfall_figure(budget: Budget) -> Figure:
    """Power along the path: down at lossy elements, up at amplifiers, with the required power."""
    steps = [(f"{_name(line)}\n{_times(line)}", line.loss_db, line.gain_db) for line in budget.lines]
    if budget.penalty_db:
        steps.append((_marked("penalty", budget.basis["penalty"]) + "\n", budget.penalty_db, 0.0))
    figure = new_figure(4.2)
    axes = figure.add_axes((0.08, 0.19, 0.9, 0.64))
    power = budget.launch_dbm
    axes.plot([-0.4, 0.4], [power, power], color=INK, linewidth=1.6)
    _note(axes, 0, power, _dbm(power), above=True)
    for place, (_, loss, gain) in enumerate(steps, 1):
        behind = power - loss + gain
        axes.plot([place - 0.6, place - 0.3], [power, power], color=MUTED, linewidth=0.8)
        if loss:
            axes.bar(place - 0.15 * bool(gain), -loss, 0.6 if not gain else 0.3, power, color=_LOST, linewidth=0)
        if gain:
            axes.bar(place + 0.15 * bool(loss), gain, 0.6 if not loss else 0.3, power - loss, color=_ADDED, linewidth=0)
        axes.plot([place - 0.3, place + 0.4], [behind, behind], color=MUTED, linewidth=0.8)
        _note(axes, place, behind, f"{behind:z.1f}", above=gain > loss)
        power = behind
    last = len(steps) + 1
    axes.plot([last - 0.6, last + 0.4], [power, power], color=INK, linewidth=1.6)
    _note(axes, last, power, _dbm(power), above=True)
    _demands(axes, budget, last)
    axes.set_xlim(-0.6, last + 0.6)
    ends = [_marked(name, budget.basis[of]) for name, of in (("launch", "launch"), ("detector", "sensitivity"))]
    axes.set_xticks(range(last + 1), [ends[0], *(name for name, _, _ in steps), ends[1]], rotation=30, ha="right")
    write_scale(axes, "y", "power, dBm")
    axes.tick_params(length=2)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    figure.text(0.08, 0.96, budget_title(budget), fontsize=9, va="top")
    figure.text(0.08, 0.91, f"{budget_answer(budget)} {_required(budget)}", color=MUTED, fontsize=7.5, va="top")
    figure.text(0.98, 0.02, legend(budget), color=MUTED, fontsize=7, ha="right")
    return figure


def _times(line: Line) -> str:
    return "" if line.count == 1 else f"x {line.count:,.4g}"


def _note(axes: Axes, x: float, y: float, text: str, *, above: bool) -> None:
    where: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom" if above else "top"}
    axes.annotate(text, (x, y), (0, 3 if above else -3), fontsize=7, zorder=6, **where)


def _demands(axes: Axes, budget: Budget, last: int) -> None:
    """Dashed lines at the power that the detector and every place need."""
    axes.plot([last - 0.6, last + 0.6], [budget.sensitivity_dbm] * 2, color=INK, linestyle=(0, (4, 2)), linewidth=1.0)
    where: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "color": MUTED}
    axes.annotate("needed", (last + 0.6, budget.sensitivity_dbm), (-2, 2), ha="right", **where)
    if budget.floor_dbm is not None:
        axes.axhline(budget.floor_dbm, color=MUTED, linestyle=(0, (1, 2)), linewidth=1.0)
        axes.annotate("least allowed on the path", (-0.6, budget.floor_dbm), (3, 2), ha="left", **where)
    powers = [budget.launch_dbm, budget.received_dbm, *(line.power_dbm for line in budget.lines)]
    low, high = min(*powers, budget.sensitivity_dbm, inf if budget.floor_dbm is None else budget.floor_dbm), max(powers)
    axes.set_ylim(low - 0.1 * (high - low) - 1, high + 0.1 * (high - low) + 1)
