"""Lower bounds of pyproject.toml as constraints of pip: `python -m tests.oldest` prints them for `make test-oldest`."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
APART = ("torch", "docs")
"""Extras that are left out: `make test-torch` installs the oldest torch, and no test needs the site."""


def extras() -> list[str]:
    """Extras whose lower bounds are installed."""
    return [
        name
        for name in tomllib.loads(PROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
        if name not in APART
    ]


def lower_bounds() -> dict[str, str]:
    """Package -> least version that the package and those extras allow.

    >>> set(lower_bounds()) >= {"numpy", "polars", "hypothesis", "starlette"}
    True
    """
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for name in extras() for one in project["optional-dependencies"][name])]
    found = (
        re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)(,<[0-9.]+)?", one)
        for one in wanted
        if not one.startswith("opticcl[")
    )
    return {match[1]: match[2] for match in found if match}


if __name__ == "__main__":
    if sys.argv[1:] == ["--extras"]:
        print(f".[{','.join(extras())}]")
    else:
        print("\n".join(f"{name}=={version}" for name, version in lower_bounds().items()))
