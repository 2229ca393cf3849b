"""What a training job asks of the network: its collective calls and their sizes, in order.

::

    step.et               Chakra execution trace of a real or simulated job      chakra.py
    step.json             trace of the PyTorch profiler (Kineto)                 kineto.py
    comms.log             LUMORPH's log of all-reduces and transfers             lumorph.py
    graph.fbuf            task graph of TopoOpt                                  topoopt.py
    layers.txt            layers with their collectives, ASTRA-sim's text form   astra.py
    sizes.toml            a list of sizes written by hand                        sizes.py
    builtin(name)         the same form, in data/workloads/

Traces may be packed with gzip. Readers stream, and count in `notes` whatever they leave out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from opticcl.collective import collective_name
from opticcl.errors import UnknownNameError
from opticcl.registry import as_path, canonical, nearest
from opticcl.workload._files import head_of

__all__ = ["BUILTIN_WORKLOADS", "CollectiveCall", "Workload", "builtin", "load_workload"]

BUILTIN_WORKLOADS: tuple[str, ...] = tuple(
    sorted(f.name.removesuffix(".toml") for f in files("opticcl.data").joinpath("workloads").iterdir())
)


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One collective that the job calls, or one transfer between two of its ranks.

    Args:
        name: what the job calls it, such as the kernel's name.
        collective: canonical name; a transfer is a send_recv whose `ranks` are the sender and the receiver.
        size_bytes: the message, as `opticcl.collective` counts it; of a transfer what is sent [bytes].
        group: process group that takes part; empty if it is not recorded.
        measured_s: how long it took where it was recorded; 0 if it was not [s].
        ranks: that take part, where they are recorded; with neither group nor ranks all do. In a transfer -1 stands for a
            rank that the trace does not tell.
    """

    name: str
    collective: str
    size_bytes: int
    group: str = ""
    measured_s: float = 0.0
    ranks: tuple[int, ...] = ()

    @property
    def is_transfer(self) -> bool:
        """From one rank to one other: `ranks` are the two. Without ranks a send_recv is a shift of all ranks."""
        return self.collective == "send_recv" and len(self.ranks) == 2


@dataclass(frozen=True, slots=True)
class Workload:
    """The collective calls of one training step.

    Args:
        name: of the job.
        source: where the numbers come from.
        calls: at least one, in order.
        notes: what was counted, left out or odd, a line each.
        num_ranks: of the job; 0 if it is not recorded [count].
        compute_s: computation of one device, the busiest where several are recorded; 0 if it is not recorded [s].
    """

    name: str
    source: str
    calls: tuple[CollectiveCall, ...]
    notes: tuple[str, ...] = ()
    num_ranks: int = 0
    compute_s: float = 0.0

    @property
    def total_bytes(self) -> int:
        """Sum of the messages of all calls [bytes]."""
        return sum(call.size_bytes for call in self.calls)

    def sizes(self, collective: str) -> tuple[int, ...]:
        """Messages of the calls of one collective, in order [bytes]; transfers between two ranks are no collective.

        Raises: ParameterError: unknown collective.
        """
        key = collective_name(collective)
        return tuple(call.size_bytes for call in self.calls if call.collective == key and not call.is_transfer)


def load_workload(path: str | os.PathLike[str], *, clock_hz: float | None = None) -> Workload:
    """The workload in a file; its suffix tells the form (.et .json .fbuf .toml, also with .gz), otherwise its content.

    Args:
        path: the file; where there is none, the name of a built-in workload.
        clock_hz: clock of ASTRA-sim's text form, which counts computation in cycles and does not name it; None: the
            computation stays unknown [1/s].
    Raises: WorkloadError: the file cannot be read or asks nothing of the network; says what, where and what to try.
    """
    path = Path(as_path(path, "load_workload", "step.et"))
    if canonical(str(path)) in BUILTIN_WORKLOADS and not os.path.exists(path):
        return builtin(str(path))
    form = _form_of(path)
    if form == "astra":
        from opticcl.workload.astra import read_workload as read_layers

        return read_layers(path, clock_hz=clock_hz)
    return _reader(form)(path)


def builtin(name: str) -> Workload:
    """A workload that comes with the package.

    >>> builtin("resnet50_ddp").total_bytes
    102228128

    Raises: UnknownNameError: there is none of that name.
    """
    from opticcl.data import load
    from opticcl.workload.sizes import workload_from_table

    key = canonical(name)
    if key not in BUILTIN_WORKLOADS:
        raise UnknownNameError(f"unknown workload {name!r}; {nearest(key, BUILTIN_WORKLOADS)}")
    return workload_from_table(load(f"workloads/{key}.toml"), f"{key}.toml")


_SUFFIXES = {".et": "chakra", ".json": "kineto", ".fbuf": "topoopt", ".toml": "sizes"}


def _form_of(path: Path) -> str:
    """The reader that a file is for."""
    head = head_of(path)
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if not head or not all(byte >= 32 or byte in b"\t\n\r" for byte in head):
        # FlatBuffers start with the place of the root table, far below 2^16, Chakra traces with a length and a tag.
        return "topoopt" if head[2:4] == b"\0\0" and len(head) > 16 else "chakra"
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if re.match(r"(AR|L2L)\s*;", text):
        return "lumorph"
    if re.match(r"\{|\[\s*[{\]]", text):
        return "kineto"
    if re.match(r"[A-Z][A-Z_]*[^\n=]*\n\s*\d+\s*(\n|$)", text):
        return "astra"
    return "lumorph" if suffix == ".log" and "=" not in text else "sizes"


def _reader(form: str) -> Callable[[Path], Workload]:
    # Imported here, so that a list of sizes does not load every reader.
    if form == "kineto":
        from opticcl.workload.kineto import read_workload
    elif form == "lumorph":
        from opticcl.workload.lumorph import read_workload
    elif form == "topoopt":
        from opticcl.workload.topoopt import read_workload
    elif form == "chakra":
        from opticcl.workload.chakra import read_workload
    else:
        from opticcl.workload.sizes import read_sizes as read_workload
    return read_workload
