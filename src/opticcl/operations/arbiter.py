"""The arbiter: it assigns nodes and switch ports to jobs. It acts when a job arrives or ends, and only on that job's ports.

Its state is a small file, written whole before a call returns: an arbiter that is restarted with the same file continues
where the previous one stopped. One arbiter at a time may use a file.

Source: ODDL sections 3.A and 4.B: the arbiter allocates nodes and network, and sets a part of the switch while the other
ports keep their connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from opticcl.errors import (
    FabricError,
    OpticclError,
    OutputError,
    ParameterError,
    StateFileError,
    UnknownNameError,
)
from opticcl.fabrics import fabric as make_fabric
from opticcl.fabrics import job as part_of
from opticcl.fabrics.oddl import Oddl
from opticcl.files import write_whole
from opticcl.ir import Fabric, IntArray
from opticcl.operations.policies import check_policy, largest_job, place_by
from opticcl.registry import nearest, write_call

__all__ = ["Arbiter", "RunningJob", "switch_ports"]

FORM = "opticcl arbiter"
VERSION = 1
MAX_FILE_BYTES = 2**26
LONGEST_NAME = 64

_Node = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job with its nodes.

    Args:
        name: of the job.
        nodes: in the order of its ranks, int64 (n,).
        held: nodes that no other job may use, ascending; includes `nodes`, int64 (m,).
    """

    name: str
    nodes: IntArray
    held: IntArray

    def record(self) -> dict[str, Any]:
        """Name, nodes and the number of held nodes as plain values."""
        return {"job": self.name, "nodes": self.nodes.tolist(), "held": len(self.held)}


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
        path: of the state file; None: the state is not stored.
        at_once: whether every change is written before the call returns; otherwise `keep` writes them.
    Raises: StateFileError: the file is damaged, or belongs to another machine. OutputError: it cannot be written.
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
            raise ParameterError("arbiter: it manages a whole machine, not the part of a job; give the whole machine")
        self._grid = self.machine.cell_grid()
        self._free = np.zeros(self.machine.num_machine_nodes, bool)  # dead nodes are never free
        self._free[self.machine.machine_nodes(np.arange(self.machine.num_nodes))] = True
        self._jobs: dict[str, RunningJob] = {}
        if kept is not None:
            self._restore(kept)
        else:
            self._changed()

    @property
    def jobs(self) -> tuple[RunningJob, ...]:
        """All jobs, in the order of their arrival."""
        return tuple(self._jobs.values())

    @property
    def num_free(self) -> int:
        """Nodes that no job holds [count]."""
        return int(self._free.sum())

    def place(self, num_nodes: int, name: str | None = None, policy: str = "first") -> RunningJob:
        """Place a new job.

        Args:
            num_nodes: requested [count].
            name: None: job-1, job-2, ...
            policy: that chooses its nodes; see `policies`.
        Raises: ParameterError: fewer than one node, or a name that is in use or invalid. FabricError: no free block.
            UnknownNameError: no such policy.
        """
        policy = check_policy(policy, self._grid)
        if num_nodes < 1:
            raise ParameterError(f"arbiter: a job of {num_nodes} nodes; it has at least 1")
        if name is None:
            name = next(f"job-{k}" for k in range(1, len(self._jobs) + 2) if f"job-{k}" not in self._jobs)
        if not _is_name(name):
            raise ParameterError(
                f"arbiter: {name!r} is not a valid job name; use 1 to {LONGEST_NAME} printable characters"
            )
        if name in self._jobs:
            raise ParameterError(f"arbiter: a job {name!r} exists already; use another name")
        where = f"arbiter: {num_nodes} nodes for {name}"
        if num_nodes > self.num_free:
            raise FabricError(
                f"{where}, but {self.num_free} of {self.machine.num_nodes} of {self.machine.name} are free; "
                + ("end a job first" if self._jobs else f"place at most {self.num_free} nodes")
            )
        place = place_by(policy, self._grid, self._free, num_nodes)
        if place is None:
            largest = largest_job(policy, self._grid, self._free)
            scattered = "" if policy == "any" else ", or scatter its nodes by --policy any"
            raise FabricError(
                f"{where}: {self.num_free} of {self.machine.name} are free, but no block of them fits this job; the largest "
                f"free block has {largest}; place at most {largest} nodes, end a job first{scattered}"
            )
        job = RunningJob(name, place.nodes, place.held)
        self._jobs[name] = job
        try:
            self._changed()
        except OutputError:
            del self._jobs[name]
            raise
        self._free[job.held] = False
        return job

    def free(self, name: str) -> RunningJob:
        """End a job and free its nodes.

        Raises: UnknownNameError: no such job.
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

    def fabric_of(self, name: str, *, shares: bool = False) -> Fabric:
        """The part of the machine that a job has, to compile for.

        Args:
            name: of the job.
            shares: as of `opticcl.fabrics.job`.
        Raises: UnknownNameError: no such job.
        """
        return part_of(self.machine, self._known(name).nodes, shares=shares)

    def _known(self, name: str) -> RunningJob:
        if name not in self._jobs:
            raise UnknownNameError(
                f"arbiter: no job {name!r}; {nearest(name, self._jobs) if self._jobs else 'none is running'}"
            )
        return self._jobs[name]

    def _changed(self) -> None:
        if self._at_once:
            self.keep()

    def keep(self) -> None:
        """Write the state file, if any. Raises: OutputError: it cannot be written; then it is unchanged."""
        if self.path is None:
            return
        jobs = [_JobRecord(j.name, j.nodes.tolist(), j.held.tolist()) for j in self._jobs.values()]
        text = write_call(self.machine.name, self.machine.parameters)
        with write_whole(self.path, at_once=True) as file:
            file.write(msgspec.json.encode(_File(FORM, VERSION, text, jobs)))

    def _restore(self, kept: _File) -> None:
        other = _machine_of(kept, self.path)
        mine, its = dict(self.machine.parameters), dict(other.parameters)
        if other.name != self.machine.name or its != mine:
            same_name = other.name == self.machine.name
            differ = {
                key: value for key, value in its.items() if value is not None and not (same_name and mine[key] == value)
            }
            raise StateFileError(
                f"arbiter: {self.path} belongs to another machine, {write_call(other.name, differ)}; give another file"
            )
        for record in kept.jobs:
            if not _is_name(record.name) or record.name in self._jobs:
                raise StateFileError(f"arbiter: {self.path} is damaged: a job is called {record.name!r}")
            if not _can_have(record, self._free):
                raise StateFileError(
                    f"arbiter: {self.path} is damaged: job {record.name!r} has nodes that it cannot have"
                )
            job = RunningJob(record.name, np.array(record.nodes, np.int64), np.array(record.held, np.int64))
            self._free[job.held] = False
            self._jobs[job.name] = job


def _is_name(text: str) -> bool:
    """Whether a text is a valid job name: one line of a table."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()


