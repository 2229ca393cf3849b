"""LUMORPH's training times (section 6.1): the shares of communication that its factors require, and its own log of NCF."""

from __future__ import annotations

from functools import cache

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric_at_scale
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.papers import claim, printed_claims
from opticcl.papers._inverse import argument_of
from opticcl.plans.search import Searches
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import Runtime, simulate_iteration


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
