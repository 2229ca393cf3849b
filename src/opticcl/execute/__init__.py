"""Execution of a schedule on real arrays. One file a transport."""

from __future__ import annotations

from opticcl.execute.in_process import execute

__all__ = ["execute"]
