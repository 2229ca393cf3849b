"""`opticcl warm`: compile the kernels now."""

from __future__ import annotations

from typing import Annotated

from opticcl.cli._options import JsonOption
from opticcl.cli._output import ProgressLine, print_json
from opticcl.cli._parameters import option


def run(
    everything: Annotated[
        bool,
        option("--all", help="Also those of the flow and packet engines, routes, failed parts, and execution."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compile the kernels now, so that the first command is as fast as the second."""
    from dataclasses import asdict

    from opticcl.plans.warm import warm
    from opticcl.units import counted

    with ProgressLine() as progress:
        found = warm(engines=everything, progress=progress)
    if json:
        print_json(asdict(found))
    else:
        print(f"{counted(found.compiled, 'kernel')} compiled, {found.loaded} there already, in {found.directory}")
