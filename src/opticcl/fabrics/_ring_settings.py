"""Settings of micro-rings along rings and lines of fibres: modulators, and rings that drop a wavelength or let it pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import Circuits, IntArray
from opticcl.ir.device import SettingUse

__all__ = ["DROP", "ON", "PASS", "lanes_at_ends", "ports_at_ends", "ring_settings"]

ON = 1
PASS, DROP = 0, 1


def ports_at_ends(circuits: Circuits, ports: int, port: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Ports of the sender and of the receiver of each circuit: node x ports + port, int64 (n,) each.

    Args:
        circuits: of a round.
        ports: of a node [count].
        port: of each circuit, where it is another than that of the circuit, int64 (n,).
    """
    at = circuits.port if port is None else port
    return circuits.src * np.int64(ports) + at, circuits.dst * np.int64(ports) + at


def lanes_at_ends(
    circuits: Circuits, ports: int, wavelengths: int, port: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Transmitter of the sender's port, and photodiode of the receiver's port and the wavelength; see `Fabric.ends`.

    Args:
        circuits: of a round.
        ports: of a node [count].
        wavelengths: that a port receives [count].
        port: as in `ports_at_ends`.
    """
    circuit, wavelength = circuits.each_wavelength()
    sender, receiver = ports_at_ends(circuits, ports, port)
    return sender[circuit], receiver[circuit] * wavelengths + wavelength


def ring_settings(circuits: Circuits, reached: IntArray, ports: int, wavelengths: int) -> Iterator[SettingUse]:
    """Modulator of the sender on; rings of the nodes between pass; ring of the receiver drops.

    Args:
        circuits: of a round.
        reached: node at the end of each hop, int64 (hops,).
        ports: of a node [count].
        wavelengths: of a fibre [count].
    """
    circuit, wavelength = circuits.each_wavelength()
    port = circuits.port.astype(np.int64)
    modulator = ports_at_ends(circuits, ports)[0][circuit] * wavelengths + wavelength
    yield SettingUse("modulator", modulator, np.full(len(modulator), ON), circuit)
    owner, hops = circuits.hop_owner(), circuits.num_hops()
    last = np.zeros(len(owner), np.int64)
    last[circuits.hop_offsets[1:][hops > 0] - 1] = DROP
    hop, passed = circuits.each_wavelength(owner)
    ring = (reached * np.int64(ports) + port[owner])[hop] * wavelengths + passed
    yield SettingUse("ring", ring, last[hop], owner[hop])
