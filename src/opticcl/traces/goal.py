"""Reader of GOAL, the text form of ATLAHS and LogGOPSim: sends, receives and computation of all ranks, with dependencies.

::

    num_ranks 2                           // a remark, or one between /* and */

    rank 0 {
    l1: calc 1000 cpu 0                   computation [ns]
    l2: send 1048576b to 1 tag 0 nic 0    bytes, the other rank, a tag that the receive has too
    l3: recv 8b from 1 tag 1              -1 in place of the rank or the tag: any
    l2 requires l1                        l2 starts when l1 has ended
    l3 irequires l2                       l3 starts when l2 starts
    }

A transfer starts when its sender is ready: a receive that waits for something delays what requires it, not the transfer. So two
ranks that both send before they receive do not wait for each other. Computation of a rank runs one after the other, whatever
its `cpu` is, and `nic` is not used: the fabric has its own network interfaces.

Source: spcl/atlahs and LogGOPSim, the text form of GOAL; `compile -o plan.goal` writes it.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from opticcl.reading import DamageError, check_size, lines, printable, reading, title
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import counted, format_seconds

__all__ = ["GoalReader"]

MAX_RANKS = 1 << 20
MAX_OPERATIONS = 1 << 20
MAX_WAITS = 1 << 24
FORM = "write label: send 8b to 1 tag 0, recv 8b from 1 tag 0, calc 100, or label requires label"
_NUMBER = "([0-9]{1,20})"
_OPERATION = re.compile(
    rf"(?:(\w+)\s*:\s*)?(?:calc\s+{_NUMBER}|(?:(send)\s+{_NUMBER}b?\s+to|(recv)\s+{_NUMBER}b?\s+from)\s+([0-9]{{1,20}}|-1))"
    r"((?:\s+(?:tag\s+-1|(?:tag|cpu|nic)\s+[0-9]{1,20}))*)",
    re.ASCII,
)
_NEEDS = re.compile(r"(\w+)\s+(i?requires)\s+(\w+)", re.ASCII)
_REMARK = re.compile(r"//.*|/\*.*?(\*/|$)")
_RANK = re.compile(rf"rank\s+{_NUMBER}\s*\{{\s*(\}})?", re.ASCII)


def _is_goal(head: bytes) -> int:
    text = re.sub(r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)", " ", head.decode("utf-8", "replace").lstrip("\ufeff"))
    return 2 * (re.match(r"\s*num_ranks\s+[0-9]+\s*(?:\n|$)", text) is not None)


@register_trace("goal", (".goal",), _is_goal)
class GoalReader(TraceReader):
    """Reads a GOAL file."""

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The operations of every rank, as the base class describes.

        Raises: WorkloadError: also labels that do not exist, or that require each other.
        """
        with reading(path, "GOAL file", "line") as file:
            rows = _without_remarks(lines(file))
            num_ranks, number = _num_ranks(rows)
            blocks = _blocks(rows, num_ranks, number)
            traces = [_trace(path, rank, num_ranks, blocks.get(rank) or _Block(0), tasks) for rank in range(num_ranks)]
        total = sum(len(block.operations) for block in blocks.values())
        about = [f"operations: {total:,} of {counted(num_ranks, 'rank')}"]
        if most_s := max(trace.compute_s for trace in traces):
            about.append(f"computation: {format_seconds(most_s)} of the rank that computes most")
        if several := sum(len(block.cpus) > 1 for block in blocks.values()):
            about.append(f"order: computation on several cpus runs one after the other, of {counted(several, 'rank')}")
        about.append(
            "order: a transfer starts when its sender is ready, whether or not the receive waits for something else"
        )
        for trace in traces:
            trace.after += about
        return traces


