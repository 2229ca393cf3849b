"""Time of each message of a job on a machine, from compiled and verified plans.

A plan is evaluated once and then gives the time of any message size; algorithms whose lower bound exceeds the best time are
not evaluated. So every message size has its own fastest algorithm, and each algorithm is compiled at most once for a
collective on a number of nodes. Only plans that carry a message are verified, each once.

Reading: a group smaller than the machine has, by default, its own fabric: the same system built for the size of the group,
each node with the rate of the machine's nodes (`groups="scaled"`, as in the papers), or, if the system has no such size, a
part of the next larger one; concurrent groups are assumed not to interfere. With `groups="machine"` all groups of a kind occupy
the nodes of their ranks on the machine itself and run at the same time: one plan has the circuits of all, is judged as one, and
shares what they share. The two ranks of a transfer between stages of a pipeline have the machine to themselves in either case.

An uneven all_to_all goes by the plan of an even one as large as its busiest rank, with the bytes of each pair, and is timed by
the closed form whatever the engine. Another plan may be faster, and no schedule is made for its parts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from opticcl.collective import Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import groups, job
from opticcl.ir import Fabric, IntArray, Timeline, Verdict
from opticcl.ir.task_graph import Matrix, ProcessGroup
from opticcl.ir.verdict import VERIFIED
from opticcl.plans.candidate import Candidate
from opticcl.plans.light import Light
from opticcl.plans.plan import Plan
from opticcl.plans.search import Search, Searches
from opticcl.simulate import Profile, UnevenExchange, moved_share, port_bytes
from opticcl.training.runtime import MessageTimes
from opticcl.units import counted, format_bytes, format_seconds

__all__ = ["CommunicationTimes", "PlanUse", "groups_of_kind", "moved_bytes"]


@dataclass(frozen=True, slots=True)
class PlanUse:
    """A plan that carries messages of a process group.

    Args:
        plan: on the fabric of the group.
        verdict: of its verification.
        light: of its circuits.
        group: name of the process group.
        messages: carried by the plan [count].
        uneven: of these, all_to_alls of unequal parts [count].
        size_bytes: sum of these messages [bytes].
        total_s: sum of their times [s].
        lower_bound_s: no plans on the nodes of the group carry these messages in less [s].
        bound_by: what binds the lower bound of the message that takes longest, in words.
        scaled_s: sum of their times on a fabric of the size of the group; None where that carries no plan [s].
    """

    plan: Plan
    verdict: Verdict
    light: Light
    group: str
    messages: int
    uneven: int
    size_bytes: int
    total_s: float
    lower_bound_s: float
    bound_by: str
    scaled_s: float | None

    def __repr__(self) -> str:
        carried = f"{counted(self.messages, 'message')} of {format_bytes(self.size_bytes)} in all"
        return f"<PlanUse {self.plan.algorithm}: {carried}, {format_seconds(self.total_s)}, {self.verdict.verdict}>"

    @property
    def gap(self) -> float | None:
        """Time over its lower bound; None where the bound is 0."""
        return self.total_s / self.lower_bound_s if self.lower_bound_s else None

    def record(self) -> dict[str, Any]:
        """The plan and what it carries as plain values."""
        return {
            "group": self.group,
            "collective": self.plan.schedule.collective.name,
            "algorithm": self.plan.algorithm,
            "ranks": self.plan.schedule.collective.num_ranks,
            "groups": self.plan.fabric.num_members,
            "machine_nodes": self.plan.fabric.num_machine_nodes,
            "verdict": self.verdict.verdict,
            "verified": VERIFIED[self.verdict.verdict],
            **self.light.record(),
            "messages": self.messages,
            "uneven": self.uneven,
            "bytes": self.size_bytes,
            "total_s": self.total_s,
            "lower_bound_s": self.lower_bound_s,
            "bound_by": self.bound_by,
            "gap": self.gap,
            "scaled_s": self.scaled_s,
        }


@dataclass(slots=True)
class _Carried:
    """Messages that a candidate of a search carries in a process group, with their times, the bounds on these and how many are
    uneven."""

    choice: Search
    candidate: Candidate
    collective: str
    group: ProcessGroup
    sizes: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    bounds: list[Timeline] = field(default_factory=list)
    uneven: int = 0


class CommunicationTimes(MessageTimes):
    """Times of the messages of jobs on one machine, as `simulate_iteration` takes them.

    Args:
        machine: the fabric.
        planner: compiles the plans; several machines may share one.
        groups: "scaled" gives a group smaller than the machine its own fabric; "machine" uses the nodes of its ranks.
    """

    def __init__(
        self, machine: Fabric, planner: Searches | None = None, *, groups: Literal["scaled", "machine"] = "scaled"
    ) -> None:
        self.machine, self._planner, self.groups = machine, planner or Searches(), groups
        self.tolerance = self._planner.tolerance
        self._homes: dict[tuple[range | tuple[int, ...], int], Fabric] = {}
        self._built: dict[int, Fabric] = {}
        self._choices: dict[tuple[range | tuple[int, ...], int, str], Search] = {}
        self._carried: dict[tuple[int, str, str], _Carried] = {}
        self._uneven: dict[int, UnevenExchange] = {}  # by identity of the plan, which it keeps
        self._known: dict[tuple[int, Matrix], Timeline] = {}  # of uneven messages, by identity of the candidate
        self._scaled_times = (
            self if groups == "scaled" else CommunicationTimes(machine, self._planner, groups="scaled")
        )  # also of groups that are on the machine

    def __call__(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Time of one message in a group; all groups of its kind take the same time concurrently [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        Raises: UnsupportedError: the fabric supports no algorithm. FabricError: a rank beyond the nodes of the machine.
        """
        if len(group.ranks) < 2:
            return 0.0
        choice, sent = self.choice_of(collective, group, size_bytes)
        timeline, found = choice.timed(sent)
        took = self._timeline(timeline, found, matrix_bytes).total_s
        self.carry(collective, group, size_bytes, found, took, timeline, uneven=bool(matrix_bytes))
        return took

    def moving_s(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Part of the time of a message for which its plan moves data, no less than `least_s` [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """
        if len(group.ranks) < 2:
            return 0.0
        choice, sent = self.choice_of(collective, group, size_bytes)
        timeline = self._timeline(*choice.timed(sent), matrix_bytes)
        moving_s = float(timeline.transfer_s.sum())
        return min(timeline.total_s, max(moving_s, self.least_s(collective, group, size_bytes, matrix_bytes)))

    def least_s(self, collective: str, group: ProcessGroup, size_bytes: int, matrix_bytes: Matrix = ()) -> float:
        """Bytes that a rank must send or receive with any schedule, over the rate of a node [s].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            matrix_bytes: of an uneven all_to_all, as of `Task`.
        """
        if len(group.ranks) < 2:
            return 0.0
        if matrix_bytes:
            moved = float(port_bytes(np.array(matrix_bytes)).max())
        else:
            moved = moved_bytes(collective, len(group.ranks), size_bytes)
        return moved * 8 / self.machine.node_rate_bits_per_s

    def _timeline(self, even: Timeline, candidate: Candidate, matrix_bytes: Matrix) -> Timeline:
        """The time of a message by a candidate: `even`, or that of the bytes of each pair."""
        if not matrix_bytes:
            return even
        key = id(candidate), matrix_bytes
        if key not in self._known:
            self._known[key] = self.uneven_timeline(candidate.profile, matrix_bytes)
        return self._known[key]

    def uneven_timeline(self, even: Profile, matrix_bytes: Matrix) -> Timeline:
        """Time of an uneven all_to_all by the plan of an even one.

        Args:
            even: profile of the plan.
            matrix_bytes: as of `Task` [bytes].
        """
        plan = even.plan
        if id(plan) not in self._uneven:
            self._uneven[id(plan)] = UnevenExchange(plan)
        return self._uneven[id(plan)].timeline(even, np.array(matrix_bytes))

    def choice_of(self, collective: str, group: ProcessGroup, size_bytes: int) -> tuple[Search, int]:
        """The plans that may carry a message of two or more ranks, and its size as they count it [bytes].

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
        Raises: FabricError: a rank beyond the nodes of the machine.
        """
        pair = collective == "send_recv" and len(group.ranks) == 2
        if pair:
            group = replace(group, num_groups=1)  # neighbours in a pipeline have a rank in common
        key = group.ranks, group.num_groups, collective
        if key not in self._choices:
            self._choices[key] = self._planner.of(self.home(group), Request(collective))
        if collective == "barrier":
            return self._choices[key], 0  # a barrier carries no data
        return self._choices[key], size_bytes * (2 if pair else 1)  # the buffer of a pair has a block for each rank

    def carry(
        self,
        collective: str,
        group: ProcessGroup,
        size_bytes: int,
        candidate: Candidate,
        took_s: float,
        bound: Timeline,
        *,
        uneven: bool = False,
    ) -> None:
        """Count a message for `used`.

        Args:
            collective: canonical name.
            group: ranks that call it.
            size_bytes: message of a rank [bytes].
            candidate: whose plan carries it.
            took_s: its time [s].
            bound: of which its lower bound is.
            uneven: whether it has unequal parts.
        """
        key = id(candidate), group.name, collective
        if key not in self._carried:
            self._carried[key] = _Carried(self.choice_of(collective, group, 0)[0], candidate, collective, group)
        carried = self._carried[key]
        carried.sizes.append(0 if collective == "barrier" else size_bytes)
        carried.times.append(took_s)
        carried.bounds.append(bound)
        carried.uneven += uneven

    def home(self, group: ProcessGroup) -> Fabric:
        """The fabric of a group.

        Raises: FabricError: a rank beyond the nodes of the machine.
        """
        key = group.ranks, group.num_groups
        if key not in self._homes:
            self._homes[key] = self._home(group)
        return self._homes[key]

    def used(self) -> tuple[PlanUse, ...]:
        """The plans that carried messages since the last call, verified, in descending order of time."""
        uses = [self._use(carried) for carried in self._carried.values()]
        self._carried.clear()
        return tuple(sorted(uses, key=lambda use: -use.total_s))

    def _use(self, carried: _Carried) -> PlanUse:
        """Verify a plan and sum up what it carried."""
        choice, one, sizes = carried.choice, carried.candidate, carried.sizes
        self._planner.progress(f"verify {choice.fabric.name} with {one.schedule.name}")
        return PlanUse(
            Plan(one.profile.plan, max(sizes)),
            choice.verdict(one),
            choice.light(one),
            carried.group.name,
            len(sizes),
            carried.uneven,
            sum(sizes),
            sum(carried.times),
            sum(bound.lower_bound_s for bound in carried.bounds),
            max(carried.bounds, key=lambda bound: bound.lower_bound_s).bound_by,
            self._scaled_s(carried),
        )

    def _scaled_s(self, carried: _Carried) -> float | None:
        """Time of messages on a fabric of the size of their group [s]; None where it carries no plan for them."""
        try:
            alone = [
                self._scaled_times.choice_of(carried.collective, carried.group, size_bytes)
                for size_bytes in carried.sizes
            ]
            return sum(choice.timed(sent)[0].total_s for choice, sent in alone)
        except (UnsupportedError, FabricError):
            return None

    def all_suit(self) -> bool:
        """Whether the plans that carried messages since the last `used` are right, and their light closes or is ignored."""
        used = [(carried.choice, carried.candidate) for carried in self._carried.values()]
        return all(choice.suits(one) and choice.verdict(one).ok for choice, one in used)

    def declined(self) -> tuple[str, ...]:
        """Why the requested algorithm was not used for some collectives."""
        choices = {id(one.choice): one.choice for one in self._carried.values()}.values()
        return tuple(f"{c.wanted.name}: {c.declined}" for c in choices if c.declined)

    def not_tried(self) -> tuple[str, ...]:
        """What the searches left out, each line once."""
        return tuple(dict.fromkeys(line for choice in self._choices.values() for line in choice.not_tried))

    def failures(self) -> tuple[str, ...]:
        """Errors of algorithms that raised an exception, each once."""
        return tuple(dict.fromkeys(error for choice in self._choices.values() for error in choice.failures.values()))

    def _home(self, group: ProcessGroup) -> Fabric:
        ranks, machine = group.ranks, self.machine
        if max(ranks) >= machine.num_nodes:
            raise FabricError(
                f"{machine.name}: group {group.name!r} has rank {max(ranks)}, but the machine has {machine.num_nodes} nodes"
            )
        if len(ranks) == machine.num_nodes and list(ranks) == list(range(machine.num_nodes)):
            return machine
        if self.groups == "machine":
            members = groups_of_kind(group, machine.num_nodes)
            return groups(machine, members) if len(members) > 1 else job(machine, tuple(ranks))
        if len(ranks) not in self._built:
            self._built[len(ranks)] = self._scaled(len(ranks))
        return self._built[len(ranks)]

    def _scaled(self, num_nodes: int) -> Fabric:
        """The machine's system built for `num_nodes` nodes, or a part of the next larger one."""
        machine = self.machine
        system = type(machine.machine)
        for size in range(num_nodes, machine.num_nodes):
            with suppress(FabricError):
                made = system(**{**machine.parameters, **system.parameters_at_scale(size)})
                if made.num_nodes != size:
                    continue
                made = made.with_node_rate(machine.node_rate_bits_per_s)
                return made if size == num_nodes else job(made, range(num_nodes))
        return job(machine, range(num_nodes))


def groups_of_kind(group: ProcessGroup, num_ranks: int) -> list[IntArray]:
    """Ranks of all groups of a kind, the lowest first: translations of one of them that have no rank in common.

    That one alone where there are no such translations.

    Args:
        group: one of them.
        num_ranks: of the job [count].
    """
    ranks, found = np.array(group.ranks), list[IntArray]()
    if group.num_groups < 2:
        return [ranks]
    pattern, free = ranks - ranks.min(), np.ones(num_ranks, bool)
    for first in range(num_ranks):
        if len(found) < group.num_groups and free[first]:
            one = first + pattern
            if one.max() >= num_ranks or not free[one].all():
                break
            free[one] = False
            found.append(one)
    among = any(np.array_equal(one, ranks) for one in found)
    return found if len(found) == group.num_groups and among else [ranks]


def moved_bytes(collective: str, num_ranks: int, size_bytes: int) -> float:
    """Bytes that a rank must send or receive with any schedule [bytes].

    Args:
        collective: canonical name.
        num_ranks: of the group [count].
        size_bytes: message [bytes].
    """
    if collective == "send_recv" and num_ranks == 2:
        return size_bytes
    return moved_share(Request(collective).on(num_ranks, num_ranks)) * size_bytes if num_ranks > 1 else 0.0
