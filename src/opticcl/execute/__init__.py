"""Run a schedule on real data: real arrays in, real arrays out. One file a transport."""

from __future__ import annotations

from opticcl.execute.in_process import execute

__all__ = ["execute"]
