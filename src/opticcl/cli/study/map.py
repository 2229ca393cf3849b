"""opticcl study map"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli.study._space import AnswerRequest, answered
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class MapRequest(AnswerRequest):
    """What `opticcl study map` is asked: values of its options."""

    OPTIONS = "file folder where x y out format json"


def run(request: MapRequest) -> Result:
    """Map the fastest fabric over two axes, and by how much it leads."""
    return answered(request)
