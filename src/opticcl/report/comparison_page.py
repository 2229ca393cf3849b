"""A comparison as one self-contained HTML page: no other file, no network; it reads without its script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.files import write_whole
from opticcl.ir import ProgressCallback, no_progress
from opticcl.report import comparison_sections as _sections
from opticcl.report.fastest import crossings
from opticcl.report.kit.html import page

if TYPE_CHECKING:
    from opticcl.plans.comparison import Comparison

__all__ = ["page_text", "write_page"]


def write_page(path: str | Path, comparison: Comparison, title: str, progress: ProgressCallback = no_progress) -> None:
    """Write a comparison as one page: tables, pictures, assumptions and the program that computes it again.

    Args:
        path: of the file; an existing file is replaced.
        comparison: to show.
        title: of the page.
        progress: called with a line of text before each part of the work.
    Raises: OutputError: the file cannot be written; an existing file is unchanged.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path fails before the work is done
        file.write(page_text(comparison, title, progress).encode())


def page_text(comparison: Comparison, title: str, progress: ProgressCallback = no_progress) -> str:
    """The page that `write_page` writes: the same text for the same comparison.

    Args:
        comparison: to show.
        title: of the page.
        progress: called with a line of text before each part of the work.
    """
    progress("find where the fastest plan changes")
    changes = crossings(comparison)
    progress("draw times")
    sections = [
        ("result", "Which plan is fastest", _sections.result(comparison)),
        ("time", "Where the time goes", _sections.breakdown(comparison)),
        ("size", "Time against message size", _sections.message_sizes(comparison, changes)),
        ("compared", "What was compared", _sections.compared(comparison)),
        ("light", "The machines, and their circuits", _sections.light(comparison, progress)),
        ("assumptions", "Assumptions behind these times", _sections.assumptions(comparison)),
        ("again", "How to reproduce this page", _sections.again(comparison)),
    ]
    notes = (*comparison.notes, *map(str, comparison.excluded))
    return page(title, _sections.lead(comparison), notes, sections, script="page.js")
