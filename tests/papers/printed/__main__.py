"""Writes docs/papers/printed.md."""

from tests.papers.printed import PAGE, page

PAGE.write_text(page(), "utf-8")
