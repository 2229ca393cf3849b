"""Pieces of an HTML page: everything that comes in as text is escaped here or before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from opticcl.report.colours import PART_COLOURS, THEME

__all__ = ["call", "colour_key", "definitions", "figure", "number", "row_name", "share_bar", "table", "text", "verdict"]


_NUMBER = ' class="number"'


def row_name(name: str) -> str:
    """The cell that names a row; it stays in sight where the table is wider than the page."""
    return f'<th scope="row">{_breaking(name)}</th>'


def text(value: str, whole: str = "") -> str:
    """A cell of text that breaks between arguments. Args: whole: of which the text is short, told by the pointer."""
    told = f' title="{escape(whole)}"' if whole not in ("", value) else ""
    return f"<td{told}>{_breaking(value)}</td>"


def verdict(ok: bool) -> str:
    """A cell that says whether a plan is right."""
    return '<td class="yes">yes</td>' if ok else '<td class="no">NO</td>'


def number(value: str) -> str:
    """A cell of a number."""
    return f"<td{_NUMBER}>{escape(value)}</td>"


def table(head: Sequence[str], rows: Iterable[str], caption: str = "") -> str:
    """A table.

    Args:
        head: headings; one that begins with # stands above numbers.
        rows: cells of each row, as HTML.
        caption: text above it, which stays where it is while a wide table is scrolled.
    """
    cells = "".join(f'<th scope="col"{_NUMBER * h.startswith("#")}>{escape(h.lstrip("#"))}</th>' for h in head)
    body = "".join(f"<tr>{row}</tr>\n" for row in rows)
    told = f'<p class="about">{escape(caption)}</p>\n' if caption else ""
    return f'{told}<div class="wide"><table><thead><tr>{cells}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def definitions(items: Iterable[tuple[str, str]]) -> str:
    """A list of terms, each with its explanation in HTML."""
    return "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{about}</dd>\n" for term, about in items) + "</dl>\n"


def call(written: str) -> str:
    """The text "name:key=value,..." as code that breaks between its arguments."""
    return (
        "<code>"
        + "<wbr>".join(f"<span>{escape(part)}</span>" for part in re.findall("[^:,]+[:,]?", written))
        + "</code>"
    )


def _breaking(written: str) -> str:
    """Text that breaks at its spaces, or, like "name:key=value,...", between its arguments."""
    pieces = [written] if " " in written else re.findall("[^:,]*[:,]|[^:,]+", written)
    return "<wbr>".join(map(escape, pieces))


def share_bar(shares: dict[str, float]) -> str:
    """A small bar cut by shares that add up to 1; in words for those who cannot see it."""
    parts = {part: share for part, share in shares.items() if share}
    told = ", ".join(f"{part} {share:.0%}" for part, share in parts.items())
    pieces = "".join(
        f'<i style="width:{share:.2%};background:{PART_COLOURS[part]}"></i>' for part, share in parts.items()
    )
    return f'<span class="bar" role="img" aria-label="{told}" title="{told}">{pieces}</span>'


def colour_key() -> str:
    """What the colours of `share_bar` mean."""
    items = "".join(f'<li><i style="background:{colour}"></i>{part}</li>' for part, colour in PART_COLOURS.items())
    return f'<ul class="key" aria-label="Colours of the parts of a time">{items}</ul>\n'


def figure(svg: str, caption: str) -> str:
    """A picture with its caption, in the page's own ink and paper, as wide as the page."""
    for colour, name in THEME.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    return f"<figure>\n{svg}<figcaption>{escape(caption)}</figcaption>\n</figure>\n"
