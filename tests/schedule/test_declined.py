"""Parameters, collectives and machines that an algorithm declines, each with a part of the reason that it gives."""

import tomllib
from pathlib import Path

import pytest

from opticcl.fabrics import fabric
from opticcl.schedule import reason_declined

ROWS = tomllib.loads(Path(__file__).with_name("declined.toml").read_text("utf-8"))["declined"]


@pytest.mark.parametrize(("algorithm", "collective", "name", "text"), ROWS)
def test_declined(algorithm, collective, name, text):
    """With a reason that says why."""
    assert text in (reason_declined(algorithm, collective, fabric(name)) or "")
