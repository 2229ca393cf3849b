"""What a training job asks of the network: its collective calls and their sizes, in order.

::

    step.et, step.et.gz   a Chakra execution trace of a real or simulated job    chakra.py
    sizes.toml            a list of sizes written by hand                        sizes.py
    builtin(name)         the same form, in data/workloads/
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from opticcl.collective import collective_name
from opticcl.errors import UnknownNameError, WorkloadError
from opticcl.registry import canonical, nearest

__all__ = ["BUILTIN_WORKLOADS", "CollectiveCall", "Workload", "builtin", "load_workload"]

BUILTIN_WORKLOADS: tuple[str, ...] = tuple(
    sorted(f.name.removesuffix(".toml") for f in files("opticcl.data").joinpath("workloads").iterdir())
)


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One collective that the job calls.

    Args:
        name: what the job calls it, such as the kernel's name.
        collective: canonical name.
        size_bytes: the message of one rank [bytes].
        group: process group that takes part; empty if it is not recorded, then all ranks do.
        measured_s: how long it took where it was recorded; 0 if it was not [s].
    """

    name: str
    collective: str
    size_bytes: int
    group: str = ""
    measured_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """The collective calls of one training step.

    Args:
        name: of the job.
        source: where the numbers come from.
        calls: at least one, in order.
        notes: what was counted, left out or odd, a line each.
    """

    name: str
    source: str
    calls: tuple[CollectiveCall, ...]
    notes: tuple[str, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Sum of the messages of all calls [bytes]."""
        return sum(call.size_bytes for call in self.calls)

    def sizes(self, collective: str) -> tuple[int, ...]:
        """Messages of the calls of one collective, in order [bytes].

        Raises: ParameterError: unknown collective.
        """
        key = collective_name(collective)
        return tuple(call.size_bytes for call in self.calls if call.collective == key)


def load_workload(path: str | os.PathLike[str]) -> Workload:
    """The workload in a file: a Chakra trace (.et, .et.gz) or a list of sizes (.toml); otherwise its content decides.

    Args: path: the file; where there is none, the name of a built-in workload.
    Raises: WorkloadError: the file cannot be read or asks nothing of the network; says what, where and what to try.
    """
    path = Path(path)
    if canonical(str(path)) in BUILTIN_WORKLOADS and not os.path.exists(path):
        return builtin(str(path))
    check_file(path)
    if path.suffix.lower() == ".toml" or (path.suffix.lower() not in (".et", ".gz") and _is_text(path)):
        from opticcl.workload.sizes import read_sizes as read
    else:
        from opticcl.workload.chakra import read_workload as read
    return read(path)


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


def check_file(path: Path) -> None:
    """Refuses what is no file: directories, devices and pipes.

    Raises: WorkloadError
    """
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise refusal(path, "is a directory; give one file in it, such as the .et of rank 0")
        if os.path.exists(path):
            raise refusal(path, "is no regular file; save it to disk first")
        known = " or ".join(BUILTIN_WORKLOADS)
        raise refusal(path, f"no such file; give a Chakra trace (.et), a list of sizes (.toml) or {known}")


def refusal(where: Path | str, what: str) -> WorkloadError:
    """The error with that text, in one printable line."""
    return WorkloadError(printable(f"{where}: {what}"))


def printable(text: str) -> str:
    """The text in one line, what cannot be printed escaped."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _is_text(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise refusal(path, f"cannot be read: {error.strerror}") from None
    return bool(head) and all(byte >= 32 or byte in b"\t\n\r" for byte in head)
