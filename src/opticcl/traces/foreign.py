"""Files that are no traces for this package, recognised by foreign.toml and refused with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

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


def _sureness(starts: tuple[bytes, ...], patterns: Sequence[re.Pattern[bytes]], head: bytes) -> int:
    """How surely the first bytes of a file are of a kind; patterns, which must all be there, are surer than a start."""
    return 3 if patterns and all(one.search(head) for one in patterns) else 2 * head.startswith(starts)


for _name, _entry in read_toml("opticcl.traces", "foreign.toml").items():
    _about = {"kind": _entry["kind"], "instead": _entry["instead"]}
    _starts = tuple(map(bytes.fromhex, _entry.get("starts", ())))
    _patterns = [re.compile(text.encode()) for text in _entry.get("patterns", ())]
    register_trace(_name, tuple(_entry.get("suffixes", ())), partial(_sureness, _starts, _patterns))(
        type(f"Foreign{_name}", (ForeignReader,), _about)
    )
