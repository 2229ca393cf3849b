"""Settings of micro-rings along rings and lines of fibres: modulators, and rings that drop a wavelength or let it pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import Circuits, IntArray
from opticcl.ir.device import SettingUse

__all__ = ["DROP", "ON", "PASS", "of_wavelengths", "ring_settings"]

ON = 1
PASS, DROP = 0, 1


def of_wavelengths(circuits: Circuits) -> tuple[IntArray, IntArray]:
    """Circuit and wavelength of every pair of them, int64 (sum of wavelengths,) each."""
    n = circuits.wavelength_n.astype(np.int64)
    circuit = np.repeat(np.arange(len(circuits)), n)
    nth = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return circuit, circuits.wavelength_lo[circuit] + nth * circuits.wavelength_step


def ring_settings(circuits: Circuits, reached: IntArray, ports: int, wavelengths: int) -> Iterator[SettingUse]:
    """Modulator of the sender on; rings of the nodes between pass; ring of the receiver drops.

    Args:
        circuits: of a round.
        reached: node at the end of each hop, int64 (hops,).
        ports: of a node [count].
        wavelengths: of a fibre [count].
    """
    circuit, wavelength = of_wavelengths(circuits)
    port = circuits.port.astype(np.int64)
    modulator = (circuits.src * np.int64(ports) + port)[circuit] * wavelengths + wavelength
    yield SettingUse("modulator", modulator, np.full(len(modulator), ON), circuit)
    owner, hops = circuits.hop_owner(), circuits.num_hops()
    last = np.zeros(len(owner), np.int64)
    last[circuits.hop_offsets[1:][hops > 0] - 1] = DROP
    each = circuits.wavelength_n[owner].astype(np.int64)
    hop = np.repeat(np.arange(len(owner)), each)
    nth = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    passed = circuits.wavelength_lo[owner[hop]] + nth * circuits.wavelength_step
    ring = (reached * np.int64(ports) + port[owner])[hop] * wavelengths + passed
    yield SettingUse("ring", ring, last[hop], owner[hop])