def _without_remarks(numbered: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Number and text of the lines in which anything else stands."""
    within = False
    for number, line in numbered:
        if within or "/" in line:
            line = f"/*{line}" if within else line
            within = any(match[1] == "" for match in _REMARK.finditer(line))
            line = _REMARK.sub(" ", line)
        if text := line.strip():
            yield number, text


def _num_ranks(rows: Iterator[tuple[int, str]]) -> tuple[int, int]:
    """The number of ranks in the first line, and the number of that line.

    Raises: DamageError: it has none.
    """
    number, first = next(rows, (1, ""))
    match = re.fullmatch(rf"num_ranks\s+{_NUMBER}", first, re.ASCII)
    if not match or not 1 <= int(match[1]) <= MAX_RANKS:
        raise DamageError(number, f"{first[:60]!r} is not num_ranks with a number from 1 to {MAX_RANKS:,}")
    return int(match[1]), number


class _Operation(NamedTuple):
    """An operation: `kind` is calc, send or recv; `amount` are nanoseconds or bytes."""

    kind: str
    amount: int
    peer: int
    tag: str
    name: str


@dataclass(slots=True)
class _Block:
    """The operations of a rank.

    Args:
        line: of its start.
        operations: in the order of the file.
        labels: label -> operation.
        needs: line, operation, label of what it needs, and whether its start is enough.
        cpus: that compute.
    """

    line: int
    operations: list[_Operation] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    needs: list[tuple[int, str, str, bool]] = field(default_factory=list)
    cpus: set[str] = field(default_factory=set)


def _blocks(rows: Iterator[tuple[int, str]], num_ranks: int, number: int) -> dict[int, _Block]:
    """The block of each rank that has one.

    Raises: DamageError: a line of another form, a rank that is twice or not there, or too many operations.
    """
    blocks: dict[int, _Block] = {}
    block: _Block | None = None
    total = 0
    for number, text in rows:
        if block is None:
            match = _RANK.fullmatch(text)
            if not match:
                raise DamageError(number, f"{text[:60]!r} is not the start of a rank, such as rank 0 {{")
            rank = int(match[1])
            if rank >= num_ranks or rank in blocks:
                why = "is there twice" if rank in blocks else f"is not 0 to {num_ranks - 1:,}"
                raise DamageError(number, f"rank {rank:,} {why}")
            blocks[rank] = _Block(number)
            block = None if match[2] else blocks[rank]
        elif text == "}":
            block = None
        elif match := _OPERATION.fullmatch(text):
            _add(block, number, match, num_ranks)
            total += 1
            if total > MAX_OPERATIONS:
                raise DamageError(number, f"more than {MAX_OPERATIONS:,} operations; give fewer ranks or iterations")
        elif match := _NEEDS.fullmatch(text):
            block.needs.append((number, match[1], match[3], match[2] == "irequires"))
        else:
            raise DamageError(number, f"{text[:60]!r} is not an operation; {FORM}")
    if block is not None:
        raise DamageError(number, f"the file ends within the rank that line {block.line:,} begins")
    return blocks


def _add(block: _Block, number: int, match: re.Match[str], num_ranks: int) -> None:
    """Add the operation of a line.

    Raises: DamageError: a label that is there twice, a rank that is not there, or a size of no message.
    """
    label, calc, send, sent, recv, received, peer, more = match.groups()
    about = dict(re.findall(r"\b(\w+)\s+(-?[0-9]+)", more))
    amount = int(calc or sent or received)
    if calc is None:
        check_size(amount, number, "the message")
        if not -bool(recv) <= int(peer) < num_ranks:
            raise DamageError(
                number, f"{'to' if send else 'from'} {int(peer):,}, which is not a rank from 0 to {num_ranks - 1:,}"
            )
    else:
        block.cpus.add(about.get("cpu", "0"))
    if label:
        if label in block.labels:
            raise DamageError(number, f"label {label[:40]} is there twice in its rank")
        block.labels[label] = len(block.operations)
    name = printable(label[:80]) if label else f"line {number}"
    tag = str(int(about.get("tag", "0")))
    block.operations.append(_Operation(send or recv or "calc", amount, int(peer or -1), tag, name))


def _trace(path: Path, rank: int, num_ranks: int, block: _Block, with_tasks: bool) -> RankTrace:
    """The calls of a rank, and its tasks if they are wanted.

    Raises: DamageError: labels that do not exist, or that require each other.
    """
    operations = block.operations
    needs = _needs(block)
    calls: dict[int, RankCall] = {}
    for i, one in enumerate(operations):
        if one.kind != "calc":
            ends = (rank, one.peer) if one.kind == "send" else (one.peer, rank)
            calls[i] = RankCall(one.name, one.kind, one.amount, ranks=ends, tag=one.tag)
    steps = []
    if with_tasks:
        order, waits = _order(block, needs)
        place = {old: new for new, old in enumerate(order)}
        tasks = []
        for old in order:
            after = tuple(sorted(place[i] for i in waits[old]))
            one = operations[old]
            mine = (calls[old],) if old in calls else ()
            tasks.append(RankTask(one.name, 0.0 if mine else one.amount / 1e9, mine, after, place=old))
        steps = [RecordedStep("", tasks, ordered=False)]
    compute_s = sum(one.amount for one in operations if one.kind == "calc") / 1e9
    return RankTrace(
        title(path),
        f"GOAL file {printable(path.name)}",
        printable(path.name),
        list(calls.values()),
        steps,
        rank=rank,
        world_size=num_ranks,
        world_source="num_ranks",
        compute_s=compute_s,
    )


def _needs(block: _Block) -> list[list[tuple[int, bool]]]:
    """What each operation needs, and whether its start is enough.

    Raises: DamageError: a label that does not exist.
    """
    needs: list[list[tuple[int, bool]]] = [[] for _ in block.operations]
    for number, label, needed, started in block.needs:
        for one in (label, needed):
            if one not in block.labels:
                raise DamageError(number, f"label {one[:40]} does not exist in its rank")
        needs[block.labels[label]].append((block.labels[needed], started))
    return needs


def _order(block: _Block, needs: list[list[tuple[int, bool]]]) -> tuple[list[int], list[set[int]]]:
    """Operations in an order that their dependencies allow, the first in the file first, and what each waits for.

    A receive waits for nothing itself: what requires it also waits for what it requires.

    Raises: DamageError: labels that require each other, or too many dependencies.
    """
    n = len(block.operations)
    ahead: list[list[int]] = [[] for _ in range(n)]
    left = [len(mine) for mine in needs]
    for i, mine in enumerate(needs):
        for j, _ in mine:
            ahead[j].append(i)
    ready = [i for i in range(n) if not left[i]]
    order: list[int] = []
    waits: list[set[int]] = [set() for _ in range(n)]
    passed_on: list[set[int]] = [set() for _ in range(n)]  # by a receive, or by an operation whose start is enough
    total = 0
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        before: set[int] = set()
        for j, started in needs[i]:
            before |= passed_on[j] if started else {j, *(passed_on[j] if block.operations[j].kind == "recv" else ())}
        passed_on[i] = before
        waits[i] = set() if block.operations[i].kind == "recv" else before
        total += len(before)
        if total > MAX_WAITS:
            raise DamageError(block.line, f"this rank has more than {MAX_WAITS:,} dependencies")
        for j in ahead[i]:
            left[j] -= 1
            if not left[j]:
                heapq.heappush(ready, j)
    if len(order) < n:
        stuck = next(label for label, i in block.labels.items() if left[i])
        raise DamageError(block.line, f"labels of this rank require each other, {stuck[:40]} among them")
    return order, waits
