"""The arbiter: which job has which nodes and switch ports. It acts when a job arrives or ends, and only on that job's ports.

What it knows is a small file, written whole before a call returns: an arbiter that is started again with the same file
knows all that the one before knew. One arbiter at a time may use a file.

Source: ODDL sections 3.A and 4.B: the arbiter allocates nodes and network, and sets a part of the switch while the other
ports keep their connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from opticcl.control.placement import find_place, ground_of
from opticcl.errors import (
    ControlError,
    FabricError,
    OpticclError,
    OutputError,
    ParameterError,
    UnknownNameError,
)
from opticcl.fabric import fabric as make_fabric
from opticcl.fabric import job as part_of
from opticcl.files import write_whole
from opticcl.ir import Fabric, IntArray
from opticcl.registry import nearest, write_call

__all__ = ["Arbiter", "Job", "switch_ports"]

FORM = "opticcl arbiter"
VERSION = 1
MAX_FILE_BYTES = 2**26
LONGEST_NAME = 64

_Node = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


@dataclass(frozen=True, slots=True)
class Job:
    """What a job has.

    Args:
        name: of the job.
        nodes: in the order of its ranks, int64 (n,).
        held: nodes that nobody else may have, ascending, int64 (m,).
    """

    name: str
    nodes: IntArray
    held: IntArray


class _JobRecord(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    nodes: list[_Node]
    held: list[_Node]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    form: str
    version: int
    fabric: str
    jobs: list[_JobRecord]


class Arbiter:
    """Places and frees the jobs of one machine.

    Args:
        machine: the whole fabric, or its text "oddl:shape=16x16"; None: that of the file.
        path: of its file; None: nothing is kept.
        at_once: whether every change is written before the call returns; else `keep` writes them.
    Raises: ControlError: the file is damaged, or of another machine. OutputError: it cannot be written.
        ParameterError: neither machine nor file, or a part of a machine.
    """

    def __init__(self, machine: Fabric | str | None, path: str | Path | None = None, *, at_once: bool = True) -> None:
        self._at_once = at_once
        self.path = None if path is None else Path(path)
        kept = _read(self.path) if self.path is not None and self.path.exists() else None
        if machine is None and kept is None:
            raise ParameterError("arbiter: which machine? Give a fabric, such as oddl:shape=16x16")
        if machine is None:
            assert kept is not None
            machine = _machine_of(kept, self.path)
        self.machine = make_fabric(machine) if isinstance(machine, str) else machine
        if self.machine != make_fabric(self.machine.name, **self.machine.parameters):
            raise ParameterError("arbiter: it rules a whole machine, not the part that a job has")
        self._ground = ground_of(self.machine)
        self._free = np.zeros(self.machine.num_machine_nodes, bool)  # dead nodes never are
        self._free[self.machine.machine_nodes(np.arange(self.machine.num_nodes))] = True
        self._jobs: dict[str, Job] = {}
        if kept is not None:
            self._restore(kept)
        else:
            self._changed()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs, in the order of their arrival."""
        return tuple(self._jobs.values())

    @property
    def num_free(self) -> int:
        """Nodes that nobody holds [count]."""
        return int(self._free.sum())

    def place(self, num_nodes: int, name: str | None = None) -> Job:
        """Let a job in.

        Args:
            num_nodes: that it wants [count].
            name: None: job-1, job-2, ...
        Raises: ParameterError: fewer than one node, or a name that is taken or none. FabricError: no room.
        """
        if num_nodes < 1:
            raise ParameterError(f"arbiter: a job of {num_nodes} nodes; it has at least 1")
        if name is None:
            name = next(f"job-{k}" for k in range(1, len(self._jobs) + 2) if f"job-{k}" not in self._jobs)
        if not _is_name(name):
            raise ParameterError(
                f"arbiter: {name!r} is no name of a job; take 1 to {LONGEST_NAME} printable characters"
            )
        if name in self._jobs:
            raise ParameterError(f"arbiter: there is a job {name!r} already; take another name")
        where = f"arbiter: {num_nodes} nodes for {name}"
        if num_nodes > self.num_free:
            raise FabricError(
                f"{where}, but {self.num_free} of {self.machine.num_nodes} of {self.machine.name} are free; "
                + ("end a job first" if self._jobs else f"ask for at most {self.num_free}")
            )
        place = find_place(self._ground, self._free, num_nodes)
        if place is None:
            raise FabricError(
                f"{where}: {self.num_free} of {self.machine.name} are free, but no block of them that this job fits; "
                "ask for fewer, or end a job first"
            )
        job = Job(name, place.nodes, place.held)
        self._jobs[name] = job
        try:
            self._changed()
        except OutputError:
            del self._jobs[name]
            raise
        self._free[job.held] = False
        return job

    def free(self, name: str) -> Job:
        """Let a job go; what it held is free.

        Raises: UnknownNameError: there is no such job.
        """
        job = self._known(name)
        before = dict(self._jobs)
        del self._jobs[name]
        try:
            self._changed()
        except OutputError:
            self._jobs = before
            raise
        self._free[job.held] = True
        return job

    def fabric_of(self, name: str) -> Fabric:
        """The machine as that job sees it, to compile for. Raises: UnknownNameError: there is no such job."""
        return part_of(self.machine, self._known(name).nodes)

    def _known(self, name: str) -> Job:
        if name not in self._jobs:
            raise UnknownNameError(
                f"arbiter: no job {name!r}; {nearest(name, self._jobs) if self._jobs else 'none is running'}"
            )
        return self._jobs[name]

    def _changed(self) -> None:
        if self._at_once:
            self.keep()

    def keep(self) -> None:
        """Write the file, if there is one. Raises: OutputError: it cannot be written; then it is as it was."""
        if self.path is None:
            return
        jobs = [_JobRecord(j.name, j.nodes.tolist(), j.held.tolist()) for j in self._jobs.values()]
        text = write_call(self.machine.name, self.machine.parameters)
        with write_whole(self.path) as file:
            file.write(msgspec.json.encode(_File(FORM, VERSION, text, jobs)))

    def _restore(self, kept: _File) -> None:
        other = _machine_of(kept, self.path)
        mine, its = dict(self.machine.parameters), dict(other.parameters)
        if other.name != self.machine.name or its != mine:
            alike = other.name == self.machine.name
            differ = {
                key: value for key, value in its.items() if value is not None and not (alike and mine[key] == value)
            }
            raise ControlError(
                f"arbiter: {self.path} is of another machine, {write_call(other.name, differ)}; give another file"
            )
        for record in kept.jobs:
            if not _is_name(record.name) or record.name in self._jobs:
                raise ControlError(f"arbiter: {self.path} is damaged: a job is called {record.name!r}")
            if not _can_have(record, self._free):
                raise ControlError(
                    f"arbiter: {self.path} is damaged: job {record.name!r} has nodes that it cannot have"
                )
            job = Job(record.name, np.array(record.nodes, np.int64), np.array(record.held, np.int64))
            self._free[job.held] = False
            self._jobs[job.name] = job


