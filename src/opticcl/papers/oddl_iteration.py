"""ODDL's training times: figures 10 to 13 as far as the text tells them, with two sets of what it does not tell.

An iteration is computation, forward and then backward in the order of the layers, beside all-reduces of gradients that are
fused greedily. Times of all-reduces are those of our plans, which other rows judge. What the paper leaves open (compute
times, share of the forward pass, what of the control messages is hidden, what a step of a ring costs, the fat tree's
routing) stands in data/oddl_iteration.toml: `literal` and `fitted`. A fitted value is called one in its claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from opticcl.circuits import lower
from opticcl.data import load
from opticcl.evaluate.iteration import Iteration, Runtime, play
from opticcl.fabric import fabric
from opticcl.ir import Fabric
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.simulate import Profile, assumptions, profile
from opticcl.workload.job import Group, Job, Task
from opticcl.workload.models import model

NODES = 1024
MB = 10**6
SYSTEMS = {
    "oddl": ("oddl", "halving_doubling"),
    "sip_ring": ("sip_ring", "ring"),
    "fat_tree_ring": ("fat_tree", "ring"),
    "fat_tree_hd": ("fat_tree", "halving_doubling"),
}
RATES = (100e9, 200e9, 400e9)
THRESHOLDS = (16 * MB, 32 * MB)


@cache
def _assumed(preset: str) -> dict[str, Any]:
    values: dict[str, Any] = load("oddl_iteration.toml")[preset]
    return values


# --- all-reduces ------------------------------------------------------------------------------------------------------


@cache
def _profile(system: str, preset: str, rate: float, delay_s: float, nodes: int) -> Profile:
    """Times of a system's all-reduce, for any size."""
    name, algorithm = SYSTEMS[system]
    if name == "oddl":
        side = 1 << (nodes.bit_length() - 1) // 2
        shape = (nodes,) if nodes <= 32 else (nodes // side, side)  # one dimension for 32 nodes or fewer
        where = fabric("oddl", shape=shape, nic_rate=rate, reconfiguration=delay_s, control_switch_delay=delay_s)
    elif name == "sip_ring":
        where = fabric("sip_ring", nodes=nodes, nic_rate=rate)
    else:
        where = fabric("fat_tree", nodes=nodes, preset="oddl", rate=rate, routing=_assumed(preset)["routing"])
    return profile(lower(where, generate(algorithm, "all_reduce", where)), assumptions("oddl"))


@cache
def _all_reduce_s(system: str, preset: str, rate: float, delay_s: float, nodes: int, size_bytes: int) -> float:
    """Time of an all-reduce [s].

    Bits take longer by the efficiency. Of what ODDL pays before a step, tuning and control messages, `overlap` is hidden;
    rings pay `..._ring_step_s` a step in place of the delay of the longest way.
    """
    assumed = _assumed(preset)
    times = _profile(system, preset, rate, delay_s, nodes).timeline(size_bytes)
    part = times.totals()
    transfer_s = part["transfer_s"] / assumed["efficiency"]
    if system == "oddl":
        return transfer_s + (part["reconfiguration_s"] + part["control_s"]) * (1 - assumed["overlap"])
    if system == "fat_tree_hd":
        return transfer_s + part["latency_s"]
    step_s = assumed[f"{system}_step_s"] or _mean_delay_s(nodes)
    return transfer_s + times.num_steps * step_s


@cache
def _mean_delay_s(nodes: int) -> float:
    """Of the switches between neighbours of a ring on the fat tree: without a barrier a ring pays the mean [s]."""
    where: Fabric = fabric("fat_tree", nodes=nodes, preset="oddl")
    assert where.route is not None
    assert where.hop_latency_s is not None
    ring = where.ring()
    hops, offsets = where.route(ring, np.roll(ring, -1))
    return float(np.add.reduceat(where.hop_latency_s(hops), offsets[:-1]).mean())


# --- iterations -------------------------------------------------------------------------------------------------------


@cache
def _job(name: str, preset: str, nodes: int) -> Job:
    """Forward in one go, then backward layer by layer in proportion to operations, each with its gradients."""
    assumed = _assumed(preset)
    compute_s = load("oddl_iteration.toml")["compute_s"][name] * assumed["compute_scale"]
    layers = model(name).layers
    macs = sum(layer.macs for layer in layers)
    tasks = [Task("forward", compute_s * assumed["forward_share"], phase="forward")]
    for layer in reversed(layers):
        backward_s = compute_s * (1 - assumed["forward_share"]) * layer.macs / macs
        tasks.append(Task(f"{layer.name} backward", backward_s, phase="backward"))
        ready = (len(tasks) - 1,)
        for size in reversed(layer.tensors):
            tasks.append(Task(layer.name, 0.0, "all_reduce", 4 * size, "all", ready, "backward", True))
    return Job(name, "ODDL 5.A", nodes, tuple(tasks), {"all": Group("all", range(nodes))})


@cache
def _iteration(
    name: str, system: str, preset: str, rate: float, threshold: int, delay_s: float = 5e-6, nodes: int = NODES
) -> Iteration:
    def time_of(collective: str, group: Group, size_bytes: int) -> float:
        return _all_reduce_s(system, preset, rate, delay_s, nodes, size_bytes)

    return play(_job(name, preset, nodes), time_of, Runtime(threshold_bytes=threshold))


def _speed_up(
    name: str, system: str, preset: str, rate: float = 100e9, threshold: int = 16 * MB, nodes: int = NODES
) -> float:
    """How many times ODDL's iteration a rival's takes."""
    total = {s: _iteration(name, s, preset, rate, threshold, nodes=nodes).total_s for s in ("oddl", system)}
    return total[system] / total["oddl"]


def _range(name: str, system: str, preset: str) -> tuple[float, float]:
    """Least and most over 100, 200 and 400 Gb/s and both thresholds."""
    found = [_speed_up(name, system, preset, rate, threshold) for rate in RATES for threshold in THRESHOLDS]
    return min(found), max(found)


def _printed_range(name: str, system: str, preset: str, *digits: int) -> list[float]:
    """The range, with so many decimals as the paper prints."""
    return [round(value, n) for value, n in zip(_range(name, system, preset), digits, strict=True)]


def _claim_speed_up(id: str, system: str, preset: str) -> None:
    """Registers how many times as fast VGG19 is as on a rival, at 100 Gb/s."""

    @claim("oddl", id)
    def found() -> float:
        return _speed_up("vgg19", system, preset)


def _claim_range(id: str, name: str, system: str, preset: str, *digits: int) -> None:
    """Registers a range; of two models, three rivals and two sets."""

    @claim("oddl", id)
    def found() -> list[float]:
        return _printed_range(name, system, preset, *digits)


def _claim_end(id: str, name: str, preset: str, which: Callable[[Iterable[float]], float]) -> None:
    """Registers one end of a range over halving-doubling on the fat tree."""

    @claim("oddl", id)
    def found() -> float:
        return which(_range(name, "fat_tree_hd", preset))


_claim_speed_up("O22", "fat_tree_ring", "literal")
_claim_speed_up("O22f", "fat_tree_ring", "fitted")
_claim_speed_up("O23", "sip_ring", "literal")
_claim_speed_up("O23f", "sip_ring", "fitted")
_claim_range("O24", "vgg16", "sip_ring", "literal", 2, 2)
_claim_range("O24f", "vgg16", "sip_ring", "fitted", 1, 1)
_claim_range("O25", "vgg16", "fat_tree_ring", "literal", 2, 2)
_claim_range("O25f", "vgg16", "fat_tree_ring", "fitted", 1, 2)
_claim_range("O26", "vgg16", "fat_tree_hd", "literal", 2, 2)
_claim_end("O26f.least", "vgg16", "fitted", min)
_claim_end("O26f.most", "vgg16", "fitted", max)
_claim_range("O27.sip", "vgg19", "sip_ring", "literal", 2, 2)
_claim_range("O27f.sip", "vgg19", "sip_ring", "fitted", 1, 1)
_claim_range("O27.ring", "vgg19", "fat_tree_ring", "literal", 2, 2)
_claim_range("O27f.ring", "vgg19", "fat_tree_ring", "fitted", 1, 1)
_claim_range("O27.hd", "vgg19", "fat_tree_hd", "literal", 2, 2)
_claim_end("O27f.least", "vgg19", "fitted", min)
_claim_end("O27f.most", "vgg19", "fitted", max)


def _utilisation(preset: str, threshold: int = 16 * MB, nodes: int = NODES) -> float:
    """Bits that a node must send over those that it could while there is communication; VGG16 at 100 Gb/s."""
    iteration = _iteration("vgg16", "oddl", preset, 100e9, threshold, nodes=nodes)
    bits = 2 * (1 - 1 / nodes) * 8 * iteration.job.total_bytes
    return bits / (iteration.communication_s * 100e9)


@claim("oddl", "O28")
def utilisation() -> float:
    """Literal."""
    return _utilisation("literal")


@claim("oddl", "O28f")
def utilisation_fitted() -> float:
    """Fitted."""
    return _utilisation("fitted")


@claim("oddl", "O28f.stable")
def utilisation_is_stable() -> bool:
    """Fitted: from 16 to 1,024 nodes it varies by less than 5 points."""
    found = [_utilisation("fitted", nodes=1 << bits) for bits in range(4, 11)]
    return max(found) - min(found) < 0.05


def _slower_control(preset: str) -> float:
    """By how much 10 us in place of 5 us for switches and tuning lengthen an epoch, at most."""
    return max(
        _iteration(name, "oddl", preset, rate, threshold, 10e-6).total_s
        / _iteration(name, "oddl", preset, rate, threshold).total_s
        - 1
        for name in ("vgg16", "vgg19")
        for rate in RATES
        for threshold in THRESHOLDS
    )


@claim("oddl", "O29")
def slower_control() -> bool:
    """Literal: 7.3 %."""
    return _slower_control("literal") < 0.04


@claim("oddl", "O29f")
def slower_control_fitted() -> bool:
    """Fitted: 3.3 %."""
    return _slower_control("fitted") < 0.04


@claim("oddl", "O30")
def slow_oddl_is_best() -> bool:
    """Literal and fitted, both models, all rates and thresholds."""
    return all(
        _iteration(name, "oddl", preset, rate, threshold, 10e-6).total_s
        < _iteration(name, rival, preset, rate, threshold).total_s
        for preset in ("literal", "fitted")
        for name in ("vgg16", "vgg19")
        for rate in RATES
        for threshold in THRESHOLDS
        for rival in SYSTEMS
        if rival != "oddl"
    )


@claim("oddl", "O31")
def resnet_over_rings() -> float:
    """Literal: the larger of the two."""
    return max(_speed_up("resnet50", ring, "literal") for ring in ("sip_ring", "fat_tree_ring"))


@claim("oddl", "O31f")
def resnet_over_rings_fitted() -> float:
    """Fitted: the larger of the two."""
    return max(_speed_up("resnet50", ring, "fitted") for ring in ("sip_ring", "fat_tree_ring"))


@claim("oddl", "O32")
def resnet_worst() -> bool:
    """Literal: halving-doubling on the fat tree is slower than all others at 512 and 1,024 nodes."""
    return all(
        max(SYSTEMS, key=lambda s: _iteration("resnet50", s, "literal", 100e9, 16 * MB, nodes=n).total_s)
        == "fat_tree_hd"
        for n in (512, 1024)
    )


@claim("oddl", "O33")
def lenet_thresholds_matter() -> bool:
    """Whether 16 and 32 MB fuse the gradients of LeNet-5 differently: they have 0.25 MB."""
    sizes = {threshold: -(-4 * model("lenet").parameters // threshold) for threshold in THRESHOLDS}
    return len(set(sizes.values())) > 1


@claim("oddl", "O34")
def gain_grows() -> bool:
    """Literal, VGG19 at 100 Gb/s and 16 MB over SiP-Ring."""
    return _grows("literal")


@claim("oddl", "O34f")
def gain_grows_fitted() -> list[float]:
    """Fitted, at 64, 128, ... 1,024 nodes."""
    return [round(_speed_up("vgg19", "sip_ring", "fitted", nodes=1 << bits), 2) for bits in range(6, 11)]


def _grows(preset: str) -> bool:
    found = [_speed_up("vgg19", "sip_ring", preset, nodes=1 << bits) for bits in range(6, 11)]
    return found == sorted(found)


@claim("oddl", "O35")
def testbed_difference() -> float:
    """The printed times of 20 epochs, in per cent of the shorter."""
    longer, shorter = load("papers/oddl_iteration.toml")["O35"]["minutes"]
    return 100 * (longer / shorter - 1)


@claim("oddl", "O35.rate")
def testbed_rate() -> float:
    """Images a second and node of the longer run on the printed four nodes."""
    printed = load("papers/oddl_iteration.toml")["O35"]
    images = printed["epochs"] * load("oddl_iteration.toml")["images"]["value"]
    return images / (printed["minutes"][0] * 60 * printed["nodes"])
