"""Points of a study on a dask cluster: any scheduler by its address, or jobs of SLURM through dask-jobqueue.

`events` yields what `opticcl.processes.events` yields, so the ledger, the table and the answers are the same. A task is a batch
of points with its own key: some points of one machine, or several small machines. dask runs a task again when its worker ends.
The points of a task that ended too many workers are computed one by one with nothing beside them, since the scheduler suspects
every task of a worker that ends.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from opticcl.errors import ExecutionError, ParameterError, UnsupportedError
from opticcl.files import program_version
from opticcl.processes import Event
from opticcl.studies.space.design import DesignPoint, DesignSpace
from opticcl.studies.space.measure import measured

__all__ = ["SLURM_OPTIONS", "Cluster", "batches", "connected", "slurm"]

MOST_POINTS, LEAST_POINTS = 256, 8
"""Of a batch [count]: what a killed worker loses at most, and what is worth a task."""

LEAST_TASKS = 32
"""Tasks that the scheduler knows at a time, if its workers have fewer than a quarter as many threads [count]."""

CONNECT_S = 10.0
"""Time to reach a scheduler [s]."""

SLURM_OPTIONS = ("cores", "memory", "walltime", "queue", "account", "interface", "local_directory", "log_directory")
"""Of a job of SLURM; those that are not given come from dask's own file jobqueue.yaml."""

_one_at_a_time = threading.Lock()


def _nothing() -> None:
    """No preparation."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connection to a dask scheduler.

    Args:
        client: of dask.
        prepare: called in a worker before each batch, such as to import plugins; a function that can be pickled.
    """

    client: Any
    prepare: Callable[[], None] = _nothing

    def num_workers(self) -> int:
        """Threads of all workers, as the scheduler last reported [count]."""
        workers = self.client.scheduler_info(n_workers=-1).get("workers", {})
        return sum(one["nthreads"] for one in workers.values())

    def events(
        self, space: DesignSpace, points: Sequence[DesignPoint], waiting: deque[list[int]], *, patience_s: float
    ) -> Generator[Event[list[int], tuple[int, str, str]] | None, None, None]:
        """Values of batches as they arrive; None where nothing arrived for a while.

        Args:
            space: what is measured, and constraints.
            points: all points.
            waiting: positions of points by batch, the first first; the caller may add some while it iterates.
            patience_s: most time between two events [s].
        Raises: ExecutionError: the scheduler ended, or the workers have no or another version of opticcl.
        """
        from distributed import KilledWorker

        ours = program_version()
        name, given = f"opticcl-{uuid4().hex[:12]}", 0
        small = replace(space, axes={}, vary_at={}, answers={})  # what a batch needs
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        items: dict[str, tuple[list[int], Any]] = {}
        suspected: set[int] = set()  # points that may end a worker; each is then computed alone
        alone = False
        try:
            while waiting or items:
                most = max(LEAST_TASKS, 4 * self.num_workers())
                while waiting and len(items) < most:
                    if items and (suspected & {*waiting[0]} or alone):
                        break
                    alone = bool(suspected & {*waiting[0]})
                    item = waiting.popleft()
                    some = [points[number] for number in item]
                    future = self.client.submit(
                        _batch, small, some, item, self.prepare, key=f"{name}-{given}", pure=False, priority=-given
                    )
                    items[future.key] = item, future
                    given += 1
                    future.add_done_callback(arrived.put)
                try:
                    future = arrived.get(timeout=patience_s)
                except queue.Empty:
                    if self.client.status not in ("running", "connecting"):
                        raise _ended("its connection is closed") from None
                    yield None
                    continue
                item, _ = items.pop(future.key)
                try:
                    theirs, values, crash = _result(future)
                except KilledWorker:
                    suspected |= {*item}
                    yield Event(item, (), True, "its workers ended: a signal, or no memory", unsure=len(item) > 1)
                    continue
                if theirs != ours:
                    raise ExecutionError(
                        f"a worker of the cluster has opticcl {theirs}, this is {ours}; install the same version there"
                    )
                yield Event(item, tuple(values), True, crash)
        finally:
            with suppress(Exception):  # the scheduler may have ended
                self.client.cancel([future for _, future in items.values()], force=True)


def _result(future: Any) -> tuple[str, list[tuple[int, str, str]], str]:
    """What `_batch` returned.

    Raises: KilledWorker: its workers ended. ExecutionError: the scheduler ended, or a worker cannot run it.
    """
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        raise
    except (CancelledError, OSError) as error:
        raise _ended(f"{type(error).__name__}: {error}") from None
    except ImportError as error:
        raise ExecutionError(
            f"a worker of the cluster cannot import opticcl or a plugin: {error}; install the same version there"
        ) from None
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        raise ExecutionError(f"a worker of the cluster refused a task: {type(error).__name__}: {why}") from None


