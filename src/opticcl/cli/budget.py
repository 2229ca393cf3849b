"""opticcl budget"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from opticcl.cli._options import FabricOption, JsonOption, NodesOption, make_fabric
from opticcl.cli._output import PICTURE, RECORD, Outputs, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.estimate.budget import Budget
    from opticcl.ir import Fabric
    from opticcl.ir.light import Optics


class Which(StrEnum):
    """Which path of a fabric."""

    worst = "worst"
    typical = "typical"


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    preset: Annotated[
        str | None,
        option(
            "--optics",
            help="Losses and gains: literal (those of the paper), typical, fitted, ...; default: literal where the "
            "paper prints all values that are needed, else typical.",
        ),
    ] = None,
    change: Annotated[
        list[str],
        option(
            "--set", metavar="NAME=VALUE", help="Change a value: fibre.loss=0.3dB/km, launch=10dBm. Repeat for several."
        ),
    ] = [],  # noqa: B006 (the framework copies it)
    which: Annotated[Which, option("--path", help="The path with the largest loss, or the mean path.")] = Which.worst,
    algorithm: Annotated[
        str | None,
        option("--algorithm", "-a", help="Instead of --path: the worst path among the circuits of this algorithm."),
    ] = None,
    collective: Annotated[
        str | None, option("--collective", "-c", help="With --algorithm: its collective; default: all_reduce.")
    ] = None,
    out: Annotated[list[Path], out_option(PICTURE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Light budget of a path, element by element, with its margin. Exit code 1 if too little light arrives."""
    from opticcl.estimate.budget import best_budget
    from opticcl.estimate.limits import limits
    from opticcl.report.budget import (
        budget_table,
        budget_title,
        legend,
        verdict_line,
        waterfall_figure,
        waterfall_label,
    )

    outputs = Outputs(out, PICTURE, RECORD)
    machine = make_fabric(fabric, nodes, None)
    find = _budget(machine, which, algorithm, collective)
    values, found, note = best_budget(machine, find, preset, parse_settings(change))
    limited = limits(machine, values)
    record = {**found.record(), "limits": {limit.name: limit.value for limit in limited}}
    outputs.write_pictures(lambda: waterfall_figure(found), waterfall_label(found))
    outputs.write_record(lambda: record)
    if json:
        print_json(record)
    else:
        print_table(budget_title(found), *filter(None, [note]))
        print_table(budget_table(found), *filter(None, [legend(found)]))
        print(verdict_line(found))
        for limit in limited:
            print(f"  {limit.text}")
        outputs.print_lines()
    raise click.exceptions.Exit(0 if found.closes else 1)


def _budget(machine: Fabric, which: Which, algorithm: str | None, collective: str | None) -> Callable[[Optics], Budget]:
    """A function that computes the budget of the path that the options select, from values."""
    from opticcl.estimate.budget import budget, plan_budget

    if algorithm is None:
        if collective is not None:
            raise ParameterError("budget: --collective belongs to an algorithm; give --algorithm auto too")
        return lambda values: budget(machine, values, which.value)
    if which is not Which.worst:
        raise ParameterError("budget: --path typical is a path of the fabric; leave it or --algorithm out")
    from opticcl.plans.plan import compile

    plan = compile(machine, collective or "all_reduce", "1MB", algorithm=algorithm)
    return lambda values: plan_budget(plan.circuits, values)
