"""How long each message of a job takes on a machine, by plans that were compiled and are judged.

A plan's time for any size follows from one look at its steps, and a bound tells which algorithms need no look; so every
message size has its own fastest algorithm, and each algorithm is compiled at most once for a collective on a number of
nodes. Only plans that carry a message are judged, each once.

Reading: a group smaller than the machine has, by default, a fabric of its own: that system built for so many nodes, each
with the rate of the machine's (`groups="scaled"`, as the papers count), or, where there is no such machine, a part of the
next larger one. With `groups="machine"` it is the nodes of its ranks on the machine itself, with the algorithms that run on
part of one. Groups that are at work at once are taken not to disturb each other.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from opticcl.collective import Request
from opticcl.errors import FabricError
from opticcl.evaluate.planner import Choice, Planner
from opticcl.fabric import FABRICS, fabric, job, with_node_rate
from opticcl.ir import CircuitPlan, Fabric, Verdict
from opticcl.plan import Plan
from opticcl.simulate import moved_share
from opticcl.units import counted, format_bytes, format_seconds
from opticcl.workload.job import Group

__all__ = ["CommunicationTimes", "Planner", "Used", "moved_bytes"]


@dataclass(frozen=True, slots=True)
class Used:
    """A plan that carries messages.

    Args:
        plan: on the fabric of the group.
        verdict: of the judge.
        messages: that it carries [count].
        size_bytes: and their sum [bytes].
        total_s: and the time they take [s].
    """

    plan: Plan
    verdict: Verdict
    messages: int
    size_bytes: int
    total_s: float

    def __repr__(self) -> str:
        carried = f"{counted(self.messages, 'message')} of {format_bytes(self.size_bytes)} in all"
        judged = "verified" if self.verdict.ok else "wrong"
        return f"<Used {self.plan.algorithm}: {carried}, {format_seconds(self.total_s)}, {judged}>"


class CommunicationTimes:
    """Times of the messages of jobs on one machine: what `play` asks for.

    Args:
        machine: where the jobs run.
        planner: that makes the plans; it may serve several machines.
        groups: scaled gives a group smaller than the machine a fabric of its own; machine takes the nodes of its ranks.
    """

    def __init__(
        self, machine: Fabric, planner: Planner | None = None, *, groups: Literal["scaled", "machine"] = "scaled"
    ) -> None:
        self.machine, self._planner, self._groups = machine, planner or Planner(), groups
        self._homes: dict[range | tuple[int, ...], Fabric] = {}
        self._built: dict[int, Fabric] = {}
        self._choices: dict[tuple[range | tuple[int, ...], str], Choice] = {}
        self._carried: dict[int, tuple[Choice, CircuitPlan, list[int], list[float]]] = {}

    def __call__(self, collective: str, group: Group, size_bytes: int) -> float:
        """Time of one message in a group; all its groups at once take as long [s].

        Raises: UnsupportedError: the fabric can carry no algorithm. FabricError: a rank that the machine has not.
        """
        n = len(group.ranks)
        if n < 2:
            return 0.0
        if collective == "barrier":
            size_bytes = 0  # it tells that all are there, and nothing else
        sent = (
            size_bytes * n if collective == "send_recv" and n == 2 else size_bytes
        )  # a buffer has a block for each rank
        key = group.ranks, collective
        if key not in self._choices:
            self._choices[key] = self._planner.choice(self.home(group), Request(collective))
        choice = self._choices[key]
        took, plan = choice.best(sent)
        _, _, sizes, times = self._carried.setdefault(id(plan), (choice, plan, [], []))
        sizes.append(size_bytes)
        times.append(took)
        return took

    def home(self, group: Group) -> Fabric:
        """The fabric that a group has.

        Raises: FabricError: a rank that the machine has not.
        """
        if group.ranks not in self._homes:
            self._homes[group.ranks] = self._home(group)
        return self._homes[group.ranks]

    def used(self) -> tuple[Used, ...]:
        """The plans that carried messages since the last time, judged; what carried most time first."""
        found = []
        for choice, plan, sizes, times in self._carried.values():
            self._planner.progress(f"verify {choice.fabric.name} with {plan.schedule.name}")
            used = Used(Plan(plan, max(sizes)), choice.verdict(plan), len(sizes), sum(sizes), sum(times))
            found.append(used)
        self._carried.clear()
        return tuple(sorted(found, key=lambda used: -used.total_s))

    def declined(self) -> tuple[str, ...]:
        """Why the planner's algorithm did not carry what it did not carry."""
        choices = {id(choice): choice for choice, *_ in self._carried.values()}.values()
        return tuple(f"{c.collective}: {c.declined}" for c in choices if c.declined)

    def _home(self, group: Group) -> Fabric:
        ranks, machine = group.ranks, self.machine
        if max(ranks) >= machine.num_nodes:
            raise FabricError(
                f"{machine.name}: group {group.name!r} has rank {max(ranks)}, there are {machine.num_nodes} nodes"
            )
        if len(ranks) == machine.num_nodes and list(ranks) == list(range(machine.num_nodes)):
            return machine
        if self._groups == "machine":
            return job(machine, tuple(ranks))
        if len(ranks) not in self._built:
            self._built[len(ranks)] = self._scaled(len(ranks))
        return self._built[len(ranks)]

    def _scaled(self, num_nodes: int) -> Fabric:
        """The machine's system built for that many nodes, or a part of the next larger one."""
        machine = self.machine
        maker = FABRICS.get(machine.name)
        for size in range(num_nodes, machine.num_nodes):
            with suppress(FabricError):
                made = fabric(machine.name, **{**machine.parameters, **maker.at_scale(size)})
                if made.num_nodes != size:
                    continue
                made = with_node_rate(made, machine.node_rate_bits_per_s)
                return made if size == num_nodes else job(made, range(num_nodes))
        return job(machine, range(num_nodes))


def moved_bytes(collective: str, num_ranks: int, size_bytes: int) -> float:
    """What a rank must send or receive of a message, whatever the schedule [bytes]."""
    if collective == "send_recv" and num_ranks == 2:
        return size_bytes
    return moved_share(Request(collective).on(num_ranks, num_ranks)) * size_bytes if num_ranks > 1 else 0.0
