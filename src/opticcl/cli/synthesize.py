"""opticcl synthesize"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opticcl.cli._output import PLAN
from opticcl.cli._request import FabricRequest, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result, Verbatim


@dataclass(frozen=True, kw_only=True)
class SynthesizeRequest(FabricRequest):
    """What `opticcl synthesize` is asked: values of its options."""

    READ = "custom"
    OPTIONS = "fabric nodes collective custom chunks root job time_limit seed method routes size out json"

    custom: Path | None = option(
        "--file", default=None, help="A custom collective (.toml, .json), see docs/schedules.md."
    )
    chunks: int = option(
        "--chunks", default=1, help="Chunks of each rank's block, or of the message if ranks have no blocks."
    )
    time_limit: str = option(
        "--time-limit", metavar="<time>", default="30s", help="Time after which the best schedule so far is returned."
    )
    method: Literal["auto", "constructed", "solver"] = option(
        "--method",
        default="auto",
        help="auto: with a solver if one is installed; constructed: without one; solver: refused without one.",
    )
    routes: int = option("--routes", default=2, help="Paths available to each pair of nodes, 1 to 8.")
    out: tuple[Path, ...] = out_option(PLAN)


def run(request: SynthesizeRequest) -> Result:
    """Search for the schedule with the fewest rounds on a wafer.

    Ctrl-C ends the search; the best schedule so far is returned.
    """
    from opticcl.plans.plan import Plan
    from opticcl.synthesis import read_collective, synthesize
    from opticcl.units import message_size

    custom = request.custom
    if custom is not None and (flag := request.first_given("collective", "chunks", "root")):
        raise ParameterError(f"--file: {custom} defines the collective; leave {flag} out")
    size_bytes = message_size(request.size, "--size")
    made = synthesize(
        request.machine(),
        request.collective if custom is None else read_collective(custom),
        chunks=request.chunks,
        root=request.root,
        nodes=request.ranks(),
        time_limit=request.time_limit,
        seed=request.seed,
        method=request.method,
        routes=request.routes,
        progress=request.progress,
    )
    plan = Plan(made.circuits, size_bytes)
    request.outputs.write(PLAN, lambda path: f"{plan.save(path, progress=request.progress):,} circuits")
    shown = [str(made)]
    if made.trials:
        trials = ", ".join(f"{t.rounds} {t.how}: {t.answer}" for t in made.trials[-6:])
        shown.append(f"  trials       {'... ' * (len(made.trials) > 6)}{trials}")
    note = f"; {made.note}" if made.note else ""
    shown.append(f"  took         {made.seconds:.2f} s{note}")
    return ComposedResult(made.record, lambda: map(Verbatim, shown))
