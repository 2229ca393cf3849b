"""opticcl study pareto"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli.study._space import AnswerRequest, answered
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class ParetoRequest(AnswerRequest):
    """What `opticcl study pareto` is asked: values of its options."""

    OPTIONS = "file folder where out format json"


def run(request: ParetoRequest) -> Result:
    """Find the fabrics that no other beats in time, price and power at once."""
    return answered(request)
