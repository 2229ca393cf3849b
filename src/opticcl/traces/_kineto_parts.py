"""Which events of a trace of the PyTorch profiler are of one rank.

A tool that merges traces writes the rank into every event; otherwise a process may drive several devices, each of them a rank,
and a file may hold several processes. A kernel belongs to the process that launched it, by its correlation id; a record of the
host to the device of the kernels that were launched inside it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from copy import deepcopy
from pathlib import Path

from opticcl.reading import printable, refusal
from opticcl.traces._kineto_events import KERNEL, SIZED, Events, Owner
from opticcl.traces._kineto_forms import FileEvents
from opticcl.traces.c10d import is_whole
from opticcl.units import counted, format_seconds

__all__ = ["IN_ORDER", "OTHER_DEVICE", "by_device", "ranks_of"]

IN_ORDER = "ranks of {} are not recorded, taken in the order of their numbers"
OTHER_DEVICE = "left out: kernels of device {}, {}; the calls are on another"

Parts = dict[object, Events]  # by number of a device or id of a process


def ranks_of(path: Path, events: FileEvents) -> list[Events]:
    """The events of each rank of a file, by rank.

    Args:
        path: of the file, for messages.
        events: of the whole file.
    Raises: WorkloadError: they are of several devices or processes whose ranks are not recorded.
    """
    parts = {part: one for part, one in events.parts.items() if not one.is_empty or one.waits}
    of_ranks = {int(str(part.name)): one for part, one in parts.items() if part.kind == "rank"}
    if of_ranks:
        if others := sum(len(one.kernel_us) for part, one in parts.items() if part.kind != "rank"):
            events.irregular["kernels without a rank, left out"] += others
        ranks = _with_ranks(of_ranks)
    else:
        ranks = _divided(path, events, parts)
    for one in ranks:
        one.count, one.world_size, one.groups = events.count, events.world_size, events.groups
        one.irregular = events.irregular + one.irregular
    if len(ranks) == 1 and ranks[0].rank < 0:
        own = ranks[0].own_ranks
        ranks[0].rank = events.rank if events.rank >= 0 else next(iter(own)) if len(own) == 1 else -1
    return ranks


def _divided(path: Path, events: FileEvents, parts: dict[Owner, Events]) -> list[Events]:
    """The events of each rank, where no event has a rank."""
    processes = {part.name: one for part, one in parts.items() if part.kind == "process"}
    callers = {name: one for name, one in processes.items() if name is not None and any(one.records.values())}
    devices: Parts = {part.name: one for part, one in parts.items() if part.kind == "device"}
    places: Parts = {part.name: one for part, one in parts.items() if part.kind == "place"}
    if len(callers) > 1:
        if devices:
            for one in places.values():
                next(iter(callers.values())).absorb(one)
        return _by_process(path, events, callers, devices or places)
    calling = {name: one for name, one in devices.items() if one.records[KERNEL] or one.records[SIZED]}
    if len(calling) > 1:
        together = _together([*processes.values(), *places.values()])
        if others := len(together.kernel_us):
            events.irregular["kernels without a device, left out"] += others
            together.forget_kernels()
        return _numbered(path, events, "devices", by_device(together, calling))
    whole = _together([*processes.values(), *places.values()])
    for name, one in devices.items():
        if calling and name not in calling:
            whole.irregular[OTHER_DEVICE.format(name, format_seconds(one.busy_s))] += one.num_kernels
        else:
            whole.absorb(one)
    return [whole]


def _together(parts: list[Events]) -> Events:
    """The events of one rank; the first part takes the others in."""
    whole = parts[0] if parts else Events()
    for one in parts[1:]:
        whole.absorb(one)
    return whole


def _by_process(path: Path, events: FileEvents, callers: Parts, devices: Parts) -> list[Events]:
    """Each process with the devices that it launches kernels on.

    Raises: WorkloadError: two processes launch on one device.
    """
    for name, device in devices.items():
        wanted = Counter(device.kernel_correlation)
        wanted.update(one.correlation for one in device.records[KERNEL])
        shares = {pid: sum(wanted[c] for c in set(one.launch_correlation)) for pid, one in callers.items()}
        first, *others = sorted(shares, key=lambda pid: -shares[pid])
        if shares[first] and shares[others[0]] == shares[first]:
            raise refusal(path, f"the kernels of device {name} may be of several processes; {_give(callers)}")
        callers[first].absorb(device)
    return _numbered(path, events, "processes", callers)


def _give(parts: Parts) -> str:
    return f"the file has {len(parts):,} processes ({', '.join(map(str, list(parts)[:4]))}); give a file for each rank"


def by_device(host: Events, devices: Parts) -> Parts:
    """Each device with the records of the host that launched on it, with its launches and those of no kernel.

    A record in which nothing is launched is of the device on which its thread launches, if that is one.

    Args:
        host: records and launches; loses its records.
        devices: kernels of each.
    """
    device_of: dict[int, object] = {}
    for name, one in devices.items():
        for correlation in (*one.kernel_correlation, *(row.correlation for row in one.records[KERNEL])):
            if correlation >= 0:
                device_of[correlation] = name
    launches: dict[int, list[tuple[float, object]]] = defaultdict(list)
    for correlation, thread, us in zip(host.launch_correlation, host.launch_thread, host.launch_us, strict=True):
        if correlation in device_of:
            launches[thread].append((us, device_of[correlation]))
    for issued in launches.values():
        issued.sort(key=lambda one: one[0])
    parts: Parts = {}
    records, host.records = host.records, {kind: [] for kind in host.records}
    for name, device in devices.items():
        parts[name] = deepcopy(host)
        parts[name].keep_launches([device_of.get(number, name) == name for number in host.launch_correlation])
        parts[name].absorb(device)
    some = next(iter(parts.values()))
    for kind, rows in records.items():
        for row in rows:
            at = bisect_left(launches[row.thread], row.start_us, key=lambda one: one[0])
            first = launches[row.thread][at : at + 1]
            if first and first[0][0] <= row.end_us:
                parts[first[0][1]].records[kind].append(row)
            elif len(only := {device for _, device in launches[row.thread]}) == 1:
                parts[only.pop()].records[kind].append(row)
            elif row.call is not None:
                what = f"{printable(row.call.name)} of a thread that launches on no device, or on several"
                some.omissions[kind].add(what, row.call.size_bytes, missing=True)
    return parts


def _numbered(path: Path, events: FileEvents, what: str, parts: Parts) -> list[Events]:
    """Parts with the rank that their records say; devices or processes of a whole group by their order.

    Raises: WorkloadError: the ranks are not recorded.
    """
    known = [(one.own_ranks, one) for one in parts.values()]
    own = {next(iter(ranks)): one for ranks, one in known if len(ranks) == 1}
    if len(own) == len(parts):
        return _with_ranks(own)
    count = events.world_size or max(map(len, events.groups.values()), default=0) or len(parts)
    if count != len(parts) or not all(is_whole(name) for name in parts):
        names = ", ".join(map(str, list(parts)[:4]))
        raise refusal(
            path,
            f"has calls of {counted(len(parts), what)[:-1]} ({names}) whose ranks are not recorded; give a file for each",
        )
    for one in parts.values():
        one.irregular[IN_ORDER.format(what)] += len(parts)
    return _with_ranks(dict(enumerate(parts[name] for name in sorted(parts, key=lambda name: int(str(name))))))


def _with_ranks(parts: dict[int, Events]) -> list[Events]:
    for rank, one in parts.items():
        one.rank = rank
    return [parts[rank] for rank in sorted(parts)]