def _is_name(text: str) -> bool:
    """Whether a job may be called that: it must fit a line of a table."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()


def _can_have(record: _JobRecord, free: npt.NDArray[np.bool_]) -> bool:
    """Whether its nodes are there, each once, among those that it holds, and nobody else has these."""
    nodes, held = set(record.nodes), set(record.held)
    each_once = len(nodes) == len(record.nodes) > 0 and len(held) == len(record.held)
    return each_once and nodes <= held and max(held) < len(free) and bool(free[record.held].all())


def _machine_of(kept: _File, path: Path | None) -> Fabric:
    """Raises: ControlError: the file names a machine that there is not."""
    try:
        return make_fabric(kept.fabric)
    except OpticclError as error:
        raise ControlError(f"arbiter: {path} is damaged: {error}") from None


def _read(path: Path) -> _File:
    """Raises: ControlError: it is damaged, or none of ours."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ControlError(f"arbiter: {path} is no regular file; give another")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise ControlError(f"arbiter: {path} is no file of an arbiter: more than {MAX_FILE_BYTES:,} bytes")
        kept = msgspec.json.decode(content, type=_File)
    except OSError as error:
        raise ControlError(f"arbiter: cannot read {path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ControlError(f"arbiter: {path} is no file of an arbiter: {error}") from None
    if kept.form != FORM or kept.version != VERSION:
        raise ControlError(f"arbiter: {path} is no file of this arbiter: {kept.form!r} version {kept.version}")
    return kept


def switch_ports(machine: Fabric, nodes: IntArray) -> IntArray:
    """Ports of ODDL's switches that the arbiter sets for these nodes, ascending, int64 (2 dimensions n,).

    Numbered as the fabric's switch_port resource: all inputs, then all outputs, node by node. Other fabrics have no
    switches that are set for a job: none.
    """
    if machine.name != "oddl":
        return np.zeros(0, np.int64)
    dimensions = machine.ports_per_node
    inputs = np.sort((nodes[:, None] * dimensions + np.arange(dimensions)).ravel())
    return np.concatenate([inputs, machine.num_machine_nodes * dimensions + inputs])
