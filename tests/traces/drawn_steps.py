"""Draws traces of one rank whose times often meet: kernels, calls on several threads, waits of streams, steps."""

import heapq
import json
import random
from functools import partial
from itertools import pairwise

SAID = (
    "allreduce",
    "_allgather_base",
    "_reduce_scatter_base",
    "broadcast",
    "reduce",
    "all_to_all",
    "send",
    "gather",
    "barrier",
)
RANKS = "[0, 1, 2, 3]"
INFO = {"rank": 0, "world_size": 4, "backend": "nccl", "pg_config": []}
GAPS = (0, 1, 2, 3, 5, 10, 19, 20, 21, 22, 30)  # microseconds; 20 is when a kernel counts as queued


class DrawnSteps:
    """A trace of a seed; `text` is the file."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.events, self.number, self.free = [], -1, {}
        self.parts = self.draw.choice(("devices", "processes", "places", "ranks"))
        self.launches = self.draw.random() < 0.7
        self.kept = self.draw.choice((0.97, 0.97, 0.97, 0.6))  # of the launches; the others are not in the file
        self.numbered = self.launches or self.draw.random() < 0.7
        self.streams = self.draw.random() < 0.8
        self.external = not self.launches or self.draw.random() < 0.3
        self.issued = []
        self.calls()
        self.computation()
        heapq.heapify(self.issued)
        while self.issued:  # numbers are those of the order of the host
            at, _, add = heapq.heappop(self.issued)
            self.number += self.draw.choice((1, 1, 1, 2))
            add(at, self.number)
        self.waits()
        self.steps()
        self.draw.shuffle(self.events)
        self.text = json.dumps({"distributedInfo": INFO, "traceEvents": self.events})

    def event(self, cat, name, ts, dur, tid, **args):
        """Add an event."""
        pid = 0 if cat in ("kernel", "cuda_sync") else 9
        if self.parts == "processes" and cat != "cpu_op":  # one process makes the calls, others only launch
            pid += self.draw.choice((0, 1))
        args |= {"rank": 0} if self.parts == "ranks" else {"device": 0} if pid < 9 and self.parts != "places" else {}
        ts, dur = (self.draw.choice((time, time, time, float(time), str(time))) for time in (ts, dur))
        about = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        self.events.append({**about, "args": {key.replace("__", " "): value for key, value in args.items()}})

    def issue(self, at, add):
        """Launch a kernel at a time: `add` is called with it and the number of the launch, in the order of all."""
        heapq.heappush(self.issued, (at, self.draw.random(), add))

    def kernel(self, at, number, name, took, stream, thread, start=-1, **args):
        """Add a kernel and its launch, as far as the trace has such; it starts when its stream is free."""
        if self.launches and self.draw.random() < self.kept:
            self.event("cuda_runtime", "cudaLaunchKernel", at, 1, thread, correlation=number)
        args |= {"correlation": number} if self.numbered and self.draw.random() < 0.99 else {}
        args |= {"stream": stream} if self.streams else {}
        start = max(at + self.draw.choice(GAPS) if start < 0 else start, self.free.get(stream, 0))
        self.free[stream] = start + took
        self.event("kernel", name, start, took, 0, **args)
        if name.startswith("nccl") and self.draw.random() < 0.3:  # one that was queued until then, or nearly so
            end = start + took
            follower = partial(self.kernel, name="gemm", took=9, stream=self.draw.choice((7, 0)), thread=thread)
            self.issue(
                max(at, end - self.draw.choice((19, 20, 21, 25))),
                partial(follower, start=end + self.draw.choice((-2, -1, 0, 1, 19, 20, 21))),
            )

    def computation(self):
        """Kernels that compute, and one that communicates without a size."""
        for _ in range(self.draw.randint(0, 6)):
            stream, thread = self.draw.choice((7, 7, 0)), self.draw.choice((1, 1, 2))
            name = self.draw.choice(["gemm"] * 30 + ["void mscclpp::allreduce(x)"])
            about = {"name": name, "took": self.draw.randint(1, 25), "stream": stream, "thread": thread}
            self.issue(self.draw.randint(0, 100), partial(self.kernel, **about))

    def calls(self):
        """Records of calls, one after the other on each thread, with the kernels that are launched within them."""
        ends, self.starts = {1: 0, 2: 0}, []
        for i in range(self.draw.randint(1, 5)):
            thread = self.draw.choice((1, 1, 2))
            start = ends[thread] + self.draw.randint(0, 25)
            end = ends[thread] = start + self.draw.randint(2, 15)
            self.starts.append(start)
            about = {"Collective__name": self.draw.choice(SAID), "dtype": "Byte", "Group__size": 4}
            about |= {"In__msg__nelems": 4 * (i + 1), "Out__msg__nelems": 4 * (i + 1), "Process__Group__Name": "0"}
            about |= {"Process__Group__Ranks": RANKS, "Dst__Rank": 1, "Src__Rank": 0, "Rank": 0}
            about |= {"External__id": i + 1} if self.external else {}
            self.event("cpu_op", "record_param_comms", start, end - start, thread, **about)
            stream = self.draw.choice((7, 20, 21))
            for _ in range(self.draw.choice((0, 1, 1, 1, 2))):
                at = self.draw.randint(start, end)
                if self.draw.random() < 0.07:
                    at, thread = self.draw.randint(0, 100), self.draw.choice((1, 2, 3))
                mine = {"External__id": i + 1} if self.external and self.draw.random() < 0.9 else {}
                kernel = {
                    "name": "ncclDevKernel_X(x)",
                    "took": self.draw.randint(1, 30),
                    "stream": stream,
                    "thread": thread,
                }
                self.issue(at, partial(self.kernel, **kernel, **mine))

    def waits(self):
        """Waits of streams: issued by the host, or with streams and events."""
        kind = self.draw.choice(
            ("none", "host", "host", "precise", "precise", "both") if self.streams else ("none", "host")
        )
        for _ in range(self.draw.randint(1, 4) if kind != "none" else 0):
            if kind != "precise":
                at = self.draw.choice((self.draw.randint(0, 110), self.draw.choice(self.starts)))
                thread = self.draw.choice((1, 1, 2, 3))
                self.event("cuda_runtime", "cudaStreamWaitEvent", at, 1, thread, correlation=99)
            if kind != "host":
                stream, of = self.draw.choice((7, 0, 20)), self.draw.choice((7, 0, 20, 21))
                about = {"stream": stream, "wait_on_stream": of, "correlation": self.draw.randint(0, self.number + 1)}
                about["wait_on_cuda_event_record_corr_id"] = self.draw.randint(0, self.number + 1)
                self.event("cuda_sync", "Stream Wait Event", 0, 1, 7, **about)

    def steps(self):
        """Up to three steps of the profiler, with time between them or without."""
        places = sorted(self.draw.sample(range(130), self.draw.choice((0, 0, 0, 2, 3, 4))))
        for i, (start, end) in enumerate(pairwise(places)):
            self.event("user_annotation", f"ProfilerStep#{i}", start, end - start - self.draw.choice((0, 0, 3)), 1)
