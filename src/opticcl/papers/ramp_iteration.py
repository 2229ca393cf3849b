"""RAMP's training times, figures 16 and 17: what follows from its own shares of communication, and from its own formulas.

The measured computation behind the figures is not in the text. A share of communication and no overlap fix an iteration up to
its length, so the paper's shares can be held against its speed-ups. Where computation follows from operations, messages are
those of our partitioned models and their times those of the paper's estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import starmap
from typing import Any, NamedTuple

from opticcl.files import read_toml
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.papers.ramp_estimator import estimate, fastest, setting
from opticcl.papers.ramp_models import ramp_table9, ramp_table10
from opticcl.training.device import device, efficiency_of
from opticcl.training.iteration import Runtime, simulate_iteration
from opticcl.training.target import CROSS_ENTROPIES

_ONE_AT_A_TIME = Runtime(overlap=False)
P = setting("p")
_TENSOR_DOMINANT = 1.67  # cross-entropy below which all 65,536 devices are used


@cache
def _printed(name: str) -> Any:
    return read_toml("opticcl.papers", "ramp_training.toml")[name]


# --- from the printed shares ------------------------------------------------------------------------------------------


def _of_share_s(share: float, faster: float = 1.0) -> float:
    """Time of 1 s of computation with that share of communication; its computation is then `faster` times as fast [s]."""
    group = ProcessGroup("all", range(2))
    tasks = (Task("computation", 1.0), Task("messages", 0.0, "all_reduce", 1, "all", (0,)))
    job = TaskGraph("of a share", "RAMP 8.1", 2, tasks, {"all": group})
    speeds = {0: 1 / faster, 1: 1 / faster}
    return simulate_iteration(job, lambda *_: share / (1 - share), _ONE_AT_A_TIME, speeds).total_s


def _speed_up(rival: float, ramp: float) -> float:
    """Speed-up that two shares of communication imply, with the same computation."""
    return _of_share_s(rival) / _of_share_s(ramp)


def _shares(name: str) -> tuple[float, float]:
    low, high = _printed(name)["value"]
    return float(low), float(high)


@claim("ramp", "RAMP-F16-speedup", 0)
@claim("ramp", "RAMP-F16-speedup-most", 1)
def megatron(end: int) -> float:
    """Both at their smallest (0) or largest (1) shares."""
    return _speed_up(_shares("megatron_rivals")[end], _shares("megatron_ramp")[end])


@claim("ramp", "RAMP-F16-speedup-text")
def megatron_printed_twice() -> list[float]:
    """The same two numbers, with the digits that are printed."""
    return [float(f"{megatron(end):.2g}") for end in (0, 1)]


@claim("ramp", "RAMP-F16-pp", 0)
@claim("ramp", "RAMP-F16-pp-most", 1)
def points(end: int) -> float:
    """Difference of the smallest (0) or largest (1) shares [percentage points]."""
    return 100 * (_shares("megatron_rivals")[end] - _shares("megatron_ramp")[end])


def _gain(share: float) -> float:
    """Speed-up by computation twice as fast."""
    return _of_share_s(share) / _of_share_s(share, faster=2)


def _share_of(gain: float) -> float:
    """Share of communication with which computation twice as fast gains that much."""
    return 1 - argument_of(lambda computation: _gain(1 - computation), gain, 0.5, 1.0, 1e-6)


@claim("ramp", "RAMP-F16-2xcompute-least")
def gain_of_ramp_least() -> Found:
    least, most = (printed_claims("ramp")[f"RAMP-F16-2xcompute-{end}"]["published"] for end in ("least", "most"))
    return found(_gain(_shares("megatron_ramp")[1]), low=100 * _share_of(most), high=100 * _share_of(least))


@claim("ramp", "RAMP-F16-2xcompute-most", "megatron_ramp", 0)
@claim("ramp", "RAMP-F16-2xcompute-rivals-least", "megatron_rivals", 1)
@claim("ramp", "RAMP-F16-2xcompute-rivals-most", "megatron_rivals", 0)
def gain_of_twice_the_computation(name: str, end: int) -> float:
    return _gain(_shares(name)[end])


@claim("ramp", "RAMP-F16-7.7")
def smaller_share() -> float:
    """Largest over largest."""
    return round(_shares("megatron_rivals")[1] / _shares("megatron_ramp")[1], 1)


@claim("ramp", "RAMP-F16-34")
def smallest_share() -> Found:
    """Of the share that is left where the change is least."""
    rival, ramp = _shares("megatron_rivals")[0], _shares("megatron_ramp")[0]
    change = printed_claims("ramp")["RAMP-F16-pp"]["published"] / 100
    return found(rival / (rival - change), by_shares=rival / ramp)


@claim("ramp", "RAMP-F17-speedup")
def dlrm_least() -> float:
    """Over TopoOpt, at the largest share."""
    return _speed_up(_shares("dlrm_topoopt")[1], _shares("dlrm_ramp")[1])


@claim("ramp", "RAMP-F17-speedup-most")
def dlrm_most() -> Found:
    """Over the fat tree, at the largest share."""
    ramp, printed = _shares("dlrm_ramp")[1], printed_claims("ramp")["RAMP-F17-speedup-most"]["published"]
    needed = argument_of(lambda share: _speed_up(share, ramp), printed, 0.9, 0.999, 1e-6)
    return found(_speed_up(_shares("dlrm_fat_tree")[1], ramp), needed=100 * needed)


# --- from operations and the paper's estimator ------------------------------------------------------------------------


@cache
def _collective_s(system: str, collective: str, num_ranks: int, size_bytes: int) -> float:
    made = replace(P, num_nodes=num_ranks)
    return fastest(system, collective, size_bytes, made).total_s if num_ranks > 1 else 0.0


def _time_of(system: str) -> Callable[[str, ProcessGroup, int], float]:
    return lambda collective, group, size: _collective_s(system, collective, len(group.ranks), size)


class _Parts(NamedTuple):
    """Computation of an iteration without overlap, and all of it [s]."""

    computation_s: float
    total_s: float

    @property
    def messages_s(self) -> float:
        """Communication, none of which is hidden [s]."""
        return self.total_s - self.computation_s


@cache
def _of_operations(cross_entropy: float, system: str) -> _Parts:
    """An iteration of a row of table 9: operations at a share of the peak rate, then one message after the other."""
    job, time_of = ramp_table9(cross_entropy).job, _time_of(system)
    computation_s = job.operations / (device("a100").peak("fp16") * efficiency_of("fp16"))
    messages = ((task.collective, job.groups[task.group], task.size_bytes) for task in job.tasks if task.communicates)
    return _Parts(computation_s, sum(starmap(time_of, messages), start=computation_s))


def _speed_ups(cross_entropy: float) -> list[float]:
    """Of RAMP over the fat tree and TopoOpt."""
    ramp = _of_operations(cross_entropy, "ramp").total_s
    return [_of_operations(cross_entropy, rival).total_s / ramp for rival in ("fat_tree", "topoopt")]


@claim("ramp", "RAMP-F16-flops", max)
@claim("ramp", "RAMP-F16-flops-least", min)
def operations(which: Callable[[Iterable[float]], float]) -> float:
    """Largest or smallest of all rows."""
    return which(value for cross_entropy in CROSS_ENTROPIES for value in _speed_ups(cross_entropy))


@claim("ramp", "RAMP-F16-dp")
def operations_where_data_parallelism_dominates() -> list[float]:
    """Least and most over both rivals."""
    rows = [value for value in CROSS_ENTROPIES if value >= _TENSOR_DOMINANT]
    speed_ups = [value for cross_entropy in rows for value in _speed_ups(cross_entropy)]
    return [min(speed_ups), max(speed_ups)]


def _share(cross_entropy: float, system: str) -> float:
    """Share of communication in an iteration [%]."""
    parts = _of_operations(cross_entropy, system)
    return 100 * parts.messages_s / parts.total_s


@claim("ramp", "RAMP-F16-mp")
def share_where_tensor_parallelism_dominates() -> list[float]:
    """Least and most of TopoOpt."""
    shares = [_share(value, "topoopt") for value in CROSS_ENTROPIES if value < _TENSOR_DOMINANT]
    return [min(shares), max(shares)]


@claim("ramp", "RAMP-F16-flops-share")
def ramp_share() -> Found:
    """Of communication on RAMP, the largest of all rows, in per cent."""
    largest = max(CROSS_ENTROPIES, key=lambda value: _share(value, "ramp"))
    parts = _of_operations(largest, "ramp")
    return found(_share(largest, "ramp"), messages_s=parts.messages_s, computation_s=parts.computation_s)


def _dlrm_all_to_all_s(system: str, way: str) -> float:
    """Of the largest row of table 10 [s]."""
    job = ramp_table10(65536).job
    task = next(task for task in job.tasks if task.collective == "all_to_all")
    made = replace(P, ring_all_to_all=way) if system == "topoopt" else P  # type: ignore[arg-type]
    return estimate(system, way, "all_to_all", task.size_bytes, made).total_s


@claim("ramp", "RAMP-F17-order", "forwarding")
@claim("ramp", "RAMP-F17-order-flat", "flat")
def topoopt_wins(way: str) -> Found:
    """By neighbours that pass on, as figure 19 needs it, or with circuits to all nodes."""
    topoopt_s, tree_s = _dlrm_all_to_all_s("topoopt", way), _dlrm_all_to_all_s("fat_tree", "flat")
    return found(topoopt_s < tree_s, topoopt_s=topoopt_s, topoopt_ms=topoopt_s * 1e3, tree_s=tree_s)


@claim("ramp", "RAMP-F17-1pct")
def ramp_overhead_of_dlrm() -> Found:
    """On the smallest row, with our roofline for computation."""
    iteration = simulate_iteration(ramp_table10(256).job, _time_of("ramp"), _ONE_AT_A_TIME)
    share = iteration.exposed_s / iteration.total_s
    computation_ms, messages_ms = (1e3 * s for s in (iteration.total_s - iteration.exposed_s, iteration.exposed_s))
    return found(
        share < _shares("dlrm_ramp")[1], computation_ms=computation_ms, messages_ms=messages_ms, share=100 * share
    )
