"""Process groups in a JSON file beside the traces: name -> ranks, as ASTRA-sim and the symbolic tensor graph write them.

::

    w.0.et  w.1.et  ...  comm_group.json       {"1": [0, 1], "2": [2, 3], ...}

Such a file is known by its content. Of several, that of the name of the trace (w.json) counts, else those that have a group
that the trace calls.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Set
from functools import lru_cache
from pathlib import Path

import msgspec

from opticcl.errors import WorkloadError
from opticcl.reading import content_of, plain_name, printable, reading, refusal
from opticcl.traces.recording import MAX_RANKS, RankTrace

__all__ = ["add_groups_beside", "is_group_list", "rank_in_name"]

MAX_BYTES = 2**26


def rank_in_name(name: str) -> int:
    """The rank in the name of a file; -1 if it has none, or a number as long as a date.

    >>> rank_in_name("w.12.et"), rank_in_name("resnet50-ddp.rank0.et.gz"), rank_in_name("step.et"), rank_in_name("vgg_16.et")
    (12, 0, -1, -1)
    >>> rank_in_name("w.9999999.et"), rank_in_name("dump.20240501.pkl"), rank_in_name("rank20240501.pkl")
    (9999999, -1, -1)
    """
    stem = plain_name(name.lower()).rpartition(".")[0]
    match = re.fullmatch(r".*(?:[._-]|^)(?:rank|worker)[._-]?([0-9]{1,7})(?:[._-].*)?|.*\.([0-9]{1,7})", stem, re.ASCII)
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
    beside = _beside(path, {call.group for call in trace.calls})
    if beside is not None and (groups := _checked_groups(beside)):
        trace.groups, trace.groups_source = groups, printable(beside.name)
        called = {call.group for call in trace.calls if call.group in groups}
        common = set.intersection(*(set(groups[name]) for name in called)) if called else {number}
        if not common:
            names = ", ".join(map(repr, sorted(called)[:4]))
            raise refusal(path, f"it calls the groups {names}, which have no common rank in {beside.name}")
        if number >= 0 and number not in common:
            of = f"are those of rank {min(common)}" if len(common) == 1 else "do not all have it"
            raise refusal(path, f"its name says rank {number}, but the groups that it calls, in {beside.name}, {of}")
        trace.rank = number if number in common else next(iter(common)) if len(common) == 1 else -1
    else:
        trace.rank = number
        if beside is not None:
            trace.after.append(f"ignored: {printable(beside.name)} beside it, which does not list process groups")
    for call in trace.calls:
        if call.is_transfer:
            src, dst = call.ranks
            call.ranks = (trace.rank, dst) if call.collective == "send" and src < 0 else (src, dst)
            call.ranks = (src, trace.rank) if call.collective == "recv" and dst < 0 else call.ranks


def is_group_list(path: Path) -> bool:
    """Whether a file maps names to lists of ranks and is nothing else."""
    with reading(path, "list of process groups (.json)") as file:
        # so begins such a list, and hardly a trace: of those no more is read
        likely = re.match(rb'(\xef\xbb\xbf)?\s*\{\s*"[^"]*"\s*:\s*\[\s*[0-9\]-]', file.read(4096))
    return likely is not None and any(_groups_in(path).values())


def _beside(path: Path, called: Set[str]) -> Path | None:
    """The list of groups of the same prefix, else one that has a group that is called, else any JSON of the same prefix.

    Raises: WorkloadError: several have one, and are not equal.
    """
    stem = plain_name(path.name).rpartition(".")[0]
    prefix = re.sub(r"[._-]?(rank|worker)?[._-]?[0-9]{1,9}$", "", stem, flags=re.IGNORECASE)
    named = [path.with_name(f"{name}.json") for name in dict.fromkeys((prefix, stem)) if name]
    named = [one for one in named if one != path and one.is_file()]
    if lists := [one for one in named if is_group_list(one)]:
        return lists[0]
    with os.scandir(path.parent) as entries:
        names = sorted(
            e.name for e in entries if e.name.lower().endswith(".json") and e.name != path.name and e.is_file()
        )
    lists = [one for name in names if (one := path.with_name(name)) and is_group_list(one)]
    fitting = [one for one in lists if called & _groups_in(one).keys()]
    if any(_groups_in(one) != _groups_in(fitting[0]) for one in fitting[1:]):
        shown = " and ".join(printable(one.name) for one in fitting[:2])
        raise refusal(path, f"{shown} beside it list different groups of the same names; leave one of them there")
    return next(iter([*fitting, *named]), None)


def _groups_in(path: Path) -> dict[str, list[int]]:
    """Groups by name; none if the file is of another form."""
    state = path.stat()
    return _groups_as_of(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=64)
def _groups_as_of(path: Path, changed_ns: int, size_bytes: int) -> dict[str, list[int]]:
    """The same, read once for all traces beside it."""
    try:
        with reading(path, "list of process groups (.json)") as file:
            return msgspec.json.decode(content_of(path, file, MAX_BYTES), type=dict[str, list[int]])
    except (WorkloadError, msgspec.MsgspecError, ValueError):
        return {}


def _checked_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """Groups by name; none if the file is of another form.

    Raises: WorkloadError: a group has a rank twice, or one that no job has.
    """
    groups = _groups_in(path)
    for name, ranks in groups.items():
        wrong = next((rank for rank in ranks if not 0 <= rank < MAX_RANKS), None)
        if wrong is not None:
            raise refusal(path, f"group {name!r} has rank {wrong:,}, not 0 to {MAX_RANKS - 1:,}")
        if len(set(ranks)) < len(ranks):
            twice = Counter(ranks).most_common(1)[0][0]
            raise refusal(path, f"group {name!r} has rank {twice:,} twice")
    return {printable(name): tuple(ranks) for name, ranks in groups.items() if ranks}
