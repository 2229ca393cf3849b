"""What the events of a device are, by their names: communication of a library, computation, or unknown; and sizes from a list.

A kernel that communicates without a record in the trace has no size. A list beside the trace gives it, as TOML::

    [[kernels]]
    name = "deep_ep::internode::dispatch"     # part of the kernel's name
    collective = "all_to_all"
    size = "25 MB"                            # the whole message, or a whole number of bytes
    ranks = [0, 1, 2, 3]                      # optional; without it all ranks
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from opticcl.collective import collective_name
from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.reading import content_of, printable, reading, refusal
from opticcl.traces.recording import MAX_RANKS, RankCall
from opticcl.units import counted, format_bytes, format_seconds, message_size

__all__ = ["UNSIZED", "Activity", "KernelSizes", "Library", "activity_of_task", "is_host", "is_launch", "library_of"]

MAX_LIST_BYTES = 2**20
MAX_NAMES = 10_000
SHOWN = 3  # names in a note
UNSIZED = "without a size"
FORM = "write [[kernels]] with name, collective, size, ranks"

_TABLE = read_toml("opticcl.traces", "kernel_names.toml")


class Library(NamedTuple):
    """A library whose kernels communicate.

    Args:
        name: of the library.
        pattern: that the names of its kernels match.
        recorded: whether a profiler records its calls with their sizes.
    """

    name: str
    pattern: re.Pattern[str]
    recorded: bool


_LIBRARIES = tuple(
    Library(row["library"], re.compile(row["pattern"]), row.get("recorded", False)) for row in _TABLE["kernels"]
)
_COMPUTING = frozenset(_TABLE["tasks"]["computation"])
_HOST = frozenset(_TABLE["host"]["categories"])


@lru_cache(2**16)
def library_of(name: str) -> Library | None:
    """The library that a kernel communicates for; None if it computes.

    >>> library_of("void deep_ep::internode::combine<false>(int4*)").name, library_of("ncclDevKernel_AllReduce_Sum").name
    ('DeepEP', 'NCCL')
    """
    text = name.lower().removeprefix("void ")
    return next((one for one in _LIBRARIES if one.pattern.search(text)), None)


def activity_of_task(task_type: Any) -> str:
    """ "computation" for a type of task of an Ascend device that computes; else empty."""
    return "computation" if isinstance(task_type, str) and task_type in _COMPUTING else ""


@lru_cache(1024)
def is_host(category: str) -> bool:
    """Whether events of a category, in lower case, are not of a device."""
    return category in _HOST


def is_launch(call: str) -> bool:
    """Whether a call of the host, such as "cudaLaunchKernel", starts a kernel, a graph or copies."""
    return "aunch" in call or "emcpy" in call


class Activity:
    """Counts events of devices that are left out, by what they are and by name."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[float]]] = {}

    def __bool__(self) -> bool:
        """Whether any event is counted."""
        return bool(self._found)

    def add(self, what: str, name: str, took_us: float, size_bytes: int = 0) -> None:
        """Count an event.

        Args:
            what: it is, in the plural.
            name: of the event.
            took_us: its duration [us].
            size_bytes: if it is recorded [bytes].
        """
        names = self._found.setdefault(what, {})
        if name not in names and len(names) >= MAX_NAMES:
            name = "others"
        row = names.setdefault(name, [0, 0.0, 0])
        row[0], row[1], row[2] = row[0] + 1, row[1] + took_us, row[2] + size_bytes

    def add_all(self, other: Activity) -> None:
        """Add the counts of another one."""
        for what, names in other._found.items():
            for name, (number, took_us, size) in names.items():
                row = self._found.setdefault(what, {}).setdefault(name, [0, 0.0, 0])
                row[0], row[1], row[2] = row[0] + number, row[1] + took_us, row[2] + size

    def notes(self) -> Iterator[str]:
        """A line for each kind, with the names that took the most time."""
        for what, names in self._found.items():
            number, took_us, size = (sum(row[i] for row in names.values()) for i in range(3))
            longest = sorted(names, key=lambda name: (-names[name][1], name))[:SHOWN]
            shown = ", ".join(f"{printable(name[:60])} ({int(names[name][0]):,})" for name in longest)
            more = ", ..." if len(names) > SHOWN else ""
            sizes = f", {format_bytes(size)}" if size else ""
            hint = "; --kernel-sizes gives their sizes" if what.endswith(UNSIZED) else ""
            yield f"left out: {int(number):,} {what}, {format_seconds(took_us * 1e-6)}{sizes}: {shown}{more}{hint}"


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    collective: str
    size: int | str
    ranks: tuple[int, ...] = ()


class _List(msgspec.Struct, forbid_unknown_fields=True):
    kernels: list[_Row]


@dataclass(slots=True)
class KernelSizes:
    """Sizes of kernels that communicate and have no record.

    Args:
        file: name of the list, for messages.
        calls: call of each name.
        used: kernels that each name was found in [count].
    """

    file: str
    calls: dict[str, RankCall]
    used: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> KernelSizes:
        """The sizes in a list.

        Raises: WorkloadError: it cannot be read, or a collective, a size or a rank is none.
        """
        with reading(path, "list of kernel sizes (.toml)") as file:
            content = content_of(path, file, MAX_LIST_BYTES)
        try:
            listed = msgspec.convert(tomllib.loads(content.decode("utf-8-sig")), _List, strict=True)
        except msgspec.ValidationError as error:
            what, _, place = str(error).partition(" - at `$.")
            raise refusal(path, f"{place.rstrip('`') or 'file'}: {what}; {FORM}") from None
        except (ValueError, RecursionError) as error:
            raise refusal(path, f"is not valid TOML: {error}; {FORM}") from None
        calls = {}
        for i, row in enumerate(listed.kernels):
            try:
                collective = collective_name(row.collective)
                size = message_size(row.size, f"kernels[{i}].size")
            except ParameterError as error:
                raise refusal(path, f"kernels[{i}]: {error}") from None
            if not row.name or collective == "send_recv":
                what = "collective: a transfer has no place in the list" if row.name else "name: it is empty"
                raise refusal(path, f"kernels[{i}].{what}; {FORM}")
            if len(set(row.ranks)) < len(row.ranks) or any(not 0 <= rank < MAX_RANKS for rank in row.ranks):
                raise refusal(path, f"kernels[{i}].ranks: distinct numbers from 0 on, such as [0, 1]")
            rule = "" if row.ranks else "the list of sizes"
            calls[row.name] = RankCall("", collective, size, ranks=row.ranks, group_rule=rule)
        if not calls:
            raise refusal(path, f"kernels: the list is empty; {FORM}")
        return cls(printable(path.name), calls)

    def call_of(self, name: str) -> RankCall | None:
        """The call that a kernel executes, by the longest listed part of its name; None if none is listed."""
        longest = max((part for part in self.calls if part in name), key=len, default=None)
        if longest is None:
            return None
        self.used[longest] = self.used.get(longest, 0) + 1
        one = self.calls[longest]
        return replace(one, name=printable(name[:80]))

    def notes(self) -> Iterator[str]:
        """What the list was used for."""
        for part in self.calls:
            yield f"sizes of {self.file}: {counted(self.used.get(part, 0), 'kernel')} of {printable(part[:60])}"
