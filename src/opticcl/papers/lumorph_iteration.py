"""LUMORPH's training times (section 6.1): what its factors would need, and what its own log of NCF gives."""

from __future__ import annotations

from functools import cache

from opticcl.data import load
from opticcl.evaluate.communication import CommunicationTimes, Planner
from opticcl.evaluate.iteration import Runtime, play
from opticcl.fabric import fabric_at_scale
from opticcl.papers import claim
from opticcl.simulate import assumptions
from opticcl.workload.job import Group, Job, Task


def _speed_up(share: float, faster: float) -> float:
    """Of an iteration with that share of communication and no overlap, whose messages become so many times faster."""
    tasks = (Task("computation", 1 - share), Task("messages", 0.0, "all_reduce", 1, "all", (0,)))
    job = Job("of a share", "LUMORPH 6.1", 2, tasks, {"all": Group("all", range(2))})
    before, after = (play(job, lambda *_, s=s: share / s, Runtime(overlap=False)).total_s for s in (1.0, faster))
    return before / after


def _share_needed(speed_up: float, faster: float) -> float:
    """The share of communication with which messages so many times faster give that speed-up; 1 if none does."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _speed_up(middle, faster) < speed_up else (low, middle)
    return high


def _shares_needed(faster: float) -> list[float]:
    printed = load("papers/lumorph_iteration.toml")["L26"]["printed"]
    return [round(_share_needed(value, faster), 3) for value in printed]


@claim("lumorph", "L26")
def shares_needed() -> list[float]:
    """With messages 4 times faster."""
    return _shares_needed(4)


@claim("lumorph", "L26.most")
def shares_needed_at_most() -> list[float]:
    """With messages 10.1 times faster."""
    return _shares_needed(10.1)


@claim("lumorph", "L26.bert")
def share_of_bert() -> float:
    """With messages 1.7 times faster."""
    return _share_needed(1.7, 1.7)


@cache
def _messages_s(algorithm: str, nodes: int) -> float:
    """NCF's all_reduces one after the other on the wafer [s]."""
    group = Group("all", range(nodes))
    planner = Planner(algorithm, assumptions("lumorph"))
    times = CommunicationTimes(fabric_at_scale("lightpath", nodes), planner)
    calls = load("papers/lumorph_iteration.toml")["L26.ncf"]["calls"]
    tasks = tuple(Task("gradient", 0.0, "all_reduce", size, "all") for size, count in calls for _ in range(count))
    return play(Job("ncf", "LUMORPH's log", nodes, tasks, {"all": group}), times, Runtime(fusion="none")).total_s


@claim("lumorph", "L26.ncf")
def ncf_on_eight() -> float:
    """Rings over LUMORPH by its own algorithm, radix 2."""
    return _messages_s("ring", 8) / _messages_s("lumorph:radix=2", 8)


@claim("lumorph", "L26.ncf256")
def ncf_on_all() -> float:
    """The same on all 256 tiles, where the log's list of all_reduces is the same."""
    return _messages_s("ring", 256) / _messages_s("lumorph:radix=2", 256)
