"""Files that are no traces for this package, recognised by foreign.toml and refused with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opticcl.files import read_toml
from opticcl.reading import refusal
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace

__all__ = ["ForeignReader"]


class ForeignReader(TraceReader):
    """Refuses a file with its kind and what to give instead."""

    kind = ""
    instead = ""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """Arguments as the base class describes.

        Raises: WorkloadError: always.
        """
        raise refusal(path, f"is {self.kind}, not a trace that opticcl reads; {self.instead}")


def _sniff(entry: Mapping[str, Any]) -> Callable[[bytes], int]:
    """How surely the first bytes of a file are of that kind; a pattern is surer than a start."""
    starts = tuple(map(bytes.fromhex, entry.get("starts", ())))
    patterns = [re.compile(text.encode()) for text in entry.get("patterns", ())]
    return lambda head: (
        3 if patterns and all(one.search(head) for one in patterns) else 2 * bool(starts and head.startswith(starts))
    )


for _name, _entry in read_toml("opticcl.traces", "foreign.toml").items():
    _about = {"kind": _entry["kind"], "instead": _entry["instead"]}
    register_trace(_name, tuple(_entry.get("suffixes", ())), _sniff(_entry))(
        type(f"Foreign{_name}", (ForeignReader,), _about)
    )
