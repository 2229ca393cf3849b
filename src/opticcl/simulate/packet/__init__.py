"""Packet engine: cells in the queues of links, with credits or losses."""

from __future__ import annotations

from opticcl.simulate.packet.engine import run_packet

__all__ = ["run_packet"]
