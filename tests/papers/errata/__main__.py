"""Writes docs/papers/errata.md."""

from tests.papers.errata import PAGE, page

PAGE.write_text(page(), "utf-8")
