"""Reader of PyTorch profiler traces (Kineto's Chrome-trace JSON) of jobs on NCCL, RCCL or Gloo.

::

    {"distributedInfo": {"rank", "world_size", "pg_config"}, "traceEvents": [{"name", "cat", "ts", "dur", "args"}, ...]}

The profiler records one collective in several places. In this order of trust, and only the first that tells sizes counts:

    record_param_comms    where the host issues it: collective, elements, type, group    (NCCL, since PyTorch 2.2)
    kernel                the same arguments on the kernel; here it also tells the time
    nccl:all_reduce       annotation with the shapes of the inputs                       (record_shapes=True)
    c10d::allreduce_      operator with the shapes of its tensors                        (record_shapes=True)

Gloo has no kernels: its calls are the annotations `gloo:all_reduce`, beside those of NCCL where a job uses both.

Source: pytorch/pytorch, ParamCommsUtils and profiler_kineto; pytorch/kineto, output_json; traces of both back ends.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from opticcl.units import format_seconds
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import DamageError, check_size, printable, reading, refusal, title
from opticcl.workload._json import JsonStream
from opticcl.workload._notes import LeftOut, notes_on

__all__ = ["OnDevice", "Trace", "read_trace", "read_workload", "workload_of"]

MAX_GROUP = 2**20  # ranks
MAX_STEPS = 10_000

# Names of all back ends, without "_", by their start; longer ones first where one starts another.
_COLLECTIVES = {
    "allreduce": "all_reduce",
    "sparseallreduce": "all_reduce",
    "reducescatter": "reduce_scatter",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "monitoredbarrier": "barrier",
    "barrier": "barrier",
    "gather": "gather",
    "scatter": "scatter",
    "reduce": "reduce",
    "send": "send",
    "recv": "recv",
}
# Bytes of an element, by PyTorch's and C++'s names in lower case, without "c10::".
_TYPE_BYTES = {
    "byte": 1,
    "char": 1,
    "bool": 1,
    "unsigned char": 1,
    "signed char": 1,
    "uint8": 1,
    "int8": 1,
    "short": 2,
    "short int": 2,
    "half": 2,
    "bfloat16": 2,
    "float16": 2,
    "int16": 2,
    "uint16": 2,
    "int": 4,
    "float": 4,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "complexhalf": 4,
    "long": 8,
    "long int": 8,
    "double": 8,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "complexfloat": 8,
    "complex<float>": 8,
    "complexdouble": 16,
    "complex<double>": 16,
}
_RECORD, _KERNEL, _NCCL, _GLOO, _OPERATOR = (
    "record_param_comms",
    "communication kernels",
    "nccl: annotations",
    "gloo: annotations",
    "c10d:: operators",
)


class _Seen(NamedTuple):
    """One record of a call. `share`: the size is that of one rank's share of the message."""

    start_us: float
    call: CollectiveCall
    external: object
    share: bool = False


class OnDevice(NamedTuple):
    """When the kernels of a call ran, and when the host issued them among all kernels; -1 if that is not recorded."""

    start_us: float
    end_us: float
    issued: int


class _Source:
    """All records of one kind."""

    def __init__(self) -> None:
        self.seen: list[_Seen] = []
        self.left_out = LeftOut()
        self.alone = 0

    @property
    def tells(self) -> bool:
        """Whether it knows the size of a call, though it be in a group of one rank."""
        return bool(self.seen or self.alone)


def read_workload(path: Path) -> Workload:
    """The collectives of one rank, in the order in which they start.

    Raises: WorkloadError: no such trace, a damaged one, or nothing in it has a size.
    """
    return workload_of(path, read_trace(path))


