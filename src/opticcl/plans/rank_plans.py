"""Plans for processes that execute them: compiled for a group of ranks, verified, and cut into one schedule per rank."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from opticcl.collective import Request
from opticcl.errors import OpticclError, ParameterError, UnsupportedError, VerificationError
from opticcl.execute.ranks import RankSchedule, rank_schedules
from opticcl.registry import canonical, parse_call
from opticcl.units import counted

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plans.candidate import Candidate
    from opticcl.plans.search import Searches

__all__ = ["EarlyPlanner", "RankPlanner", "rejection", "size_class"]


def size_class(size_bytes: int) -> int:
    """Number of the range of sizes that share a plan: powers of two.

    >>> [size_class(size) for size in (0, 1, 1000, 1024, 1 << 20)]
    [0, 1, 10, 11, 21]
    """
    return size_bytes.bit_length()


def rejection(error: VerificationError, plan: str) -> ParameterError:
    """A verdict on a plan that processes were to execute, in one line with its first violation.

    Args:
        error: of the verifier.
        plan: in words.
    """
    _, *violations = str(error).splitlines()
    first = f": {violations[0].strip()}" if violations else ""
    return ParameterError(f"the plan is rejected{first}; opticcl verify shows all ({plan})")


@dataclass(frozen=True)
class RankPlanner:
    """Compiles, verifies and cuts plans for a group of ranks.

    Args:
        num_ranks: ranks of the group [count].
        fabric: a fabric, or "name:key=value,..."; None: an ideal switch of `num_ranks` nodes.
        algorithm: "name:key=value,..." or "auto".
        nodes: node of each rank; None: the first `num_ranks` nodes.
    """

    num_ranks: int
    fabric: Fabric | str | None = None
    algorithm: str = "auto"
    nodes: Sequence[int] | None = None

    def __call__(self, request: Request, size_bytes: int) -> list[RankSchedule]:
        """The verified schedules of all ranks.

        "auto" is the fastest algorithm that gives all ranks of an all_reduce the same bits, with sums on the memory of a host.

        Args:
            request: collective and root.
            size_bytes: size of the message; plans are compiled for the smallest size of its class [bytes].
        Raises: OpticclError: unknown names, a fabric that is too small or cannot carry it, a wrong plan.
        """
        from opticcl.plans.plan import Plan, compile

        where, typical_bytes = self._where, max(1, 1 << max(0, size_class(size_bytes) - 1))
        if self._named:
            plan = compile(where, request, typical_bytes, algorithm=self.algorithm)
            verdict, schedules = plan.verify(), rank_schedules(plan.schedule)
        else:
            search = self._searches.of(where, request)
            fastest = search.fastest([typical_bytes], accepts=partial(_suits, request))
            if fastest is None and search.fastest([typical_bytes]) is not None:
                raise UnsupportedError(
                    f"no algorithm adds in one order on all ranks of {where.name} with {where.num_nodes} nodes; name one"
                )
            if fastest is None:
                raise search.refusal()
            plan = Plan(fastest.plan(), typical_bytes)
            verdict, schedules = search.verdict(fastest), rank_schedules(plan.schedule)
            search.release()
        try:
            verdict.raise_if_bad()
        except VerificationError as error:
            raise rejection(error, str(plan)) from None
        return schedules

    @cached_property
    def _where(self) -> Fabric:
        """The ranks on their fabric."""
        from opticcl.fabrics import job

        where, nodes = self.check(), list(self.nodes if self.nodes is not None else range(self.num_ranks))
        return where if nodes == list(range(where.num_nodes)) else job(where, nodes)

    @property
    def _named(self) -> bool:
        """Whether the algorithm is named."""
        return canonical(self.algorithm) != "auto"

    @cached_property
    def _searches(self) -> Searches:
        """Of the fastest plans; what is known of a collective holds for every size."""
        from opticcl.assumptions import DEFAULT_SET, assumptions
        from opticcl.plans.search import Searches

        return Searches(assumptions=assumptions(DEFAULT_SET, memory_bytes_per_s="host"))

    def part(self, ranks: Sequence[int]) -> RankPlanner:
        """The planner of some of the ranks, in their order."""
        nodes = None if self.fabric is None else [self.nodes[rank] if self.nodes else rank for rank in ranks]
        return replace(self, num_ranks=len(ranks), nodes=nodes)

    def check(self) -> Fabric:
        """The fabric, if it has a node for every rank.

        Raises: OpticclError: an unknown fabric or algorithm; ParameterError: too few nodes.
        """
        from opticcl.fabrics import as_fabric
        from opticcl.schedule import ALGORITHMS

        where = as_fabric(self.fabric if self.fabric is not None else f"ideal:nodes={self.num_ranks}")
        last = max(self.nodes) if self.nodes is not None else self.num_ranks - 1
        if last >= where.num_nodes:
            raise ParameterError(
                f"the group has {counted(self.num_ranks, 'rank')} up to node {last} and {where.name} has "
                f"{counted(where.num_nodes, 'node')}; use a larger fabric or fewer processes"
            )
        if self._named:
            ALGORITHMS.get(parse_call(self.algorithm)[0])
        return where


class EarlyPlanner:
    """A planner that loads what every plan needs on a thread of its own, while the processes of a group find each other.

    Args: planner: makes the plans.
    """

    def __init__(self, planner: RankPlanner) -> None:
        self._planner = planner
        self._thread = threading.Thread(target=self._load, name="opticcl-early")
        self._thread.start()

    def __call__(self, request: Request, size_bytes: int) -> list[RankSchedule]:
        """The verified schedules of all ranks, as of the planner."""
        self._thread.join()
        return self._planner(request, size_bytes)

    def part(self, ranks: Sequence[int]) -> RankPlanner:
        """The planner of some of the ranks, in their order."""
        return self._planner.part(ranks)

    def _load(self) -> None:
        freezes = gc.get_freeze_count() == 0
        if freezes:  # to look for garbage in all that torch made takes as long as the imports
            gc.freeze()
        try:
            self._planner(Request("all_reduce", 0), 1)
        except OpticclError:  # reported by the first call, which meets it again
            return
        finally:
            if freezes:
                gc.unfreeze()


def _suits(request: Request, candidate: Candidate) -> bool:
    """Whether a plan gives all ranks of an all_reduce the same bits, or is of another collective."""
    from opticcl.execute.sums import adds_in_one_order

    return request.name != "all_reduce" or adds_in_one_order(rank_schedules(candidate.schedule))
