"""opticcl budget"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import FabricOption, JsonOption, NodesOption, make_fabric
from opticcl.cli._output import PICTURES, check_outputs, print_json, print_table
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.evaluate.budget import Budget
    from opticcl.ir import Fabric
    from opticcl.physics.optics import Optics


TYPICAL = "typical"
"""The preset that every optical fabric of ours has with a value for everything, assumed where the paper has none."""


class Which(StrEnum):
    """Which path of a fabric."""

    worst = "worst"
    typical = "typical"


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="Whose losses and gains: literal (the paper's own), typical, fitted, ...; if left out, literal where the "
            "paper prints all that is needed, else typical.",
        ),
    ] = None,
    change: Annotated[
        list[str], typer.Option("--set", help="Another value: fibre.loss=0.3dB/km, launch=10dBm. Repeat for several.")
    ] = [],  # noqa: B006 (the framework copies it)
    which: Annotated[Which, typer.Option("--path", help="The path that loses most, or the mean one.")] = Which.worst,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", "-a", help="Instead: the worst path of this algorithm's circuits, compiled."),
    ] = None,
    collective: Annotated[
        str | None, typer.Option("--collective", "-c", help="That the algorithm does; all_reduce if left out.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw the power along the path: .svg or .png.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Whether enough light arrives, element by element, and what that limits. Exit code 1 if the light does not close."""
    from opticcl.evaluate.limits import limits
    from opticcl.report.budget import (
        budget_record,
        budget_table,
        budget_title,
        legend,
        verdict_line,
        waterfall_figure,
        waterfall_label,
    )

    check_outputs({"--output": (picture, PICTURES)})
    made = make_fabric(fabric, nodes, None)
    values, found, why = _first_complete(
        made, preset, parse_settings(change), _budget(made, which, algorithm, collective)
    )
    limited = limits(made, values)
    if picture:
        from opticcl.report.svg import save_picture

        save_picture(picture, lambda: waterfall_figure(found), waterfall_label(found))
    if json:
        print_json(budget_record(found, limited))
    else:
        print_table(budget_title(found), *filter(None, [why]))
        print_table(budget_table(found), *filter(None, [legend(found)]))
        print(verdict_line(found))
        for limit in limited:
            print(f"  {limit.text}")
        if picture:
            print(f"picture: {picture}")
    raise typer.Exit(0 if found.closes else 1)


def _first_complete(
    made: Fabric, preset: str | None, settings: dict[str, str], find: Callable[[Optics], Budget]
) -> tuple[Optics, Budget, str]:
    """Values of the preset that is asked for, else of literal or, where it lacks any, typical; the budget; why not literal.

    Raises: UnknownNameError, UnsupportedError; ParameterError: of a preset that is not there, the paper's refusal.
    """
    from opticcl.physics.light import light_path_of
    from opticcl.physics.optics import LITERAL, optics, presets_of

    sheet = light_path_of(made).sheet
    values = optics(sheet, preset or LITERAL, settings)
    try:
        return values, find(values), ""
    except ParameterError as refusal:
        if preset is not None or TYPICAL not in presets_of(sheet):
            raise
        lacks = str(refusal).partition(";")[0]
    values = optics(sheet, TYPICAL, settings)
    return values, find(values), f"values: preset {TYPICAL}, with assumed ones; {lacks}"


def _budget(made: Fabric, which: Which, algorithm: str | None, collective: str | None) -> Callable[[Optics], Budget]:
    """What finds the budget of the path that the options ask for, once it has values."""
    from opticcl.evaluate.budget import budget, plan_budget

    if algorithm is None:
        if collective is not None:
            raise ParameterError("budget: --collective is what an algorithm does; give --algorithm auto too")
        return lambda values: budget(made, values, which.value)
    if which is not Which.worst:
        raise ParameterError("budget: --path typical is of the fabric; leave it or --algorithm out")
    from opticcl.plan import compile

    plan = compile(made, collective or "all_reduce", "1MB", algorithm=algorithm)
    return lambda values: plan_budget(plan.circuits, values)
