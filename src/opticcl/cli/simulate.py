"""opticcl simulate"""

from __future__ import annotations

from opticcl.cli._options import (
    AlgorithmOption,
    AssumeOption,
    CollectiveOption,
    FabricOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    PresetOption,
    SizeOption,
    make_assumptions,
    make_plan,
)
from opticcl.cli._output import print_json


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """How long a plan takes, step by step, and why."""
    assumed = make_assumptions(preset, assume)
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size)
    from opticcl.simulate import closed_form
    from opticcl.units import format_seconds

    timeline = closed_form(plan.circuits, plan.size_bytes, assumed)
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
