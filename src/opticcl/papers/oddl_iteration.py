"""ODDL's training times: figures 10 to 13 as far as the text states them, with two sets of assumptions for the rest.

An iteration is computation, forward and then backward in the order of the layers, overlapped with all-reduces of gradients that
are fused greedily. Times of all-reduces are those of our plans, which other rows verify. What the paper leaves open (compute
times, share of the forward pass, hidden share of the control messages, cost of a ring step, the fat tree's routing) is in
oddl_iteration.toml: `literal` and `fitted`. A claim that uses a fitted value says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.files import read_toml
from opticcl.ir import Fabric
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.simulate import Profile, profile
from opticcl.training.iteration import Iteration, Runtime, simulate_iteration
from opticcl.training.models import model

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
_SHEET = read_toml("opticcl.papers", "oddl_iteration.toml")


@cache
def _assumed(preset: str) -> dict[str, Any]:
    values: dict[str, Any] = _SHEET[preset]
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
def _parts(system: str, preset: str, rate: float, delay_s: float, nodes: int, size_bytes: int) -> tuple[float, ...]:
    """Transfer, tuning and control, latency of an all-reduce [s], and its steps [count]; arguments as in `_all_reduce_s`."""
    timeline = _profile(system, preset, rate, delay_s, nodes).timeline(size_bytes, bounded=False)
    part = timeline.totals()
    return part["transfer_s"], part["reconfiguration_s"] + part["control_s"], part["latency_s"], timeline.num_steps


def _all_reduce_s(
    system: str,
    preset: str,
    rate: float,
    delay_s: float,
    nodes: int,
    size_bytes: int,
    step_s: float | None = None,
    slow_down: float | None = None,
) -> float:
    """Time of an all-reduce [s].

    Transfers are divided by the efficiency. The fraction `overlap` of ODDL's tuning and control messages is hidden; a step of a
    ring costs `..._ring_step_s` in place of the delay of the longest path.

    Args:
        rate: of a network card [bit/s].
        delay_s: of tuning and of a control switch on ODDL [s].
        nodes: number of nodes [count].
        size_bytes: of the message [bytes].
        step_s: cost of a ring step in place of the preset's [s].
    """
    assumed = _assumed(preset)
    transfer_s, setting_up_s, latency_s, num_steps = _parts(system, preset, rate, delay_s, nodes, size_bytes)
    transfer_s /= assumed["efficiency"]
    if system == "oddl":
        return transfer_s + setting_up_s * (1 - assumed["overlap"])
    if system == "fat_tree_hd":
        if slow_down is not None:
            transfer_s = slow_down * 2 * (1 - 1 / nodes) * 8 * size_bytes / rate / assumed["efficiency"]
        return transfer_s + latency_s
    step_s = step_s or assumed[f"{system}_step_s"] or _mean_delay_s(nodes)
    return transfer_s + num_steps * step_s


@cache
def _mean_delay_s(nodes: int) -> float:
    """Mean delay of the switches between neighbours of a ring on the fat tree, which a ring without barrier pays [s]."""
    where: Fabric = fabric("fat_tree", nodes=nodes, preset="oddl")
    ring = where.ring_order()
    hops, offsets = where.route(ring, np.roll(ring, -1))
    of_hop = where.hop_latency_s(hops)
    assert of_hop is not None
    return float(np.add.reduceat(of_hop, offsets[:-1]).mean())


# --- iterations -------------------------------------------------------------------------------------------------------


@cache
def _job(name: str, preset: str, nodes: int) -> TaskGraph:
    """One forward task, then backward tasks in proportion to the operations of the layers, each with its gradients."""
    assumed = _assumed(preset)
    compute_s = _SHEET["compute_s"][name] * assumed["compute_scale"]
    layers = model(_SHEET["models"].get(name, name)).layers
    macs = sum(layer.macs for layer in layers)
    tasks = [Task("forward", compute_s * assumed["forward_share"], phase="forward")]
    for layer in reversed(layers):
        backward_s = compute_s * (1 - assumed["forward_share"]) * layer.macs / macs
        tasks.append(Task(f"{layer.name} backward", backward_s, phase="backward"))
        ready = (len(tasks) - 1,)
        for size in reversed(layer.tensors):
            tasks.append(Task(layer.name, 0.0, "all_reduce", 4 * size, "all", ready, "backward", True))
    return TaskGraph(name, "ODDL 5.A", nodes, tuple(tasks), {"all": ProcessGroup("all", range(nodes))})


@dataclass(frozen=True, slots=True, kw_only=True)
class OddlSetting:
    """A point of figures 10 to 13.

    Args:
        rate: of a network card [bit/s].
        threshold: of fusion [bytes].
        delay_s: of tuning and of a control switch on ODDL [s].
        nodes: number of nodes [count].
        fusion: greedy or static.
        step_s, slow_down: as in `_all_reduce_s`.
    """

    rate: float = 100e9
    threshold: int = 16 * MB
    delay_s: float = 5e-6
    nodes: int = NODES
    fusion: Literal["greedy", "static"] = "greedy"
    step_s: float | None = None
    slow_down: float | None = None


DEFAULT = OddlSetting()
POINTS = tuple(OddlSetting(rate=rate, threshold=threshold) for rate in RATES for threshold in THRESHOLDS)
"""100, 200 and 400 Gb/s with both thresholds."""


@cache
def _iteration(name: str, system: str, preset: str, at: OddlSetting) -> Iteration:
    def time_of(collective: str, group: ProcessGroup, size_bytes: int) -> float:
        return _all_reduce_s(
            system, preset, at.rate, at.delay_s, at.nodes, size_bytes, step_s=at.step_s, slow_down=at.slow_down
        )

    runtime = Runtime(threshold_bytes=at.threshold, fusion=at.fusion)
    return simulate_iteration(_job(name, preset, at.nodes), time_of, runtime)


def _total_s(name: str, system: str, preset: str, at: OddlSetting) -> float:
    """Time of an iteration [s]."""
    return _iteration(name, system, preset, at).total_s


@claim("oddl", "O22f", "vgg19", "fat_tree_ring", "fitted")
@claim("oddl", "O23f", "vgg19", "sip_ring", "fitted")
def _speed_up(name: str, system: str, preset: str, at: OddlSetting = DEFAULT) -> float:
    """Time of a rival's iteration over ODDL's."""
    oddl = replace(at, step_s=None, slow_down=None)
    return _total_s(name, system, preset, at) / _total_s(name, "oddl", preset, oddl)


def _range(name: str, system: str, preset: str, slow_down: float | None = None) -> tuple[float, float]:
    """Least and most over 100, 200 and 400 Gb/s and both thresholds."""
    speed_ups = [_speed_up(name, system, preset, replace(at, slow_down=slow_down)) for at in POINTS]
    return min(speed_ups), max(speed_ups)


@claim("oddl", "O24", "vgg16", "sip_ring", "literal", 2, 2)
@claim("oddl", "O24f", "vgg16", "sip_ring", "fitted", 1, 1)
@claim("oddl", "O25", "vgg16", "fat_tree_ring", "literal", 2, 2)
@claim("oddl", "O25f", "vgg16", "fat_tree_ring", "fitted", 1, 2)
@claim("oddl", "O27.sip", "vgg19", "sip_ring", "literal", 2, 2)
@claim("oddl", "O27f.sip", "vgg19", "sip_ring", "fitted", 1, 1)
@claim("oddl", "O27.ring", "vgg19", "fat_tree_ring", "literal", 2, 2)
@claim("oddl", "O27f.ring", "vgg19", "fat_tree_ring", "fitted", 1, 1)
def _printed_range(name: str, system: str, preset: str, *digits: int) -> list[float]:
    """The range, rounded to the decimals that the paper prints."""
    return [round(value, n) for value, n in zip(_range(name, system, preset), digits, strict=True)]


def _needed_step_s(system: str, factor: float) -> float:
    """Cost of a ring step with which VGG19 takes `factor` times as long as on ODDL, literal otherwise [s]."""
    return argument_of(lambda s: _speed_up("vgg19", system, "literal", OddlSetting(step_s=s)), factor, 1e-7, 1e-5, 2e-9)


def _needed_slow_down(name: str, factor: float, end: int) -> float:
    """Slow-down by contention that gives an end of the range over halving-doubling, 0 least and 1 most."""
    return argument_of(lambda c: _range(name, "fat_tree_hd", "literal", c)[end], factor, 1.0, 30.0, 0.02)


@claim("oddl", "O22", "O22", "fat_tree_ring")
@claim("oddl", "O23", "O23", "sip_ring")
def speed_up_literal(id: str, system: str) -> Found:
    """VGG19 over a rival at 100 Gb/s; the cost of a ring step, and the cost that the printed number needs."""
    step_s = _assumed("literal")[f"{system}_step_s"] or _mean_delay_s(NODES)
    needed_s = _needed_step_s(system, printed_claims("oddl")[id]["published"])
    return found(_speed_up("vgg19", system, "literal"), step_us=step_s * 1e6, needed_us=needed_s * 1e6)


@claim("oddl", "O26", "O26", "vgg16")
@claim("oddl", "O27.hd", "O27.hd", "vgg19")
def range_over_halving_doubling(id: str, name: str) -> Found:
    """The range over halving-doubling on the fat tree; its slow-down, and those that the printed ends need."""
    least, most = printed_claims("oddl")[id]["published"]
    return found(
        _printed_range(name, "fat_tree_hd", "literal", 2, 2),
        slow_down=_contention(),
        needed_least=_needed_slow_down(name, least, 0),
        needed_most=_needed_slow_down(name, most, 1),
    )


def _contention() -> float:
    """Slow-down of halving-doubling's transfers on the fat tree of 1,024 hosts by its routing."""
    size = 100 * MB
    alone_s = 2 * (1 - 1 / NODES) * 8 * size / RATES[0]
    return (
        float(_profile("fat_tree_hd", "literal", RATES[0], 5e-6, NODES).timeline(size).totals()["transfer_s"]) / alone_s
    )


