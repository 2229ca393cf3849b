"""Files that are no traces for this package, recognised by name and refused with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from opticcl.formats.encoding.reading import refusal
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


def _starts(*magics: bytes) -> Callable[[bytes], int]:
    return lambda head: 2 * head.startswith(magics)


def _has(*words: bytes) -> Callable[[bytes], int]:
    return lambda head: 3 * all(word in head for word in words)


def _refuse(name: str, kind: str, instead: str, suffixes: tuple[str, ...], sniff: Callable[[bytes], int]) -> None:
    """Register a kind of file."""
    register_trace(name, suffixes, sniff)(type(f"Foreign{name}", (ForeignReader,), {"kind": kind, "instead": instead}))


def _matches(pattern: bytes) -> Callable[[bytes], int]:
    return lambda head: 3 * (re.search(pattern, head) is not None)


def _never(head: bytes) -> int:
    return 0


_refuse(
    "nsys_report",
    "an Nsight Systems report",
    "export it with: nsys export --type sqlite FILE, and give the .sqlite file",
    (".nsys-rep", ".qdrep", ".qdstrm"),
    _never,
)
_refuse(
    "msccl_xml",
    "a schedule of MSCCL, in XML",
    "a schedule is not a job; see opticcl verify and opticcl convert",
    (),
    _has(b"<algo", b"nchunksperloop"),
)
_refuse(
    "te_ccl",
    "a schedule of TE-CCL",
    "a schedule is not a job; see opticcl verify and opticcl convert",
    (),
    _has(b'"1-Epoch_Duration"'),
)
_refuse(
    "plan_file",
    "a plan of opticcl, or a table in Parquet",
    "give a plan to opticcl verify, simulate or execute",
    (".parquet",),
    _matches(rb'\APAR1|"format"\s*:\s*"opticcl-plan"'),
)
_refuse(
    "nccl_log",
    "a log of NCCL_DEBUG",
    "record a trace of the PyTorch profiler, or dump the NCCL flight recorder",
    (),
    _has(b" NCCL INFO "),
)
_refuse(
    "fault_trace",
    "a list of faults of servers and links",
    "it names no collective; give it to opticcl faults --replay, or to opticcl train --faults beside the trace of a job",
    (),
    _matches(rb'"(event_type|eventType)"\s*:\s*"fault_(start|end)"|"fault_type"\s*:'),
)
_refuse("packed_twice", "packed twice with gzip", "unpack it once", (), _starts(b"\x1f\x8b"))
_refuse("utf_16", "a text in UTF-16", "save it in UTF-8", (), _starts(b"\xff\xfe", b"\xfe\xff"))
_refuse(
    "git_lfs",
    "a pointer of Git LFS",
    "fetch the file itself with: git lfs pull",
    (),
    _starts(b"version https://git-lfs.github.com/"),
)
_refuse(
    "web_page",
    "a web page",
    "download the file itself, not the page that shows it",
    (),
    _matches(rb"\A(\xef\xbb\xbf)?\s*(?i:<!doctype html|<html)"),
)
_refuse(
    "perfetto",
    "a trace of Perfetto in protobuf",
    "give the JSON of the PyTorch profiler (prof.export_chrome_trace)",
    (".pftrace", ".perfetto-trace"),
    _never,
)
_refuse(
    "zip", "a zip archive", "unpack it, or give a .tar.gz with a trace for each rank", (".zip",), _starts(b"PK\x03\x04")
)
_refuse(
    "packed",
    "packed with zstd, xz or bzip2",
    "unpack it, or pack it with gzip",
    (".zst", ".xz", ".bz2"),
    _starts(b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh"),
)
