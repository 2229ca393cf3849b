"""Names, types and sizes as PyTorch's c10d writes them, in profiler traces, execution traces and flight recorder dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from opticcl.files import read_toml
from opticcl.traces.recording import GroupEnds, RankCall

__all__ = [
    "MAX_GROUP",
    "add_splits",
    "collective_of",
    "count_of",
    "elements_of",
    "ends_of",
    "is_whole",
    "members_of",
    "rank_list",
    "ratio_of",
    "tensors_of",
    "width_of",
]

MAX_GROUP = 2**20  # ranks

_NAMES = read_toml("opticcl.traces", "c10d.toml")


def collective_of(word: str) -> str:
    """Canonical name of a collective, "send" or "recv", by the start of a back end's name; empty if unknown."""
    key = word.replace("_", "").lower()
    return next((str(name) for start, name in _NAMES["collectives"].items() if key.startswith(start)), "")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer and not a truth value."""
    return type(value) is int


def count_of(value: Any, otherwise: int, bits: int = 31) -> int:
    """A whole number from 0.

    Args:
        value: any value.
        otherwise: what is returned for another one.
        bits: of the largest number.
    """
    return value if type(value) is int and 0 <= value < 1 << bits else otherwise


def width_of(name: Any) -> int:
    """Bytes of an element of a type; 0 if unknown."""
    key = name.lower().removeprefix("at::").removeprefix("c10::").replace("c10::", "") if isinstance(name, str) else ""
    return 1 if key.startswith("float8_") else int(_NAMES["type_bytes"].get(key, 0))


def add_splits(call: RankCall, lists: tuple[Any, Any], elements: tuple[int, int], width: int) -> Iterator[str]:
    """Give an all_to_all the parts that its rank sends and receives, from lists such as [1, 3] or "[1, 3]".

    Args:
        call: is changed.
        lists: of input and output, in rows of the first dimension or in elements; an empty one means equal parts.
        elements: of the whole input and output.
        width: of an element [bytes].
    Yields: why a list is not used.
    """
    members = len(call.ranks) or call.group_size
    sides = []
    for side, value, count in zip(("in", "out"), lists, elements, strict=True):
        parts, why = _parts_of(value, count, width)
        if parts and members and len(parts) != members:
            parts, why = (), f"has {len(parts):,} parts for {members:,} ranks"
        if why:
            yield f"{side} split sizes that do not fit, not used: the list {why}"
        sides.append(parts)
    call.sent_splits, call.received_splits = sides


def _parts_of(value: Any, count: int, width: int) -> tuple[tuple[int, ...], str]:
    """Bytes of the parts in a list, and why it does not fit the elements of its tensor.

    Args:
        value: list or text.
        count: elements of the tensor.
        width: of an element [bytes].
    """
    text = str(value) if isinstance(value, list) else value
    if not isinstance(text, str) or not text.strip("[] "):
        return (), ""
    if not re.fullmatch(r"\[\s*[0-9]{1,12}(\s*,\s*[0-9]{1,12})*\s*\]", text, re.ASCII):
        return (), "is cut" if "..." in text else "is none of whole numbers"
    rows = tuple(map(int, text[1:-1].split(",")))
    total = sum(rows)
    if not total or count % total:
        fits = total == count == 0
        return (rows, "") if fits else ((), f"has {total:,} rows in all for {count:,} elements")
    return tuple(row * (count // total) * width for row in rows), ""


def elements_of(shapes: Any) -> list[int]:
    """Elements of each tensor of a list of tensors; none if it is another value.

    >>> elements_of([[2, 3], [4]]), elements_of([2, 3])
    ([6, 4], [])
    """
    if not isinstance(shapes, list) or not all(isinstance(one, list) and all(map(is_whole, one)) for one in shapes):
        return []
    return [_product(one) for one in shapes]


def ends_of(text: str) -> GroupEnds | None:
    """The ends in "0->1" or "1<-0", numbers within the group; None if it is another text."""
    match = re.fullmatch(r"([0-9]{1,9})(->|<-)([0-9]{1,9})", text, re.ASCII)
    if not match:
        return None
    one, other = int(match[1]), int(match[3])
    return GroupEnds(one, other) if match[2] == "->" else GroupEnds(other, one)


def ratio_of(sizes: Sequence[int]) -> int:
    """The larger of two sizes over the smaller; 0 if it is not a whole number."""
    low, high = min(sizes), max(sizes)
    return high // low if low > 0 and high % low == 0 and high // low <= MAX_GROUP else 0


def tensors_of(shapes: Any, types: Any) -> Iterator[int]:
    """Bytes of each tensor of known shape and type; a list of tensors, or of such lists, counts as one."""
    if not isinstance(shapes, list) or not isinstance(types, list):
        return
    for shape, type_ in zip(shapes, types, strict=False):
        width = width_of(type_)
        if width and (count := _elements(shape, 2)) is not None:
            yield count * width


def _elements(shape: Any, depth: int) -> int | None:
    """Elements of a tensor, or of all in lists of that depth; None if it is another value."""
    if not isinstance(shape, list):
        return None
    if all(map(is_whole, shape)):
        return _product(shape)
    counts = [_elements(one, depth - 1) for one in shape] if depth else [None]
    return None if None in counts else sum(count for count in counts if count is not None)


def _product(shape: list[int]) -> int:
    """Elements of a tensor; beyond any message's size it is not multiplied further."""
    count = 1
    for side in shape:
        count *= side
        if abs(count) > 2**70:
            break
    return count


def members_of(group: dict[str, Any]) -> tuple[int, ...]:
    """The ranks in PyTorch's record of a process group, whose list is empty if it has all ranks; none if they are not recorded.

    >>> members_of({"ranks": [1, 3], "group_size": 2}), members_of({"ranks": [], "group_size": 3}), members_of({"ranks": []})
    ((1, 3), (0, 1, 2), ())
    """
    ranks, size = group.get("ranks"), count_of(group.get("pg_size", group.get("group_size")), 0)
    if ranks in ([], {}):
        return tuple(range(size)) if size <= MAX_GROUP else ()
    if isinstance(ranks, (list, dict)):
        ranks = [
            int(one) if isinstance(one, str) and re.fullmatch("[0-9]{1,9}", one, re.ASCII) else one for one in ranks
        ]
    return rank_list(ranks)


def rank_list(value: Any) -> tuple[int, ...]:
    """The ranks of [0, 1] or "[0, 1]", without repetition; none if the list is cut or not a list.

    >>> rank_list("[0, 4]"), rank_list([3]), rank_list("[0, 1, ...]")
    ((0, 4), (3,), ())
    """
    if isinstance(value, (list, tuple)):
        value = str(list(value)) if all(is_whole(rank) for rank in value) else ""
    whole = isinstance(value, str) and re.fullmatch(r"\[\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*\]", value, re.ASCII)
    return tuple(dict.fromkeys(map(int, value[1:-1].split(",")))) if whole else ()
