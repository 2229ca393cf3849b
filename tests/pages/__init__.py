"""Computed pages: `make pages` writes them into out/pages, and `make docs` adds them to the site.

A module has the text of its page as `page()`, which takes up to minutes.
"""
