"""opticcl explore"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._request import VerbRequest, argument, option
from opticcl.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class ExploreRequest(VerbRequest):
    """What `opticcl explore` is asked: values of its options."""

    READ = ""

    file: tuple[Path, ...] = argument(
        default=(), help="Plan files (.parquet, .csv, .json) and studies (.toml) to open."
    )
    port: int = option("--port", default=0, help="Port to listen on; 0: any that is free.")
    jobs: int = option("--jobs", default=2, help="Processes that answer questions.")
    time_limit: str = option("--time-limit", metavar="<time>", default="120s", help="Longest duration of one question.")
    show: bool = option("--open", default=False, help="Open the address in the browser of this machine.")


def run(request: ExploreRequest) -> int:
    """Show comparisons, plans and their light in a browser on this computer. Ctrl-C ends it."""
    from opticcl.cli._explorer import answer, prepare
    from opticcl.cli._output import print_json
    from opticcl.explorer.pool import Limits
    from opticcl.explorer.serve import serve
    from opticcl.units import quantity

    limit_s = quantity(request.time_limit, "s", "--time-limit")
    if not 0 <= request.port < 1 << 16:
        raise ParameterError(f"--port: {request.port} is not a port; try 8080, or leave --port out")
    if not 1 <= request.jobs <= 64:
        raise ParameterError(f"--jobs: {request.jobs} processes; between 1 and 64")
    if not limit_s > 0:
        raise ParameterError(f"--time-limit: {request.time_limit!r} is not positive; try 120s")
    for path in request.file:
        if not path.is_file():
            raise ParameterError(f"explore: {path}: there is no such file")
        if path.suffix.lower() not in (".parquet", ".csv", ".json", ".toml"):
            raise ParameterError(
                f"explore: {path}: its name must end in .parquet, .csv, .json (a plan) or .toml (a study)"
            )

    def ready(address: str) -> None:
        if request.json:
            print_json({"address": address, "port": int(address.split(":")[2].partition("/")[0])})
        else:
            print(f"explore: {address}", "Ctrl-C ends it.", sep="\n")
        sys.stdout.flush()
        if request.show:
            import webbrowser

            webbrowser.open(address)

    serve(
        answer,
        prepare=prepare,
        port=request.port,
        limits=Limits(workers=request.jobs, time_s=limit_s),
        paths=request.file,
        ready=ready,
    )
    return 0
