"""Flow engine: transfers share the rates of links fairly, and each starts when its data is there."""

from __future__ import annotations

from opticcl.simulate.flow.engine import run_flow

__all__ = ["run_flow"]
