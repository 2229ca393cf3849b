"""Calls in the records of PyTorch profiler traces: by their arguments, or by the shapes of their tensors."""

from __future__ import annotations

import re
from sys import intern
from typing import Any

from opticcl.reading import check_size, printable
from opticcl.traces._kineto_events import OPERATOR, Events, Values
from opticcl.traces.c10d import (
    MAX_GROUP,
    add_splits,
    collective_of,
    count_of,
    elements_of,
    ends_of,
    is_whole,
    rank_list,
    ratio_of,
    tensors_of,
    width_of,
)
from opticcl.traces.recording import GroupEnds, RankCall

__all__ = ["Arguments", "shaped_call", "values_of"]


class Arguments:
    """Reads the arguments of records; equal lists of ranks are kept once."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[int, ...]] = {}

    def call(self, part: Events, kind: str, name: str, args: dict[str, Any], at: int) -> RankCall | None:
        """The call in the arguments of a record; None, and counted, if it has no size.

        Args:
            part: counts it.
            kind, name: of the record, and of its collective.
            args: of the record.
            at: its position, for messages.
        Raises: DamageError: a size beyond all bounds.
        """
        omissions = part.omissions[kind]
        collective = collective_of(name)
        if not collective:
            omissions.add(f"{kind} of {printable(name[:40])}, which moves no data itself")
            return None
        elements = [args[key] for key in ("In msg nelems", "Out msg nelems") if is_whole(args.get(key))]
        width = width_of(args.get("dtype"))
        if not elements or not width:
            omissions.add(f"{kind} of {printable(name[:40])} without elements of a known type", missing=True)
            return None
        # The whole message is the larger side; of an all_to_all the bytes sent are the input.
        count = elements[0] if collective == "all_to_all" else max(elements)
        size = check_size(min(elements) if min(elements) < 0 else count * width, at, f"{name[:40]} of this event")
        call = RankCall(intern(printable(name)), collective, size)
        call.group, call.ranks, call.group_size = self._group(args)
        call.sequence = count_of(args.get("Seq"), -1)
        if call.is_transfer:
            number = count_of(args.get("Rank"), -1)  # of the peer, within the group
            members = call.ranks
            src, dst = (count_of(args.get(key), -1) for key in ("Src Rank", "Dst Rank"))
            call.ranks = src, dst
            if call.ranks == (-1, -1) and number >= 0:
                call.ends = GroupEnds(*((-1, number) if collective == "send" else (number, -1)), members)
        if collective == "all_to_all":
            call.received_bytes = elements[-1] * width
            lists = args.get("In split size"), args.get("Out split size")
            for why in add_splits(call, lists, (elements[0], elements[-1]), width):
                omissions.add(why)
        elif call.is_transfer:
            call.group_size = 0
        elif not call.ranks and not call.group_size and collective in ("all_gather", "reduce_scatter"):
            call.group_size = ratio_of(elements)
        return call

    def _group(self, args: dict[str, Any]) -> tuple[str, tuple[int, ...], int]:
        """Name of the process group, its ranks, and their number."""
        name = args.get("Process Group Name", args.get("Process Group ID", ""))
        name = printable(str(name)) if isinstance(name, (str, int)) else ""
        size = min(count_of(args.get("Group size"), 0), MAX_GROUP)
        ranks = self.rank_list(args.get("Process Group Ranks"))
        if not ranks:
            start, stride = count_of(args.get("Global rank start"), -1), count_of(args.get("Global rank stride"), 0)
            if start >= 0 and stride:  # long lists are cut: "[0, 1, ...]"
                ranks = self._lists.setdefault(f"{start} {stride} {size}", _range(start, stride, size))
        return name, ranks, size

    def rank_list(self, value: Any) -> tuple[int, ...]:
        """The ranks of a list; equal lists are kept once."""
        if isinstance(value, list):
            value = str(value) if all(is_whole(rank) for rank in value) else ""
        if not isinstance(value, str):
            return ()
        if value not in self._lists:
            self._lists[value] = rank_list(value)
        return self._lists[value]


def shaped_call(
    part: Events, kind: str, name: str, collective: str, ends: str, args: dict[str, Any], at: int
) -> RankCall | None:
    """The call by the shapes of tensors; None, and counted, if they are unknown.

    Args:
        part: counts it.
        kind, name, collective: of the record.
        ends: of a transfer, as text.
        args: of the record.
        at: its position, for messages.
    Raises: DamageError: a size beyond all bounds.
    """
    if not collective:
        part.omissions[kind].add(f"{name[:60]}, which moves no data itself")
        return None
    sizes = list(tensors_of(args.get("Input Dims"), args.get("Input type")))
    if not sizes and collective != "barrier":
        why = (
            "without shapes of a known type" if "Input Dims" in args else "without shapes; record_shapes=True has them"
        )
        part.omissions[kind].add(f"{name[:60]} {why}", missing=True)
        return None
    check_size(min(sizes, default=0), at, f"{name[:60]} of this event")
    # Annotations have the inputs; operators have all tensors, outputs first: the larger side is the message.
    size = max(sizes, default=0) if kind == OPERATOR else sum(sizes)
    size = 0 if collective == "barrier" else size  # its operator has a tensor by which a device is chosen
    call = RankCall(name, collective, check_size(size, at, f"{name[:60]} of this event"))
    if call.is_transfer:
        call.ranks = (-1, -1)
        call.ends = ends_of(ends)
    elif kind == OPERATOR and len(sizes) >= 2:
        if collective == "all_to_all":
            call.received_bytes, call.size_bytes = sizes[0], sizes[1]
        elif collective in ("all_gather", "reduce_scatter", "gather", "scatter"):
            call.group_size = ratio_of(sizes[:2])
    elif collective in ("all_gather", "gather") and len(sizes) == 1:
        call.counts = "share"
    if kind == OPERATOR and collective in ("gather", "scatter"):
        call.size_bytes, call.counts = min(sizes), "share"  # the root alone has the whole message too
    return call


def values_of(name: str, collective: str, args: dict[str, Any]) -> Values | None:
    """What an operator records beside the sizes, by the order of its arguments; None if nothing.

    Args:
        name, collective: of the operator.
        args: of the operator.
    """
    concrete = args.get("Concrete Inputs")
    concrete = concrete if isinstance(concrete, list) else []
    if collective in ("send", "recv") and len(concrete) > 3 and "any_source" not in name:
        peer, tag = (int(v) if re.fullmatch("[0-9]{1,9}", str(v), re.ASCII) else -1 for v in concrete[2:4])
        return Values(GroupEnds(-1, peer) if collective == "send" else GroupEnds(peer, -1), str(tag))
    if collective != "all_to_all":
        return None
    shapes = args.get("Input Dims")
    tensors = [elements_of(shape) for shape in shapes[:2]] if isinstance(shapes, list) else []
    if len(tensors) == 2 and all(tensors):  # a list of tensors on each side, outputs first
        return Values(sent=tensors[1], received=tensors[0])
    return Values(sent=concrete[4], received=concrete[3]) if len(concrete) > 4 else None


def _range(start: int, stride: int, size: int) -> tuple[int, ...]:
    return tuple(range(start, start + stride * size, stride))
