"""opticcl sweep"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import RECORD, TABLE
from opticcl.cli._request import PlanRequest, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result


@dataclass(frozen=True, kw_only=True)
class SweepRequest(PlanRequest):
    """What `opticcl sweep` is asked: values of its options."""

    OPTIONS = """fabrics nodes equal as_built collective algorithm optics ignore_light * engine assumptions assume root
        out jobs json"""

    smallest: str = option("--from", metavar="<size>", default="1KB", help="Smallest message.")
    largest: str = option("--to", metavar="<size>", default="1GB", help="Largest message.")
    factor: float = option("--factor", default=4.0, help="Ratio of each size to the previous one.")
    out: tuple[Path, ...] = out_option(TABLE, RECORD)


def run(request: SweepRequest) -> Result:
    """Time and bandwidth for each message size. Exit code 1 if a plan is wrong."""
    from opticcl.collective import as_request
    from opticcl.plans.search import Searches
    from opticcl.plans.sweep import sizes_by, sweep_fabrics
    from opticcl.report.sweep import sweep_answer, sweep_blocks
    from opticcl.units import message_size

    if request.nodes is None and not request.fabrics:
        raise ParameterError("sweep: how many nodes? give --nodes N, or fabrics with their shapes")
    sizes = sizes_by(message_size(request.smallest, "--from"), message_size(request.largest, "--to"), request.factor)
    wanted = as_request(request.collective, request.root)
    _, contenders, excluded = request.contenders(request.nodes)
    fabrics = [one.fabric for one in contenders]
    processes = request.num_processes(fabrics)
    assumed, rule = request.assumed(), request.rule(fabrics)
    searches = Searches(request.algorithm, assumed, engine=request.engine, rule=rule, progress=request.progress)
    found = sweep_fabrics([(one.text, one.fabric) for one in contenders], wanted, sizes, searches, excluded, processes)
    return ComposedResult(found.record, lambda: sweep_blocks(found), found.ok, found.rows, headline=sweep_answer(found))
