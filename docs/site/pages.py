"""Pages of the site beside docs/: README, CONTRIBUTING, changelog, the reference from the code, what `make pages` has computed.

MkDocs calls `on_config`, `on_files` and `on_page_markdown`; `make docs` builds the site.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reference  # beside this file
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
COPIED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages outside docs/ -> their names on the site."""

COMPUTED = sorted((ROOT / "out/pages").glob("*.md"))
"""What `make pages` has written; none where it has not run."""


def on_config(config: Any) -> Any:
    """Add the computed pages to the navigation.

    Args: config: of MkDocs.
    """
    if COMPUTED:
        config.nav.append({"Computed": [f"computed/{path.name}" for path in COMPUTED]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages.

    Args:
        files: of docs/.
        config: of MkDocs.
    """
    pages = {name: from_root((ROOT / source).read_text("utf-8")) for source, name in COPIED.items()}
    pages |= {f"reference/{name}.md": text for name, text in reference.pages().items()}
    pages |= {f"computed/{path.name}": path.read_text("utf-8") for path in COMPUTED}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of docs/ to files outside lead to their pages.

    Args:
        markdown: text of the page.
        page: of MkDocs.
    """
    up = "../" * page.file.src_uri.count("/")
    for source, name in COPIED.items():
        markdown = markdown.replace(f"]({up}../{source}", f"]({up}{name}")
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """The dialog of the search has a name, and tables, which may scroll, take the focus; the theme gives neither.

    Args: output: HTML of the page.
    """
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"').replace(
        "<table>", '<table tabindex="0">'
    )


def from_root(text: str) -> str:
    """A page of the top folder with its links as they are on the site; folders and files that are no pages lose theirs."""
    for source, name in COPIED.items():
        text = text.replace(f"]({source}", f"]({name}")
    text = text.replace("](docs/", "](")
    for other in ("LICENSE", "examples/", "benchmarks/", "decisions)", "decisions/)", "words.txt"):
        text = unlinked(text, other)
    return text


def unlinked(text: str, target: str) -> str:
    """The text of links to a target, without the link."""
    while (end := text.find(f"]({target}")) >= 0:
        start = text.rfind("[", 0, end)
        close = text.index(")", end)
        text = text[:start] + text[start + 1 : end] + text[close + 1 :]
    return text
