"""opticcl machine netlist"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import PICTURE, RECORD
from opticcl.cli._request import FabricRequest, out_option
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class NetlistRequest(FabricRequest):
    """What `opticcl machine netlist` is asked: values of its options."""

    OPTIONS = "fabric nodes * json"

    out: tuple[Path, ...] = out_option(PICTURE, RECORD)


def run(request: NetlistRequest) -> Result:
    """List the optical elements that a fabric is built of: groups, counts, states, sources.

    A picture shows every element and link of machines of up to 200 elements, and the groups of larger ones.
    """
    from opticcl.optics.rounds import netlist_of
    from opticcl.report.netlist import NetlistReport

    machine = request.machine().machine
    return NetlistReport(machine, netlist_of(machine))
