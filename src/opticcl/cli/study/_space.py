"""What the verbs of a design space share: its file, its folder, and answers from its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.cli._output import PICTURE, RECORD, TABLE
from opticcl.cli._request import VerbRequest, argument, option, out_option
from opticcl.cli._settings import parse_settings
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from opticcl.studies.space.design import DesignSpace

__all__ = ["AnswerRequest", "SpaceRequest", "answered"]


@dataclass(frozen=True, kw_only=True)
class SpaceRequest(VerbRequest):
    """Values of the options of a verb of a design space."""

    file: Path = argument(metavar="FILE.toml", help="The design space.")
    folder: Path | None = option(
        "--folder",
        metavar="FOLDER",
        default=None,
        help="Folder of ledger, results and answers; default: FILE.study here.",
    )

    def folder_of(self, space: DesignSpace) -> Path:
        """Where its ledger, results and answers are."""
        return self.folder if self.folder is not None else Path(f"{space.name}.study")


@dataclass(frozen=True, kw_only=True)
class AnswerRequest(SpaceRequest):
    """Values of the options of a verb that answers a question from the results of a design space."""

    OPTIONS = "file folder where * out format json"

    where: tuple[str, ...] = option(
        "--where", metavar="AXIS=VALUE", default=(), help="One value of an axis: nodes=64. Repeat for several."
    )
    x: str | None = option("--x", metavar="AXIS", default=None, help="Columns of the map; default: size.")
    y: str | None = option("--y", metavar="AXIS", default=None, help="Rows of the map; default: nodes.")
    over: str | None = option("--over", metavar="AXIS", default=None, help="The axis; default: size.")
    between: tuple[str, ...] = option(
        "--between", metavar="FABRIC", default=(), help="Compare only these fabrics. Repeat for several."
    )
    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)


def answered(request: AnswerRequest) -> Result:
    """The answer that the verb is named after, from the results of a design space.

    Args: request: of the call.
    """
    from opticcl.report.design_answers import answer_parts, table_rows, title_of
    from opticcl.report.design_pictures import answer_figure
    from opticcl.studies.space.design import read_design, selection
    from opticcl.studies.space.question import answer_of
    from opticcl.studies.space.runner import read_rows

    name = request.verb.split()[-1]
    space = read_design(request.file)
    chosen = selection(parse_settings(request.where, "nodes=64", "--where"), space.axes)
    listed = space.answers.get(name, {})
    options: dict[str, Any] = dict(listed)
    options |= {key: getattr(request, key) for key in ("x", "y", "over", "between") if key in request.given}
    options["where"] = {**listed.get("where", {}), **chosen}
    answer = answer_of(space, read_rows(request.folder_of(space)), name, options)
    return ComposedResult(
        answer.record,
        lambda: answer_parts(answer),
        rows=lambda: table_rows(answer),
        draw=lambda: answer_figure(answer),
        label=title_of(answer),
    )
