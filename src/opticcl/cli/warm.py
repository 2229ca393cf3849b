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

    warmth = warm(engines=request.everything, progress=request.progress)
    compiled = f"{counted(warmth.compiled, 'kernel')} compiled, {warmth.loaded} there already, in {warmth.directory}"
    return ComposedResult(lambda: asdict(warmth), lambda: [Verbatim(compiled)])
