"""opticcl list"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli._request import VerbRequest, argument
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class ListRequest(VerbRequest):
    """What `opticcl list` is asked: values of its options."""

    name: str | None = argument(
        default=None,
        help="A fabric, algorithm, model or engine: its parameters; fabrics, formats, ...: one kind; default: all.",
    )


def run(request: ListRequest) -> Result:
    """List fabrics, algorithms, collectives, models, engines, assumptions, devices and formats, or the parameters of one."""
    from opticcl.report.catalogue import catalogue

    return catalogue(request.name)
