"""opticcl netlist"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import PICTURE, RECORD, Outputs, print_json, print_table
from opticcl.cli._request import FabricRequest, out_option


@dataclass(frozen=True, kw_only=True)
class NetlistRequest(FabricRequest):
    """What `opticcl netlist` is asked: values of its options."""

    OPTIONS = "fabric nodes * json"

    out: tuple[Path, ...] = out_option(PICTURE, RECORD)


def run(request: NetlistRequest) -> int:
    """Optical elements that a fabric is built of: groups, counts, states, sources.

    A picture shows every element and link of machines of up to 200 elements, and the groups of larger ones.
    """
    from opticcl.optics.rounds import netlist_of
    from opticcl.report.netlist import NetlistReport, netlist_figure

    outputs = Outputs(request.out, PICTURE, RECORD)
    machine = request.machine().machine
    report = NetlistReport(machine, netlist_of(machine))
    outputs.write_pictures(lambda: netlist_figure(report), report.label)
    outputs.write_record(report.record)
    if request.json:
        print_json(report.record())
    else:
        print_table(*report.blocks())
        outputs.print_lines()
    return 0
