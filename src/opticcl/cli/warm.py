"""`opticcl warm`: compile the kernels now."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from opticcl.cli._request import VerbRequest, option
from opticcl.report.kit.result import ComposedResult, Result, Verbatim


@dataclass(frozen=True, kw_only=True)
class WarmRequest(VerbRequest):
    """What `opticcl warm` is asked: values of its options."""

    everything: bool = option(
        "--all", default=False, help="Also those of the flow and packet engines, routes, failed parts, and execution."
    )


def run(request: WarmRequest) -> Result:
    """Compile the kernels now, so that the first command is as fast as the second."""
    from opticcl.plans.warm import warm
    from opticcl.units import counted

    found = warm(engines=request.everything, progress=request.progress)
    compiled = f"{counted(found.compiled, 'kernel')} compiled, {found.loaded} there already, in {found.directory}"
    return ComposedResult(lambda: asdict(found), lambda: [Verbatim(compiled)])
