"""Names, types and sizes as PyTorch's c10d writes them, in profiler traces, execution traces and flight recorder dumps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from opticcl.files import read_toml

__all__ = [
    "MAX_GROUP",
    "collective_of",
    "count_of",
    "is_whole",
    "rank_list",
    "ratio_of",
    "splits_of",
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
    return isinstance(value, int) and not isinstance(value, bool)


def count_of(value: Any, otherwise: int) -> int:
    """A whole number from 0 to 2**31; `otherwise` for any other value."""
    return value if is_whole(value) and 0 <= value < 2**31 else otherwise


def width_of(name: Any) -> int:
    """Bytes of an element of a type; 0 if unknown."""
    key = name.lower().removeprefix("at::").removeprefix("c10::").replace("c10::", "") if isinstance(name, str) else ""
    return 1 if key.startswith("float8_") else int(_NAMES["type_bytes"].get(key, 0))


def splits_of(value: Any, width: int, total_bytes: int) -> tuple[int, ...]:
    """Bytes of each part of a list such as "[1, 3]"; none if it is cut or does not add up.

    Args:
        value: text of the list.
        width: of an element [bytes].
        total_bytes: sum of all parts [bytes].
    """
    whole = (
        re.fullmatch(r"\[\s*[0-9]{1,12}(\s*,\s*[0-9]{1,12})*\s*\]", value, re.ASCII) if isinstance(value, str) else None
    )
    parts = tuple(width * int(part) for part in value[1:-1].split(",")) if whole else ()
    return parts if sum(parts) == total_bytes else ()


def ratio_of(sizes: Sequence[int]) -> int:
    """The larger of two sizes over the smaller; 0 if it is not a whole number."""
    low, high = min(sizes), max(sizes)
    return high // low if low > 0 and high % low == 0 and high // low <= MAX_GROUP else 0


def tensors_of(shapes: Any, types: Any) -> Iterator[int]:
    """Bytes of each tensor of known shape and type; a list of tensors counts as one."""
    if not isinstance(shapes, list) or not isinstance(types, list):
        return
    for shape, type_ in zip(shapes, types, strict=False):
        width = width_of(type_)
        if not width or not isinstance(shape, list):
            continue
        if all(is_whole(side) for side in shape):
            yield _product(shape) * width
        elif all(isinstance(one, list) and all(is_whole(side) for side in one) for one in shape):
            yield sum(map(_product, shape)) * width


def _product(shape: list[int]) -> int:
    """Elements of a tensor; beyond any message's size it is not multiplied further."""
    count = 1
    for side in shape:
        count *= side
        if abs(count) > 2**70:
            break
    return count


def rank_list(value: Any) -> tuple[int, ...]:
    """The ranks of [0, 1] or "[0, 1]", without repetition; none if the list is cut or not a list.

    >>> rank_list("[0, 4]"), rank_list([3]), rank_list("[0, 1, ...]")
    ((0, 4), (3,), ())
    """
    if isinstance(value, (list, tuple)):
        value = str(list(value)) if all(is_whole(rank) for rank in value) else ""
    whole = isinstance(value, str) and re.fullmatch(r"\[\s*[0-9]{1,9}(\s*,\s*[0-9]{1,9})*\s*\]", value, re.ASCII)
    return tuple(dict.fromkeys(map(int, value[1:-1].split(",")))) if whole else ()
