"""Rank schedules under MPI with a clock: times, bandwidths and wrong elements, and the same of the MPI library."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from opticcl.execute.loop import Exchange, Scratch, run_rank
from opticcl.execute.rank_data import expected_row, given_length, message_length, random_row, result_length
from opticcl.execute.ranks import RankSchedule
from opticcl.execute.reductions import numpy_reduction

__all__ = ["MeasuredRun", "Measurement", "bus_factor", "library_call"]

IN_PLACE = ("all_reduce", "reduce", "broadcast", "all_gather", "barrier")
REDUCING = ("all_reduce", "reduce", "reduce_scatter", "barrier")
PER_BLOCK = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "send_recv")
ROOTED = ("reduce", "broadcast", "scatter", "gather")


def bus_factor(collective: str, num_ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 8), bus_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if collective == "all_reduce":
        return 2 * (num_ranks - 1) / num_ranks
    return (num_ranks - 1) / num_ranks if collective in ("all_gather", "reduce_scatter", "all_to_all") else 1.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of one size.

    Args:
        collective: its name.
        num_ranks: ranks [count].
        size_bytes: whole message [bytes].
        count: elements as nccl-tests counts them: of a rank's block where ranks have blocks [count].
        dtype: NumPy type.
        reduction: sum, or none.
        root: rank, -1 where there is none.
        time_s: out of place: median over repetitions of the maximum over ranks [s].
        in_place_s: in place; None where the collective has no such form [s].
        wrong: wrong elements of all ranks [count].
        library_s: the collective of the MPI library, out of place; None if not measured [s].
    """

    collective: str
    num_ranks: int
    size_bytes: int
    count: int
    dtype: str
    reduction: str
    root: int
    time_s: float
    in_place_s: float | None
    wrong: int
    library_s: float | None

    @classmethod
    def of(
        cls,
        collective: str,
        num_ranks: int,
        length: int,
        dtype: str,
        root: int,
        time_s: float,
        *,
        in_place_s: float | None = None,
        wrong: int = 0,
        library_s: float | None = None,
    ) -> Measurement:
        """Times of one size, with what nccl-tests print beside them.

        Args:
            collective, num_ranks, dtype, time_s, in_place_s, wrong, library_s: as of the class.
            length: elements of the whole message [count].
            root: rank; not shown where the collective has none.
        """
        count = length // num_ranks if collective in PER_BLOCK else length
        kind = "sum" if collective in REDUCING else "none"
        rank = root if collective in ROOTED else -1
        size_bytes = length * np.dtype(dtype).itemsize
        return cls(collective, num_ranks, size_bytes, count, dtype, kind, rank, time_s, in_place_s, wrong, library_s)

    def bandwidths(self, time_s: float) -> tuple[float, float]:
        """Algorithm and bus bandwidth for a time [bytes/s]."""
        algorithm = self.size_bytes / time_s if time_s else 0.0
        return algorithm, algorithm * bus_factor(self.collective, self.num_ranks)

    def record(self) -> dict[str, Any]:
        """The measurement as plain data for JSON."""
        algorithm, bus = self.bandwidths(self.time_s)
        return {**asdict(self), "algbw_bytes_per_s": algorithm, "busbw_bytes_per_s": bus}


