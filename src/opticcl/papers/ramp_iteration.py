"""RAMP's training times, figures 16 and 17: what follows from its own shares of communication, and from its own formulas.

The measured computation behind the figures is not in the text. A share of communication and no overlap fix an iteration up to
its length, so the paper's shares can be held against its speed-ups. Where computation follows from operations, messages are
those of our partitioned models and their times those of the paper's estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from opticcl.data import load
from opticcl.evaluate.estimator import estimate, fastest, setting
from opticcl.evaluate.iteration import Iteration, Runtime, play
from opticcl.papers import claim
from opticcl.workload.device import device, efficiency_of
from opticcl.workload.job import Group, Job, Task
from opticcl.workload.ramp_tables import CROSS_ENTROPIES, ramp_table9, ramp_table10

_ONE_AT_A_TIME = Runtime(overlap=False)


@cache
def _printed(name: str) -> Any:
    return load("ramp_training.toml")[name]


# --- from the printed shares ------------------------------------------------------------------------------------------


def _of_share(share: float, faster: float = 1.0) -> Iteration:
    """An iteration of 1 s computation and the messages that make up that share, computation so many times faster."""
    group = Group("all", range(2))
    tasks = (Task("computation", 1.0), Task("messages", 0.0, "all_reduce", 1, "all", (0,)))
    job = Job("of a share", "RAMP 8.1", 2, tasks, {"all": group})
    return play(job, lambda *_: share / (1 - share), _ONE_AT_A_TIME, {0: 1 / faster, 1: 1 / faster})


def _speed_up(rival: float, ramp: float) -> float:
    """Of two shares with the same computation."""
    return _of_share(rival).total_s / _of_share(ramp).total_s


def _shares(name: str) -> tuple[float, float]:
    low, high = _printed(name)["value"]
    return float(low), float(high)


@claim("ramp", "RAMP-F16-speedup")
def megatron_least() -> float:
    """Both at their smallest shares."""
    return _speed_up(_shares("megatron_rivals")[0], _shares("megatron_ramp")[0])


@claim("ramp", "RAMP-F16-speedup-most")
def megatron_most() -> float:
    """Both at their largest shares."""
    return _speed_up(_shares("megatron_rivals")[1], _shares("megatron_ramp")[1])


@claim("ramp", "RAMP-F16-speedup-text")
def megatron_printed_twice() -> list[float]:
    """The same two numbers, with the digits that are printed."""
    return [float(f"{megatron_least():.2g}"), float(f"{megatron_most():.2g}")]


@claim("ramp", "RAMP-F16-pp")
def points_least() -> float:
    """Of the smallest shares."""
    return 100 * (_shares("megatron_rivals")[0] - _shares("megatron_ramp")[0])


@claim("ramp", "RAMP-F16-pp-most")
def points_most() -> float:
    """Of the largest shares."""
    return 100 * (_shares("megatron_rivals")[1] - _shares("megatron_ramp")[1])


def _gain(share: float) -> float:
    """What computation twice as fast brings."""
    return _of_share(share).total_s / _of_share(share, faster=2).total_s


def _claim_gain(id: str, system: str, which: int) -> None:
    @claim("ramp", id)
    def found() -> float:
        return _gain(_shares(system)[which])


_claim_gain("RAMP-F16-2xcompute-least", "megatron_ramp", 1)
_claim_gain("RAMP-F16-2xcompute-most", "megatron_ramp", 0)
_claim_gain("RAMP-F16-2xcompute-rivals-least", "megatron_rivals", 1)
_claim_gain("RAMP-F16-2xcompute-rivals-most", "megatron_rivals", 0)


@claim("ramp", "RAMP-F16-7.7-34")
def smaller_shares() -> list[float]:
    """Largest over largest and smallest over smallest."""
    pairs = zip(_shares("megatron_rivals"), _shares("megatron_ramp"), strict=True)
    return sorted(round(rival / ramp, 1) for rival, ramp in pairs)


@claim("ramp", "RAMP-F17-speedup")
def dlrm_least() -> float:
    """Over TopoOpt, at the largest share."""
    return _speed_up(_shares("dlrm_topoopt")[1], _shares("dlrm_ramp")[1])


@claim("ramp", "RAMP-F17-speedup-most")
def dlrm_most() -> float:
    """Over the fat tree, at the largest share."""
    return _speed_up(_shares("dlrm_fat_tree")[1], _shares("dlrm_ramp")[1])


# --- from operations and the paper's estimator ------------------------------------------------------------------------


@cache
def _collective_s(system: str, collective: str, num_ranks: int, size_bytes: int) -> float:
    made = replace(setting("p"), num_nodes=num_ranks)
    return fastest(system, collective, size_bytes, made).total_s if num_ranks > 1 else 0.0


def _time_of(system: str) -> Callable[[str, Group, int], float]:
    return lambda collective, group, size: _collective_s(system, collective, len(group.ranks), size)


@cache
def _of_operations(cross_entropy: float, system: str) -> Iteration:
    """An iteration of a row of table 9: operations at a share of the peak rate, then all messages."""
    row = ramp_table9(cross_entropy).job
    compute_s = row.operations / (device("a100").peak("fp16") * efficiency_of("fp16"))
    messages = tuple(replace(task, after=()) for task in row.tasks if task.communicates)
    job = replace(row, tasks=(Task("computation", compute_s), *messages))
    return play(job, _time_of(system), replace(_ONE_AT_A_TIME, fusion="none"))


def _speed_ups(cross_entropy: float) -> list[float]:
    """Of RAMP over the fat tree and TopoOpt."""
    ramp = _of_operations(cross_entropy, "ramp").total_s
    return [_of_operations(cross_entropy, rival).total_s / ramp for rival in ("fat_tree", "topoopt")]


@claim("ramp", "RAMP-F16-flops")
def operations_most() -> float:
    """Largest of all rows."""
    return max(value for cross_entropy in CROSS_ENTROPIES for value in _speed_ups(cross_entropy))


@claim("ramp", "RAMP-F16-flops-least")
def operations_least() -> float:
    """Smallest of all rows."""
    return min(value for cross_entropy in CROSS_ENTROPIES for value in _speed_ups(cross_entropy))


@claim("ramp", "RAMP-F16-flops-share")
def ramp_share() -> float:
    """Of communication on RAMP, the largest of all rows, in per cent."""
    iterations = [_of_operations(cross_entropy, "ramp") for cross_entropy in CROSS_ENTROPIES]
    return 100 * max(iteration.exposed_s / iteration.total_s for iteration in iterations)


def _dlrm_all_to_all_s(system: str, way: str) -> float:
    """Of the largest row of table 10 [s]."""
    job = ramp_table10(65536).job
    task = next(task for task in job.tasks if task.collective == "all_to_all")
    made = setting("p")
    if system == "topoopt":
        made = replace(made, ring_all_to_all=way)  # type: ignore[arg-type]
    return estimate(system, way, "all_to_all", task.size_bytes, made).total_s


@claim("ramp", "RAMP-F17-order")
def topoopt_wins_by_forwarding() -> bool:
    """Neighbours pass on, as figure 19 needs it: 1.4 s against 0.34 s."""
    return _dlrm_all_to_all_s("topoopt", "forwarding") < _dlrm_all_to_all_s("fat_tree", "flat")


@claim("ramp", "RAMP-F17-order-flat")
def topoopt_wins_with_circuits() -> bool:
    """Circuits to everyone: 24 ms against 0.34 s."""
    return _dlrm_all_to_all_s("topoopt", "flat") < _dlrm_all_to_all_s("fat_tree", "flat")


@claim("ramp", "RAMP-F17-1pct")
def ramp_overhead_of_dlrm() -> bool:
    """On the smallest row, with our roofline for computation: a quarter."""
    iteration = play(ramp_table10(256).job, _time_of("ramp"), _ONE_AT_A_TIME)
    return iteration.exposed_s / iteration.total_s < _shares("dlrm_ramp")[1]
