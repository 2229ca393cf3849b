"""Figures as SVG text that can be embedded in a page beside others; the same figure gives the same text.

matplotlib writes ids that clash between pictures, a document type, a style for all elements of the page, and metadata with
addresses. They are removed here, and ids begin with the name of the picture. Text stays text; parts may have titles.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.report.kit.colours import FAINT, INK, MUTED, PAPER

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

__all__ = ["drawing_style", "save_picture", "titled", "to_svg"]


_TITLE = "title: "


def titled(artist: Artist, title: str) -> None:
    """Give a part of a picture a text that a pointer shows; "": none. A number that it has, such as line-3, stays."""
    if title:
        artist.set_gid(f"{artist.get_gid() or ''}{_TITLE}{title}")


@contextmanager
def drawing_style() -> Iterator[None]:
    """Settings of the library in place of the user's, only while a figure is drawn and saved."""
    import matplotlib.style

    ours: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "opticcl",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 8.0,
        "text.color": INK,
        "text.parse_math": False,
        "figure.facecolor": PAPER,
        "savefig.facecolor": PAPER,
        "axes.facecolor": "none",
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.color": MUTED,
        "ytick.labelcolor": INK,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
    }
    with matplotlib.style.context(["default", ours]):
        yield


def to_svg(draw: Callable[[], Figure], name: str, label: str) -> str:
    """A figure as an SVG element.

    Args:
        draw: returns the figure.
        name: prefix of all ids; different for each picture of a page.
        label: text for readers who cannot see the picture.
    """
    with drawing_style():
        stream = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        draw().savefig(stream, format="svg", metadata=nothing)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", text, flags=re.DOTALL)
    text = _own_ids(text, name)
    size = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', text)
    assert size is not None
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{size[1]}pt" '
        f'height="{size[2]}pt" viewBox="0 0 {size[1]} {size[2]}" role="img" aria-labelledby="{name}-title" '
        f'style="stroke-linejoin: round; stroke-linecap: butt">\n<title id="{name}-title">{html.escape(label)}</title>'
    )
    return re.sub(r"<svg.*?>", lambda _: head, text, count=1, flags=re.DOTALL).strip() + "\n"


def save_picture(path: Path, draw: Callable[[], Figure], label: str) -> None:
    """Write a picture as .svg or .png, whole or not at all.

    Args:
        path: of the file; its suffix selects the kind.
        draw: returns the figure.
        label: text for readers who cannot see the picture.
    Raises: OutputError: another suffix, or not writable.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise OutputError(f"cannot write {path}: pictures are .svg or .png")
    if kind == ".svg":
        data = to_svg(draw, re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "picture", label).encode()
    else:
        with drawing_style():
            stream = io.BytesIO()
            draw().savefig(stream, format="png", dpi=150)
        data = stream.getvalue()
    with write_whole(path) as file:
        file.write(data)


def _own_ids(text: str, name: str) -> str:
    """Ids of titles become titles, line-3 and end-3 a class and a number; the others get the name, or go without references."""
    text = re.sub(rf'<g id="([^"]*?){_TITLE}([^"]*)">', r'<g id="\1"><title>\2</title>', text)
    wanted = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))

    def keep(match: re.Match[str]) -> str:
        if numbered := re.fullmatch(r"(line|end)-([0-9]+)", match[1]):
            return f' class="{numbered[1]}" data-line="{numbered[2]}"'
        return f' id="{name}-{match[1]}"' if match[1] in wanted else ""

    text = re.sub(r'\sid="([^"]+)"', keep, text)
    text = re.sub(r'<g id="">', "<g>", text)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