def read_trace(path: Path) -> Trace:
    """Reads a whole trace, of any length, one event after the other.

    Raises: WorkloadError: no such trace, or a damaged one.
    """
    trace = Trace()
    with reading(path, "trace of the PyTorch profiler (.json)", "character") as file:
        stream = JsonStream(file)
        found = stream.peek() == "["
        if found:
            trace.add_all(stream)
        else:
            for key in stream.members():
                if key == "traceEvents":
                    found = True
                    trace.add_all(stream)
                elif key == "distributedInfo":
                    trace.tell(stream.value())
                else:
                    stream.skip()
        stream.finish()
        if not found:
            raise DamageError(0, "there are no traceEvents")
    return trace


def workload_of(path: Path, trace: Trace) -> Workload:
    """The calls of a trace that has been read from that file.

    Raises: WorkloadError: nothing in it has a size.
    """
    calls, remarks = trace.calls()
    compute_s = trace.compute_s
    notes = [f"events: {trace.events:,}", *notes_on(calls, trace.num_ranks), *remarks]
    if len(trace.steps) > 1:
        notes.append(f"profiler steps: {len(trace.steps):,}; the calls of all of them are kept")
    if compute_s:
        notes.append(f"computation: {format_seconds(compute_s)} in {len(trace.took_us):,} other kernels")
    if not calls:
        raise refusal(path, f"no collective among several ranks with a size in this trace; {'; '.join(notes)}")
    source = f"PyTorch profiler trace {printable(path.name)}"
    if trace.rank >= 0:
        source += f", rank {trace.rank}"
    return Workload(title(path), source, tuple(calls), tuple(notes), trace.num_ranks, compute_s)


