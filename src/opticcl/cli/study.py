"""opticcl study"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import JsonOption
from opticcl.cli._output import (
    PICTURE,
    RECORD,
    TABLE,
    Outputs,
    ProgressLine,
    out_option,
    print_json,
    print_table,
)


def _names() -> list[str]:
    """Names of the studies, from the text of their files: importing these would slow `--help` down."""
    modules = (file for file in files("opticcl").joinpath("studies").iterdir() if file.name.endswith(".py"))
    studies = (file.name for file in modules if "@register_study(" in file.read_text("utf-8"))
    return sorted(name.removesuffix(".py") for name in studies)


NAMES = ", ".join(_names())


def run(
    name: Annotated[
        str | None, typer.Argument(help=f"A study, name:key=value,...: {NAMES}; default: list them.")
    ] = None,
    out: Annotated[list[Path], out_option(PICTURE, TABLE, RECORD)] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Studies: one question each, such as overlap, waveguides, run time, and systems beyond their papers."""
    from opticcl.studies import STUDIES, run_study

    if name is None:
        outputs = Outputs(out, RECORD)  # a list of names is neither drawn nor a table
        questions = {key: " ".join((STUDIES.get(key).__doc__ or "").split("\n")[0].split()) for key in STUDIES.names()}
        outputs.write_record(lambda: questions)
        if json:
            print_json(questions)
        else:
            print("\n".join(f"{key:<24}{question}" for key, question in questions.items()))
            outputs.print_lines()
        return
    from opticcl.report.studies import study_figure, study_table

    outputs = Outputs(out, PICTURE, TABLE, RECORD)
    with ProgressLine() as progress:
        found = run_study(name, progress)
        progress("write the files")
        outputs.write_pictures(lambda: study_figure(found), f"{found.title} ({found.source})")
        outputs.write_record(found.record, lambda: found.record()["rows"])
    if json:
        print_json(found.record())
    else:
        print_table(f"{found.title} ({found.source})", study_table(found), *found.notes)
        outputs.print_lines()
