"""opticcl machine budget"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticcl.cli._output import PICTURE, RECORD
from opticcl.cli._request import FabricRequest, PlanRequest, option, out_option, shared_option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from opticcl.estimate.budget import Budget
    from opticcl.ir import Fabric
    from opticcl.ir.light import Optics


@dataclass(frozen=True, kw_only=True)
class BudgetRequest(FabricRequest):
    """What `opticcl machine budget` is asked: values of its options."""

    OPTIONS = "fabric nodes * json"

    preset: str | None = shared_option(
        PlanRequest,
        "optics",
        default=None,
        help="Losses and gains: literal (those of the paper), typical, fitted, ...; default: literal where the "
        "paper prints all values that are needed, else typical.",
    )
    change: tuple[str, ...] = option(
        "--set",
        metavar="NAME=VALUE",
        default=(),
        help="Change a value: fibre.loss=0.3dB/km, launch=10dBm. Repeat for several.",
    )
    path: Literal["worst", "typical"] = option(
        "--path", default="worst", help="The path with the largest loss, or the mean path."
    )
    of_algorithm: str | None = shared_option(
        PlanRequest,
        "algorithm",
        default=None,
        help="Instead of --path: the worst path among the circuits of this algorithm.",
    )
    of_collective: str | None = shared_option(
        PlanRequest,
        "collective",
        default=None,
        help="With --algorithm: its collective; default: all_reduce.",
    )
    out: tuple[Path, ...] = out_option(PICTURE, RECORD)


def run(request: BudgetRequest) -> Result:
    """Add up the light of a path, element by element, to its margin. Exit code 1 if too little light arrives."""
    from opticcl.estimate.budget import best_budget
    from opticcl.plans.limits import limits
    from opticcl.report.budget import budget_answer, budget_blocks, waterfall_figure, waterfall_label

    machine = request.machine()
    find = _budget(request, machine)
    values, light, note = best_budget(machine, find, request.preset, parse_settings(request.change))
    limited = limits(machine, values)
    return ComposedResult(
        lambda: {**light.record(), "limits": {limit.name: limit.value for limit in limited}},
        lambda: budget_blocks(light, note, [limit.text for limit in limited]),
        light.closes,
        draw=lambda: waterfall_figure(light),
        label=waterfall_label(light),
        headline=budget_answer(light),
    )


def _budget(request: BudgetRequest, machine: Fabric) -> Callable[[Optics], Budget]:
    """A function that computes the budget of the path that the options select, from values."""
    from opticcl.estimate.budget import budget, plan_budget

    if request.of_algorithm is None:
        if request.of_collective is not None:
            raise ParameterError("budget: --collective belongs to an algorithm; give --algorithm auto too")
        return lambda values: budget(machine, values, request.path)
    if request.path != "worst":
        raise ParameterError("budget: --path typical is a path of the fabric; leave it or --algorithm out")
    from opticcl.plans.plan import compile

    plan = compile(machine, request.of_collective or "all_reduce", "1MB", algorithm=request.of_algorithm)
    return lambda values: plan_budget(plan.circuits, values)
