"""What each system's control plane does once a job and before every round, with its time.

What it does once a job is spent before the job's first round and so over all its collectives; what it does before every
round is in the fabric's `control_s` and so in the timeline.
"""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.data import load
from opticcl.ir import Fabric

__all__ = ["ControlPlane", "control_plane"]

WORDS = {
    "oddl": (
        "the arbiter sets the job's ports of the switches",
        "two exchanges of messages between partners, units of their own",
    ),
    "topoopt": ("circuits are patched", "nothing"),
    "ramp": ("every node works out its instructions", "slots without a schedule"),
    "lightpath": ("nothing", "all nodes talk to the rack's controller"),
    "terarack": ("nothing", "nothing: retuning is a reconfiguration"),
    "terarack_torus": ("nothing", "nothing: retuning is a reconfiguration"),
    "sip_ring": ("nothing", "nothing: retuning is a reconfiguration"),
    "sipac": ("nothing", "nothing: switches are passive"),
}


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Who commands the light of a fabric.

    Args:
        once_a_job: what is done before the job starts, in words.
        once_a_job_s: how long that takes [s].
        every_round: what is done before every round, in words.
        source: of the time once a job.
    """

    once_a_job: str
    once_a_job_s: float
    every_round: str
    source: str


def control_plane(fabric: Fabric) -> ControlPlane:
    """The control plane of a fabric; networks of packets have none."""
    entry = load("control.toml").get(fabric.name, {}).get("once_a_job")
    once, every = WORDS.get(fabric.name, ("nothing", "nothing: packets find their way"))
    if entry is None:
        return ControlPlane(once, 0.0, every, "")
    return ControlPlane(once, entry["value"], every, entry["source"])
