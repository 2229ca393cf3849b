"""Registered studies as verbs: `opticcl study transfers:nodes=64`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opticcl.cli._command import Verb
from opticcl.cli._output import PICTURE, RECORD, TABLE
from opticcl.cli._request import VerbRequest, out_option
from opticcl.registry import argument_texts, canonical, user_parameters
from opticcl.report.kit.result import ComposedResult, Result
from opticcl.studies import STUDIES, run_study

__all__ = ["named_study"]


@dataclass(frozen=True, kw_only=True)
class NamedStudyRequest(VerbRequest):
    """What a registered study is asked: values of its options."""

    OPTIONS = "* format json"

    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)


def named_study(text: str) -> Verb | None:
    """The verb that runs a registered study; None: there is none of this name.

    Args: text: "name:key=value,...".
    """
    name = canonical(text.partition(":")[0])
    if name not in STUDIES.names():
        return None

    def run(request: NamedStudyRequest) -> Result:
        from opticcl.report.studies import study_figure, study_table

        study = run_study(text, request.progress)
        title = f"{study.title} ({study.source})"
        shown = [title, study_table(study), *study.notes]
        return ComposedResult(study.record, lambda: shown, draw=lambda: study_figure(study), label=title)

    run.__doc__ = _help(name, STUDIES.get(name))
    return Verb(f"study {name}", run)


def _default(parameter: inspect.Parameter) -> str:
    """The default of a parameter; dots where it has none."""
    if parameter.default is parameter.empty:
        return "..."
    return "" if parameter.default is None else str(parameter.default)


def _help(name: str, study: Callable[..., Any]) -> str:
    """The question of a study, and its parameters."""
    question, _, rest = (inspect.getdoc(study) or "").partition("\nArgs:")[0].partition("\n\n")
    texts = argument_texts(study)
    parameters = [f"  {one.name}={_default(one)}  {texts[one.name]}" for one in user_parameters(study, positional=1)]
    written = f"Its parameters, written {name}:key=value,..., with their defaults:"
    return "\n\n".join([question, rest.strip(), "\n".join(["\b", written, *parameters]) if parameters else ""]).strip()