class Trace:
    """What one rank's trace holds.

    Attributes:
        events: of all kinds [count].
        num_ranks: of the job; 0 if it is not recorded [count].
        rank: whose trace it is; -1 if it is not recorded.
        steps: names of the profiler's steps.
        starts_us, took_us, issued: of the kernels that compute, a row each: times, and the number by which the host issued
            them; -1 if it is not recorded.
        on_device: when the kernels of each call of `calls()` ran, once they have been asked for; None where there are none.
    """

    def __init__(self) -> None:
        self.events = self.num_ranks = 0
        self.rank = -1
        self.starts_us, self.took_us, self.issued = array("d"), array("d"), array("q")
        self.on_device: list[OnDevice | None] = []
        self.steps: set[str] = set()
        self._sources = {kind: _Source() for kind in (_RECORD, _KERNEL, _NCCL, _GLOO, _OPERATOR)}
        self._kernels: dict[object, tuple[float, OnDevice]] = {}  # of collectives: time [us], by external id
        self._groups: dict[str, tuple[int, ...]] = {}
        self._oddities: Counter[str] = Counter()
        self._lists: dict[str, tuple[int, ...]] = {}

    @property
    def compute_s(self) -> float:
        """All kernels that are no collectives [s]."""
        return math.fsum(self.took_us) * 1e-6

    def tell(self, info: Any) -> None:
        """Takes distributedInfo."""
        if not isinstance(info, dict):
            return
        self.rank = _count(info.get("rank"), -1)
        self.num_ranks = min(_count(info.get("world_size"), 0), MAX_GROUP)
        groups = info.get("pg_config")
        for group in groups if isinstance(groups, list) else ():
            if isinstance(group, dict) and (ranks := self._rank_list(group.get("ranks"))):
                self._groups[str(group.get("pg_name"))] = ranks

    def add_all(self, stream: JsonStream) -> None:
        """Takes the list of events."""
        for at in stream.elements():
            event = stream.value()
            self.events += 1
            if not isinstance(event, dict) or not isinstance(event.get("name"), str):
                self._oddities["events without a name"] += 1
                continue
            args = event.get("args")
            self._add(event, event["name"], args if isinstance(args, dict) else {}, at)

    def _add(self, event: dict[str, Any], name: str, args: dict[str, Any], at: int) -> None:
        category = str(event.get("cat", "")).lower()
        if category == "kernel":
            start_us, took_us = _time(event.get("ts")), _time(event.get("dur"))
            issued = _count(args.get("correlation"), -1)
            if "Collective name" in args or name.lower().startswith(("nccl", "rccl", "mscclkernel")):
                self._add_kernel(_external(args), took_us, OnDevice(start_us, start_us + took_us, issued))
                self._add_record(_KERNEL, event, args, at)
            else:
                self.starts_us.append(start_us)
                self.took_us.append(took_us)
                self.issued.append(issued)
        elif category.startswith("gpu_"):
            return  # annotations once more, on the stream
        elif name == "record_param_comms":
            self._add_record(_RECORD, event, args, at)
        elif name.startswith("nccl:"):
            self._add_shapes(_NCCL, event, name[5:], args, at)
        elif name.startswith("gloo:"):
            self._add_shapes(_GLOO, event, name[5:], args, at)
        elif name.startswith("c10d::"):
            self._add_shapes(_OPERATOR, event, name[6:], args, at)
        elif name.startswith("ProfilerStep#") and len(self.steps) < MAX_STEPS:
            self.steps.add(name)

    def _add_kernel(self, key: object, took_us: float, when: OnDevice) -> None:
        """A kernel of a collective, of which there may be several for a call."""
        if key in self._kernels:
            before_us, first = self._kernels[key]
            took_us += before_us
            when = OnDevice(min(first.start_us, when.start_us), max(first.end_us, when.end_us), first.issued)
        self._kernels[key] = took_us, when

    # --- records with arguments ---

    def _add_record(self, kind: str, event: dict[str, Any], args: dict[str, Any], at: int) -> None:
        source = self._sources[kind]
        said = args.get("Collective name")
        if not isinstance(said, str):
            source.left_out.add(f"{kind} without a collective's name")
            return
        collective = _collective(said)
        if not collective:
            source.left_out.add(f"{kind} of {printable(said[:40])}, which moves nothing by itself")
            return
        elements = [args[key] for key in ("In msg nelems", "Out msg nelems") if _is_whole(args.get(key))]
        width = _width(args.get("dtype"))
        if not elements or not width:
            source.left_out.add(f"{kind} of {printable(said[:40])} without elements of a known type")
            return
        # The whole message is the larger side; of what an all_to_all sends, the input.
        count = elements[0] if collective == "all_to_all" else max(elements)
        size = check_size(min(elements) if min(elements) < 0 else count * width, at, f"{said[:40]} of this event")
        group, ranks, alone = self._group(args)
        if collective in ("send", "recv"):
            ends = (_count(args.get("Src Rank"), self.rank), _count(args.get("Dst Rank"), -1))
            self._add_transfer(source, event, said, collective, size, ends, group)
            return
        if alone:
            source.alone += 1
            source.left_out.add(f"{collective} in a group of one rank", size)
            return
        if collective == "all_to_all" and _uneven(args, elements):
            self._oddities["all_to_all with uneven parts, taken as even"] += kind == _RECORD
        took_s = _time(event.get("dur")) * 1e-6 if kind == _KERNEL else 0.0
        call = CollectiveCall(printable(said), collective, size, group, took_s, ranks)
        source.seen.append(_Seen(_time(event.get("ts")), call, _external(args)))

    def _add_transfer(
        self, source: _Source, event: dict[str, Any], said: str, way: str, size: int, ends: tuple[int, int], group: str
    ) -> None:
        if way == "recv":
            source.left_out.add("recv, which the sender's trace has as a send", size)
        elif ends[0] == ends[1] >= 0:
            source.left_out.add("send from a rank to itself", size)
        else:
            call = CollectiveCall(printable(said), "send_recv", size, group, 0.0, ends)
            source.seen.append(_Seen(_time(event.get("ts")), call, None))

    def _group(self, args: dict[str, Any]) -> tuple[str, tuple[int, ...], bool]:
        """Name of the process group, its ranks, and whether it has but one."""
        name = args.get("Process Group Name", args.get("Process Group ID", ""))
        name = printable(str(name)) if isinstance(name, (str, int)) else ""
        size = _count(args.get("Group size"), 0)
        ranks = self._rank_list(args.get("Process Group Ranks"))
        if not ranks:
            start, stride = _count(args.get("Global rank start"), -1), _count(args.get("Global rank stride"), 0)
            if start >= 0 and stride and 0 < size <= MAX_GROUP:  # long lists are cut: "[0, 1, ...]"
                ranks = self._lists.setdefault(f"{start} {stride} {size}", _range(start, stride, size))
        ranks = ranks or self._groups.get(name, ())
        return name, ranks, len(ranks) == 1 or (not ranks and size == 1)

    def _rank_list(self, said: Any) -> tuple[int, ...]:
        """The ranks of [0, 1] or "[0, 1]"; none if the list is cut or no such list. Equal lists are kept once."""
        if isinstance(said, list):
            said = str(said) if all(_is_whole(rank) for rank in said) else ""
        if not isinstance(said, str):
            return ()
        if said not in self._lists:
            whole = re.fullmatch(r"\[\s*\d{1,9}(\s*,\s*\d{1,9})*\s*\]", said, re.ASCII)
            self._lists[said] = tuple(dict.fromkeys(map(int, said[1:-1].split(",")))) if whole else ()
        return self._lists[said]

    # --- records with shapes ---

    def _add_shapes(self, kind: str, event: dict[str, Any], said: str, args: dict[str, Any], at: int) -> None:
        source = self._sources[kind]
        word, _, ends = said.partition(" ")
        collective = _collective(word)
        name = printable(str(event["name"]))
        if not collective:
            source.left_out.add(f"{name[:60]}, which moves nothing by itself")
            return
        sizes = list(_tensors(args.get("Input Dims"), args.get("Input type")))
        if not sizes and collective != "barrier":
            source.left_out.add(f"{name[:60]} without shapes of a known type")
            return
        check_size(min(sizes, default=0), at, f"{name[:60]} of this event")
        # Annotations have the inputs, operators all tensors: outputs and inputs, of which the larger is the message.
        size = max(sizes, default=0) if kind == _OPERATOR else sum(sizes)
        check_size(size, at, f"{name[:60]} of this event")
        if collective in ("send", "recv"):
            match = re.fullmatch(r"(\d{1,9})->(\d{1,9})", ends, re.ASCII)
            pair = (int(match[1]), int(match[2])) if match else (self.rank, -1)
            self._add_transfer(source, event, name, collective, size, pair, "")
            return
        share = collective in ("all_gather", "gather") and len(sizes) == 1
        took_s = _time(event.get("dur")) * 1e-6 if kind == _GLOO else 0.0
        call = CollectiveCall(name, collective, size, measured_s=took_s)
        source.seen.append(_Seen(_time(event.get("ts")), call, None, share))

    # --- what counts ---

    def calls(self) -> tuple[list[CollectiveCall], list[str]]:
        """The calls of the sources that count, and what is to be said about them."""
        on_nccl = self._named(_NCCL) or self._kernels
        chosen = next(([kind] for kind in (_RECORD, _KERNEL, _NCCL) if self._sources[kind].tells), [])
        # Records without anything of NCCL beside them are Gloo's own.
        if self._sources[_GLOO].tells and (chosen != [_RECORD] or on_nccl):
            chosen.append(_GLOO)
        if not chosen and self._sources[_OPERATOR].tells:
            chosen.append(_OPERATOR)
        left_out = LeftOut()
        seen = sorted((one for kind in chosen for one in self._sources[kind].seen), key=lambda one: one.start_us)
        counted = [(one, call) for one in seen if (call := self._resolved(one, left_out))]
        calls = [call for _, call in counted]
        self.on_device = [self._when(one) for one, _ in counted]
        remarks = [f"calls recorded by: {' and '.join(chosen) or 'nothing with a size'}"]
        for kind in chosen or self._sources:
            remarks += self._sources[kind].left_out.notes()
        remarks += left_out.notes()
        for kind in self._sources:
            if chosen and kind not in chosen and (n := self._named(kind)):
                remarks.append(f"the same calls once more, not counted: {n:,} {kind}")
        remarks += [f"{what}: {n:,}" for what, n in self._oddities.items() if n]
        return calls, remarks

    def _named(self, kind: str) -> int:
        source = self._sources[kind]
        return len(source.seen) + source.left_out.total()

    def _resolved(self, one: _Seen, left_out: LeftOut) -> CollectiveCall | None:
        """The call with what only the whole trace tells: its kernel's time, and the number of ranks."""
        call = one.call
        size, took_s = call.size_bytes, call.measured_s
        if not took_s and one.external is not None and one.external in self._kernels:
            took_s = self._kernels[one.external][0] * 1e-6
        if self.num_ranks == 1 and not call.ranks:
            left_out.add(f"{call.collective} in a job of one rank", size)
            return None
        if one.share:
            if not self.num_ranks:
                left_out.add(f"{call.collective} of a share, where the number of ranks is not recorded", size)
                return None
            size *= self.num_ranks
        return CollectiveCall(call.name, call.collective, size, call.group, took_s, call.ranks)

    def _when(self, one: _Seen) -> OnDevice | None:
        """When the kernels of a call ran, if that is recorded."""
        found = None if one.external is None else self._kernels.get(one.external)
        return found and found[1]


