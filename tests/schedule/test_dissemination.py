"""Dissemination: barriers and short all-reduces of any number of nodes."""

from __future__ import annotations

from opticcl.fabrics import fabric, job
from opticcl.schedule import reason_declined


def test_what_is_declined() -> None:
    """A job whose nodes are not linked."""
    apart = job(fabric("oddl:shape=2x4"), [0, 5, 2])
    assert "no single circuit joins" in str(reason_declined("dissemination", "barrier", apart))
