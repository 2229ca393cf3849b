"""What a trace of the PyTorch profiler says of its steps, from its text: the rules of its reader on lists, for tests.

Times are whole microseconds, so that intervals are compared by marking each of them.
"""

import json
import math
from dataclasses import dataclass, field

QUEUED = AT_ONCE = 20
ROUNDING = 1
REDUCES = ("all_reduce", "reduce_scatter", "reduce", "send", "barrier")
KINDS = {"allreduce": "all_reduce", "_allgather_base": "all_gather", "_reduce_scatter_base": "reduce_scatter"}
EARLIER = "launched before the recording began"


@dataclass(eq=False)
class Kernel:
    """A kernel; `launch` is None if it is not in the file, numbers are -1 if not recorded."""

    start: int
    end: int
    stream: int
    number: int
    external: object
    thread: int = -1
    launch: int | None = None
    in_graph: bool = False

    @property
    def took(self):
        """Duration."""
        return self.end - self.start


@dataclass(eq=False)
class HostCall:
    """A record of the host, with the kernels that are found for it."""

    kind: str
    size: int
    thread: int
    start: int
    end: int
    external: object
    kernels: list[Kernel] = field(default_factory=list)
    launch: int | None = None
    in_graph: bool = False


@dataclass
class Step:
    """A step: kernels, calls, what depends on what, and what the device did."""

    name: str
    kernels: list[Kernel]
    calls: list[HostCall]
    opens: list[int]
    holds: list[int]
    bound: str
    in_order: bool
    said: str = "all computation precedes all communication"
    recorded: dict | None = None


class Trace:
    """A trace of one rank: kernels that compute, those of collectives, calls, waits and steps."""

    def __init__(self, text):
        self.launches, self.waits, self.spans = {}, [], {}
        self.kernels, self.messages, self.unsized, self.calls = [], [], [], []
        events = json.loads(text)["traceEvents"]
        for one in events:
            one.update(ts=int(one["ts"]), dur=int(one["dur"]))
        for one in events:
            if "Launch" in one["name"]:
                self.launches[one["args"]["correlation"]] = one["tid"], one["ts"], "Graph" in one["name"]
        for one in events:
            self._add(one, one["args"])
        self.kernels.sort(key=lambda kernel: kernel.start)
        self.calls.sort(key=lambda call: call.start)
        self.foreign = self._link()
        for call in self.calls:
            call.kernels.sort(key=lambda kernel: kernel.start)

    def _add(self, one, args):
        start, end = one["ts"], one["ts"] + one["dur"]
        if one["cat"] == "kernel":
            made = Kernel(start, end, args.get("stream", -1), args.get("correlation", -1), args.get("External id"))
            if made.number in self.launches:
                made.thread, made.launch, made.in_graph = self.launches[made.number]
            if one["name"].startswith("nccl"):
                self.messages.append(made)
            else:
                (self.unsized if "mscclpp" in one["name"] else self.kernels).append(made)
        elif one["name"] == "record_param_comms":
            kind = KINDS.get(args["Collective name"], args["Collective name"])
            self.calls.append(HostCall(kind, args["In msg nelems"], one["tid"], start, end, args.get("External id")))
        elif one["name"] == "cudaStreamWaitEvent":
            self.waits.append({"thread": one["tid"], "at": start})
        elif one["cat"] == "cuda_sync":
            names = "stream", "wait_on_stream", "correlation", "wait_on_cuda_event_record_corr_id"
            self.waits.append(dict(zip(("stream", "of", "number", "recorded"), map(args.get, names), strict=True)))
        elif one["name"].startswith("ProfilerStep#"):
            self.spans[one["name"]] = start, end

    def _link(self):
        """Give the calls their kernels, also those without records of their own; the kernels of no call, with the reason."""
        of_external = {call.external: call for call in self.calls if call.external is not None}
        lone, foreign = [], []
        for kernel in [*self.messages, *self.unsized]:
            around = [c for c in self.calls if c.thread == kernel.thread and c.start <= (kernel.launch or 0)]
            found = around[-1] if kernel.launch is not None and around and kernel.launch <= around[-1].end else None
            if found:
                found.launch = kernel.launch if found.launch is None else min(found.launch, kernel.launch)
            elif kernel.external is not None and not kernel.in_graph:
                found = of_external.get(kernel.external)
            if found:
                found.kernels.append(kernel)
            elif kernel in self.messages:
                lone.append(kernel)
            else:
                foreign.append(("without a size", kernel))
        times = [launch for _, launch, _ in self.launches.values()]
        for kernel in lone:
            at = kernel.launch
            near = [c for c in self.calls if at is not None and c.start <= at <= c.end and not kernel.in_graph]
            if len(near) == 1 and not near[0].kernels and near[0].thread != kernel.thread:
                near[0].kernels.append(kernel)
                near[0].launch = at
                continue
            early = at is None and times and (kernel.start < min(times) or 0 <= kernel.number < min(self.launches))
            foreign.append((EARLIER if early else "another", kernel))
        return foreign

    def steps(self):
        """Every step in which something happens."""
        found, before = [], None
        spans = sorted(self.spans.items(), key=lambda item: item[1]) or [("", (-math.inf, math.inf))]
        for name, (start, end) in spans:
            kernels = [k for k in self.kernels if self._when(k) is not None and start <= self._when(k) < end]
            calls = [call for call in self.calls if start <= call.start < end]
            if not kernels and not calls:
                continue
            step = self._step(name, kernels, calls, start, end)
            before = self._record(step, before)
            found.append(step)
        return found

    def _when(self, kernel):
        return kernel.launch if self.launches else kernel.start

    def _step(self, name, kernels, calls, start, end):
        in_order = bool(kernels) and (not calls or any(call.kernels for call in calls))
        step = Step(name, kernels, calls, [len(kernels)] * len(calls), [len(kernels)] * len(calls), "upper", in_order)
        if in_order:
            waits = [wait for wait in self.waits if "stream" in wait or start <= wait["at"] < end]
            order = Order(kernels, calls, waits)
            step.opens, step.holds, step.bound, step.said = order.opens, order.holds, order.bound, order.said
        for why, kernel in self.foreign:
            at = kernel.launch if kernel.launch is not None else kernel.start
            if start <= at < end and not (why == EARLIER and self.spans):
                step.bound = "lower" if step.bound in ("", "lower") else "estimate"
        return step

    def _record(self, step, before):
        """Give a step its recorded times, microsecond by microsecond; returns the end of its last kernel."""
        mine = {id(k): k for call in step.calls for k in call.kernels}.values()
        every = [*step.kernels, *mine]
        if not every:
            return before
        last = max(kernel.end for kernel in every)
        first = before if before is not None and before < last else min(kernel.start for kernel in every)
        if mine and not step.in_order:
            step.recorded = {"compute_s": 0, "communication_s": sum(kernel.took for kernel in mine)}
        elif mine:
            computes, moves, late = set(), set(), 0
            for marks, kernels in ((computes, self.kernels), (moves, [*self.messages, *self.unsized])):
                for kernel in kernels:
                    marks.update(range(max(kernel.start, first), min(kernel.end, last)))
            everyone = sorted([*self.kernels, *self.messages, *self.unsized], key=lambda kernel: kernel.start)
            for at in range(first, last):
                following = next((k for k in everyone if k.start > at), None)
                running = any(k.start <= at < k.end for k in everyone)
                late += bool(not running and following and following.launch is not None and following.launch > at)
            step.recorded = {
                "compute_s": sum(kernel.took for kernel in step.kernels),
                "communication_s": sum(kernel.took for kernel in mine),
                "busy_s": len(computes),
                "exposed_s": len(moves - computes),
                "total_s": last - first,
                "host_s": late if self.launches else None,
            }
        return last if before is None else max(last, before)


