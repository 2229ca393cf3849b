"""Pictures for notebooks: the load of a plan, and the parts of the times of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.errors import ParameterError
from opticcl.plans.plan import Plan
from opticcl.plans.rows import Rows
from opticcl.registry import as_path
from opticcl.report.kit.svg import save_picture, to_svg

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


def plot(
    answer: Plan | Rows, engine: str = "closed_form", *, assumptions: str | Assumptions = DEFAULT_SET, **options: Any
) -> Picture:
    """The picture of a plan or a comparison; in a notebook it is shown where it is the value of a cell.

    Args:
        answer: a plan, of which the load of links or ports is drawn; what `opticcl.compare` returns, of which the parts of the
            times are.
        engine: that simulates the plan: closed_form, flow, packet or device.
        assumptions, options: as of `Plan.simulate`, for a plan.
    Raises: ParameterError: neither of them; as `Plan.simulate`.
    """
    if isinstance(answer, Plan):
        return Picture(*_load(answer, engine, assumptions, options))
    if isinstance(answer, Rows) and answer.comparison is not None:
        from opticcl.report.comparison_pictures import breakdown_figure, breakdown_label

        found = answer.comparison
        return Picture(lambda: breakdown_figure(found), breakdown_label(found))
    raise ParameterError(f"plot: {type(answer).__name__} has no picture; give a plan, or what opticcl.compare returns")


def _load(
    plan: Plan, engine: str, assumptions: str | Assumptions, options: dict[str, Any]
) -> tuple[Callable[[], Figure], str]:
    """The load of a plan, as a function that draws it, and in words.

    Args: plan, engine, assumptions, options: as of `plot`.
    """
    from opticcl.plans.times import judged_below_bound
    from opticcl.report.load_pictures import load_picture
    from opticcl.report.simulation import Simulation
    from opticcl.simulate import simulate

    with judged_below_bound(plan.circuits):
        result = simulate(plan.circuits, plan.size_bytes, assumptions, engine=engine, record=True, **options)
    return load_picture(Simulation(plan, engine, result))