@claim("oddl", "O26f.least", "vgg16", min)
@claim("oddl", "O26f.most", "vgg16", max)
@claim("oddl", "O27f.least", "vgg19", min)
@claim("oddl", "O27f.most", "vgg19", max)
def end_over_halving_doubling(name: str, which: Callable[[Iterable[float]], float]) -> float:
    """One end of the range over halving-doubling on the fat tree, fitted."""
    return which(_range(name, "fat_tree_hd", "fitted"))


@claim("oddl", "O42")
def lasers_off_between_iterations() -> Found:
    """Whether lasers that are on during communication alone take less energy than those that are always on [J]."""
    iteration = _iteration("vgg16", "oddl", "literal", DEFAULT)
    lasers = NODES * fabric_at_scale("oddl", NODES).ports_per_node
    on_j, off_j = (_SHEET["laser"]["w"] * lasers * s for s in (iteration.total_s, iteration.communication_s))
    return found(
        off_j < on_j,
        on_j=on_j,
        off_j=off_j,
        lasers=lasers,
        laser_w=_SHEET["laser"]["w"],
        saved=100 * (1 - off_j / on_j),
    )


def _utilisation(preset: str, nodes: int = NODES) -> float:
    """Least bits that a node must send over its capacity during communication; VGG16 at 100 Gb/s and 16 MB."""
    iteration = _iteration("vgg16", "oddl", preset, OddlSetting(nodes=nodes))
    bits = 2 * (1 - 1 / nodes) * 8 * iteration.job.total_bytes
    return bits / (iteration.communication_s * DEFAULT.rate)


