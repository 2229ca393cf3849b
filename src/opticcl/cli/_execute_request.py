"""What `opticcl execute` is asked, in this process and in each process of MPI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opticcl.cli._output import ARRAYS, PICTURE, RECORD, FileKind
from opticcl.cli._request import PlanRequest, option, out_option, shared_option
from opticcl.errors import ParameterError

__all__ = ["ExecuteRequest"]


@dataclass(frozen=True, kw_only=True)
class ExecuteRequest(PlanRequest):
    """What `opticcl execute` is asked: values of its options."""

    OPTIONS = """The plan: file fabric nodes collective algorithm optics ignore_light sizes root job
        Data: dtype seed input transport set_device
        Processes of MPI: repeat compare time_limit pace mode
        Output: out json"""

    sizes: tuple[str, ...] = shared_option(
        PlanRequest,
        "size",
        default=("1MB",),
        help="Size of the whole message, such as 1MB. With --transport mpi repeat for several.",
    )
    dtype: str | None = option(
        "--dtype",
        metavar="<type>",
        default=None,
        help="Type of the random data: int64, float32, ...; default: int64, with --transport mpi float32.",
    )
    input: Path | None = option(
        "--input", default=None, help="A .npy file with one row for each rank, instead of random data."
    )
    transport: Literal["memory", "light", "mpi"] = option(
        "--transport",
        default="memory",
        help="memory: arrays of this process; light: through the optical elements of the machine; mpi: one process a rank, "
        "started by mpiexec -n RANKS.",
    )
    set_device: tuple[str, ...] = option(
        "--set-device",
        metavar="GROUP:DEVICE=STATE",
        default=(),
        help="With --transport light: a device that is set in another way than the plan needs, such as tx_gate:17=0; "
        "opticcl machine netlist shows groups and states. Repeat for several.",
    )
    repeat: int = option("--repeat", default=5, help="Timed repetitions; the median counts.")
    compare: bool = option(
        "--compare", default=False, help="Time the MPI library's own collective too; columns as in nccl-tests."
    )
    time_limit: str = option(
        "--time-limit",
        metavar="<time>",
        default="300s",
        help="Longest duration of a step, and with 10 s more of the start of MPI; then all processes end.",
    )
    pace: float | None = option(
        "--pace", default=None, help="Delay deliveries to this multiple of the time of the circuits, such as 1000."
    )
    mode: Literal["barrier", "asynchronous"] = option(
        "--mode", default="barrier", help="With --pace: when a step begins."
    )
    out: tuple[Path, ...] = out_option(ARRAYS, PICTURE, RECORD)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "size", self.sizes[-1])

    def kinds(self) -> tuple[FileKind, ...]:
        """Arrays are the results of this process; a picture is drawn of processes of MPI."""
        return (PICTURE, RECORD) if self.transport == "mpi" else (ARRAYS, RECORD)

    def check_transport(self) -> None:
        """Refuse options of another transport.

        Raises: ParameterError: the option, and the transport that has it.
        """
        options = {"light": ("set_device",), "mpi": ("repeat", "compare", "time_limit", "pace", "mode")}
        for transport, names in options.items():
            if transport != self.transport and (flag := self.first_given(*names)):
                raise ParameterError(f"execute: {flag} is of another transport; give --transport {transport} too")
        if self.transport == "mpi" and self.input is not None:
            raise ParameterError("execute: --transport mpi makes its own data; leave --input out")
        if self.transport != "mpi" and len(self.sizes) > 1:
            raise ParameterError("execute: several values of --size are for --transport mpi; give one")
