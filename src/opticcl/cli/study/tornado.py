"""opticcl study tornado"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli.study._space import AnswerRequest, answered
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class TornadoRequest(AnswerRequest):
    """What `opticcl study tornado` is asked: values of its options."""

    OPTIONS = "file folder where out format json"


def run(request: TornadoRequest) -> Result:
    """Rank the assumptions by how much they change the answer."""
    return answered(request)
