"""opticcl execute"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from opticcl.cli._output import ARRAYS, RECORD
from opticcl.cli._request import PlanRequest, option, out_option, shared_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result


@dataclass(frozen=True, kw_only=True)
class ExecuteRequest(PlanRequest):
    """What `opticcl execute` is asked: values of its options."""

    OPTIONS = """file fabric nodes collective algorithm optics ignore_light size root job dtype seed * json"""

    size: str = shared_option(PlanRequest, "size", default="1MB")
    dtype: str = option(
        "--dtype", metavar="<type>", default="int64", help="Type of the random data: int64, float32, ..."
    )
    input: Path | None = option(
        "--input", default=None, help="A .npy file with one row for each rank, instead of random data."
    )
    transport: Literal["memory", "light"] = option(
        "--transport",
        default="memory",
        help="memory: arrays of this process; light: through the optical elements of the machine.",
    )
    set_device: tuple[str, ...] = option(
        "--set-device",
        metavar="GROUP:DEVICE=STATE",
        default=(),
        help="With --transport light: a device that is set in another way than the plan needs, such as tx_gate:17=0; "
        "opticcl netlist shows groups and states. Repeat for several.",
    )
    out: tuple[Path, ...] = out_option(ARRAYS, RECORD)


def run(request: ExecuteRequest) -> Result:
    """Execute a plan on real data and compare with NumPy. Exit code 1 if they differ, or light does not arrive.

    A plan file runs on a message of any size, so it may be combined with --size. A message is rounded up until every chunk
    holds an element.
    """
    from opticcl.execute import execute, reference
    from opticcl.report.execution import ExecutionReport
    from opticcl.units import message_size

    request.refuse_beside_file(any_size=True)
    if request.set_device and request.transport != "light":
        raise ParameterError("execute: --set-device changes optical elements; give --transport light too")
    plan = request.plan()
    wanted = plan.schedule.collective
    asked_bytes = 0 if wanted.name == "barrier" else message_size(request.size)
    progress = request.progress
    if request.input is None:
        arrays = reference.random_arrays(wanted, asked_bytes, request.dtype, request.seed, progress)
    else:
        arrays = reference.load_arrays(request.input)
    light = None
    if request.transport == "light":
        from opticcl.execute.light import execute_by_light

        results, light = execute_by_light(plan.circuits, arrays, changes=request.set_device, progress=progress)
    else:
        results = execute(plan.schedule, arrays, progress=progress)
    expected = reference.expected_results(wanted, arrays, progress)
    wrong = reference.wrong_ranks(results, expected, arrays, progress)
    holders = [result for result in results if result is not None]
    request.outputs.write(ARRAYS, lambda path: reference.save_arrays(path, results))
    return ExecutionReport(
        plan=plan,
        num_results=len(holders),
        wrong_ranks=tuple(wrong),
        dtype=str(holders[0].dtype),
        shape=holders[0].shape,
        size_bytes=reference.message_bytes(wanted, arrays),
        asked_bytes=asked_bytes if request.input is None else None,
        light=light,
    )