def _can_have(record: _JobRecord, free: npt.NDArray[np.bool_]) -> bool:
    """Whether its nodes exist, each once, among those that it holds, and these are free."""
    nodes, held = set(record.nodes), set(record.held)
    each_once = len(nodes) == len(record.nodes) > 0 and len(held) == len(record.held)
    return each_once and nodes <= held and max(held) < len(free) and bool(free[record.held].all())


def _machine_of(kept: _File, path: Path | None) -> Fabric:
    """Raises: StateFileError: the file names an unknown machine."""
    try:
        return make_fabric(kept.fabric)
    except OpticclError as error:
        raise StateFileError(f"arbiter: {path} is damaged: {error}") from None


def _read(path: Path) -> _File:
    """Raises: StateFileError: it is damaged, or none of ours."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise StateFileError(f"arbiter: {path} is not a regular file; give another")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise StateFileError(f"arbiter: {path} is not a file of an arbiter: more than {MAX_FILE_BYTES:,} bytes")
        kept = msgspec.json.decode(content, type=_File)
    except OSError as error:
        raise StateFileError(f"arbiter: cannot read {path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StateFileError(f"arbiter: {path} is not a file of an arbiter: {error}") from None
    if kept.form != FORM or kept.version != VERSION:
        raise StateFileError(f"arbiter: {path} is not a file of this arbiter: {kept.form!r} version {kept.version}")
    return kept


def switch_ports(machine: Fabric, nodes: IntArray) -> IntArray:
    """Ports of ODDL's switches that the arbiter sets for these nodes, ascending, int64 (2 dimensions n,).

    Numbered as the fabric's switch_port resource: all inputs, then all outputs, node by node. Empty for other fabrics, whose
    switches are not set once per job.
    """
    if not isinstance(machine.machine, Oddl):
        return np.zeros(0, np.int64)
    dimensions = machine.ports_per_node
    inputs = np.sort((nodes[:, None] * dimensions + np.arange(dimensions)).ravel())
    return np.concatenate([inputs, machine.num_machine_nodes * dimensions + inputs])
