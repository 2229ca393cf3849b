"""What a process of the explorer does: a verb with --json, exactly as the command line runs it, or the light of a plan."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache
from typing import TYPE_CHECKING

from opticcl.cli import parsed, run_command
from opticcl.cli._request import PlanRequest
from opticcl.errors import OpticclError
from opticcl.explorer.pool import Answer
from opticcl.explorer.questions import MOST_NODES, Question
from opticcl.files import temporary_folder

if TYPE_CHECKING:
    from opticcl.ir import Verdict
    from opticcl.plans.plan import Plan

__all__ = ["answer", "prepare"]


def answer(question: Question, progress: Callable[[str], None]) -> Answer:
    """What `opticcl` prints for the words of a question.

    Args:
        question: whose parameters are checked.
        progress: receives the lines that the verb reports on standard error.
    """
    try:
        _check_sizes(question)
        if question.light is not None:
            from opticcl.explorer.light import light_record
            from opticcl.report.kit.records import json_text

            progress("compile and verify the plan")
            plan, verdict = _judged(question.words, question.since)
            return Answer(0, json_text(light_record(plan, verdict, dict(question.light))))
    except OpticclError as error:
        return Answer(error.exit_code or 2, "", f"opticcl: {error}")
    return _traced(question, progress) if question.traced else _run(question.words, progress)


@lru_cache(maxsize=4)
def _judged(words: tuple[str, ...], since: int) -> tuple[Plan, Verdict]:
    """The plan of a command and the verdict on it, kept for the next round.

    Args:
        words: of the command after `opticcl`.
        since: when its file was changed.
    """
    request = parsed(words)
    assert isinstance(request, PlanRequest)
    plan = request.plan_to_judge()
    return plan, plan.verify()


def prepare() -> None:
    """Load what most questions need, with a small one, so that the first of a user does not wait for it."""
    _run(("compare", "--nodes=8", "--size=1MB", "--jobs=1", "--json"), lambda line: None)


def _traced(question: Question, progress: Callable[[str], None]) -> Answer:
    """The record of a verb and the timeline that it writes with --trace."""
    with temporary_folder() as folder:
        path = folder / "trace.json"
        found = _run((*question.words, f"--trace={path}"), progress)
        if found.code not in (0, 1):
            return found
        return found._replace(json=f'{{"record": {found.json}, "trace": {path.read_text("utf-8")}}}')


def _run(words: tuple[str, ...], progress: Callable[[str], None]) -> Answer:
    printed, errors = io.StringIO(), _Lines(progress)
    sys.argv = ["opticcl", *words]
    with redirect_stdout(printed), redirect_stderr(errors):
        code = run_command(suggests=False)
    text = printed.getvalue()
    return Answer(code, text, errors.last) if text and code in (0, 1) else Answer(2, "", errors.last)


class _Lines(io.TextIOBase):
    """Standard error of a verb: each line is reported, the last is kept."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self.last = ""

    def write(self, text: str) -> int:
        """Report a line."""
        line = text.strip()
        if line:
            self.last = line
            self._progress(line)
        return len(text)


def _check_sizes(question: Question) -> None:
    """Refuse machines that are larger than the explorer compiles for.

    Raises: ParameterError: more than `MOST_NODES` nodes.
    """
    from opticcl.errors import FabricError, ParameterError
    from opticcl.fabrics import as_fabric

    for text in question.fabrics:
        try:
            nodes = as_fabric(text, question.nodes or None, None).num_machine_nodes
        except FabricError:
            continue  # no shape of that size: the verb reports it
        if nodes > MOST_NODES:
            raise ParameterError(f"fabric: {text} has {nodes:,} nodes; the explorer takes up to {MOST_NODES:,}")