@claim("oddl", "O28", "literal")
@claim("oddl", "O28f", "fitted")
def utilisation(preset: str) -> Found:
    return found(_utilisation(preset), efficiency=_assumed(preset)["efficiency"])


@claim("oddl", "O28f.stable")
def utilisation_is_stable() -> Found:
    """Fitted: from 16 to 1,024 nodes it varies by less than 5 points."""
    shares = [_utilisation("fitted", nodes=1 << bits) for bits in range(4, 11)]
    return found(max(shares) - min(shares) < 0.05, least=min(shares), most=max(shares))


SLOW_S = 10e-6  # ODDL_10: delay of tuning and of a control switch


def _slower_control(preset: str) -> float:
    """Largest increase of an epoch by 10 us in place of 5 us for control switches and tuning [%]."""
    return 100 * max(
        _total_s(name, "oddl", preset, replace(at, delay_s=SLOW_S)) / _total_s(name, "oddl", preset, at) - 1
        for name in ("vgg16", "vgg19")
        for at in POINTS
    )


def _slower_by_overlap(overlap: float) -> float:
    """The increase if that fraction of tuning and control is hidden, VGG19 at 100 Gb/s and 16 MB, literal otherwise [%]."""

    def total_s(delay_s: float) -> float:
        def time_of(collective: str, group: ProcessGroup, size_bytes: int) -> float:
            part = _profile("oddl", "literal", DEFAULT.rate, delay_s, NODES).timeline(size_bytes).totals()
            return part["transfer_s"] + (part["reconfiguration_s"] + part["control_s"]) * (1 - overlap)

        return simulate_iteration(_job("vgg19", "literal", NODES), time_of, Runtime()).total_s

    return 100 * (total_s(SLOW_S) / total_s(DEFAULT.delay_s) - 1)


@claim("oddl", "O29")
def slower_control() -> Found:
    """Literal: nothing is hidden."""
    slower = _slower_control("literal")
    hidden = next(percent for percent in range(0, 101, 5) if _slower_by_overlap(percent / 100) < 4)
    return found(slower < 4, slower=slower, hidden=hidden)


@claim("oddl", "O29f")
def slower_control_fitted() -> Found:
    """Fitted."""
    slower = _slower_control("fitted")
    return found(slower < 4, slower=slower)


