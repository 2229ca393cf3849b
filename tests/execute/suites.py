"""Tests that others wrote for the interfaces that we stand behind, run by the peer and by us.

`python -m tests.execute.suites` prints the table of docs/run.md. What is not installed is fetched by pip into a folder of the
run: the source archive of the installed mpi4py, and what PyTorch's tests import. Nothing of it is kept. A suite that cannot be
fetched is not run, and the table says so.
"""

import importlib.util
import json
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.execute.launch import environment, mpiexec

HERE = Path(__file__).parent
LONGEST_S = 3600
FETCH_S = 900
"""Longest time of a fetch, in which pip builds what describes the archive [s]."""


class NotFetchedError(Exception):
    """A suite that cannot be fetched; the text is the reason."""


def _pip(*words):
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_S,
        )
    except subprocess.TimeoutExpired:
        raise NotFetchedError(f"pip {words[0]} takes longer than {FETCH_S} s") from None
    if done.returncode:
        raise NotFetchedError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])


def of_mpi4py(folder, processes, library):
    """Outcomes of mpi4py's tests of collectives on buffers, by name.

    Args:
        folder: of this run; the source archive is fetched into it once.
        processes: of MPI [count].
        library: "mpi" or "opticcl".
    """
    if not any(folder.glob("mpi4py-*")):
        _pip("download", "--no-deps", "--no-binary", "mpi4py", "-d", folder, f"mpi4py=={version('mpi4py')}")
        with tarfile.open(next(folder.glob("mpi4py-*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
    tests = next(path for path in folder.glob("mpi4py-*/test"))
    done = mpiexec(processes, HERE / "mpi4py_suite.py", tests, library, timeout=LONGEST_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def of_torch(folder, backend, names=()):
    """Outcomes of PyTorch's DistributedTest on four processes, by name.

    Args:
        folder: of this run.
        backend: "gloo" or "opticcl".
        names: of tests; none: all.
    """
    if importlib.util.find_spec("expecttest") is None and not (folder / "site").exists():
        _pip("install", "--no-deps", "--target", folder / "site", "expecttest")
    work = Path(tempfile.mkdtemp(dir=folder))
    variables = environment()
    variables["PYTHONPATH"] += f":{folder / 'site'}"
    done = subprocess.run(
        [sys.executable, str(HERE / "torch_suite.py"), str(work), backend, *names],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
        cwd=work,
        env=variables,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def row(suite, ours, theirs, peer):
    """A row of the table.

    Args:
        suite: in words.
        ours, theirs: outcomes by name.
        peer: its name.
    """

    def counts(outcomes):
        found = list(outcomes.values())
        passed, skipped = found.count("passed"), found.count("skipped")
        return f"{passed} | {len(found) - passed - skipped} | {skipped}"

    return f"| {suite} | opticcl | {counts(ours)} |\n| | {peer} | {counts(theirs)} |"


def rows(folder):
    """The rows of all suites, in the order of the table."""
    runs = [
        ("DistributedTest of PyTorch, 4 processes", "Gloo", lambda who: of_torch(folder, who or "gloo")),
        ("test_cco_buf of mpi4py, 3 processes", "MPI", lambda who: of_mpi4py(folder, 3, who or "mpi")),
        ("test_cco_buf of mpi4py, 5 processes", "MPI", lambda who: of_mpi4py(folder, 5, who or "mpi")),
    ]
    for suite, peer, run in runs:
        try:
            yield row(suite, run("opticcl"), run(""), peer)
        except NotFetchedError as reason:
            yield f"| {suite} | not run: {reason} | | | |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print("| suite | by | passed | failed | skipped |\n|---|---|---|---|---|", *rows(Path(place)), sep="\n")
