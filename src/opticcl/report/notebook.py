"""Pictures for notebooks: of plans, their times, verdicts and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.assumptions import DEFAULT_SET
from opticcl.errors import ParameterError
from opticcl.ir import Timeline, Verdict
from opticcl.plans.comparison import Comparison
from opticcl.plans.plan import Plan
from opticcl.registry import as_path
from opticcl.report.kit.svg import save_picture, to_svg
from opticcl.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture", "plot"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a notebook shows.

    Args:
        draw: returns the figure.
        label: what it shows, for readers who cannot see it.
    """

    draw: Callable[[], Figure]
    label: str

    def __repr__(self) -> str:
        return f"<Picture: {self.label}>"

    def _repr_svg_(self) -> str:
        return to_svg(self.draw, "picture", self.label)

    def save(self, path: str | Path) -> None:
        """Write it as .svg or .png, whole or not at all.

        Raises: OutputError: another suffix, or not writable.
        """
        save_picture(Path(as_path(path, "save", "load.svg")), self.draw, self.label)


def plot(answer: Plan | Timeline | Verdict | Comparison, engine: str = "closed_form", **options: Any) -> Picture:
    """Draw a result; in a notebook the picture is shown where it is the value of a cell.

    Args:
        answer: a plan, of which the load of links or ports is drawn; its time, of which the parts of each run of steps are; a
            verdict, of which the broken rules are, or what was checked; what `opticcl.compare` returns, of which the times
            are, with price and power of a node.
        engine: that simulates a plan: closed_form, flow, packet or device.
        options: as of `Plan.simulate`, for a plan.
    Raises: ParameterError: none of them, or an option for another answer than a plan; as `Plan.simulate`.
    """
    if isinstance(answer, Plan):
        return Picture(*_load(answer, engine, options))
    drawn = next((made for kind, made in _PICTURES.items() if isinstance(answer, kind)), None)
    if drawn is None:
        raise ParameterError(
            f"plot: {type(answer).__name__} has no picture; give a plan, a time, a verdict, or what opticcl.compare returns"
        )
    if options or engine != "closed_form":
        given = ", ".join(options) or "engine"
        raise ParameterError(f"plot: {given}: a {type(answer).__name__} takes no options; give them for a plan")
    return drawn(answer)


def _comparison(comparison: Comparison) -> Picture:
    from opticcl.report.comparison_pictures import breakdown_figure, breakdown_label

    return Picture(lambda: breakdown_figure(comparison), breakdown_label(comparison))


def _timeline(timeline: Timeline) -> Picture:
    from opticcl.report.result_pictures import timeline_figure

    label = f"Parts of {format_seconds(timeline.total_s)}, by runs of equal steps"
    return Picture(lambda: timeline_figure(timeline), label)


def _verdict(verdict: Verdict) -> Picture:
    from opticcl.report.result_pictures import verdict_figure

    return Picture(lambda: verdict_figure(verdict), str(verdict).partition("\n")[0])


_PICTURES: dict[type, Callable[[Any], Picture]] = {Comparison: _comparison, Timeline: _timeline, Verdict: _verdict}


def _load(plan: Plan, engine: str, options: dict[str, Any]) -> tuple[Callable[[], Figure], str]:
    """The load of a plan, as a function that draws it, and in words.

    Args: plan, engine, options: as of `plot`.
    """
    from opticcl.plans.times import judged_below_bound
    from opticcl.report.load_pictures import load_picture
    from opticcl.report.simulation import Simulation
    from opticcl.simulate import simulate

    with judged_below_bound(plan.circuits):
        assumed = options.pop("assumptions", DEFAULT_SET)
        result = simulate(plan.circuits, plan.size_bytes, assumed, engine=engine, record=True, **options)
    return load_picture(Simulation(plan, engine, result))
