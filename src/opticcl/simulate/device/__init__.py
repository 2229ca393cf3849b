"""Device engine: every transfer starts once its data is there and its devices are set."""

from __future__ import annotations

from opticcl.simulate.device.engine import run_device

__all__ = ["run_device"]
