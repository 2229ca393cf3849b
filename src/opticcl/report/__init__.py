"""Reports: tables for the terminal, pictures as SVG, self-contained HTML pages.

    comparison            table of a comparison
    comparison_pictures   parts of the time, time against message size, where the fastest plan changes
    comparison_page       all of that as one page
    light                 circuits of a small plan, step by step

No result is computed here; every number comes from a comparison or a plan. matplotlib is imported where a picture is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = [
    "Crossing",
    "breakdown_figure",
    "breakdown_label",
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
    "breakdown_figure": "comparison_pictures",
    "breakdown_label": "comparison_pictures",
    "breakdown_picture": "comparison_pictures",
    "comparison_table": "comparison",
    "crossings": "fastest",
    "light_caption": "light",
    "light_picture": "light",
    "size_picture": "comparison_pictures",
    "small_instance": "light",
    "timeline_table": "comparison",
    "write_page": "comparison_page",
}

if TYPE_CHECKING:
    from opticcl.report.comparison import comparison_table, timeline_table
    from opticcl.report.comparison_page import write_page
    from opticcl.report.comparison_pictures import (
        breakdown_figure,
        breakdown_label,
        breakdown_picture,
        size_picture,
    )
    from opticcl.report.fastest import Crossing, crossings
    from opticcl.report.light import light_caption, light_picture, small_instance


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'opticcl.report' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"opticcl.report.{_HOME[name]}"), name)
