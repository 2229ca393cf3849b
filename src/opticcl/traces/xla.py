"""Reader of profiles of XLA, as JAX and TensorFlow write them beside xplane.pb: trace.json.gz, of the devices of one host.

::

    {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "/device:TPU:0"}}
    {"ph": "M", "name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "XLA Ops"}}
    {"ph": "X", "pid": 3, "tid": 2, "ts": 5.0, "dur": 2.0, "name": "all-reduce.1", "args": {"long_name":
     "%all-reduce.1 = f32[1024]{0} all-reduce(f32[1024]{0} %x), channel_id=1, replica_groups={{0,1},{2,3}}, ..."}}

Shapes and groups are in `long_name`, the text of the operation. A device is a rank, by its number; `replica_groups` (as lists
or as [2,4]<=[8]) and `source_target_pairs` are taken to be numbers of devices. Operations of a device run one after the other,
except between the start and the done of a collective: the line that has their durations, Async XLA Ops, is not exported to such
a file. Events of the thread Steps divide the profile. Of the SparseCores of a TPU, which have names of their own, nothing is
read: a collective that they do for the TensorCore has its start and its done there. A name may begin with that of the host.

Source: openxla/xla, HLO text and the export of profiles to trace events; openxla/xprof.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opticcl.formats.encoding.json_stream import JsonStream
from opticcl.reading import DamageError, check_size, printable, reading, refusal, title
from opticcl.traces.kernel_names import library_of
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import counted, format_seconds

__all__ = ["XlaReader"]

MAX_GROUP_RANKS = 2**20
MAX_TIME_US = 1e18
_COLLECTIVES = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-broadcast": "broadcast",
    "collective-permute": "send",
}
_OPERATION = re.compile(r"[\s)}](" + "|".join(_COLLECTIVES) + r")(-start|-done)?\(")
_WORD = re.compile(r"^[^=\n]*=.*?[\s)}]([a-z][a-z0-9-]*)\(", re.MULTILINE)
_COMMUNICATES = re.compile(
    r"(ragged-)?all-|reduce-scatter|collective|async-(collective|start|done)|(send|recv)(-done)?\b"
)
_SHAPE = re.compile(r"\b(pred|[a-z]+[0-9][a-z0-9]*)\[([0-9,<= ]*)\]")
_DEVICE = r"(?:([\w.-]+) )?/device:[A-Z]+:([0-9]{1,9})\b"
_LIST = r"\{((?:\{[0-9, ]*\},?\s*)*)\}"


def _is_xla(head: bytes) -> int:
    begins = re.match(rb"(\xef\xbb\xbf)?\s*[{\[]", head) is not None
    return 3 * (begins and re.search(rb'"name"\s*:\s*"([\w.-]+ )?/(device|host):[A-Z]+', head) is not None)


class _Event(NamedTuple):
    """An operation on a device: name, start and duration [us], and its text."""

    name: str
    start_us: float
    took_us: float
    text: str


@dataclass(slots=True)
class _Device:
    """Events of a device by thread, and names of the threads.

    Attributes:
        number: of the device; -1 of another process.
        host: before its name; empty if there is none.
        sparse: whether it is a SparseCore of the device.
        threads, events: by the id of the thread.
    """

    number: int = -1
    host: str = ""
    sparse: bool = False
    threads: dict[Any, str] = field(default_factory=dict)
    events: dict[Any, list[_Event]] = field(default_factory=lambda: defaultdict(list))


@register_trace("xla", (), _is_xla)
class XlaReader(TraceReader):
    """Reads a profile of XLA."""

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The operations of each device, as the base class describes.

        Raises: WorkloadError: also no device with operations.
        """
        devices: dict[Any, _Device] = defaultdict(_Device)
        with reading(path, "profile of XLA (trace.json)", "character") as file:
            for event in _events(JsonStream(file)):
                _add(devices[_key(event.get("pid"))], event)
            known = [one for one in devices.values() if one.number >= 0 and not one.sparse]
            with_operations = [one for one in known if _lines(one, "XLA Ops", "Stream")]
            if not with_operations:
                raise DamageError(0, "no device has a thread of XLA's operations (XLA Ops)")
            traces = [_Rank(path, one).trace() for one in with_operations]
        if len(hosts := sorted({one.host for one in with_operations})) > 1:
            shown = ", ".join(map(printable, hosts[:4]))
            raise refusal(
                path,
                f"has devices of {len(hosts):,} hosts ({shown}), whose numbers in the job are not recorded; give one",
            )
        numbers = {number for trace, known in traces for number in known}
        if {trace.rank for trace, _ in traces} <= numbers == set(range(len(numbers))):
            for trace, _ in traces:
                trace.world_size, trace.world_source = len(numbers), "replica_groups"
                for call in trace.calls:
                    call.ranks = call.ranks or tuple(range(len(numbers)))
        return sorted((trace for trace, _ in traces), key=lambda one: one.rank)