class Order:
    """What depends on what in a step: how many kernels each call waits for, and the first that waits for the call.

    Args:
        kernels: that compute, by start.
        calls: by the start of their records.
        waits: of streams.
    """

    def __init__(self, kernels, calls, waits):
        self.kernels, self.calls, self.count = kernels, calls, len(kernels)
        self.issued, self.issues = self._issue()
        self.opens = [self._opens(call, at) for call, at in zip(calls, self.issues, strict=True)]
        self.holds, self.bound = [self.count] * len(calls), ""
        precise = [wait for wait in waits if "stream" in wait]
        outside = [wait for wait in waits if "at" in wait and not self._inside(wait)]
        if precise and self.issued is not None:
            self._by_streams(precise)
            self.said = f"by {len(precise)} recorded stream waits"
        elif outside:
            matched = self._in_turn(sorted(outside, key=lambda wait: wait["at"]))
            self.said = f"order: {matched} of {len(outside)} stream waits without a recorded stream"
            self._after_idle()
            self.bound = "upper"
        else:
            self._after_idle()
            self._by_kind()
            self.said = f"order: {len(precise)} recorded" if precise else "order: no stream waits are recorded"
            self.bound = "estimate"
        self._queued()
        self._on_stream()
        self.holds = [max(pair) for pair in zip(self.holds, self.opens, strict=True)]

    def _hold(self, call, kernel):
        self.holds[call] = min(self.holds[call], kernel)

    def _first(self, test):
        """The first kernel of which something holds; their number if there is none."""
        return next((i for i, kernel in enumerate(self.kernels) if test(kernel)), self.count)

    def _issue(self):
        """By which key kernels and calls are in the order of the host: time of launch, number, or nothing."""
        if all(kernel.launch is not None for kernel in self.kernels):
            times = [call.launch if call.launch is not None else call.end for call in self.calls]
            return [kernel.launch for kernel in self.kernels], times
        numbers = [call.kernels[0].number if call.kernels else None for call in self.calls]
        known = [number for number in numbers if number is not None]
        if not known or min(known) < 0 or any(kernel.number < 0 for kernel in self.kernels):
            return None, [0] * len(self.calls)
        following = [next((n for n in numbers[i:] if n is not None), math.inf) for i in range(len(numbers))]
        return [kernel.number for kernel in self.kernels], following

    def _opens(self, call, at):
        """Kernels before the first that was issued after a call, or had not ended when it started."""
        found = self.count
        if self.issued is not None:
            late = [i for i, issued in enumerate(self.issued) if issued > at or (issued == at and not call.in_graph)]
            found = min(late, default=self.count)
        if call.kernels or self.issued is None:
            begun = call.kernels[0].start if call.kernels else call.start
            found = min(found, self._first(lambda kernel: kernel.end > begun))
        return found

    def _inside(self, wait):
        """Whether the host issued a wait within the last record that it had begun."""
        before = [c for c in self.calls if c.thread == wait["thread"] and c.start <= wait["at"]]
        return bool(before) and wait["at"] <= before[-1].end

    def _after_idle(self):
        """A call that ended while nothing was computed holds up the next kernel, others what was issued behind all."""
        holds = [self.count] * len(self.calls)
        if not self.calls:
            return
        if self.issued is not None:
            behind = min((i for i, at in enumerate(self.issued) if at >= max(self.issues)), default=self.count)
        else:
            last = max(call.kernels[-1].end if call.kernels else call.end for call in self.calls)
            behind = self._first(lambda kernel: kernel.start >= last)
        for i, call in enumerate(self.calls):
            if not call.kernels:
                holds[i] = max(self.opens[i], behind)
                continue
            end = max(kernel.end for kernel in call.kernels)
            after = max(self.opens[i], self._first(lambda kernel, end=end: kernel.start >= end))
            idle = after == self.opens[i] or all(kernel.end <= end for kernel in self.kernels[:after])
            holds[i] = after if idle else max(after, behind)
        for i, hold in enumerate(holds):
            self._hold(i, hold)

    def _by_kind(self):
        for i, call in enumerate(self.calls):
            if call.kernels and call.kind not in REDUCES:
                self._hold(i, self._first(lambda k, c=call: k.start >= c.kernels[-1].end - ROUNDING))

    def _in_turn(self, waits):
        """A wait is for the first call of its thread, issued before it, that no wait was for; else of another thread."""
        pending = list(range(len(self.calls)))
        launch = [math.inf if kernel.launch is None else kernel.launch for kernel in self.kernels]
        by_launch = sorted(range(self.count), key=lambda i: launch[i])
        for wait in waits:
            mine = [i for i in by_launch if self.kernels[i].thread == wait["thread"]]
            before = [i for i in mine if launch[i] < wait["at"]]
            near = before[-1] if before else (mine or by_launch)[0]
            stream = self.kernels[near].stream
            behind = [i for i in by_launch if self.kernels[i].stream == stream and launch[i] > wait["at"]]
            held = behind[0] if behind else None
            issued = [i for i in pending if self.calls[i].start < wait["at"]]
            if held is not None:
                latest = self.kernels[held].start + ROUNDING
                issued = [i for i in issued if not (c := self.calls[i]).kernels or c.kernels[-1].end <= latest]
            chosen = [i for i in issued if self.calls[i].thread == wait["thread"]] or issued
            if chosen:
                pending.remove(chosen[0])
                if held is not None:
                    self._hold(chosen[0], held)
        return len(self.calls) - len(pending)

    def _by_streams(self, waits):
        """Which calls each stream knows to have ended, event by event in the order of their numbers."""
        row = [(wait["number"], 0, i) for i, wait in enumerate(waits)]
        row += [(call.kernels[0].number, 1, i) for i, call in enumerate(self.calls) if call.kernels]
        row += [(kernel.number, 2, i) for i, kernel in enumerate(self.kernels)]
        knows, history = {}, {}
        for number, what, i in sorted(row):
            if what == 2:
                for call in knows.get(self.kernels[i].stream, ()):
                    self._hold(call, i)
                continue
            stream = waits[i]["stream"] if what == 0 else self.calls[i].kernels[0].stream
            known = {i}
            if what == 0:
                past = [set_ for at, set_ in history.get(waits[i]["of"], ()) if at <= waits[i]["recorded"]]
                known = past[-1] if past else set()
            knows[stream] = knows.get(stream, set()) | known
            history.setdefault(stream, []).append((number, knows[stream]))

    def _queued(self):
        """A kernel that was launched long before waited for the call at whose end it started."""
        for i, call in enumerate(self.calls):
            end = max((kernel.end for kernel in call.kernels), default=None)
            first = self.count if end is None else self._first(lambda k, end=end: k.start >= end - ROUNDING)
            if first < self.count and (launch := self.kernels[first].launch) is not None and launch < end - QUEUED:
                idle = all(kernel.end < end - ROUNDING for kernel in self.kernels[:first])
                if idle and self.kernels[first].start < end + AT_ONCE:
                    self._hold(i, first)

    def _on_stream(self):
        for i, call in enumerate(self.calls):
            if call.kernels and (stream := call.kernels[0].stream) >= 0:
                end = call.kernels[-1].end - ROUNDING
                self._hold(i, self._first(lambda k, s=stream, e=end: k.stream == s and k.start >= e))
