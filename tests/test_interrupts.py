"""A program that gets a signal to end does so, whatever it does, and leaves nothing behind."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter

import pytest

from tests.cli.process import COMMAND
from tests.execute.launch import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the waiting process is forked on Linux alone")

LONGEST_S = 5.0
"""From the signal to the end [s]."""

BUSY_S = 10.0
"""What a busy machine may take in addition [s]."""

WORK = {
    "in Python": "while True: pass",
    "in native code that holds the interpreter": "sum(range(10**14))",
    "where exceptions are ignored": """
        class Slow:
            def __del__(self):
                end = time.monotonic() + 60
                while time.monotonic() < end: pass
        while True: Slow()
    """,
    "where exceptions are ignored once": """
        class Slow:
            def __del__(self):
                time.sleep(2)
        Slow()
        while True: pass
    """,
    "where exceptions are caught": """
        while True:
            try: time.sleep(60)
            except BaseException: pass
    """,
    "where a library in C prints the exception and raises its own": """
        try:
            while True: pass
        except KeyboardInterrupt:
            sys.excepthook(*sys.exc_info())  # as PyErr_Print does
            raise ImportError("a module failed to import") from None
    """,
    "while another process works": "each(lambda i, progress: sum(range(10**14)), 2, jobs=2)",
}


SOON = {
    ("in Python", signal.SIGTERM),
    ("in native code that holds the interpreter", signal.SIGINT),
    ("where a library in C prints the exception and raises its own", signal.SIGINT),
    ("while another process works", signal.SIGTERM),
}
"""What `make test` interrupts: the other kinds of work take as long to end, and end by the same clock."""


def started(work, folder, forks=True):
    """A program that does some work, with a temporary file, folder and process; returns when it is at work."""
    code = (
        "import os, sys, time\nfrom opticcl.interrupts import guarded, temporary\nfrom opticcl.processes import each\n"
    )
    code += "from opticcl.files import temporary_folder, write_whole\n"
    code += f"def work():\n    with write_whole({str(folder / 'file')!r}) as file, temporary_folder() as made:\n"
    code += "        (made / 'one').write_text('x')\n"
    code += "        if os.fork() == 0: time.sleep(600)\n" if forks else ""
    code += "        print('ready', flush=True)\n"
    code += textwrap.indent(textwrap.dedent(work), " " * 8) + "\nsys.exit(guarded(work))\n"
    where = environment(TMPDIR=str(folder))
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=where)
    assert running.stdout.readline() == b"ready\n"
    return running


def processes_of(group):
    """Numbers of the processes of a group that still run."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                state, _, mine = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        found += [int(name)] if int(mine) == group and state != "Z" else []
    return found


@pytest.mark.parametrize(
    ("work", "number"),
    [
        pytest.param(work, number, marks=() if (work, number) in SOON else pytest.mark.deep)
        for work in WORK
        for number in (signal.SIGTERM, signal.SIGINT)
    ],
)
def test_it_ends_whatever_it_does(tmp_path, work, number):
    """Within 5 s, with code 130; its files are gone."""
    running = started(WORK[work], tmp_path)
    time.sleep(0.2)
    begun = time.monotonic()
    running.send_signal(number)
    _, error = running.communicate(timeout=60)
    assert time.monotonic() - begun < LONGEST_S + BUSY_S
    assert running.returncode == 130
    assert error == b"opticcl: interrupted; nothing was written\n"
    assert not list(tmp_path.iterdir())


def test_a_signal_to_all_its_processes_counts_once(tmp_path):
    """As from a terminal, where the process that works may catch it and end well."""
    work = """
        try:
            while True: time.sleep(0.01)
        except KeyboardInterrupt:
            time.sleep(0.5)
            print('ended well', flush=True)
            return 0
    """
    code = "import os, sys, time\nfrom opticcl.interrupts import guarded\ndef work():\n"
    code += textwrap.indent(textwrap.dedent(work), "    ") + "\nprint('ready', flush=True)\nsys.exit(guarded(work))\n"
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment(), start_new_session=True
    )
    assert running.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    for _ in range(3):
        os.killpg(running.pid, signal.SIGINT)
        time.sleep(0.05)
    out, _ = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, b"ended well\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_way_it_ends_is_passed_on(tmp_path, number):
    """The process that works is killed: so is the one that waits, and temporary files are removed."""
    running = started(f"os.kill(os.getpid(), {int(number)})", tmp_path, forks=False)
    running.communicate(timeout=60)
    assert running.returncode == -number
    assert not list(tmp_path.iterdir())


def test_the_process_that_works_ends_with_the_one_that_waits():
    """Nothing is left where that one is killed."""
    running = subprocess.Popen(
        [*COMMAND, "compare", "-n", "64", "-s", "1MB", "--algorithm", "all", "--jobs", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), start_new_session=True,
    )  # fmt: skip
    time.sleep(4)  # it is at work
    assert running.poll() is None
    running.kill()
    running.communicate(timeout=60)
    end = time.monotonic() + 20
    while processes_of(running.pid):
        assert time.monotonic() < end
        time.sleep(0.05)