def _key(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else None


def _events(stream: JsonStream) -> Iterator[dict[str, Any]]:
    """The events of a profile, from a list or an object that has one."""
    if stream.peek() == "[":
        for _ in stream.elements():
            if isinstance(event := stream.value(), dict):
                yield event
    else:
        for key in stream.members():
            if key != "traceEvents":
                stream.skip()
                continue
            for _ in stream.elements():
                if isinstance(event := stream.value(), dict):
                    yield event
    stream.finish()


def _add(device: _Device, event: dict[str, Any]) -> None:
    """Add an event to the process that it is of."""
    args, name = event.get("args"), str(event.get("name"))
    args = args if isinstance(args, dict) else {}
    if event.get("ph") == "M":
        given = str(args.get("name"))
        if name == "process_name" and (match := re.match(_DEVICE, given, re.ASCII)):
            device.host, device.number, device.sparse = match[1] or "", int(match[2]), "SparseCore" in given
        elif name == "thread_name":
            device.threads[_key(event.get("tid"))] = given
        return
    start, took = event.get("ts", -1), event.get("dur", 0)
    if event.get("ph") == "X" and all(
        isinstance(one, (int, float)) and 0 <= one < MAX_TIME_US for one in (start, took)
    ):
        text = str(args.get("long_name") or args.get("hlo_op") or "")
        device.events[_key(event.get("tid"))].append(_Event(name, float(start), float(took), text))


def _lines(device: _Device, *names: str) -> list[_Event]:
    """Events of the threads whose names begin so, by start."""
    events = [one for thread, name in device.threads.items() if name.startswith(names) for one in device.events[thread]]
    return sorted(events, key=lambda one: one.start_us)


class _Hlo(NamedTuple):
    """A collective of XLA by its text.

    Args:
        kind: canonical name; "send" for pairs.
        phase: "-start", "-done" or empty.
        operand: name of the start, of a done.
        size_bytes: of the result, of a start that of its last part [bytes].
        groups: of devices; one empty group for all of them, none if they have a form that is not read.
        pairs: of a permutation.
    """

    kind: str
    phase: str
    operand: str
    size_bytes: int
    groups: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, ...], ...]


