"""What came out, for people to read: tables for the terminal, pictures as SVG, one page with everything.

    table      comparisons and timelines in the terminal, as wide as it is
    pictures   where the time goes, time against message size, and where the fastest plan changes
    light      the light of a small plan, step by step, that a person can follow
    page       all of that in one HTML file that needs nothing else

Nothing here computes a result; every number comes from a comparison or a plan. matplotlib is imported where a picture
is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Crossing",
    "breakdown_picture",
    "comparison_table",
    "crossings",
    "light_caption",
    "light_picture",
    "size_picture",
    "small_instance",
    "timeline_table",
    "write_page",
]

_HOME = {
    "Crossing": "fastest",
    "breakdown_picture": "pictures",
    "comparison_table": "table",
    "crossings": "fastest",
    "light_caption": "light",
    "light_picture": "light",
    "size_picture": "pictures",
    "small_instance": "instances",
    "timeline_table": "table",
    "write_page": "page",
}

if TYPE_CHECKING:
    from opticcl.report.fastest import Crossing, crossings
    from opticcl.report.instances import small_instance
    from opticcl.report.light import light_caption, light_picture
    from opticcl.report.page import write_page
    from opticcl.report.pictures import breakdown_picture, size_picture
    from opticcl.report.table import comparison_table, timeline_table


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'opticcl.report' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"opticcl.report.{_HOME[name]}"), name)
