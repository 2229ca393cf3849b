"""opticcl study lines"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli._request import shared_option
from opticcl.cli.study._space import AnswerRequest, answered
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class LinesRequest(AnswerRequest):
    """What `opticcl study lines` is asked: values of its options."""

    OPTIONS = "file folder where x y between out format json"

    x: str | None = shared_option(AnswerRequest, "x", default=None, help="The horizontal axis; default: size.")
    y: str | None = shared_option(
        AnswerRequest, "y", default=None, help="What was measured, such as total_s, which is the default."
    )


def run(request: LinesRequest) -> Result:
    """Draw a measured column along one axis, a line for each fabric."""
    return answered(request)