@lru_cache(4096)
def _parsed(text: str) -> _Hlo | None:
    """The collective in the text of an operation; None if it is another operation."""
    match = _OPERATION.search(text)
    if not match:
        return None
    before, kind, phase, after = text[: match.end(1)], match[1], match[2] or "", text[match.end() :]
    result = before.partition("=")[2].strip()
    nested = result.startswith("((")  # of a start
    permutes = kind == "collective-permute"
    if nested:  # (operands, results, contexts)
        result = result.partition("), ")[0 if permutes else 2]
    sizes = [_shape_bytes(*shape) for shape in _SHAPE.findall(result)]
    sizes = [size for size in sizes if size]
    if phase == "-start" and permutes and not nested:
        sizes = sizes[:1]  # (operand, result, contexts)
    elif phase == "-start" and kind != "all-reduce" and not nested:
        sizes = sizes[len(sizes) // 2 :]  # (operands, results)
    groups, pairs = _groups(after), _numbers(re.search(rf"source_target_pairs={_LIST}", after))
    if groups == ((0,),) and "channel_id=" in after and "use_global_device_ids=true" not in after:
        groups = ((),)  # the one replica, over all partitions
    operand = re.search(r"(?<![\w.-])%?([\w.-]*start[\w.-]*)", after)
    return _Hlo(_COLLECTIVES[kind], phase, operand[1] if operand else "", sum(sizes), groups, pairs)


def _communicates(one: _Event) -> bool:
    """Whether an operation is another one that communicates: by its word in the text, of a fusion and a call by its name.

    An event on a stream of a GPU is a kernel, whose text is the name of its operation.
    """
    match = _WORD.search(one.text)
    word = match[1] if match else ""
    if "calls=%all-reduce-scatter" in one.text:
        return True
    if _COMMUNICATES.match(one.name if word in ("", "fusion", "custom-call") else word):
        return True
    return "=" not in one.text and (_COMMUNICATES.match(one.text) is not None or library_of(one.name) is not None)


def _shape_bytes(type_: str, sides: str) -> int:
    """Bytes of an array; the number in the name of a type is its bits."""
    bits = 8 if type_ == "pred" else int(re.findall("[0-9]{1,4}", type_)[0])
    count = math.prod(int(side) for side in re.findall("[0-9]{1,12}", sides))
    return -(-count * bits // 8) if len(sides) < 200 else 0


def _numbers(match: re.Match[str] | None) -> tuple[tuple[int, ...], ...]:
    """The lists in {{0,1},{2,3}}."""
    inner = re.findall(r"\{([0-9, ]*)\}", match[1]) if match else []
    return tuple(tuple(map(int, re.findall("[0-9]{1,9}", one))) for one in inner)


def _groups(text: str) -> tuple[tuple[int, ...], ...]:
    """The groups of devices of a collective: one empty group if it names none, nothing if they have another form."""
    if match := re.search(r"replica_groups=\[([0-9,]+)\]<=\[([0-9,]+)\](?:T\(([0-9,]+)\))?", text):
        shape, dims, turned = (tuple(map(int, re.findall("[0-9]{1,9}", one or ""))) for one in match.groups())
        count = math.prod(dims)
        if math.prod(shape) != count or not 0 < count <= MAX_GROUP_RANKS:
            return ()
        numbers = np.arange(count).reshape(dims)
        if sorted(turned) == list(range(len(dims))):
            numbers = numbers.transpose(turned)
        return tuple(map(tuple, numbers.reshape(-1, shape[-1]).tolist()))
    match = re.search(rf"replica_groups={_LIST}", text)
    if match is None and "replica_groups=" in text:
        return ()
    return tuple(group for group in _numbers(match) if group) or ((),)


class _Rank:
    """The operations of a device as tasks."""

    def __init__(self, path: Path, device: _Device) -> None:
        self._path, self._number = path, device.number
        self._operations, self._steps = _lines(device, "XLA Ops", "Stream"), _lines(device, "Steps")
        self._omissions = Omissions()
        self._known: set[int] = set()
        self._untimed = 0

    def trace(self) -> tuple[RankTrace, set[int]]:
        """The trace of the device, and the numbers of all devices that its groups name.

        Raises: DamageError: a size of no message.
        """
        bounds = [(one.start_us, one.start_us + one.took_us, one.name) for one in self._steps]
        whole = [("", self._operations)]
        parts = [
            (f"step {name}", [one for one in self._operations if start <= one.start_us < end])
            for start, end, name in bounds
        ]
        chosen = [part for part in parts if part[1]] or whole
        steps = [RecordedStep(printable(name), self._tasks(operations)) for name, operations in chosen]
        outside = len(self._operations) - sum(len(operations) for _, operations in chosen)
        compute_s = math.fsum(task.compute_s for step in steps for task in step.tasks)
        trace = RankTrace(
            title(self._path),
            f"profile of XLA {printable(self._path.name)}",
            printable(self._path.name),
            [call for step in steps for task in step.tasks for call in task.calls],
            steps,
            rank=self._number,
            compute_s=compute_s,
            omissions=self._omissions,
        )
        trace.after.append(
            "ranks: numbers in replica_groups and of devices are taken to be those of one device assignment"
        )
        if compute_s:
            trace.before.append(f"computation: {format_seconds(compute_s)} in operations of device {self._number}")
        if outside > 0:
            trace.after.append(f"left out: {outside:,} operations outside of the steps")
        if self._untimed:
            trace.after.append(f"without a duration: {counted(self._untimed, 'collective')} between start and done")
        return trace, self._known

    def _tasks(self, operations: Sequence[_Event]) -> list[RankTask]:
        """Computation between collectives as one task; what follows a collective, or the done of one, depends on it."""
        tasks: list[RankTask] = []
        started: dict[str, tuple[int, ...]] = {}
        needed: set[int] = set()  # dependencies of the next task
        computed = -1
        for one in operations:
            parsed = _parsed(one.text)
            if parsed is None and not _communicates(one):
                if one.took_us:
                    if needed or computed != len(tasks) - 1 or not tasks:
                        tasks.append(RankTask("computation", 0.0, after=tuple(sorted(needed | ({computed} - {-1})))))
                        needed, computed = set(), len(tasks) - 1
                    tasks[computed].compute_s += one.took_us / 1e6
                continue
            if parsed is None:
                self._omissions.add(f"{printable(one.name[:40])}, whose text has no shape and groups", missing=True)
            elif parsed.phase == "-done":
                needed |= set(started.pop(parsed.operand, ()))
            else:
                after = tuple(sorted(needed | ({computed} - {-1})))
                ends = []
                for call in self._calls(one, parsed):
                    ends.append(len(tasks))
                    tasks.append(RankTask(call.name, 0.0, (call,), after))
                if parsed.phase == "-start":
                    started[one.text.partition("=")[0].strip().lstrip("%")] = tuple(ends)
                    self._untimed += len(ends)
                else:
                    needed |= set(ends)
        return tasks

    def _calls(self, one: _Event, parsed: _Hlo) -> Iterator[RankCall]:
        """The calls of a collective that this device takes part in.

        Raises: DamageError: a size of no message.
        """
        name = printable(one.name[:80])
        size = check_size(parsed.size_bytes, 0, f"the message of {name}")
        self._known.update(number for group in (*parsed.groups, *parsed.pairs) for number in group)
        measured_s = 0.0 if parsed.phase else one.took_us / 1e6
        if parsed.kind == "send":
            for src, dst in (
                pair for pair in parsed.pairs if len(pair) == 2 and self._number in pair and pair[0] != pair[1]
            ):
                yield RankCall(
                    name, "send" if src == self._number else "recv", size, ranks=(src, dst), measured_s=measured_s
                )
            return
        if not parsed.groups:
            self._omissions.add(f"{name}, whose groups have a form that is not read", size, missing=True)
            return
        group = next((group for group in parsed.groups if not group or self._number in group), None)
        if group is None:
            self._omissions.add(f"{name}, in groups without device {self._number}", size)
            return
        call = RankCall(name, parsed.kind, size, ranks=group, measured_s=measured_s)
        if parsed.kind == "reduce_scatter":  # its result is a share
            call.counts = "share"
        yield call
