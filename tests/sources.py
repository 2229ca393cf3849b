"""Files of the project, each read and parsed once for all tests of their text."""

import ast
from functools import cache
from pathlib import Path


@cache
def text_of(path: Path) -> str:
    """Text of a file."""
    return path.read_text("utf-8")


@cache
def syntax_of(path: Path) -> ast.Module:
    """Syntax tree of a Python file."""
    return ast.parse(text_of(path))
