"""MPI: the Communicator against the MPI library, `opticcl execute --transport mpi`, and what is refused; two processes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.execute.launch import MPIEXEC, environment, mpiexec, needs_mpi

import opticcl

pytestmark = needs_mpi
HERE = Path(__file__).parent


def deep(*values):
    """A case of `make test-deep`."""
    return pytest.param(*values, marks=pytest.mark.deep)


@pytest.mark.parametrize(
    ("processes", "fabric"), [(2, ""), deep(2, "lightpath:shape=1x2"), deep(3, ""), deep(4, "lightpath:shape=2x2")]
)
def test_every_collective(processes, fabric):
    """Types, operations, roots, lengths, buffers, in place, without a schedule, refused; other ranks than 0 import no numba."""
    done = mpiexec(processes, HERE / "mpi_collectives.py", *filter(None, [fabric]))
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank (\d+) done", done.stdout)) == [
        str(r) for r in range(processes)
    ]  # lines may interleave


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A stored plan of two ranks."""
    path = tmp_path_factory.mktemp("plans") / "plan.parquet"
    opticcl.compile("terarack:nodes=2", "all_reduce", "1 MB").save(path)
    return path


def test_run_a_plan(plan):
    """Exactly what NumPy computes; one JSON value on standard output."""
    done = mpiexec(
        2, "-m", "opticcl", "execute", "--transport", "mpi", plan, "-s", "10kB", "--dtype", "int32", "--json"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["ok"]
    (row,) = answer["rows"]
    assert (row["wrong"], row["dtype"], row["num_ranks"], row["size_bytes"] >= 10_000) == (0, "int32", 2, True)
    assert row["time_s"] > 0


@pytest.mark.parametrize(
    "collective",
    [
        "all_reduce",
        *(
            pytest.param(name, marks=pytest.mark.deep)
            for name in ("all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "scatter", "send_recv")
        ),
    ],
)
def test_columns_of_nccl_tests(collective):
    """Rows as the parsers of nccl-tests read them: 13 columns, bus bandwidth by its factor."""
    done = mpiexec(
        2,
        "-m",
        "opticcl",
        "execute",
        "--transport",
        "mpi",
        "-f",
        "ideal:nodes=2",
        "-c",
        collective,
        "-s",
        "1kB",
        "-s",
        "1MB",
        "--compare",
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line and not line.startswith("#")]
    assert [len(row) for row in rows] == [13, 13]
    heads = [line.split() for line in done.stdout.splitlines() if line.startswith("#")]
    assert ["#", "size", "count", "type", "redop", "root", *2 * ["time", "algbw", "busbw", "#wrong"]] in heads
    assert ["#", "(B)", "(elements)", *2 * ["(us)", "(GB/s)", "(GB/s)"]] in heads
    for row in rows:
        assert row[2] == "float"
        assert row[8] == "0"
        size, time_us, algorithm = int(row[0]), float(row[5]), float(row[6])
        assert abs(algorithm - size / time_us / 1e3) <= 0.01 + 0.01 * algorithm
    assert "Out of bounds values : 0 OK" in done.stdout
    assert len(re.findall(r"MPICH [0-9.]+: \d+ B", done.stdout)) == 2


@pytest.mark.parametrize(
    ("processes", "options", "words"),
    [
        (1, ["PLAN"], "the plan has 2 ranks, mpiexec started 1; try mpiexec -n 2"),
        deep(2, ["nowhere.parquet"], "nowhere.parquet"),
        deep(2, ["PLAN", "--dtype", "words"], "--dtype: 'words' is not a NumPy type"),
        deep(2, ["PLAN", "--repeat", "0"], "--repeat: 0 is below 1"),
        deep(2, ["PLAN", "-s", "big"], "--size"),
        deep(2, ["-f", "nothing"], "unknown fabric"),
        deep(2, [], "give either a plan file or --fabric"),
    ],
)
def test_refused_by_rank_0_only(plan, processes, options, words):
    """One line on standard error, exit code 2, and every process ends."""
    done = mpiexec(
        processes,
        "-m",
        "opticcl",
        "execute",
        "--transport",
        "mpi",
        *[plan if o == "PLAN" else o for o in options],
        timeout=60,
    )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("opticcl:")]
    assert len(lines) == 1
    assert words in lines[0]


def test_a_rejected_plan(tmp_path):
    """One line with the rule, exit code 2; nothing is sent."""
    path = tmp_path / "plan.json"
    opticcl.compile("lightpath:shape=1x2", "all_reduce", "1 MB").save(path, listed=True)
    content = json.loads(path.read_text())
    content["columns"]["chunk_lo"] = [0] * len(content["columns"]["chunk_lo"])
    path.write_text(json.dumps(content))
    done = mpiexec(2, "-m", "opticcl", "execute", "--transport", "mpi", path, timeout=60)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert re.match(r"opticcl: the plan is rejected: contribution_missing: .*; opticcl verify shows all", line)


def aborted_with_2(done):
    """Whether a rank aborted with code 2; mpiexec itself may end with 9, if it sees first that it has killed the others."""
    return done.returncode in (2, 9) and re.search(r"MPI_Abort\(comm=\w+, 2\)", done.stderr) is not None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "comm.Allreduce(np.ones(4 + r), np.ones(4 + r))",
            "rank 0 calls all_reduce root 0 sum <f8 of 4 elements",
        ),
        ("comm.Allreduce(np.ones(4, 'f4' if r else 'f8'), np.ones(4, 'f4' if r else 'f8'))", "rank 1 calls all_reduce"),
        deep("comm.Bcast(np.ones(4), root=r)", "broadcast root 1"),
        deep(
            "a = np.ones(4)\nfor _ in range(4):\n    if r and _ == 3: comm._forget()\n    comm.Allreduce(a, a)",
            "all_reduce root 0 sum <f8 of 4 elements: kept by some ranks alone",
        ),
        deep("comm.Allreduce(np.ones(4), np.ones(4)) if r else comm.Alltoall(np.ones(4), np.ones(4))", "all_to_all"),
        deep("comm.Alltoall(np.ones(3), np.ones(3))", "3 elements do not divide among 2 ranks"),
        deep("comm.Reduce_scatter_block(np.ones(5), np.ones(2))", "5 elements do not divide among 2 ranks"),
        deep("comm.Allreduce(np.ones(4), np.ones(4), MPI.BAND)", "band is not defined for float64"),
        deep("comm.Allreduce(np.ones((4, 4))[:, 0], np.ones(4))", "try numpy.ascontiguousarray"),
        deep("comm.Allreduce([1, 2] if r else np.ones(2), np.ones(2))", "Allreduce: rank 1: int is not memory"),
        deep(
            "comm.Allreduce(np.ones(2), np.ones(2), max if r else None)",
            "Allreduce: rank 1: builtin_function_or_method is no",
        ),
    ],
)
def test_calls_that_differ_are_named_before_data_move(code, words):
    """One line, exit code 2, no process waits."""
    script = (
        "import numpy as np\nfrom mpi4py import MPI\nfrom opticcl.mpi import Communicator\n"
        f"comm = Communicator(MPI.COMM_WORLD)\nr = comm.rank\n{code}\n"
    )
    done = mpiexec(2, "-c", script, timeout=60)
    assert aborted_with_2(done), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("opticcl:")]
    assert any(words in line for line in lines), done.stderr