VERBS = {
    "machine budget": ("-f", "ramp"),
    "compare": ("-n", "64", "-s", "1MB", "--algorithm", "all", "--jobs", "2", "-o", "page.html"),
    "compile": ("-f", "terarack:nodes=256", "-s", "1MB", "-o", "plan.parquet"),
    "machine control": ("-f", "oddl:shape=4x4"),
    "machine cost": ("-n", "64"),
    "execute": ("-f", "ramp:groups=4,racks=4,wavelengths=8", "-s", "10MB"),
    "explore": (),
    "faults": ("-f", "sipac:radix=4,levels=2", "--sweep"),
    "jobs": ("-f", "lightpath:shape=8x8"),
    "list": (),
    "machine netlist": ("-f", "lightpath:shape=8x8", "-o", "netlist.svg"),
    "new": ("fabric", "mine"),
    "study papers": (),
    "plan": ("-f", "ramp", "-n", "64"),
    "simulate": ("-f", "terarack:nodes=256", "-s", "1MB", "--engine", "packet", "--programme", "times.json"),
    "study beyond": (),
    "study breakeven": ("nothing.toml",),
    "study co_scheduling": (),
    "study lines": ("nothing.toml",),
    "study map": ("nothing.toml",),
    "study pareto": ("nothing.toml",),
    "study query": ("nothing.toml", "SELECT 1"),
    "study run": ("nothing.toml",),
    "study tornado": ("nothing.toml",),
    "study transfers": (),
    "synthesize": ("-f", "lightpath:shape=4x4,lasers=11", "--chunks", "16", "--time-limit", "60s"),
    "trace": ("resnet50_ddp", "-o", "calls.parquet"),
    "machine traffic": ("-f", "ramp", "--load", "0.9"),
    "train": ("--model", "bert", "-n", "64"),
    "verify": ("-f", "terarack:nodes=256", "-s", "1MB"),
    "warm": (),
}
"""Verb -> options with which it takes a while, where it can."""


def after(words, seconds, number, cwd):
    """Code, time to the end and standard error of a command that gets a signal some seconds after its handlers are there."""
    running = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd, env=environment(TMPDIR=str(cwd))
    )
    children = f"/proc/{running.pid}/task/{running.pid}/children"
    while running.poll() is None:  # before the process that works is there, Python itself starts
        with open(children, encoding="ascii") as file:
            if file.read():
                break
    time.sleep(seconds)
    begun = time.monotonic()
    running.send_signal(number)
    _, error = running.communicate(timeout=60)
    return running.returncode, time.monotonic() - begun, error.decode()


def check(words, seconds, number, cwd):
    """It ends in time, without a traceback, and leaves no file but what it has finished."""
    code, took_s, error = after(words, seconds, number, cwd)
    assert took_s < LONGEST_S + BUSY_S
    assert code in (130, 0, 1, 2), error  # it may have ended by itself
    assert "Traceback" not in error
    assert ("interrupted" in error) == (code == 130)
    left = [path.name for path in cwd.iterdir() if path.name.startswith((".", "opticcl-"))]
    assert not left
    return code


@pytest.mark.parametrize(
    "seconds", [0.0, 0.1, 0.4, *(pytest.param(at, marks=pytest.mark.deep) for at in (0.03, 0.2, 0.6))]
)
def test_in_the_first_seconds(tmp_path, seconds):
    """From when Python itself has started."""
    number = random.Random(seconds).choice([signal.SIGINT, signal.SIGTERM])
    assert check(("study", "papers"), seconds, number, tmp_path) == 130


@pytest.mark.deep
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_ends(tmp_path, verb):
    """At any time of its work."""
    random_times = random.Random(verb)
    for number in (signal.SIGINT, signal.SIGTERM) * 4:
        check((*verb.split(), *VERBS[verb]), random_times.choice([0.6, 4.0]) * random_times.random(), number, tmp_path)


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_a_comparison_always_ends(tmp_path):
    """Thirty times, 7 s after it has begun."""
    words = ("compare", "-n", "64", "-s", "1MB", "--algorithm", "all", "--jobs", "2", "-o", "o.html")
    found = Counter(check(words, 7.0, signal.SIGTERM, tmp_path) for _ in range(30))
    assert set(found) <= {130, 0}


def test_verbs_are_all_here(opticcl):
    """A new verb joins the table above."""
    from opticcl.cli import command_group

    assert sorted(VERBS) == sorted(verb for verb, _ in command_group().walk())


@pytest.mark.parametrize(("variables", "processes"), [({}, 2), ({"PMI_RANK": "1"}, 1)])
def test_a_rank_of_mpi_is_the_process_that_works(variables, processes):
    """Its launcher ends it by its number, whatever the command is."""
    code = (
        "import os, sys\nstarted = os.getpid()\nfrom opticcl.interrupts import guarded\n"
        "sys.exit(guarded(lambda: print(len({started, os.getpid()}))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(**variables), check=True
    )
    assert int(done.stdout) == processes
