"""RAMP-x broadcast: a pipelined tree of three levels whose light is split on the way.

A transceiver with all its gates open sends one signal to all groups; in each group all racks receive it, so one signal
reaches the x J nodes that are tuned to one wavelength::

    root ==own wavelength==> x J - 1 nodes; some of them are relays
                             relay ==another wavelength==> x J nodes
                             relay ==a third one=========> x J nodes        L - 1 wavelengths in total

The message is cut into k stages. In step i the root sends stage i and the relays forward stage i - 1: k + s - 2 steps with
s = 3 levels. Where there are fewer relays than wavelengths, a relay serves several; where only the root receives its
wavelength (x J = 1), it serves all itself, in k steps.

Source: RAMP section 6.1.5.
Reading: the text's lambda - 1 relays are L - 1. Equation 1 has beta outside the root; k = sqrt(m (s - 2) beta / alpha) is the
best number of stages. It needs the size, so `stages` is a parameter; 16 is the power of four next to the best for 1 GB
at maximum scale, which is 21. Table 8 prints s + k - 2s steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.schedule._pipeline import PipelineStage, pipelined

__all__ = ["STAGES", "Relays", "pipelined_broadcast", "relays"]

STAGES = 16


@dataclass(frozen=True, slots=True)
class Relays:
    """The second level of the tree.

    Args:
        root: node that the message comes from.
        near: the other nodes of the root's wavelength, int32 (x J - 1,).
        device: the other wavelengths, int32 (L - 1,).
        node: relay that sends on each of them, int32 (L - 1,).
        turn: number of wavelengths that the same relay serves before it, int32 (L - 1,).
    """

    root: int
    near: IntArray
    device: IntArray
    node: IntArray
    turn: IntArray


def relays(fabric: Fabric, root: int) -> Relays:
    """The tree of a RAMP from that root."""
    num_devices = fabric.machine_as(Ramp).wavelengths
    same_wavelength = np.arange(root % num_devices, fabric.num_nodes, num_devices, dtype=np.int32)
    near = same_wavelength[same_wavelength != root]
    able = near if len(near) else same_wavelength
    device = np.arange(num_devices, dtype=np.int32)
    device = device[device != root % num_devices]
    turn, which = np.divmod(np.arange(num_devices - 1, dtype=np.int32), np.int32(len(able)))
    return Relays(root, near, device, able[which], turn)


def pipelined_broadcast(collective: Request, fabric: Fabric, stages: int) -> Schedule:
    """The broadcast of a message in stages.

    Args:
        collective: broadcast, with its root.
        fabric: a RAMP.
        stages: parts of the message [count].
    """
    n = fabric.num_nodes
    tree = relays(fabric, collective.root)
    first_of_rack = np.arange(0, n, fabric.machine_as(Ramp).wavelengths, dtype=np.int32)
    src, dst = (ends.ravel() for ends in np.broadcast_arrays(tree.node[:, None], tree.device[:, None] + first_of_rack))
    near = PipelineStage(np.full(len(tree.near), tree.root), tree.near, 0, Op.COPY)
    far = PipelineStage(src, dst, 0, Op.COPY)  # the relays are one stage behind the root
    tree_of = [one for one in (near, far) if len(tree.near) or one is far] if n > 1 else []
    return Schedule.of("ramp", collective.on(n, stages), pipelined(n, tree_of, stages))
