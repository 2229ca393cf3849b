"""`opticcl warm`: compile the kernels now."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from opticcl.cli._output import ProgressLine, print_json
from opticcl.cli._request import VerbRequest, option


@dataclass(frozen=True, kw_only=True)
class WarmRequest(VerbRequest):
    """What `opticcl warm` is asked: values of its options."""

    everything: bool = option(
        "--all", default=False, help="Also those of the flow and packet engines, routes, failed parts, and execution."
    )


def run(request: WarmRequest) -> int:
    """Compile the kernels now, so that the first command is as fast as the second."""
    from opticcl.plans.warm import warm
    from opticcl.units import counted

    with ProgressLine() as progress:
        found = warm(engines=request.everything, progress=progress)
    if request.json:
        print_json(asdict(found))
    else:
        print(f"{counted(found.compiled, 'kernel')} compiled, {found.loaded} there already, in {found.directory}")
    return 0
