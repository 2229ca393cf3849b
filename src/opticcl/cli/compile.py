"""opticcl compile"""

from __future__ import annotations

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    SizeOption,
    make_plan,
)
from opticcl.cli._output import print_json, print_table


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    json: JsonOption = False,
) -> None:
    """Compile a collective to light and tell what came out: steps, rounds, transfers, circuits, wavelengths."""
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size)
    from opticcl.report.summary import summary, summary_table

    if json:
        print_json(summary(plan))
    else:
        print_table(str(plan), summary_table(plan))
