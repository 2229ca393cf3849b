"""opticcl study breakeven"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli.study._space import AnswerRequest, answered
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class BreakevenRequest(AnswerRequest):
    """What `opticcl study breakeven` is asked: values of its options."""

    OPTIONS = "file folder where over between out format json"


def run(request: BreakevenRequest) -> Result:
    """Find where on an axis one fabric overtakes another."""
    return answered(request)
