"""opticcl list"""

from __future__ import annotations

from typing import Annotated

from opticcl.cli._options import JsonOption
from opticcl.cli._output import print_json, print_table
from opticcl.cli._parameters import argument


def run(
    name: Annotated[
        str | None,
        argument(help="A fabric, algorithm or model: its parameters; formats: file formats; default: all names."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Fabrics, algorithms, collectives, models, presets, devices."""
    from opticcl.report.catalogue import catalogue, catalogue_tables

    found = catalogue(name)
    if json:
        print_json(found)
    else:
        print_table(*catalogue_tables(found))
