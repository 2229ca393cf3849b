"""What a newcomer must know of a system and an algorithm to follow a picture of its light, and what a time assumes."""

from __future__ import annotations

__all__ = ["ABOUT_ALGORITHM", "ABOUT_ASSUMPTION", "ABOUT_FABRIC"]

ABOUT_FABRIC: dict[str, str] = {
    "ramp": (
        "A RAMP device hears one wavelength only, that of its place l in the rack: a sender tunes its laser to "
        "reach it. Grey and white are the communication groups; lines of one colour from the same group to the same "
        "group leave on different transceivers and so pass through different star couplers."
    ),
    "sipac": (
        "Nothing is ever switched in a SiPAC: micro-rings drop each wavelength at another output, so the colour "
        "chooses the receiver. Nodes on one ground share a switch of level 0, nodes in the same place of their "
        "grounds one of level 1. In the published setting λ0 leads back to its sender and stays dark."
    ),
    "terarack": (
        "Each node puts light on the ring and takes it off with micro-rings; what is not for it passes by untouched."
    ),
    "oddl": (
        "The switches are set once for the whole job: a node changes its partner by retuning its laser. Nodes on "
        "one ground share the switch of their row, nodes in the same column one of that column. Two lines side by "
        "side are two wavelengths bonded for one partner."
    ),
    "lightpath": (
        "A tile sends to several partners at once, each on lasers of its own, and the tiles between pass the light on."
    ),
    "topoopt": (
        "A patch panel joins each node with a few others for the whole job; packets for anybody else pass through the "
        "nodes between."
    ),
    "sip_ring": (
        "Micro-rings on a fibre that runs round one way: a node tunes its transmitter to a wavelength that is dark on "
        "the whole way to its partner, and what is not for a node passes by untouched."
    ),
    "ideal": (
        "The electrical rival that nobody can build: a switch that never blocks and passes packets instead of light."
    ),
}

ABOUT_ALGORITHM: dict[str, str] = {
    "ramp": "Each step sums over one coordinate of the nodes; the second half takes the results back the same way.",
    "sipco": "In each step every node sends to all nodes with which it shares a switch, on all levels at once.",
    "wrht": (
        "The nodes of a group send to the one in their middle, the middle ones exchange all to all, then each tells "
        "its group."
    ),
    "halving_doubling": (
        "Partners, the farthest first, each add up one half of what both have; then the halves go back."
    ),
    "recursive_doubling": "Partners swap all that they have, the distance between them doubling from step to step.",
    "lumorph": "In each step a node exchanges with the nodes that differ from it in one digit of their number.",
    "ring": "Each node sends to its neighbour on the ring alone, one piece after the other.",
    "tree": "Pairs add up, the distance between them doubling, until one node has the sum; then it goes back to all.",
}

ABOUT_ASSUMPTION: dict[str, str] = {
    "reconfiguration_charge=on_change": "A reconfiguration is charged where circuits of a round do not stand yet.",
    "reconfiguration_charge=every_step": "A reconfiguration is charged on every round, whether circuits change or not.",
    "initial=cold": "The first setting of the circuits is charged.",
    "initial=warm": "The first circuits are found standing.",
    "compute=fused": "All that arrives for a chunk is added up in one pass over memory.",
    "compute=chain": "What arrives is added up one after the other.",
    "compute=none": "Adding up costs nothing.",
    "memory_bytes_per_s": "Memory of the device that adds up.",
    "control=charged": "The fabric's control messages are counted on every step.",
    "control=none": "Control messages are not counted.",
}
