"""Draws small jobs and writes them as PyTorch records them: a file a rank, or all ranks in one."""

import json
import random
from dataclasses import dataclass, field

WIDTHS = {"Float": 4, "BFloat16": 2, "Long": 8, "Byte": 1}
SAID = {"all_reduce": "allreduce", "all_gather": "_allgather_base", "reduce_scatter": "_reduce_scatter_base"}
SAID |= {"broadcast": "broadcast", "all_to_all": "all_to_allv", "send": "send", "recv": "recv"}
COMPUTE = 7  # stream
OPERATORS = {
    "all_gather": "_allgather_base_",
    "reduce_scatter": "_reduce_scatter_base_",
    "all_to_all": "alltoall_base_",
}
OPERATORS |= {"send": "send", "recv": "recv_"}


@dataclass
class Call:
    """A call of a job.

    Args:
        kind: of a collective, or "transfer".
        group: name of the process group.
        ranks: its members; of a transfer sender and receiver.
        dtype: of the elements.
        elements: of the whole message.
        matrix: rows from each member to each, of an all_to_all.
        row: elements of a row.
        number: in the sequence of its group.
    """

    kind: str
    group: str
    ranks: tuple[int, ...]
    dtype: str
    elements: int
    matrix: tuple[tuple[int, ...], ...] = ()
    row: int = 1
    number: int = 0

    @property
    def size(self) -> int:
        """Bytes of the message; of an uneven all_to_all those of an even one as large as its busiest rank."""
        width = WIDTHS[self.dtype]
        if not self.matrix:
            return self.elements * width
        n = len(self.ranks)
        out = [sum(row) - row[i] for i, row in enumerate(self.matrix)]
        into = [sum(column) - column[i] for i, column in enumerate(zip(*self.matrix, strict=True))]
        return -(-max(out + into) * self.row * width * n // (n - 1))

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Bytes from each member to each."""
        return tuple(tuple(rows * self.row * WIDTHS[self.dtype] for rows in line) for line in self.matrix)

    def sides(self, rank: int) -> tuple[int, int]:
        """Elements of input and output of a rank."""
        n = len(self.ranks)
        if self.kind == "all_gather":
            return self.elements // n, self.elements
        if self.kind == "reduce_scatter":
            return self.elements, self.elements // n
        if self.kind == "all_to_all":
            at = self.ranks.index(rank)
            return sum(self.matrix[at]) * self.row, sum(line[at] for line in self.matrix) * self.row
        return self.elements, self.elements

    def word(self, rank: int) -> str:
        """The collective, or "send" or "recv"."""
        return self.kind if self.kind != "transfer" else ("send" if rank == self.ranks[0] else "recv")


@dataclass
class Job:
    """A job.

    Args:
        world: ranks [count].
        groups: members by name.
        work: calls, and computation as microseconds, in the order of all ranks.
    """

    world: int
    groups: dict[str, tuple[int, ...]]
    work: list[Call | int] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """Without the computation."""
        return [one for one in self.work if isinstance(one, Call)]


def drawn_job(seed: int, transfers: bool = True, uneven: bool = True, repeated: bool = False) -> Job:
    """A job: the group of all ranks, groups of neighbours, of strides, and pairs.

    Args:
        seed: the same job for the same seed.
        transfers, uneven: whether it has any, and all_to_alls.
        repeated: whether all calls of a kind and group have one size, as those of equal layers.
    """
    draw = random.Random(seed)
    world = draw.choice([2, 4, 6, 8])
    half = world // 2
    groups = {"0": tuple(range(world))}
    if world > 2:
        for block in range(2):
            groups[str(len(groups))] = tuple(range(block * half, (block + 1) * half))
        for at in range(half):
            groups[str(len(groups))] = (at, at + half)
    job, numbers = Job(world, groups), dict.fromkeys(groups, 0)
    kinds = ["all_reduce", "all_gather", "reduce_scatter", "broadcast"]
    kinds += ["transfer"] * 2 * transfers + ["all_to_all"] * uneven
    for _ in range(draw.randint(3, 9)):
        job.work += [draw.randint(20, 400)] * draw.randint(0, 2)
        kind, name = draw.choice(kinds), draw.choice(list(groups))
        dtype, members = draw.choice(list(WIDTHS)), groups[name]
        if repeated:
            kind, name, dtype = kinds[seed % len(kinds)], list(groups)[seed // 7 % len(groups)], "Float"
            members = groups[name]
        numbers[name] += 1
        if kind == "transfer":
            src, dst = draw.sample(members, 2)
            job.work.append(Call(kind, name, (src, dst), dtype, draw.randint(1, 900), number=numbers[name]))
        elif kind == "all_to_all":
            rows = tuple(tuple(draw.randint(0, 5) for _ in members) for _ in members)
            rows = tuple(tuple(max(1, n) if i == j else n for j, n in enumerate(line)) for i, line in enumerate(rows))
            row = draw.choice([1, 4, 16])
            job.work.append(Call(kind, name, members, dtype, 0, rows, row, numbers[name]))
        else:
            elements = len(members) * (5 if repeated else draw.randint(1, 900))
            job.work.append(Call(kind, name, members, dtype, elements, number=numbers[name]))
    job.work.append(draw.randint(20, 400))
    return job


class Recorder:
    """Events of one rank.

    Args:
        rank: of the job.
        job: that it records.
        host, device: ids of process and device.
        tag: further arguments of every event.
    """

    def __init__(self, rank: int, job: Job, host: int = 900, device: int = 0, tag: dict | None = None) -> None:
        self.rank, self.job, self.host, self.device, self.tag = rank, job, host, device, tag or {}
        self.events: list[dict] = []
        self.now, self.correlation = 100 * rank, 10_000 * rank
        self.free: dict[int, int] = {}

    def event(self, cat: str, name: str, ts: int, dur: int, pid: int, tid: int, args: dict) -> None:
        """Add an event."""
        about = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
        self.events.append({**about, "args": {**args, **self.tag}})

    def launch(self, name: str, stream: int, took: int, args: dict, wait: int = -1) -> None:
        """Launch a kernel on a stream; it waits for what another stream has done."""
        self.correlation += 1
        self.event(
            "cuda_runtime",
            "cudaLaunchKernel",
            self.now + 1,
            1,
            self.host,
            1 + self.rank,
            {"correlation": self.correlation},
        )
        start = max(self.now + 5, self.free.get(stream, 0), self.free.get(wait, 0))
        self.free[stream] = start + took
        about = {"device": self.device, "stream": stream, "correlation": self.correlation}
        self.event("kernel", name, start, took, self.device, stream, {**about, **args})

    def compute(self, took: int) -> None:
        """A kernel that computes."""
        self.launch("gemm", COMPUTE, took, {})
        self.now += 10

    def arguments(self, call: Call) -> dict:
        """What the profiler records of a call."""
        members = self.job.groups[call.group]
        word, (sent, received) = call.word(self.rank), call.sides(self.rank)
        args = {"Collective name": SAID[word], "dtype": call.dtype, "In msg nelems": sent, "Out msg nelems": received}
        args |= {
            "Group size": len(members),
            "Process Group Name": call.group,
            "Process Group Ranks": str(list(members)),
        }
        args["Rank"] = members.index(self.rank)
        if call.kind == "transfer":
            peer = call.ranks[word == "send"]
            args |= {"Rank": members.index(peer), ("Dst Rank" if word == "send" else "Src Rank"): peer}
        if call.kind == "broadcast":
            args["Rank"] = 0
        if call.kind == "all_to_all":
            at = call.ranks.index(self.rank)
            args["In split size"] = str(list(call.matrix[at]))
            args["Out split size"] = str([line[at] for line in call.matrix])
        return args | {"Seq": call.number}

    def annotated(self, call: Call, took: int) -> None:
        """A call as PyTorch recorded it before it had records: an annotation within an operator, with shapes of tensors."""
        word, (sent, received) = call.word(self.rank), call.sides(self.rank)
        kind = {"Float": "float", "BFloat16": "c10::BFloat16", "Long": "long int", "Byte": "unsigned char"}[call.dtype]
        two = call.kind in ("all_gather", "reduce_scatter", "all_to_all")
        name = OPERATORS.get(word, f"{word.replace('_', '')}_")
        dims, values = [[received], [sent]] if two else [[[sent]]], []
        if call.kind == "all_to_all":
            at = call.ranks.index(self.rank)
            values = ["", "", "", str([line[at] for line in call.matrix]), str(list(call.matrix[at]))]
        about = {"Input Dims": dims, "Input type": [kind] * 2 if two else ["TensorList"], "Concrete Inputs": values}
        if call.kind in ("all_reduce", "broadcast"):
            about |= {"Input Dims": [[sent]], "Input type": [kind]}
        said = f"nccl:{word}"
        if call.kind == "transfer":
            members = self.job.groups[call.group]
            src, dst = (members.index(end) for end in call.ranks)
            said += f" {src}->{dst}" if word == "send" else f" {dst}<-{src}"
        self.event("cpu_op", f"c10d::{name}", self.now, 9, self.host, 1 + self.rank, about)
        shapes = {"Input Dims": [[sent]], "Input type": [kind]}
        self.event("user_annotation", said, self.now + 1, 4, self.host, 1 + self.rank, shapes)
        self.now += 2
        self.launch("ncclDevKernel_X(x)", self.stream(call), took, {}, wait=COMPUTE)
        self.now += 8

    def capture(self, call: Call) -> None:
        """A call that a graph captures: its record, and no kernel."""
        self.event("cpu_op", "record_param_comms", self.now, 8, self.host, 1 + self.rank, self.arguments(call))
        self.now += 10

    def replay(self, work: list[Call | int], kinds: dict[str, str]) -> None:
        """A launch of a graph, whose kernels have its correlation id.

        Args:
            work: calls, and computation as microseconds.
            kinds: name of the kernel of each collective.
        """
        self.correlation += 1
        number = {"correlation": self.correlation}
        self.event("cuda_runtime", "cudaGraphLaunch", self.now, 5, self.host, 1 + self.rank, number)
        start = max(self.now + 20, self.free.get(COMPUTE, 0))
        for one in work:
            took, name = (one, "gemm") if isinstance(one, int) else (25, kinds[one.kind])
            self.event("kernel", name, start, took, self.device, COMPUTE, {"stream": COMPUTE, **number})
            start += took
        self.free[COMPUTE] = start
        self.now += 30

    def batch(self, calls: list[Call], took: int) -> None:
        """Transfers that are launched together."""
        for call in calls:
            self.capture(call)
        self.event("user_annotation", "nccl:coalesced", self.now, 10, self.host, 1 + self.rank, {})
        self.launch("ncclDevKernel_SendRecv(x)", 30, took, {})
        self.now += 20

    def stream(self, call: Call) -> int:
        """PyTorch gives every group a stream of its own."""
        return 20 + int(call.group)

    def call(self, call: Call, took: int) -> None:
        """A call with its record and its kernel."""
        args = self.arguments(call)
        self.event("cpu_op", "record_param_comms", self.now, 8, self.host, 1 + self.rank, args)
        name = f"ncclDevKernel_{'SendRecv' if call.kind == 'transfer' else call.kind.title().replace('_', '')}_RING(x)"
        self.launch(name, self.stream(call), took, args, wait=COMPUTE)
        self.now += 10


def record(job: Job, rank: int, first: int = 0, last: int = 0, **about) -> Recorder:
    """The events of one rank.

    Args:
        job: as drawn.
        rank: of the job.
        first, last: calls of this rank that the recording misses at its begin and at its end.
        about: of `Recorder`.
    """
    made, seen = Recorder(rank, job, **about), 0
    mine = sum(rank in call.ranks for call in job.calls)
    for place, one in enumerate(job.work):
        if isinstance(one, int):
            made.compute(one)
        elif rank in one.ranks:
            seen += 1
            if first < seen <= mine - last:
                made.call(one, 30 + 7 * place)
    return made


def kineto(events: list[dict], info: dict | None = None, last: bool = False) -> str:
    """A trace.

    Args:
        events: in it.
        info: distributedInfo; None: it has none.
        last: whether it stands behind the events.
    """
    parts = [("distributedInfo", info)] if info else []
    parts = [("traceEvents", events), *parts] if last else [*parts, ("traceEvents", events)]
    return json.dumps({"schemaVersion": 1, **dict(parts)})


def information(job: Job, rank: int) -> dict:
    """distributedInfo of a rank."""
    groups = [{"pg_name": name, "pg_size": len(ranks), "ranks": list(ranks)} for name, ranks in job.groups.items()]
    return {"backend": "nccl", "rank": rank, "world_size": job.world, "pg_config": groups}


def begun_and_ended(events: list[dict]) -> list[dict]:
    """The same events as pairs of B and E, by time."""
    found = []
    for one in events:
        end = {key: one[key] for key in ("pid", "tid", "name")} | {"ph": "E", "ts": one["ts"] + one["dur"]}
        found += [{**{key: one[key] for key in one if key != "dur"}, "ph": "B"}, end]
    # At one time what ends comes before what begins; of what begins the longest first.
    return sorted(found, key=lambda one: (one["ts"], one["ph"] == "B"))


def gloo(job: Job, rank: int, late: bool = False) -> list[dict]:
    """Events of one rank on Gloo; ends and parts are among the values of the operator.

    Args:
        job: as drawn.
        rank: of the job.
        late: whether other threads start the calls when their operators have ended.
    """
    made = Recorder(rank, job)
    kinds = {"Float": "float", "BFloat16": "c10::BFloat16", "Long": "long int", "Byte": "unsigned char"}
    for call in job.calls:
        if rank not in call.ranks:
            continue
        word, (sent, received), kind = call.word(rank), call.sides(rank), kinds[call.dtype]
        if call.kind == "transfer":
            peer = str(job.groups[call.group].index(call.ranks[word == "send"]))
            name, values, dims, types = (
                ("send" if word == "send" else "recv_"),
                ["", "", peer, "0"],
                [[[sent]]],
                ["TensorList"],
            )
        elif call.kind == "all_to_all":
            at = call.ranks.index(rank)
            lists = [[line[at] for line in call.matrix], list(call.matrix[at])]
            name, values = "alltoall_base_", ["", "", "", *map(str, lists), "False", "-1"]
            dims, types = [[received // call.row, call.row], [sent // call.row, call.row]], [kind, kind]
        else:
            name, values, dims, types = f"{call.kind.replace('_', '')}_", [], [[sent]], [kind]
        about = {"Concrete Inputs": values, "Input Dims": dims, "Input type": types}
        made.event("cpu_op", f"c10d::{name}", made.now, 40, 900, 1, about)
        shapes = {"Input Dims": [[sent]], "Input type": [kind]}
        if late and call.kind != "transfer":
            made.event("user_annotation", f"gloo:{word}", made.now + 70, 30, 900, 2 + call.number % 2, shapes)
        else:  # a transfer may end long after its operator
            made.event("user_annotation", f"gloo:{word}", made.now + 5, 300 if late else 30, 900, 1, shapes)
        made.now += 50
    return made.events


def flight_recorder(job: Job, rank: int, first: int = 0, last: int = 0) -> dict:
    """A dump of one rank.

    Args:
        job: as drawn.
        rank: of the job.
        first: calls of this rank that have left the ring.
        last: calls that it has not reached.
    """
    config = {name: {"name": name, "desc": "d", "ranks": str(list(ranks))} for name, ranks in job.groups.items()}
    entries = []
    for call in job.calls:
        if rank not in call.ranks:
            continue
        members, transfer = job.groups[call.group], call.kind == "transfer"
        word, sides = call.word(rank), call.sides(rank)
        name = {"all_gather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base"}.get(word, word)
        if transfer:
            src, dst = (members.index(end) for end in call.ranks)
            name += f" {src}->{dst}" if word == "send" else f" {dst}<-{src}"
        entry = {"profiling_name": f"nccl:{name}", "process_group": [call.group, "d"], "state": "completed"}
        entry |= {"is_p2p": transfer, "collective_seq_id": 0 if transfer else call.number}
        entry |= {"p2p_seq_id": call.number if transfer else 0, "record_id": len(entries)}
        for side, elements in zip(("input", "output"), sides, strict=True):
            entry |= {f"{side}_sizes": [[elements]], f"{side}_dtypes": [call.dtype]}
        if call.kind == "all_to_all":
            at = call.ranks.index(rank)
            entry["input_split_sizes"] = [rows * call.row for rows in call.matrix[at]]
            entry["output_split_sizes"] = [line[at] * call.row for line in call.matrix]
        entries.append(entry)
    return {"version": "2.11", "pg_config": config, "entries": entries[first : max(first, len(entries) - last)]}
