"""Data of a plan by exact integers: what every rank holds of every chunk, contribution by contribution.

A value is one integer with a digit for each contributor, wide enough that no count of it can grow into the next digit. The
result of a chunk is right where each digit of those that held it at the start is 1 and all others are 0.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from tests.independent.plan_rows import MalformedError, NotJudgedError, PlanRows, inflated, unpacked

COPY, ADD, MOVE, ADD_AND_GIVE_UP = range(4)

HOLDERS = {  # before, after, whether contributions are added
    "all_reduce": ("all", "all", True),
    "barrier": ("all", "all", True),
    "reduce": ("all", "root", True),
    "reduce_scatter": ("all", "owner", True),
    "all_to_all": ("all", "owner", False),
    "all_gather": ("owner", "all", False),
    "gather": ("owner", "root", False),
    "broadcast": ("root", "all", False),
    "scatter": ("root", "owner", False),
    "send_recv": ("owner", "target", False),
}


@dataclass(frozen=True)
class Promise:
    """What a collective begins and ends with.

    Args:
        ranks: that take part [count].
        before, after: ranks that hold each chunk.
        adds: whether contributions are added.
        apart: whether they stay side by side.
    """

    ranks: int
    before: list[set[int]]
    after: list[set[int]]
    adds: bool
    apart: bool

    @property
    def one(self) -> bool:
        """Whether all holders of a chunk hold the same data, so that there is one contribution."""
        return not (self.adds or self.apart)


def promise_of(collective: dict) -> Promise:
    """Read the collective of a header.

    Raises: MalformedError, NotJudgedError: as `read_plan`.
    """
    name, ranks, chunks = collective["name"], collective["num_ranks"], collective["num_chunks"]
    if collective.get("reduces") is not None:
        before, after = (_table(collective[when], chunks, ranks) for when in ("before", "after"))
        return Promise(ranks, before, after, collective["reduces"], False)
    if name not in HOLDERS:
        raise NotJudgedError(f"collective {name}")
    root = collective.get("root", 0)
    if not 0 <= root < ranks:
        raise MalformedError(f"root {root}")
    owners = [0] * chunks
    if "owner" in HOLDERS[name][:2]:
        each, rest = divmod(chunks, ranks)
        given = collective.get("owner")
        owners = [c // max(each, 1) for c in range(chunks)] if given is None else unpacked(given, chunks).tolist()
        if rest or set(Counter(owners).values()) != {each} or len(set(owners)) != ranks:
            raise MalformedError("ranks do not own equally many chunks")
    who = {
        "all": [set(range(ranks))] * chunks,
        "root": [{root}] * chunks,
        "owner": [{owner} for owner in owners],
        "target": [{(owner + collective.get("shift", 1)) % ranks} for owner in owners],
    }
    first, last, adds = HOLDERS[name]
    return Promise(ranks, who[first], who[last], adds, name == "all_to_all")


def _table(text: str, chunks: int, ranks: int) -> list[set[int]]:
    raw = inflated(text)
    if len(raw) != -(-chunks * ranks // 8):
        raise MalformedError("not one bit for each chunk and rank")
    bits = np.unpackbits(np.frombuffer(raw, np.uint8), count=chunks * ranks).reshape(chunks, ranks)
    return [set(np.flatnonzero(row).tolist()) for row in bits]


def data_fault(plan: PlanRows) -> str:
    """Why the data of a plan are wrong; empty where every rank ends with what it must hold."""
    promise = promise_of(plan.collective)
    chunks = len(promise.before)
    rank_of = {node: rank for rank, node in enumerate(plan.nodes or range(promise.ranks))}
    history: list[list[list[tuple[int, int, int, int]]]] = [[] for _ in range(chunks)]
    """Of each chunk, step by step: sender, receiver, operation, parts."""
    for step in plan.steps:
        for transfers in step.steps(chunks):
            events = defaultdict(list)
            for transfer, (parts, carried) in transfers.items():
                src, dst = rank_of.get(transfer.src, -1), rank_of.get(transfer.dst, -1)
                fault = _row_fault(promise, (src, dst), transfer.op, parts)
                if not carried or not 0 <= min(carried) <= max(carried) < chunks:
                    fault = f"chunks {carried}"
                if fault:
                    return f"transfer {transfer}: {fault}"
                for chunk in carried:
                    events[chunk].append((src, dst, transfer.op, parts))
            for chunk, of_chunk in events.items():
                history[chunk].append(of_chunk)
    for chunk in range(chunks):
        if fault := _history_fault(promise, chunk, history[chunk]):
            return f"chunk {chunk}: {fault}"
    return ""


def _row_fault(promise: Promise, ends: tuple[int, int], op: int, parts: int) -> str:
    """Why no plan of this collective has such a transfer.

    Args:
        promise: of the collective.
        ends: ranks; -1 of a node without one.
        op, parts: of the transfer.
    """
    if min(ends) < 0:
        return "no rank of the job"
    if op not in ((COPY, MOVE) if promise.apart else (COPY, ADD, ADD_AND_GIVE_UP)):
        return f"operation {op}"
    return f"{parts} parts" if parts != 1 and not promise.apart else ""


def _history_fault(promise: Promise, chunk: int, history: list[list[tuple[int, int, int, int]]]) -> str:
    """Why one chunk ends wrong.

    Args:
        promise: of the collective.
        chunk: its number.
        history: of each step that carries it: sender, receiver, operation, parts.
    """
    digit = 1
    for events in history:  # a count grows at most by the factor of one more than the writes of a place
        digit += (1 + max(Counter(dst for _, dst, _, _ in events).values())).bit_length()
    before = promise.before[chunk]
    unit = {rank: 1 << (0 if promise.one else rank * digit) for rank in before}
    held = dict(unit)
    due = 1 if promise.one else sum(unit.values())
    for events in history:
        written = defaultdict(list)
        for src, dst, op, parts in events:
            value = held.get(src, 0)
            if not value:
                return f"rank {src} sends what it does not hold"
            if promise.apart and (there := _count(value, digit)) != parts:
                return f"rank {src} sends {there} contributions as {parts}"
            written[dst].append((op, value))
        for src, _, op, _ in events:
            if op in (MOVE, ADD_AND_GIVE_UP):
                held[src] = 0
        for dst, writes in written.items():
            copies = sum(op == COPY for op, _ in writes)
            if copies and len(writes) > 1:
                return f"rank {dst} stores several values"
            held[dst] = writes[0][1] if copies else held.get(dst, 0) + sum(value for _, value in writes)
    for rank in sorted(promise.after[chunk]):
        if held.get(rank, 0) != due:
            return f"rank {rank} ends with another result"
    return ""


def _count(value: int, digit: int) -> int:
    """Sum of all digits of a value."""
    total, mask = 0, (1 << digit) - 1
    while value:
        total += value & mask
        value >>= digit
    return total
