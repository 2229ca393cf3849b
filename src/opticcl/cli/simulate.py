"""opticcl simulate"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    AssumeOption,
    CollectiveOption,
    EngineOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    PresetOption,
    RootOption,
    SizeOption,
    make_assumptions,
    make_plan,
)
from opticcl.cli._output import print_json


class Mode(StrEnum):
    """When a transfer of the flow engine may start."""

    barrier = "barrier"
    asynchronous = "asynchronous"


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    engine: EngineOption = "closed_form",
    mode: Annotated[
        Mode, typer.Option("--mode", help="Flow engine: with a barrier after each step, or each transfer when it can.")
    ] = Mode.barrier,
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """How long a plan takes, step by step, and why."""
    assumed = make_assumptions(preset, assume)
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size, root, job)
    from opticcl.simulate.assumptions import as_dict
    from opticcl.units import format_seconds

    timeline = plan.simulate(engine, mode=mode.value, **as_dict(assumed))
    if json:
        print_json(
            {
                "total_s": timeline.total_s,
                "num_steps": timeline.num_steps,
                "num_rounds": timeline.num_rounds,
                **timeline.totals(),
                "lower_bound_s": timeline.lower_bound_s,
                "assumptions": dict(timeline.assumptions),
            }
        )
        return
    print(plan)
    print(timeline)
    print(
        f"lower bound {format_seconds(timeline.lower_bound_s)}; assumed: "
        + ", ".join(f"{key}={value}" for key, value in timeline.assumptions.items())
    )
