"""opticcl list"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.cli._output import print_json, print_table
from opticcl.cli._request import VerbRequest, argument


@dataclass(frozen=True, kw_only=True)
class ListRequest(VerbRequest):
    """What `opticcl list` is asked: values of its options."""

    name: str | None = argument(
        default=None, help="A fabric, algorithm or model: its parameters; formats: file formats; default: all names."
    )


def run(request: ListRequest) -> int:
    """Fabrics, algorithms, collectives, models, presets, devices."""
    from opticcl.report.catalogue import catalogue, catalogue_tables

    found = catalogue(request.name)
    if request.json:
        print_json(found)
    else:
        print_table(*catalogue_tables(found))
    return 0
