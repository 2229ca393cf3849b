"""For each system an instance so small that its light can be drawn and followed, by the system's own algorithm."""

from __future__ import annotations

from opticcl.fabric import fabric_at_scale
from opticcl.plan import Plan, compile
from opticcl.registry import canonical

__all__ = ["small_instance"]

_OWN = {
    "ramp": ("ramp:groups=3,racks=2,wavelengths=3", "ramp"),
    "sipac": ("sipac:radix=3,levels=2,wavelengths=3", "sipco"),
    "terarack": ("terarack:nodes=15,wavelengths=2", "wrht"),
    "oddl": ("oddl:shape=2x4", "halving_doubling"),
    "lightpath": ("lightpath:shape=4x4,lasers=3", "lumorph:radix=4"),
    "topoopt": ("topoopt:nodes=8,degree=2", "ring"),
    "sip_ring": ("sip_ring:nodes=8,wavelengths=4", "halving_doubling"),
    "ideal": ("ideal:nodes=6", "ring"),
}


def small_instance(fabric_name: str) -> Plan:
    """An all-reduce of 1 MB on a few nodes of that system by its own algorithm; for any other, 8 nodes by the fastest.

    Raises: UnknownNameError: no such fabric. FabricError: a system without 8 nodes.
    """
    name = canonical(fabric_name)
    if name in _OWN:
        fabric, algorithm = _OWN[name]
        return compile(fabric, "all_reduce", "1 MB", algorithm=algorithm)
    return compile(fabric_at_scale(name, 8), "all_reduce", "1 MB")
