"""File formats: one file a format, found by discovery.

A format registers the suffixes of its files and what it can do: read a file, write a plan, or both. `format_of` chooses by
suffix and, where several formats share one, by the first bytes of the file.

To add a format, write a module in this package that calls `register_format`; no list is edited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import OutputError, PlanFileError
from opticcl.ir import CircuitPlan, ProgressCallback
from opticcl.registry import Registry

__all__ = ["FORMATS", "Format", "PlanToWrite", "format_of", "format_to_write", "plan_suffixes", "register_format"]

SNIFFED_BYTES = 4096


@dataclass(frozen=True, slots=True)
class PlanToWrite:
    """A plan with everything that a format may want to express.

    Args:
        circuits: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        algorithm: what generated it.
        step_starts_s: () -> when each step starts, with barriers, float64 (num_steps,) [s]; computed when a format asks.
        listed: whether every step is listed, where a format has phases.
    """

    circuits: CircuitPlan
    size_bytes: int
    algorithm: str
    step_starts_s: Callable[[], npt.NDArray[np.float64]]
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Args:
        name: registered name.
        suffixes: of its files, lower case, such as (".xml",).
        about: one line on what a file holds.
        reads: what `read` returns, in words; "" where the format is only written.
        writes: what is written, in words; "" where the format is only read.
        read: path -> a `PlanFile` or `DependencyGraph`; None where nothing here reads it.
        write: (path, plan, progress) -> a line on what was written and on what the format cannot express; None where it does
            not hold plans.
        is_graph: whether `read` returns a `DependencyGraph`, which has no fabric.
        sniff: first bytes of a file -> whether it is of this format; None where the suffix decides.
    """

    name: str
    suffixes: tuple[str, ...]
    about: str
    reads: str = ""
    writes: str = ""
    read: Callable[[Path], Any] | None = None
    write: Callable[[Path, PlanToWrite, ProgressCallback], str] | None = None
    is_graph: bool = False
    sniff: Callable[[bytes], bool] | None = None

    def record(self) -> dict[str, Any]:
        """As a plain dict: name, suffixes, reads, writes, about."""
        return {
            "name": self.name,
            "suffixes": list(self.suffixes),
            "reads": self.reads,
            "writes": self.writes,
            "about": self.about,
        }


FORMATS: Registry[Format] = Registry("format", __name__)


def register_format(entry: Format) -> Format:
    """Register a format under its name.

    Raises: ValueError: the name is taken.
    """
    return FORMATS.register(entry.name)(entry)


def format_of(path: Path) -> Format:
    """The format that reads a file.

    Args:
        path: of the file; its suffix decides, and its first bytes where several formats share the suffix.
    Raises: PlanFileError: no such file, a directory, or of no format that can be read.
    """
    readable = [entry for name in FORMATS.names() if (entry := FORMATS.get(name)).read is not None]
    if path.is_dir():
        raise PlanFileError(f"{path}: is a directory; give one of the files in it")
    if not path.exists():
        raise PlanFileError(f"{path}: there is no such file")
    if not path.is_file():
        raise PlanFileError(f"{path}: is not a regular file; save it to disk first")
    found = [entry for entry in readable if path.suffix.lower() in entry.suffixes]
    if len(found) > 1:
        head = _head(path)
        found = [entry for entry in found if entry.sniff is not None and entry.sniff(head)] or [
            entry for entry in found if entry.sniff is None
        ]
    if not found:
        raise PlanFileError(f"{path}: the suffix {path.suffix!r} is of no known format; known: {_suffixes(readable)}")
    return found[0]


def format_to_write(path: Path) -> Format:
    """The format in which a plan is written to a path.

    Args:
        path: its suffix decides.
    Raises: OutputError: no format of plans has that suffix.
    """
    for entry in _writable():
        if path.suffix.lower() in entry.suffixes:
            return entry
    raise OutputError(f"cannot write {path}: it must end in {', '.join(plan_suffixes())}")


def plan_suffixes() -> tuple[str, ...]:
    """Suffixes of the formats in which a plan can be written."""
    return tuple(dict.fromkeys(suffix for entry in _writable() for suffix in entry.suffixes))


def _writable() -> list[Format]:
    return [entry for name in FORMATS.names() if (entry := FORMATS.get(name)).write is not None]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SNIFFED_BYTES)
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None


def _suffixes(entries: list[Format]) -> str:
    return ", ".join(dict.fromkeys(suffix for entry in entries for suffix in entry.suffixes))
