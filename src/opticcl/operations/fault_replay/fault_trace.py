"""Reader of fault events: a JSON list of starts and ends, as InfiniteHBD-Trace has them.

    {"node_id": "6f24", "event_time": 3.8955, "event_type": "fault_start",
     "fault_type": {"Level": "Hardware Failure", "Class": "GPU", "Desc": "xid"}}

Times are days. Faults of a server may overlap: it is sound again when all have ended. Faults that are open at the last event
end there. Which classes weaken a server and which take it out is in `replay.toml`.

Source: InfiniteHBD-Trace, fault_trace.json.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from opticcl.errors import WorkloadError, printable
from opticcl.files import read_toml
from opticcl.ir import IntArray
from opticcl.reading import DamageError, content_of, reading

__all__ = ["FaultTrace", "read_fault_trace", "replay_values", "servers_at"]

MAX_FILE_BYTES = 1 << 28
DAY_S = 86_400.0
LONGEST_DAYS = 1e6
SOUND, WEAK, OUT = 0, 1, 2
"""Health of a server."""


class _Kind(msgspec.Struct, forbid_unknown_fields=True):
    Level: str
    Class: str
    Desc: str


class _Event(msgspec.Struct, forbid_unknown_fields=True):
    node_id: str
    event_time: float
    event_type: Literal["fault_start", "fault_end"]
    fault_type: _Kind


@dataclass(frozen=True, slots=True, eq=False)
class FaultTrace:
    """When the health of servers changes, in the order of time, as columns of equal length.

    Args:
        servers: names, in the order of their first fault.
        time_s: of each change, from the start of the record, float64 (m,) [s].
        server: that changes, int64 (m,).
        health: of that server from then on: 0 sound, 1 weak, 2 out, int64 (m,).
        end_s: of the record [s].
        faults: of all servers [count].
        overlapping: faults that began while the server had another [count].
        open: faults that had no end and end with the record [count].
    """

    servers: tuple[str, ...]
    time_s: npt.NDArray[np.float64]
    server: IntArray
    health: IntArray
    end_s: float
    faults: int
    overlapping: int
    open: int

    def states(self, num_servers: int, of_server: IntArray) -> Iterator[tuple[float, float, IntArray]]:
        """Start, end and the health of every server of a population, int64 (num_servers,), while none changes.

        Args:
            num_servers: of the population [count].
            of_server: place in the population of each server of the trace; -1: it is not in it, int64 (servers,).
        """
        health = np.zeros(num_servers, np.int64)
        since_s = 0.0
        for at_s in np.unique(self.time_s).tolist():
            rows = slice(*(int(np.searchsorted(self.time_s, at_s, side)) for side in ("left", "right")))
            place = of_server[self.server[rows]]
            inside = place >= 0
            changed = health.copy()
            changed[place[inside]] = self.health[rows][inside]
            if (changed != health).any():
                if at_s > since_s:
                    yield since_s, at_s, health
                health, since_s = changed, at_s
        if self.end_s > since_s:
            yield since_s, self.end_s, health


def servers_at(trace: FaultTrace, num_servers: int, seed: int) -> IntArray:
    """Place of each server of a record among those of a machine, or -1: at random, since records stand in the order of faults.

    Args:
        trace: that may have more servers than the machine.
        num_servers: of the machine [count].
        seed: of the choice.
    """
    known = len(trace.servers)
    place = np.random.default_rng(seed).permutation(max(num_servers, known))[:known]
    return np.where(place < num_servers, place, -1)


def replay_values(table: str) -> dict[str, Any]:
    """Values of a table of `replay.toml` by key."""
    entries = read_toml("opticcl.operations.fault_replay", "replay.toml")[table]
    return {key: entry["value"] for key, entry in entries.items()}


def read_fault_trace(path: Path) -> FaultTrace:
    """The faults of a file, plain or gzip.

    Raises: WorkloadError: no such file, or the event that is wrong.
    """
    with reading(path, "list of fault events", "event") as file:
        content = content_of(path, file, MAX_FILE_BYTES, "give a part of the record")
        try:
            raw = msgspec.json.decode(content, type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise WorkloadError(printable(f"{path}: is not a list of fault events: {error}")) from None
        return _trace([_event(number, one) for number, one in enumerate(raw, 1)])


def _event(number: int, raw: msgspec.Raw) -> _Event:
    try:
        event = msgspec.json.decode(raw, type=_Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamageError(number, str(error)) from None
    if not 0 <= event.event_time <= LONGEST_DAYS:
        raise DamageError(number, f"event_time is {event.event_time:g}, not 0 to {LONGEST_DAYS:g} days")
    return event


def _trace(events: list[_Event]) -> FaultTrace:
    """Changes of health.

    Raises: DamageError: no event, one before another that stands above it, or an end before its start.
    """
    if not events:
        raise DamageError(0, "no events")
    weakens = set(read_toml("opticcl.operations.fault_replay", "replay.toml")["classes"]["weak"])
    servers: dict[str, int] = {}
    open_faults: dict[int, Counter[tuple[str, str]]] = {}
    rows: list[tuple[float, int, int]] = []
    faults = overlapping = 0
    latest = 0.0
    for number, event in enumerate(events, 1):
        if event.event_time < latest:
            raise DamageError(
                number, f"event_time is {event.event_time:g}, before {latest:g} of the event above; sort them"
            )
        latest = event.event_time
        server = servers.setdefault(event.node_id, len(servers))
        running = open_faults.setdefault(server, Counter())
        kind = (event.fault_type.Class, event.fault_type.Desc)
        if event.event_type == "fault_start":
            faults += 1
            overlapping += running.total() > 0
            running[kind] += 1
        elif running[kind]:
            running[kind] -= 1
        else:
            name = printable(event.node_id)[:40]
            raise DamageError(number, f"a fault of {name} ends, {printable(kind[0])[:40]}, that did not start before")
        active = [cause for (cause, _), count in running.items() if count]
        health = max((WEAK if cause in weakens else OUT for cause in active), default=SOUND)
        rows.append((event.event_time * DAY_S, server, health))
    still = sum(running.total() for running in open_faults.values())
    time_s, server_of, health_of = (np.array(column) for column in zip(*rows, strict=True))
    return FaultTrace(
        tuple(map(printable, servers)),
        time_s.astype(float),
        server_of,
        health_of,
        latest * DAY_S,
        faults,
        overlapping,
        still,
    )
