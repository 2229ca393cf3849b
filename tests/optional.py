"""What some tests need and not every machine has: such a test is skipped with a reason, and the end of a run counts them."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared" / "data"
"""Recorded traces, beside the checkout; they are no part of the repository."""


def shared_file(name: str) -> Path:
    """The file of that name in `../shared/data`; where there is none, the test is skipped."""
    path = SHARED / name
    if not path.exists():
        missing = f"/{name}" if SHARED.exists() else ""
        pytest.skip(f"../shared/data{missing} is not there; recorded data are not part of the repository")
    return path


def paper_text(paper: str) -> str:
    """The text of a paper in `../shared/papers`; where there is none, the test is skipped."""
    path = SHARED.parent / "papers" / f"{paper}.txt"
    if not path.exists():
        pytest.skip(f"../shared/papers/{path.name} is not there; the papers' texts are not part of the repository")
    return path.read_text("utf-8")