def _ended(why: str) -> ExecutionError:
    return ExecutionError(
        f"the scheduler of the cluster ended ({why}); finished points are kept, the same command goes on"
    )


def _batch(
    space: DesignSpace, points: Sequence[DesignPoint], numbers: Sequence[int], prepare: Callable[[], None]
) -> tuple[str, list[tuple[int, str, str]], str]:
    """Values of some points, in a worker.

    Returns: version of the package; values in order, fewer if a point raised an exception; the exception.
    """
    found: list[tuple[int, str, str]] = []
    with _one_at_a_time:  # a worker may have several threads, the kernels are made for one
        prepare()
        try:
            for one in measured(space, points, range(len(points))):
                found.append(replace(one, number=numbers[one.number]).written())
        except Exception as error:
            return program_version(), found, f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    return program_version(), found, ""


def batches(machines: Sequence[list[int]], points: Sequence[DesignPoint]) -> Iterator[list[int]]:
    """Positions of points, a list a task: points of large machines divided, small machines of equal nodes together.

    Args:
        machines: positions of the points of each machine.
        points: all points.
    """
    kept: list[int] = []
    for numbers in machines:
        nodes = points[numbers[0]].values["nodes"]
        if kept and (len(kept) >= LEAST_POINTS or points[kept[0]].values["nodes"] != nodes):
            yield kept
            kept = []
        if len(numbers) < LEAST_POINTS:
            kept += numbers
            continue
        parts = -(-len(numbers) // MOST_POINTS)
        for part in range(parts):
            yield numbers[len(numbers) * part // parts : len(numbers) * (part + 1) // parts]
    if kept:
        yield kept


@contextmanager
def connected(address: str, prepare: Callable[[], None] = _nothing) -> Iterator[Cluster]:
    """The cluster of a scheduler.

    Args:
        address: such as tcp://10.0.0.1:8786.
        prepare: as of `Cluster`.
    Raises: ParameterError: no address, or no scheduler answers there. UnsupportedError: dask is not installed.
    """
    distributed = _distributed()
    if address.partition("://")[0] not in ("tcp", "tls", "ws", "wss") or not address.partition("://")[2]:
        raise ParameterError(
            f"--scheduler={address!r} is not an address; write tcp://HOST:8786, as dask scheduler prints it"
        )
    began = time.monotonic()
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False, name="opticcl-study")
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise ParameterError(
            f"--scheduler={address}: no scheduler answered in {time.monotonic() - began:.0f} s ({why}); start one with "
            "dask scheduler, and workers with dask worker"
        ) from None
    with client:
        yield Cluster(client, prepare)


@contextmanager
def slurm(jobs: int, options: Mapping[str, str], prepare: Callable[[], None] = _nothing) -> Iterator[Cluster]:
    """A cluster of jobs of SLURM, each with one worker a core; the jobs end with the block.

    Args:
        jobs: jobs to submit [count].
        options: of `SLURM_OPTIONS`, as text.
        prepare: as of `Cluster`.
    Raises: ParameterError: an option, or SLURM refuses the job. UnsupportedError: dask-jobqueue is not installed.
    """
    distributed = _distributed()
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise _absent() from None
    given: dict[str, Any] = dict(options)
    if "cores" in given:
        if not re.fullmatch("0*[1-9][0-9]{0,8}", given["cores"]):
            raise ParameterError(f"--slurm-set cores={given['cores']}: is not a whole number from 1 on; try 4")
        given["cores"] = given["processes"] = int(given["cores"])
    try:
        made = SLURMCluster(**given, scheduler_options={"dashboard_address": None})
    except (ValueError, TypeError, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise ParameterError(f"--slurm: {why}; try --slurm-set cores=4 --slurm-set memory=16GB") from None
    with made, distributed.Client(made, set_as_default=False) as client:
        made.scale(jobs=jobs)
        yield Cluster(client, prepare)


def _distributed() -> Any:
    """The package distributed.

    Raises: UnsupportedError: it is not installed.
    """
    try:
        import distributed
    except ImportError:
        raise _absent() from None
    return distributed


def _absent() -> UnsupportedError:
    return UnsupportedError(
        "a cluster needs dask; pip install 'opticcl[cluster]', or leave --scheduler and --slurm out"
    )