@claim("oddl", "O30")
def slow_oddl_is_best() -> bool:
    """Literal and fitted, both models, all rates and thresholds."""
    return all(
        _total_s(name, "oddl", preset, replace(at, delay_s=SLOW_S)) < _total_s(name, rival, preset, at)
        for preset in ("literal", "fitted")
        for name in ("vgg16", "vgg19")
        for at in POINTS
        for rival in SYSTEMS
        if rival != "oddl"
    )


RINGS = ("sip_ring", "fat_tree_ring")


@claim("oddl", "O31", "literal")
@claim("oddl", "O31f", "fitted")
def resnet_over_rings(preset: str) -> float:
    """The larger of the two."""
    return max(_speed_up("resnet50", ring, preset) for ring in RINGS)


@claim("oddl", "O32")
def resnet_worst() -> bool:
    """Literal: halving-doubling on the fat tree is slower than all others at 512 and 1,024 nodes."""
    return all(
        max(SYSTEMS, key=lambda s: _total_s("resnet50", s, "literal", OddlSetting(nodes=n))) == "fat_tree_hd"
        for n in (512, 1024)
    )


def _gradient_bytes(name: str) -> int:
    return 4 * model(_SHEET["models"].get(name, name)).parameters


@claim("oddl", "O33")
def lenet_thresholds_matter() -> Found:
    """Whether 16 and 32 MB fuse the gradients of LeNet-5 differently."""
    counts = {-(-_gradient_bytes("lenet") // threshold) for threshold in THRESHOLDS}
    messages = [
        _iteration("lenet_imagenet", "oddl", "literal", OddlSetting(threshold=threshold, fusion="static")).num_messages
        for threshold in THRESHOLDS
    ]
    return found(
        len(counts) > 1,
        classic_mb=_gradient_bytes("lenet") / MB,
        imagenet_mb=_gradient_bytes("lenet_imagenet") / MB,
        messages_16=messages[0],
        messages_32=messages[1],
    )


def _large_lenet(threshold: int) -> dict[str, float]:
    """Speed-up of LeNet for images of 224 x 224 x 3 and 1,000 classes over each rival, buffers filled statically."""
    at = OddlSetting(threshold=threshold, fusion="static")
    return {system: _speed_up("lenet_imagenet", system, "literal", at) for system in SYSTEMS if system != "oddl"}


@claim("oddl", "O33.16")
def large_lenet_is_faster() -> Found:
    """Whether ODDL is the fastest at 16 MB."""
    over = _large_lenet(16 * MB)
    return found(min(over.values()) > 1, **over)


@claim("oddl", "O33.32")
def large_lenet_is_similar() -> Found:
    """Over the slower of the rings at 32 MB."""
    over = _large_lenet(32 * MB)
    return found(max(over[ring] for ring in RINGS), **over)


def _gains(preset: str) -> list[float]:
    """Of VGG19 at 100 Gb/s and 16 MB over SiP-Ring, at 64, 128, ... 1,024 nodes."""
    return [_speed_up("vgg19", "sip_ring", preset, OddlSetting(nodes=1 << bits)) for bits in range(6, 11)]


@claim("oddl", "O34")
def gain_grows() -> bool:
    """Literal."""
    gains = _gains("literal")
    return gains == sorted(gains)


@claim("oddl", "O34f")
def gain_grows_fitted() -> list[float]:
    """Fitted."""
    return [round(gain, 2) for gain in _gains("fitted")]


@claim("oddl", "O35")
def testbed_difference() -> float:
    """The printed times of 20 epochs, in per cent of the shorter."""
    longer, shorter = printed_claims("oddl")["O35"]["minutes"]
    return 100 * (longer / shorter - 1)


@claim("oddl", "O35.rate")
def testbed_rate() -> float:
    """Images per second and node of the longer run on the printed four nodes."""
    printed = printed_claims("oddl")["O35"]
    images = printed["epochs"] * _SHEET["images"]["value"]
    return images / (printed["minutes"][0] * 60 * printed["nodes"])


@claim("oddl", "O36")
def accuracy_is_that_of_one_switch() -> bool:
    """Whether halving-doubling of four nodes gives the same bits on ODDL and on one switch, in single precision."""
    gradients = np.random.default_rng(0).standard_normal((4, 1000)).astype(np.float32)
    sums = [
        compile(where, "all_reduce", gradients[0].nbytes, algorithm="halving_doubling").execute(list(gradients))
        for where in ("oddl:shape=4", "ideal:nodes=4")
    ]
    return all(np.array_equal(a, b) for a, b in zip(*sums, strict=True))
