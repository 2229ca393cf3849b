"""Parts of a job in several processes: the same results and errors, no process left."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from opticcl.errors import ParameterError
from opticcl.processes import each, number_of_jobs
from tests.execute.launch import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


def python(code, **given):
    """Run code in a process with one thread, as the command line has."""
    code = "import os, signal, sys, time\nfrom opticcl.processes import each\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=60,
        **given,
    )


def test_results_are_in_order():
    """Computed in as many processes as asked for, whatever part ends first; reports say how many are done."""
    done = python("""
        def work(i, progress):
            time.sleep(0.1 * (i == 0))
            progress(f"part {i}")
            return i * i, os.getpid() != parent
        parent, said = os.getpid(), []
        found = each(work, 5, jobs=2, progress=lambda label, done=0, total=0: said.append(label))
        assert [value for value, _ in found] == [0, 1, 4, 9, 16] and all(away for _, away in found), found
        assert len(said) == 5 and "part 0 (4 of 5 done)" in said, said
        try:
            os.wait()
        except ChildProcessError:
            print("no child")
    """)
    assert done.stdout == "no child\n", done.stderr


def test_what_a_process_cannot_do_is_done_here():
    """It ends, it runs out of memory, or its result cannot be sent."""
    done = python("""
        import opticcl.processes as processes
        processes.LEAST_CAP, processes.available_bytes = 1 << 26, lambda: 0
        parent = os.getpid()
        def work(i, progress):
            if i == 1 and os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            if i == 2:
                return len(bytearray(1 << 28))
            return (lambda: i) if i == 3 else i
        found = each(work, 6, jobs=2)
        print(found[:3], found[3](), found[4:])
    """)
    assert done.stdout == f"[0, 1, {1 << 28}] 3 [4, 5]\n", done.stderr


def test_a_small_part_is_done_before_processes_begin():
    """They share what it loaded; without a small part, or where it raises an exception, they begin at once."""
    done = python("""
        loaded, parent = [], os.getpid()
        def work(i, progress):
            loaded.append(i)
            return loaded[0], os.getpid() == parent
        print(each(work, 3, jobs=2, weights=[20, 1, 12]), loaded)
        del loaded[:]
        found = each(work, 3, jobs=2, weights=[20, 2, 12])
        print([here for _, here in found], loaded)
        def fails(i, progress):
            if i == 1:
                raise ValueError(f"part {i} in {os.getpid() == parent}")
            return i
        try:
            each(fails, 3, jobs=2, weights=[20, 1, 12])
        except ValueError as error:
            print(error)
    """)
    due = "[(1, False), (1, True), (1, False)] [1]\n[False, False, False] []\npart 1 in True\n"
    assert done.stdout == due, done.stderr


def test_the_first_error_is_raised():
    """As without processes, whichever came first."""
    done = python("""
        def work(i, progress):
            time.sleep(0.2 * (i == 1))
            raise ValueError(f"part {i}") if i else None
        try:
            each(lambda i, progress: work(i + 1, progress), 3, jobs=3)
        except ValueError as error:
            print(error)
    """)
    assert done.stdout == "part 1\n", done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(tmp_path, number):
    """Where this one is interrupted, or ends without a last word."""
    code = f"""
import os, signal, sys, time
from opticcl.processes import each
signal.signal(signal.SIGTERM, signal.default_int_handler)
def work(i, progress):
    open(f"{tmp_path}/" + str(os.getpid()), "w").close()
    for _ in range(600):
        time.sleep(0.05)
        progress("working")
each(work, 2, jobs=2)
"""
    running = subprocess.Popen([sys.executable, "-c", code], env=environment(), stderr=subprocess.DEVNULL)
    _until(lambda: len(list(tmp_path.iterdir())) == 2)
    running.send_signal(number)
    running.wait(timeout=20)
    children = [int(path.name) for path in tmp_path.iterdir()]
    _until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))


def _until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_number_of_jobs():
    """One a core, one for a small job, or what is given."""
    assert number_of_jobs(None) >= 1
    assert number_of_jobs(None, large=False) == 1
    assert number_of_jobs(3, large=False) == 3
    with pytest.raises(ParameterError, match=r"--jobs=0 is not within 1 to 256"):
        number_of_jobs(0)


def test_one_job_is_this_process():
    """No process is started."""
    assert each(lambda i, progress: os.getpid(), 2) == [os.getpid()] * 2


VERBS = {
    "compare": ("compare", "-f", "ideal", "-f", "ramp", "-n", "4", "-s", "1MB", "-s", "2KB"),
    "sweep": ("compare", "-f", "ideal", "-f", "ramp", "-f", "sip_ring", "-n", "8", "--sizes", "1KB:1MB:4"),
    "train": ("train", "--model", "lenet", "-f", "ideal", "-f", "torus", "-f", "oddl", "-n", "8"),
    "papers": ("study", "papers", "lumorph", "--claim", "L1*"),
}


@pytest.mark.parametrize(
    "verb", ["compare", *(pytest.param(verb, marks=pytest.mark.deep) for verb in ("train", "sweep", "papers"))]
)
def test_the_answer_is_the_same(verb):
    """With one process and with three, to the last digit."""
    words = ["opticcl", *VERBS[verb], "--json", "--jobs"]
    code = (
        f"import sys\nfrom opticcl.cli import run_command\nsys.argv = [*{words}, sys.argv[1]]\nsys.exit(run_command())"
    )
    one, three = (
        subprocess.run(
            [sys.executable, "-c", code, jobs], capture_output=True, text=True, check=False, env=environment()
        )
        for jobs in "13"
    )
    assert one.returncode == three.returncode == 0, three.stderr
    assert one.stdout == three.stdout
    assert len(one.stdout) > 100
