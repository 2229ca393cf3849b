"""Process groups in a JSON file beside the traces: name -> ranks, as ASTRA-sim and the symbolic tensor graph write them.

::

    w.0.et  w.1.et  ...  w.json       {"1": [0, 1], "2": [2, 3], ...}
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from opticcl.errors import WorkloadError
from opticcl.reading import content_of, printable, reading, refusal
from opticcl.traces.recording import MAX_RANKS, RankTrace

__all__ = ["add_groups_beside", "rank_in_name"]

MAX_BYTES = 2**26
_NUMBERED = re.compile(r"(?P<prefix>.*?)[._-]?(?:rank|worker)?[._-]?(?P<number>[0-9]{1,9})(?:[._-].*)?", re.ASCII)


def rank_in_name(name: str) -> int:
    """The rank in the name of a file; -1 if it has none.

    >>> rank_in_name("w.12.et"), rank_in_name("resnet50-ddp.rank0.et.gz"), rank_in_name("step.et"), rank_in_name("vgg_16.et")
    (12, 0, -1, -1)
    """
    stem = name.lower().removesuffix(".gz").rpartition(".")[0]
    match = re.fullmatch(r".*(?:[._-]|^)(?:rank|worker)[._-]?([0-9]{1,9})(?:[._-].*)?|.*\.([0-9]{1,9})", stem, re.ASCII)
    return int(match[1] or match[2]) if match else -1


def add_groups_beside(trace: RankTrace, path: Path) -> None:
    """Add the groups of the file beside a trace, the rank of the trace, and with it the ends of its transfers.

    Args:
        trace: is changed.
        path: of its file.
    Raises: WorkloadError: the calls of the trace are in groups without a common rank, or without the rank in its name; a
        group has a rank twice, or one that no job has.
    """
    number = rank_in_name(path.name)
    beside = _beside(path)
    if beside is not None and (groups := _read_groups(beside)):
        trace.groups, trace.groups_source = groups, printable(beside.name)
        called = {call.group for call in trace.calls if call.group in groups}
        common = set.intersection(*(set(groups[name]) for name in called)) if called else {number}
        if called and not common:
            names = ", ".join(map(repr, sorted(called)[:4]))
            raise refusal(path, f"it calls the groups {names}, which have no common rank in {beside.name}")
        if number >= 0 and common and number not in common:
            of = f"are those of rank {min(common)}" if len(common) == 1 else "do not all have it"
            raise refusal(path, f"its name says rank {number}, but the groups that it calls, in {beside.name}, {of}")
        trace.rank = number if number in common else min(common) if len(common) == 1 else -1
    else:
        trace.rank = number
        if beside is not None:
            trace.after.append(f"ignored: {printable(beside.name)} beside it, which does not list process groups")
    for call in trace.calls:
        if call.is_transfer and trace.rank >= 0:
            src, dst = call.ranks
            call.ranks = (trace.rank, dst) if call.collective == "send" and src < 0 else (src, dst)
            call.ranks = (src, trace.rank) if call.collective == "recv" and dst < 0 else call.ranks


def _beside(path: Path) -> Path | None:
    """The JSON file of the same prefix, if there is one."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    prefix = re.sub(r"[._-]?(rank|worker)?[._-]?[0-9]{1,9}$", "", stem, flags=re.IGNORECASE)
    for name in dict.fromkeys((prefix, stem)):
        if name and (found := path.with_name(f"{name}.json")) != path and found.is_file():
            return found
    return None


def _read_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """Groups by name; none if the file is of another form.

    Raises: WorkloadError: a group has a rank twice, or one that no job has.
    """
    try:
        with reading(path, "list of process groups (.json)") as file:
            content = content_of(file, MAX_BYTES)
        table: Any = msgspec.json.decode(content) if len(content) <= MAX_BYTES else None
        groups = msgspec.convert(table, dict[str, list[int]])
    except (WorkloadError, msgspec.MsgspecError, RecursionError, ValueError):
        return {}
    for name, ranks in groups.items():
        wrong = next((rank for rank in ranks if not 0 <= rank < MAX_RANKS), None)
        if wrong is not None:
            raise refusal(path, f"group {name!r} has rank {wrong:,}, not 0 to {MAX_RANKS - 1:,}")
        if len(set(ranks)) < len(ranks):
            twice = Counter(ranks).most_common(1)[0][0]
            raise refusal(path, f"group {name!r} has rank {twice:,} twice")
    return {printable(name): tuple(ranks) for name, ranks in groups.items() if ranks}
