"""LUMORPH's training times (section 6.1): shares of communication that its factors require, layer times, its log of NCF."""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.plans.search import Searches
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import Runtime, simulate_iteration
from opticcl.training.partition import partition


def _speed_up(share: float, faster: float) -> float:
    """Speed-up of an iteration with that share of communication and no overlap by messages `faster` times as fast."""
    tasks = (Task("computation", 1 - share), Task("messages", 0.0, "all_reduce", 1, "all", (0,)))
    job = TaskGraph("of a share", "LUMORPH 6.1", 2, tasks, {"all": ProcessGroup("all", range(2))})
    before, after = (
        simulate_iteration(job, lambda *_, s=s: share / s, Runtime(overlap=False)).total_s for s in (1.0, faster)
    )
    return before / after


@claim("lumorph", "L26.bert", 1.7, 1.7)
def share_needed(speed_up: float, faster: float) -> float:
    """Share of communication at which messages `faster` times as fast give that speed-up; 1 if none does."""
    return argument_of(lambda share: _speed_up(share, faster), speed_up, 0.0, 1.0, tolerance=1e-9)


@claim("lumorph", "L26", 4)
@claim("lumorph", "L26.most", 10.1)
def shares_needed(faster: float) -> list[float]:
    """Shares with messages that many times faster."""
    printed = printed_claims("lumorph")["L26"]["factors"]
    return [round(share_needed(value, faster), 3) for value in printed]


ALPHA_S = 0.7e-6  # section 6.1: of the ring
MODELS = ("bert", "inception_v3", "ncf")
"""Of figures 9 to 11."""


@cache
def _copies(name: str, gpus: int, samples: int) -> TaskGraph:
    """An iteration of copies of a model on A100s, layer by layer; an all-reduce for each tensor of gradients (figure 9)."""
    return partition(name, gpus, local_batch=samples, device="a100")


def _gains(gpus: int, samples: int) -> list[float]:
    """Of the iteration by LUMORPH-4, over rings on an ideal switch of the same rate, by model."""
    wafer, rules = fabric_at_scale("lightpath", gpus), assumptions("lumorph")
    switch = fabric("ideal", nodes=gpus, latency=ALPHA_S, rate=wafer.node_rate_bits_per_s)
    gains = []
    for job in (_copies(name, gpus, samples) for name in MODELS):
        ring_s, ours_s = (
            simulate_iteration(job, CommunicationTimes(where, Searches(by, rules)), Runtime(fusion="none")).total_s
            for where, by in ((switch, "ring"), (wafer, "lumorph:radix=4"))
        )
        gains.append(ring_s / ours_s)
    return gains


@claim("lumorph", "L26.layers")
def gains_by_layer_times() -> Found:
    """With one sample a GPU, and on fewer GPUs, as facts."""
    entry = printed_claims("lumorph")["L26.layers"]
    gpus, samples = entry["gpus"], entry["samples"]
    few, one = _gains(gpus // 4, samples), _gains(gpus, 1)
    facts = {
        f"{what}_{name}": gain
        for what, gains in (("few", few), ("one", one))
        for name, gain in zip(MODELS, gains, strict=True)
    }
    return found([round(gain, 2) for gain in _gains(gpus, samples)], **facts)


@claim("lumorph", "L26.sizes")
def ncf_has_few_large_messages() -> Found:
    """Whether NCF has the fewest all-reduces and the largest on average."""
    sizes = {}
    for name in MODELS:
        tasks = _copies(name, 256, 1).tasks
        sizes[name] = np.array([task.size_bytes for task in tasks if task.collective == "all_reduce"])
    bert, inception, ncf = (sizes[name] for name in MODELS)
    fewest, largest = len(ncf) < min(len(bert), len(inception)), ncf.mean() > max(bert.mean(), inception.mean())
    counts = {f"count_{name}": len(of_model) for name, of_model in sizes.items()}
    means = {f"mb_{name}": of_model.mean() / 1e6 for name, of_model in sizes.items()}
    return found(bool(fewest and largest), **counts, **means)


@cache
def _messages_s(algorithm: str, nodes: int) -> float:
    """Time of NCF's all_reduces in sequence on the wafer [s]."""
    group = ProcessGroup("all", range(nodes))
    planner = Searches(algorithm, assumptions("lumorph"))
    times = CommunicationTimes(fabric_at_scale("lightpath", nodes), planner)
    calls = printed_claims("lumorph")["L26.ncf"]["calls"]
    tasks = tuple(Task("gradient", 0.0, "all_reduce", size, "all") for size, count in calls for _ in range(count))
    return simulate_iteration(
        TaskGraph("ncf", "LUMORPH's log", nodes, tasks, {"all": group}), times, Runtime(fusion="none")
    ).total_s


@claim("lumorph", "L26.ncf", 8)
@claim("lumorph", "L26.ncf256", 256)
def ncf(nodes: int) -> float:
    """Rings over LUMORPH by its own algorithm, radix 2; the log's list of all_reduces is the same on all 256 tiles."""
    return _messages_s("ring", nodes) / _messages_s("lumorph:radix=2", nodes)