@pytest.mark.parametrize(
    ("fabric", "words"),
    [("ideal:nodes=1", "use a larger fabric or fewer processes"), deep("nothing", "unknown fabric")],
)
def test_fabrics_that_do_not_fit(fabric, words):
    """Compilation fails on rank 0; all processes end."""
    script = (
        "import numpy as np\nfrom mpi4py import MPI\nfrom opticcl.mpi import Communicator\n"
        f"Communicator(MPI.COMM_WORLD, fabric={fabric!r}).Barrier()\n"
    )
    done = mpiexec(2, "-c", script, timeout=60)
    assert aborted_with_2(done), done.stderr
    assert words in done.stderr


def test_an_exception_ends_all_processes():
    """Rank 1 raises while rank 0 waits in a collective."""
    script = (
        "import numpy as np\nfrom mpi4py import MPI\nfrom opticcl.mpi import Communicator\n"
        "comm = Communicator(MPI.COMM_WORLD)\nassert comm.rank == 0, 'rank 1 stops here'\n"
        "comm.Allreduce(np.ones(4), np.ones(4))\n"
    )
    done = mpiexec(2, "-c", script, timeout=60)
    assert done.returncode != 0
    assert "opticcl: rank 1 raised AssertionError" in done.stderr


@pytest.mark.deep
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("    time.sleep(600)", "before step 0, waiting for rank 1"),
        ("    comm._transport.run = lambda exchanges: time.sleep(600)", r"step \d+, with ranks 1"),
    ],
)
def test_a_rank_that_hangs_is_named(code, words):
    """Rank 1 sleeps before a collective, or within a step: the time limit ends all, with rank, collective and step."""
    script = (
        "import time, numpy as np\nfrom mpi4py import MPI\nfrom opticcl import mpi\n"
        "comm = mpi.Communicator(MPI.COMM_WORLD, time_limit='2 s')\n"
        "large = np.ones(100_000)\ncomm.Allreduce(MPI.IN_PLACE, large)\n"
        f"if comm.rank:\n{code}\ncomm.Allreduce(MPI.IN_PLACE, large)\n"
    )
    done = mpiexec(2, "-c", script, timeout=60)
    assert done.returncode != 0
    assert re.search(f"opticcl: rank 0 of 2: all_reduce, {words}: no answer within 2 s", done.stderr), done.stderr


def test_a_missing_extra_is_named_once(tmp_path):
    """Without mpi4py: the command that installs it, from rank 0 only."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('not here')\n")
    found = environment()["PYTHONPATH"]
    done = mpiexec(
        2,
        "-m",
        "opticcl",
        "execute",
        "--transport",
        "mpi",
        "-f",
        "ideal:nodes=2",
        PYTHONPATH=f"{tmp_path}:{found}",
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.count("pip install 'opticcl[mpi]'") == 1


def test_python_of_the_tests_has_mpi():
    """The launcher and this interpreter are of one environment."""
    done = mpiexec(1, "-c", "import sys; print(sys.prefix)")
    assert done.stdout.strip() == sys.prefix


@needs_mpi
@pytest.mark.skipif(sys.platform != "linux", reason="the other processes are forked")
@pytest.mark.deep
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_rank_that_stops_before_mpi_has_started_is_ended(tmp_path, stopped):
    """Within the time limit and the seconds in which processes of a job may begin; the others do not wait for ever."""
    words = f"{sys.executable} -m opticcl execute --transport mpi -f ideal:nodes=2 -s 1kB --time-limit 1s"
    script = tmp_path / "rank.sh"
    script.write_text(f'if [ "$PMI_RANK" = {stopped} ]; then kill -STOP $$; fi\nexec {words}\n')
    done = subprocess.run(
        [str(MPIEXEC), "-n", "2", "sh", str(script)],
        capture_output=True, text=True, timeout=60, check=False, env=environment(),
    )  # fmt: skip
    assert done.returncode != 0
    assert re.search(
        r"opticcl: rank [01]: execute: not all ranks have started MPI within 1[13] s; all processes", done.stderr
    )
