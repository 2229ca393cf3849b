"""opticcl netlist"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from opticcl.cli._options import FabricOption, JsonOption, NodesOption, make_fabric
from opticcl.cli._output import PICTURE, RECORD, Outputs, out_option, print_json, print_table


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    out: Annotated[list[Path], out_option(PICTURE, RECORD)] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Optical elements that a fabric is built of: groups, counts, states, sources.

    A picture shows every element and link of machines of up to 200 elements, and the groups of larger ones.
    """
    from opticcl.optics.rounds import netlist_of
    from opticcl.report.netlist import NetlistReport, netlist_figure

    outputs = Outputs(out, PICTURE, RECORD)
    machine = make_fabric(fabric, nodes, None).machine
    report = NetlistReport(machine, netlist_of(machine))
    outputs.write_pictures(lambda: netlist_figure(report), report.label)
    outputs.write_record(report.record)
    if json:
        print_json(report.record())
    else:
        print_table(*report.blocks())
        outputs.print_lines()
