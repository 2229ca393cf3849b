"""opticcl study"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import JsonOption
from opticcl.cli._output import PICTURES, Progress, check_outputs, print_json, print_table

_FILES = (file.name.removesuffix(".py") for file in files("opticcl").joinpath("evaluate", "studies").iterdir())
NAMES = ", ".join(sorted(name for name in _FILES if not name.startswith("_")))


def run(
    name: Annotated[
        str | None, typer.Argument(help=f"name:key=value,... of {NAMES}. All are told in a line each if left out.")
    ] = None,
    picture: Annotated[Path | None, typer.Option("--output", "-o", help="Draw it: .svg or .png.")] = None,
    json: JsonOption = False,
) -> None:
    """A question of the LUMORPH paper, answered: overlaps, waveguides, reconfigurations, run times, co-scheduling."""
    from opticcl.evaluate.studies import STUDIES, run_study

    if name is None:
        told = {key: " ".join((STUDIES.get(key).__doc__ or "").split("\n")[0].split()) for key in STUDIES.names()}
        if json:
            print_json(told)
        else:
            print("\n".join(f"{key:<24}{question}" for key, question in told.items()))
        return
    check_outputs({"--output": (picture, PICTURES)})
    with Progress() as progress:
        found = run_study(name, progress)
        if picture:
            from opticcl.report.studies import study_figure
            from opticcl.report.svg import save_picture

            progress("draw")
            save_picture(picture, lambda: study_figure(found), f"{found.title} ({found.source})")
    if json:
        print_json(
            {
                "study": found.name,
                "title": found.title,
                "source": found.source,
                "rows": [dict(row) for row in found.rows],
                "notes": list(found.notes),
            }
        )
        return
    from opticcl.report.studies import study_table

    print_table(f"{found.title} ({found.source})", study_table(found), *found.notes)
    if picture:
        print(f"picture: {picture}")
