"""Which messages of an iteration share the rate of a node, and how fast each of them moves.

::

    time      |--latency--|=====moves alone=====|==moves at 1/2==|
                              |-----latency-----|==moves at 1/2==|=====moves alone====|

A node sends at its rate and receives at its rate. While k messages that move data share a direction of a node, each moves at
1/k of its speed; of a message of several nodes the slowest counts. So no direction of a node carries more than its rate, and
no message is faster than alone. A collective sends and receives on every node; a transfer sends on one and receives on the
other.

Reading: latency, control and changes of circuits are not shared, and precede the part of a message in which its data moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph

__all__ = ["Ports", "Sharing"]


def _is_directed(task: Task, group: ProcessGroup) -> bool:
    """Whether a message goes from the first rank of its group to the second, both known."""
    return task.collective == "send_recv" and len(group.ranks) == 2 and group.source != "assumed"


class Ports:
    """The directions of nodes that each message of a job uses: 2 x node sends, 2 x node + 1 receives.

    Nodes are the devices of the job and, behind them, ranks without tasks of their own where messages of different devices may
    meet; ranks of the same groups are one node. Where a job has one device, it takes part in every message.

    Args: job: task graph.
    """

    def __init__(self, job: TaskGraph) -> None:
        self._job = job
        self._single = job.num_devices == 1
        self._known: dict[tuple[str, str, tuple[int, ...]], tuple[int, ...]] = {}
        ranks = job.device_ranks or _rank_of_device(job)
        self._device_of = {rank: device for device, rank in enumerate(ranks)}
        self._beyond: dict[int, int] = {}
        self.beyond_devices: bool = False
        """Whether a message meets others on nodes that are not its devices."""
        if not self._single:
            self._beyond = _meeting_ranks(job, self._device_of)
            self.beyond_devices = bool(self._beyond) or any(
                self._device_of.get(rank, task.devices[0]) not in task.devices
                for task in {(task.group, task.devices): task for task in job.tasks if task.communicates}.values()
                for rank in job.groups[task.group].ranks
            )

    def of(self, task: Task) -> tuple[int, ...]:
        """The directions that a message uses.

        Args: task: which communicates.
        """
        key = task.collective, task.group, task.devices
        if key not in self._known:
            self._known[key] = tuple(sorted(self._ports(task, self._job.groups[task.group])))
        return self._known[key]

    def _ports(self, task: Task, group: ProcessGroup) -> set[int]:
        nodes: dict[int, tuple[int, ...]] = dict.fromkeys(task.devices, (0, 1))
        directed = _is_directed(task, group) and not (self._single and group.num_groups > 1)
        for place, rank in enumerate(group.ranks):
            node = self._device_of.get(rank, self._beyond.get(rank, -1))
            if node >= 0:
                nodes[node] = (place,) if directed else (0, 1)
        return {2 * node + way for node, ways in nodes.items() for way in ways}


def _rank_of_device(job: TaskGraph) -> tuple[int, ...]:
    """The rank of the only device of a job, as far as its transfers show: one that is in every group; none if none is."""
    used = {task.group: task for task in job.tasks if task.communicates}
    groups = [(job.groups[name], task) for name, task in used.items() if job.groups[name].num_groups == 1]
    pair = next((group.ranks for group, task in groups if _is_directed(task, group)), ())
    return tuple([rank for rank in sorted(pair) if all(rank in group.ranks for group, _ in groups)][:1])


def _meeting_ranks(job: TaskGraph, device_of: dict[int, int]) -> dict[int, int]:
    """Node of each rank without tasks whose groups have no device in common, which keeps their messages apart."""
    devices: dict[str, set[int]] = {}
    for task in job.tasks:
        if task.communicates:
            devices[task.group] = devices.get(task.group, set(task.devices)) & set(task.devices)
    members: dict[int, list[str]] = defaultdict(list)
    for name in devices:
        for rank in job.groups[name].ranks:
            if rank not in device_of:
                members[rank].append(name)
    nodes: dict[tuple[str, ...], int] = {}
    return {
        rank: nodes.setdefault(tuple(names), job.num_devices + len(nodes))
        for rank, names in members.items()
        if not set.intersection(*(devices[name] for name in names))
    }


class Sharing:
    """The messages that move data now, and how many share the busiest direction of each: k where it moves at 1/k of its speed.

    Args: ports: of the job.
    """

    def __init__(self, ports: Ports) -> None:
        self._all = ports
        self._moving: dict[int, set[int]] = defaultdict(set)  # messages at each port
        self._ports: dict[int, tuple[int, ...]] = {}
        self._among: dict[int, int] = {}

    def join(self, message: int, task: Task) -> list[tuple[int, int, int]]:
        """A message begins to move data.

        Args:
            message: its number.
            task: that it is of.
        Returns: messages whose speed changes, from 1/k to 1/l, with k and l.
        """
        ports = self._ports[message] = self._all.of(task)
        self._among[message] = 1
        for port in ports:
            self._moving[port].add(message)
        return list(self._changed(ports))

    def leave(self, message: int) -> list[tuple[int, int, int]]:
        """A message has arrived.

        Args: message: its number; one that moves no data changes nothing.
        Returns: as of `join`.
        """
        ports = self._ports.pop(message, ())
        self._among.pop(message, None)
        for port in ports:
            self._moving[port].discard(message)
        return list(self._changed(ports))

    def _changed(self, ports: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        for message in sorted(set().union(*(self._moving[port] for port in ports))):
            among = max(len(self._moving[port]) for port in self._ports[message])
            before, self._among[message] = self._among[message], among
            if among != before:
                yield message, before, among