class MeasuredRun:
    """Executes the schedule of this rank on test data.

    Args:
        comm: mpi4py communicator for synchronisation.
        schedule: of this rank.
        transport: sends and receives the messages of every exchange.
        root, shift: of the collective.
    """

    def __init__(
        self,
        comm: Any,
        schedule: RankSchedule,
        transport: Callable[[Iterator[Exchange]], None],
        root: int = 0,
        shift: int = 1,
    ) -> None:
        self._comm, self._schedule, self._transport = comm, schedule, transport
        self._root, self._shift = root, shift
        self._scratch = Scratch()

    def measure(self, size_bytes: int, dtype: np.dtype, repeat: int, seed: int, compare: bool) -> Measurement:
        """Execute on random data, compare with NumPy, and take times.

        Args:
            size_bytes: least size of the whole message [bytes].
            dtype: of the elements.
            repeat: timed repetitions; the median counts [count].
            seed: seed of the data.
            compare: whether to time the collective of the MPI library too.
        """
        s = self._schedule
        given, result, length = self._data(size_bytes, dtype, seed)
        call = self._call(given, result, length, dtype)
        call()  # warms buffers and connections up
        wrong = self._wrong(result, length, dtype, seed)
        time_s = self._median(call, repeat)
        in_place_s = None
        if s.collective in IN_PLACE and result is not None and given is not None and len(given) == len(result):
            in_place_s = self._median(self._call(result, result, length, dtype), repeat)
        elif s.collective in IN_PLACE:
            in_place_s = self._median(call, repeat)
        library_s = None
        if compare:
            library = library_call(self._comm, s.collective, self._root, self._shift, given, result)
            library()
            library_s = self._median(library, repeat)
        return Measurement.of(
            s.collective,
            s.num_ranks,
            length,
            str(dtype),
            self._root,
            time_s,
            in_place_s=in_place_s,
            wrong=wrong,
            library_s=library_s,
        )

    def execute(self, size_bytes: int, dtype: np.dtype, seed: int) -> int:
        """Execute once on random data; returns the wrong elements of all ranks [count].

        Args:
            size_bytes: least size of the whole message [bytes].
            dtype: of the elements.
            seed: of the data.
        """
        given, result, length = self._data(size_bytes, dtype, seed)
        self._call(given, result, length, dtype)()
        return self._wrong(result, length, dtype, seed)

    def _data(self, size_bytes: int, dtype: np.dtype, seed: int) -> tuple[np.ndarray | None, np.ndarray | None, int]:
        """Random data of this rank, an empty result, and elements of the whole message."""
        s = self._schedule
        length = message_length(s, size_bytes, dtype.itemsize)
        held, due = given_length(s, length), result_length(s, length)
        given = random_row(s.rank, held, dtype, seed) if held else None
        return given, np.empty(due, dtype) if due else None, length

    def _wrong(self, result: np.ndarray | None, length: int, dtype: np.dtype, seed: int) -> int:
        """Elements of all ranks that differ from NumPy [count]."""
        s = self._schedule
        of_block = s.collective in ("all_gather", "gather", "send_recv")
        held = length // s.blocks if of_block else length
        due = expected_row(s, self._root, self._shift, lambda rank: random_row(rank, held, dtype, seed))
        mine = 0 if due is None or result is None else int(np.count_nonzero(result != due))
        return int(self._comm.allreduce(mine))

    def _call(
        self, given: np.ndarray | None, result: np.ndarray | None, length: int, dtype: np.dtype
    ) -> Callable[[], None]:
        reduce = numpy_reduction("sum", dtype)
        return lambda: run_rank(self._schedule, self._transport, given, result, length, reduce, self._scratch)

    def _median(self, call: Callable[[], None], repeat: int) -> float:
        """Median over repetitions of the maximum over ranks [s]."""
        times = []
        for _ in range(repeat):
            self._comm.Barrier()
            begun = time.perf_counter()
            call()
            times.append(time.perf_counter() - begun)
        return statistics.median(map(max, zip(*self._comm.allgather(times), strict=True)))


def library_call(
    comm: Any, collective: str, root: int, shift: int, given: np.ndarray | None, result: np.ndarray | None
) -> Callable[[], None]:
    """The same collective by the MPI library.

    Args:
        comm: mpi4py communicator.
        collective: its name.
        root, shift: of the collective.
        given, result: arrays of this rank, None where it has none.
    """
    n = comm.size
    calls: dict[str, Callable[[], None]] = {
        "all_reduce": lambda: comm.Allreduce(given, result),
        "barrier": lambda: comm.Barrier(),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(given, result),
        "all_gather": lambda: comm.Allgather(given, result),
        "all_to_all": lambda: comm.Alltoall(given, result),
        "broadcast": lambda: comm.Bcast(given if comm.rank == root else result, root),
        "reduce": lambda: comm.Reduce(given, result, root=root),
        "scatter": lambda: comm.Scatter(given, result, root),
        "gather": lambda: comm.Gather(given, result, root),
        "send_recv": lambda: comm.Sendrecv(given, (comm.rank + shift) % n, 0, result, (comm.rank - shift) % n, 0),
    }
    return calls[collective]
