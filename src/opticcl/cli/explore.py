"""opticcl explore"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._options import JsonOption
from opticcl.cli._parameters import argument, option
from opticcl.errors import ParameterError


def run(
    context: click.Context,
    file: Annotated[
        list[Path] | None,
        argument(help="Plan files (.parquet, .csv, .json) and studies (.toml) to open."),
    ] = None,
    port: Annotated[int, option("--port", help="Port to listen on; 0: any that is free.")] = 0,
    jobs: Annotated[int, option("--jobs", help="Processes that answer questions.")] = 2,
    time_limit: Annotated[str, option("--time-limit", help="Of one question.")] = "120s",
    show: Annotated[bool, option("--open", help="Open the address in the browser of this machine.")] = False,
    json: JsonOption = False,
) -> None:
    """Comparisons, plans and their light in a browser, on this machine alone. Ctrl-C ends it."""
    from opticcl.cli._explorer import answer, prepare
    from opticcl.cli._output import print_json
    from opticcl.explorer.pool import Limits
    from opticcl.explorer.serve import serve
    from opticcl.units import quantity

    limit_s = quantity(time_limit, "s", "--time-limit")
    if not 0 <= port < 1 << 16:
        raise ParameterError(f"--port: {port} is no port; try 8080, or leave --port out")
    if not 1 <= jobs <= 64:
        raise ParameterError(f"--jobs: {jobs} processes; between 1 and 64")
    if not limit_s > 0:
        raise ParameterError(f"--time-limit: {time_limit!r} is not positive; try 120s")
    for path in file or ():
        if not path.is_file():
            raise ParameterError(f"explore: {path}: there is no such file")
        if path.suffix.lower() not in (".parquet", ".csv", ".json", ".toml"):
            raise ParameterError(
                f"explore: {path}: its name must end in .parquet, .csv, .json (a plan) or .toml (a study)"
            )

    def ready(address: str) -> None:
        if json:
            print_json({"address": address, "port": int(address.split(":")[2].partition("/")[0])})
        else:
            print(f"explore: {address}", "Ctrl-C ends it.", sep="\n")
        import sys

        sys.stdout.flush()
        if show:
            import webbrowser

            webbrowser.open(address)

    serve(
        answer, prepare=prepare, port=port, limits=Limits(workers=jobs, time_s=limit_s), paths=file or (), ready=ready
    )
