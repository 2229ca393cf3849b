"""Control units as real processes on this machine: an all-reduce whose payloads wait for control messages over UDP.

Every node is a process with a UDP and a TCP port chosen by the operating system. When `run` returns or raises, all processes
have ended and their ports are free.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ControlError, ParameterError, UnsupportedError
from opticcl.fabrics.oddl import Oddl
from opticcl.ir import CircuitPlan, Op
from opticcl.operations.oddl_control.script import Script, scripts
from opticcl.operations.oddl_control.wire import MOST_NODES

__all__ = ["MOST_PROCESSES", "Faults", "ProcessRun", "run"]

MOST_PROCESSES = 64
START_S = 60.0  # start-up time of a process on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Injected faults of messages and nodes.

    Args:
        loss: fraction of messages that are lost.
        duplicate: fraction of messages that are sent twice.
        garbage: fraction of messages that random bytes precede.
        delay_s: largest additional delay of a message, which reorders messages [s].
        seed: of the random numbers.
        dies: (node, exchange): that node's process exits in that exchange; None: no process does.
    Raises: ParameterError: a fraction outside 0 to 1, or a negative time or seed.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    garbage: float = 0.0
    delay_s: float = 0.0
    seed: int = 0
    dies: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name, share in (("loss", self.loss), ("duplicate", self.duplicate), ("garbage", self.garbage)):
            if not 0 <= share <= 0.99:
                raise ParameterError(f"control: {name}={share:g} is not a fraction from 0 to 0.99; try {name}=0.2")
        if not 0 <= self.delay_s <= 10 or self.seed < 0:
            raise ParameterError(f"control: delay={self.delay_s:g} s is not 0 to 10 s, or seed={self.seed} is negative")


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """Result of a run.

    Args:
        results: one array per rank.
        messages, lost, duplicated, garbage, refused, repeated: summed over all nodes [count].
        seconds: from the first message to the last result [s].
    """

    results: list[np.ndarray]
    messages: int
    lost: int
    duplicated: int
    garbage: int
    refused: int
    repeated: int
    seconds: float


def run(
    plan: CircuitPlan,
    arrays: Sequence[npt.ArrayLike] | np.ndarray,
    faults: Faults | None = None,
    *,
    timeout_s: float = 10.0,
    repeat_s: float = 0.02,
    tune_s: float = 0.0,
    job: int = 1,
) -> ProcessRun:
    """Run an all-reduce with one process per node.

    Args:
        plan: an all_reduce of at most 64 nodes on ODDL.
        arrays: one array per rank, all of one shape and numeric type.
        faults: of the control network; None: none.
        timeout_s: time without new messages after which a node gives up [s].
        repeat_s: period after which a unit repeats its last messages [s].
        tune_s: tuning time of a transceiver [s].
        job: number in all messages; messages with another number are refused.
    Raises: ParameterError, UnsupportedError: another kind of plan or of arrays. ControlError: a node died or gave up; all
        processes have ended then too.
    """
    faults = faults or Faults()
    units = scripts(plan, patience=max(1, round(timeout_s / repeat_s)))
    rows = _checked(plan, arrays, faults, timeout_s, repeat_s)
    settings: dict[str, Any] = {
        "job": job,
        "repeat_s": repeat_s,
        "tune_s": tune_s,
        "patience": units[0].patience,
        "seed": faults.seed,
    }
    settings["faults"] = {name: getattr(faults, name) for name in ("loss", "duplicate", "garbage", "delay_s")}
    tasks = _tasks(plan, units, rows)
    for task in tasks:
        died = faults.dies and faults.dies[0] == task["address"]
        task |= settings | {"dies_in": faults.dies[1] if faults.dies and died else None}
    began, answers = _run_processes(units, tasks, timeout_s)
    results = [np.frombuffer(base64.b64decode(answer["data"]), rows.dtype) for answer in answers]
    shape = np.shape(arrays[0])
    size = int(np.prod(shape))
    counts = {name: sum(a[name] for a in answers) for name in answers[0] if name != "data"}
    return ProcessRun([f[:size].reshape(shape) for f in results], seconds=time.monotonic() - began, **counts)


def _checked(
    plan: CircuitPlan, arrays: Sequence[npt.ArrayLike] | np.ndarray, faults: Faults, timeout_s: float, repeat_s: float
) -> np.ndarray:
    """The arrays divided into chunks, (ranks, chunks, elements), padded with zeros.

    Raises: ParameterError, UnsupportedError.
    """
    c, fabric = plan.schedule.collective, plan.fabric
    if not isinstance(fabric.machine, Oddl):
        raise UnsupportedError(
            f"control: {fabric.name} has no control units; they are those of oddl, try --fabric oddl"
        )
    if c.name != "all_reduce":
        raise UnsupportedError(f"control: processes run an all_reduce, not {c.name}; try opticcl execute")
    if any((plan.schedule.step(i).op & Op.MOVE).any() for i in range(plan.schedule.num_steps)):
        raise UnsupportedError(
            "control: processes keep what they send, and senders of this plan give it up; try opticcl execute"
        )
    if c.num_ranks > MOST_PROCESSES or fabric.num_machine_nodes > MOST_NODES:
        raise ParameterError(
            f"control: {c.num_ranks} processes; at most {MOST_PROCESSES} of a machine of {MOST_NODES} nodes, try --nodes 8"
        )
    if not 0 < repeat_s <= timeout_s:
        raise ParameterError(
            f"control: timeout={timeout_s:g} s must be positive and no less than repeat={repeat_s:g} s"
        )
    given = [np.asarray(a) for a in arrays]
    if len(given) != c.num_ranks or any(a.shape != given[0].shape or a.dtype != given[0].dtype for a in given):
        raise ParameterError(f"control: give {c.num_ranks} arrays of one shape and type, one a rank")
    if given[0].dtype.kind not in "iuf":
        raise ParameterError(f"control: arrays of {given[0].dtype} cannot be reduced; try int64")
    if faults.dies and faults.dies[0] not in fabric.machine_nodes(np.arange(c.num_ranks)):
        raise ParameterError(f"control: there is no node {faults.dies[0]} whose failure could be injected")
    elements = max(1, -(-given[0].size // c.num_chunks))
    rows = np.zeros((c.num_ranks, c.num_chunks * elements), given[0].dtype)
    rows[:, : given[0].size] = [a.ravel() for a in given]
    return rows.reshape(c.num_ranks, c.num_chunks, elements)


def _tasks(plan: CircuitPlan, units: Sequence[Script], rows: np.ndarray) -> list[dict[str, Any]]:
    """Task of each process."""
    names = [unit.address for unit in units]
    pieces: list[list[list[tuple[int, int, int]]]] = [[] for _ in units]
    arriving: list[list[list[tuple[int, int, int, int]]]] = [[] for _ in units]
    step: list[int] = []
    for i in range(plan.schedule.num_steps):
        t, of = plan.schedule.step(i).ranges()
        for circuits in plan.rounds(i):
            step.append(i)
            for sent, due in zip(pieces, arriving, strict=True):
                sent.append([])
                due.append([])
            for row in np.flatnonzero(np.isin(of, circuits.carrying().transfer)).tolist():
                src, dst, lo, n, op = (int(column[row]) for column in (t.src, t.dst, t.chunk_lo, t.chunk_n, t.op))
                pieces[src][-1].append((names[dst], lo, n))
                arriving[dst][-1].append((names[src], lo, n, op))
    return [
        {
            "address": unit.address,
            "exchanges": unit.exchanges,
            "pieces": pieces[i],
            "arriving": arriving[i],
            "step": step,
            "data": base64.b64encode(rows[i].tobytes()).decode(),
            "dtype": rows.dtype.str,
            "shape": rows.shape[1:],
        }
        for i, unit in enumerate(units)
    ]


def _run_processes(
    units: Sequence[Script], tasks: Sequence[dict[str, Any]], timeout_s: float
) -> tuple[float, list[dict[str, Any]]]:
    """Start all processes, send each the ports of its peers, and collect their results.

    Returns: start time [s]; the answer of each process.
    Raises: ControlError: a process died or gave up.
    """
    command = [sys.executable, "-m", "opticcl.operations.oddl_control.node"]
    with tempfile.TemporaryFile("w+") as errors:
        started: list[subprocess.Popen[str]] = []
        watchdog = threading.Timer(START_S + 20 * timeout_s, _kill, [started])
        watchdog.daemon = True
        try:
            watchdog.start()
            for _ in tasks:
                pipe = subprocess.PIPE
                started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True))
            for process, task in zip(started, tasks, strict=True):
                _write_line(process.stdin, task)
            ports = [_read_line(process) for process in started]
            _raise_if_bad(units, started, ports, errors)
            ports_of = {unit.address: (p["udp"], p["tcp"]) for unit, p in zip(units, ports, strict=True) if p}
            began = time.monotonic()
            for process, unit in zip(started, units, strict=True):
                _write_line(process.stdin, {node: ports_of[node] for node in unit.peers})
            answers = [_read_line(process) for process in started]
            _raise_if_bad(units, started, answers, errors)
            return began, [answer for answer in answers if answer]
        finally:
            watchdog.cancel()
            _kill(started)
            for process in started:
                process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream:
                        stream.close()


def _kill(started: Sequence[subprocess.Popen[str]]) -> None:
    for process in started:
        process.kill()


def _write_line(stream: IO[str] | None, value: object) -> None:
    assert stream is not None
    try:
        stream.write(json.dumps(value) + "\n")
        stream.flush()
    except BrokenPipeError:  # the process is dead, which reading from it will show
        return


def _read_line(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """A line of JSON, or None if the process has ended without one."""
    assert process.stdout is not None
    line = process.stdout.readline()
    return json.loads(line) if line.endswith("\n") else None


def _raise_if_bad(
    units: Sequence[Script],
    started: Sequence[subprocess.Popen[str]],
    answers: Sequence[dict[str, Any] | None],
    errors: IO[str],
) -> None:
    """Raise the cause first: processes that died, then nodes that gave up.

    Raises: ControlError: a process died or gave up.
    """
    gone = [i for i, answer in enumerate(answers) if answer is None]
    bad = sorted((answer for answer in answers if answer and "error" in answer), key=lambda a: not a["is_root"])
    gave_up = [answer["error"] for answer in bad]
    problems = []
    if gone:
        i = gone[0]
        code = started[i].wait()
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        problems.append(f"node {units[i].address}{more} ended with exit code {code} before it was done")
        errors.seek(0)
        lines = errors.read().strip().splitlines()
        problems += [f"its last line of errors: {lines[-1]}"] if lines else []
    problems += gave_up[:1] + ([f"{len(gave_up) - 1} more gave up"] if len(gave_up) > 1 else [])
    if problems:
        raise ControlError("control: " + "; ".join(problems) + "; all processes have ended")