def _collective(said: str) -> str:
    key = said.replace("_", "").lower()
    return next((name for start, name in _COLLECTIVES.items() if key.startswith(start)), "")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: Any, otherwise: int) -> int:
    """A whole number of at least 0 and no absurd size; "otherwise" if it is none."""
    return value if _is_whole(value) and 0 <= value < 2**31 else otherwise


def _time(value: Any) -> float:
    """A finite time of at least 0 [us]; some versions write it as text."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if 0 <= number < math.inf else 0.0


def _external(args: dict[str, Any]) -> object:
    """What a kernel and the call that issued it have in common, or None."""
    found = args.get("External id")
    return found if isinstance(found, (int, str)) else None


def _width(said: Any) -> int:
    """Bytes of an element of that type; 0 if it is unknown."""
    key = said.lower().removeprefix("at::").removeprefix("c10::").replace("c10::", "") if isinstance(said, str) else ""
    return 1 if key.startswith("float8_") else _TYPE_BYTES.get(key, 0)


def _uneven(args: dict[str, Any], elements: list[int]) -> bool:
    if elements[0] != elements[-1]:
        return True
    for key in ("In split size", "Out split size"):
        said = args.get(key)
        parts = set(re.findall(r"\d+", said)) if isinstance(said, str) else set()
        if len(parts) > 1:
            return True
    return False


def _range(start: int, stride: int, size: int) -> tuple[int, ...]:
    return tuple(range(start, start + stride * size, stride))


def _tensors(shapes: Any, types: Any) -> Iterator[int]:
    """Bytes of each tensor whose shape and type are known; a list of tensors counts as one."""
    if not isinstance(shapes, list) or not isinstance(types, list):
        return
    for shape, type_ in zip(shapes, types, strict=False):
        width = _width(type_)
        if not width or not isinstance(shape, list):
            continue
        if all(_is_whole(side) for side in shape):
            yield _product(shape) * width
        elif all(isinstance(one, list) and all(_is_whole(side) for side in one) for one in shape):
            yield sum(map(_product, shape)) * width


def _product(shape: list[int]) -> int:
    """Elements of a tensor; beyond any message's size it is not multiplied on."""
    count = 1
    for side in shape:
        count *= side
        if abs(count) > 2**70:
            break
    return count
