"""HTML pages and their pieces: every text that comes in is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from rich.text import Text

from opticcl.assumptions import Assumptions, meaning_of, value_text
from opticcl.files import program_version
from opticcl.report.kit.colours import PART_COLOURS, THEME
from opticcl.report.kit.columns import Column

__all__ = [
    "Markup",
    "Section",
    "assumptions",
    "call",
    "colour_key",
    "definitions",
    "figure",
    "folded",
    "page",
    "share_bar",
    "table",
]


_NUMBER = ' class="number"'
_OF_STYLE = {"green": "yes", "bold red": "no", "yellow": "quiet"}  # style in a terminal -> class on a page
_MOST_UNBROKEN = 20  # letters of a text that has no room of its own


_MOST_NOTES = 3
"""Of a page that are not folded [count]."""


class Section(NamedTuple):
    """A part of a page.

    Args:
        key: name of its anchor.
        heading: above it.
        content: HTML.
        folded: whether only its heading is shown until a reader opens it.
    """

    key: str
    heading: str
    content: str
    folded: bool = False

    def html(self) -> str:
        """The section, with the anchor inside what is folded, so that a link to it opens it."""
        heading = f"<h2>{escape(self.heading)}</h2>"
        if self.folded:
            shown = f'<details><summary>{heading}</summary><div id="{self.key}">\n{self.content}</div></details>'
            return f"<section>{shown}</section>\n"
        return f'<section id="{self.key}">\n{heading}\n{self.content}</section>\n'


class Markup(str):
    """A cell that is HTML already."""

    __slots__ = ()


_PAGE = """<!DOCTYPE html>
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
<nav aria-label="Contents">
{links}
</nav>
</header>
<main>
{body}</main>
<footer>OptiCCL {version}</footer>
{script}</body>
</html>
"""


def page(title: str, lead: str, notes: Sequence[str], sections: Sequence[Section], *, script: str = "") -> str:
    """A self-contained page: the answer, its first section, what a reader must know beside it, then the other sections.

    Args:
        title: heading.
        lead: first paragraph.
        notes: what a reader must know, what decides most first; the first few are shown, the others folded.
        sections: at least one.
        script: name of a file beside `page.css` that is written into the page; "": none.
    """
    resources = files("opticcl.report")
    known = [Section("notes", "Read with care", _notes(notes))] if notes else []
    ordered = [*sections[:1], *known, *sections[1:]]
    return _PAGE.format(
        title=escape(title),
        css=resources.joinpath("page.css").read_text("utf-8"),
        lead=escape(lead),
        links="\n".join(f'<a href="#{one.key}">{escape(one.heading)}</a>' for one in ordered),
        body="".join(one.html() for one in ordered),
        version=escape(program_version()),
        script=f"<script>\n{resources.joinpath(script).read_text('utf-8')}</script>\n" if script else "",
    )


def _notes(notes: Sequence[str]) -> str:
    """The first notes as a list, and the others folded."""
    shown, others = (
        [f"<li>{escape(note)}</li>\n" for note in part] for part in (notes[:_MOST_NOTES], notes[_MOST_NOTES:])
    )
    more = folded(f"{len(others):,} more", f"<ul>\n{''.join(others)}</ul>") if others else ""
    return f"<ul>\n{''.join(shown)}</ul>\n{more}"


def table(
    columns: Sequence[Column],
    caption: str = "",
    *,
    kind: str = "",
    links: Mapping[str, str] | None = None,
    tips: str = "",
) -> str:
    """A table of the columns that a terminal shows; the cells of the first one name the rows.

    Args:
        columns: from left to right.
        caption: text above it, which does not move while a wide table is scrolled.
        kind: class of the table: the script of a page sorts and filters those of class plans.
        links: address of the link on the name of a row, by that name.
        tips: heading of a column whose short cells are shown, the others as tooltips.
    """
    opened = f'<table class="{kind}">' if kind else "<table>"
    head = "".join(
        f'<th scope="col"{_NUMBER * (one.justify == "right")}>{escape(one.header[:1].upper() + one.header[1:])}</th>'
        for one in columns
    )
    names = [
        f'<th scope="row">{_linked(str(name), (links or {}).get(str(name), ""))}</th>' for name in columns[0].cells
    ]
    rest = [names, *(_cells(one, tips=one.header == tips) for one in columns[1:])]
    body = "".join(f"<tr>{''.join(cells)}</tr>\n" for cells in zip(*rest, strict=True))
    about = f'<p class="about">{escape(caption)}</p>\n' if caption else ""
    whole = f"{opened}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"
    return f'{about}<div class="wide" tabindex="0">{whole}</div>\n'  # arrow keys scroll what has the focus


def _linked(written: str, address: str) -> str:
    """Text that breaks, as a link if there is an address."""
    return f'<a href="{address}">{_breaking(written)}</a>' if address else _breaking(written)


def _cells(column: Column, *, tips: bool) -> list[str]:
    """Cells of a column as HTML: numbers, verdicts, markup, or texts that break between arguments."""
    cells = []
    for cell, short in zip(column.cells, column.short if tips else column.cells, strict=True):
        text = str(short)
        kind = _OF_STYLE.get(str(cell.style), "") if isinstance(cell, Text) else ""
        if isinstance(cell, Markup):
            cells.append(f"<td>{cell}</td>")
        elif column.justify == "right":
            cells.append(f"<td{_NUMBER}>{escape(text)}</td>")
        else:
            tooltip = f' title="{escape(str(cell))}"' if str(cell) != text else ""
            kind = kind or "words" * (not tooltip and " " in text and len(text) > _MOST_UNBROKEN)
            named = f' class="{kind}"' if kind else ""
            cells.append(f"<td{named}{tooltip}>{_breaking(text)}</td>")
    return cells


def definitions(items: Iterable[tuple[str, str]]) -> str:
    """A list of terms, each with its explanation in HTML."""
    return "<dl>" + "".join(f"<dt>{escape(term)}</dt><dd>{about}</dd>\n" for term, about in items) + "</dl>\n"


def assumptions(assumed: Assumptions) -> list[tuple[str, str]]:
    """Each value of a set of assumptions with its meaning, for `definitions`."""
    values = [(name, value) for name, value in assumed.record().items() if name != "name"]
    return [(f"{name} = {value_text(name, value)}", escape(meaning_of(name, value))) for name, value in values]


def folded(summary: str, content: str) -> str:
    """HTML that is shown on request, with one line about it."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>\n"


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


def share_bar(shares: dict[str, float]) -> Markup:
    """A small bar divided by shares that add up to 1, with a text for readers who cannot see it."""
    parts = {part: share for part, share in shares.items() if share}
    label = ", ".join(f"{part} {share:.0%}" for part, share in parts.items())
    pieces = "".join(
        f'<i style="width:{share:.2%};background:{PART_COLOURS[part]}"></i>' for part, share in parts.items()
    )
    return Markup(f'<span class="bar" role="img" aria-label="{label}" title="{label}">{pieces}</span>')


def colour_key() -> str:
    """Key of the colours of `share_bar`."""
    items = "".join(f'<li><i style="background:{colour}"></i>{part}</li>' for part, colour in PART_COLOURS.items())
    return f'<ul class="key" aria-label="Colours of the parts of a time">{items}</ul>\n'


def figure(svg: str, caption: str) -> str:
    """A picture with its caption, in the theme colours of the page and as wide as the page.

    Args:
        svg: the picture.
        caption: below it.
    """
    for colour, name in THEME.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    return f'<figure tabindex="0">\n{svg}<figcaption>{escape(caption)}</figcaption>\n</figure>\n'
