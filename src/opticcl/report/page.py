"""A comparison as one HTML page that needs nothing else: no script, no other file, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import opticcl
from opticcl.files import write_whole
from opticcl.report import _sections
from opticcl.report.fastest import crossings

if TYPE_CHECKING:
    from opticcl.comparison import Comparison

__all__ = ["page_text", "write_page"]


def _silent(text: str) -> None:
    """Progress that nobody asked for."""


def write_page(
    path: str | Path,
    comparison: Comparison,
    title: str,
    workload_notes: Iterable[str] = (),
    progress: Callable[[str], None] = _silent,
) -> None:
    """Write a comparison as one page: tables, pictures, assumptions and the program that makes it again.

    Args:
        path: of the file; a file of that name is replaced.
        title: of the page.
        workload_notes: remarks on where the messages come from, and on what was left out.
        progress: told what is being done.
    Raises: OutputError: the file cannot be written; what stood there stays as it was.
    """
    with write_whole(Path(path)) as file:  # opened first, so that a bad path is told before the work is done
        file.write(page_text(comparison, title, workload_notes, progress).encode())


def page_text(
    comparison: Comparison,
    title: str,
    workload_notes: Iterable[str] = (),
    progress: Callable[[str], None] = _silent,
) -> str:
    """The page that `write_page` writes: the same text for the same comparison."""
    progress("find where the fastest plan changes")
    changes = crossings(comparison)
    progress("draw times")
    sections = [
        ("result", "Who is fastest", _sections.result(comparison)),
        ("time", "Where the time goes", _sections.breakdown(comparison)),
        ("size", "What the message size changes", _sections.message_sizes(comparison, changes)),
        ("light", "How the light runs", _sections.light(comparison, progress)),
        ("assumptions", "What these times rest on", _sections.assumptions(comparison)),
        ("again", "How to get this again", _sections.again(comparison)),
    ]
    links = "\n".join(f'<a href="#{key}">{heading}</a>' for key, heading, _ in sections)
    body = "".join(f'<section id="{key}">\n<h2>{heading}</h2>\n{text}</section>\n' for key, heading, text in sections)
    notes = "".join(f"<li>{escape(note)}</li>\n" for note in workload_notes)
    return _FRAME.format(
        title=escape(title),
        css=files("opticcl.report").joinpath("page.css").read_text("utf-8"),
        lead=escape(_sections.lead(comparison)),
        notes=f"<ul>\n{notes}</ul>" if notes else "",
        links=links,
        body=body,
        version=escape(opticcl.__version__),
    )


_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>
{css}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="lead">{lead}</p>
{notes}
<nav aria-label="Contents">
{links}
</nav>
</header>
<main>
{body}</main>
<footer>OptiCCL {version}</footer>
</body>
</html>
"""
