"""opticcl execute"""

from __future__ import annotations

from opticcl.cli._execute_request import ExecuteRequest
from opticcl.cli._output import ARRAYS
from opticcl.report.kit.result import Result


def run(request: ExecuteRequest) -> Result | int:
    """Execute a plan on real data and compare with NumPy. Exit code 1 if they differ, or light does not arrive.

    A plan file runs on a message of any size, so it may be combined with --size. A message is rounded up until every chunk
    holds an element. With processes of MPI: mpiexec -n 8 opticcl execute plan.parquet --transport mpi.
    """
    request.check_transport()
    if request.transport == "mpi":
        from opticcl.cli._mpi_run import run_by_mpi

        return run_by_mpi(request)
    return _in_this_process(request)


def _in_this_process(request: ExecuteRequest) -> Result:
    """Execute a plan in memory, or through the optical elements.

    Args: request: of the call.
    """
    from opticcl.execute import execute, reference
    from opticcl.processes import available_bytes
    from opticcl.report.execution import ExecutionReport
    from opticcl.units import message_size

    request.refuse_beside_file(any_size=True)
    plan = request.plan()
    wanted = plan.schedule.collective
    asked_bytes = 0 if wanted.name == "barrier" else message_size(request.size)
    progress = request.progress
    if request.input is None:
        most_bytes = available_bytes() // reference.COPIES
        arrays = reference.random_arrays(
            wanted, asked_bytes, request.dtype or "int64", request.seed, progress, most_bytes
        )
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
