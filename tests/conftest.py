"""Settings and fixtures of the whole suite. Fixtures import the command line: tests on a device need NumPy and torch alone."""

import gc
import json
import math
import os
import sys
from itertools import groupby
from types import SimpleNamespace

import pytest

from tests.closing_report import (  # noqa: F401 (hooks)
    pytest_deselected,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)
from tests.profiles import register_profiles

register_profiles()
gc.set_threshold(100_000)  # cycles are looked for less often, which saves a twentieth of the time
for _name in ("COLUMNS", "LINES", "OPTICCL_PLUGINS"):  # pytest-xdist sets the first two in its workers, users the third
    os.environ.pop(_name, None)

collect_ignore_glob = ["execute/mpi_*.py", "execute/torch_*.py", "traces/torch_job.py", "studies/cluster_study.py"]
"""Scripts that processes of their own execute; they need mpi4py, torch or dask when imported."""


def pytest_addoption(parser):
    """Options of this suite."""
    parser.addoption("--reverse-files", action="store_true", help="run the last test file first")


def pytest_collection_modifyitems(config, items):
    """With --reverse-files: the files in reverse order, the tests of each in their own."""
    if config.getoption("--reverse-files"):
        files = [list(tests) for _, tests in groupby(items, lambda item: item.path)]
        items[:] = [test for tests in reversed(files) for test in tests]


def pytest_collection_finish(session):
    """What is collected stays to the end: taken from the garbage collector, a tenth of the suite's time is saved."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def opticcl(monkeypatch, capsys):
    """Function that runs the program within this process, which is much quicker; returns exit code and texts.

    Progress is never shown, however slow the machine is.
    """
    from opticcl import cli
    from opticcl.cli import _output

    monkeypatch.setattr(_output.ProgressLine.__init__, "__defaults__", (math.inf,))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["opticcl", *map(str, arguments)])
        code = cli.run_command()
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=printed.out, stderr=printed.err)

    return run


@pytest.fixture
def plugins_forgotten(monkeypatch):
    """What plugins register in a test is forgotten after it."""
    from opticcl.circuits import RULES
    from opticcl.cli import _plugins
    from opticcl.fabrics import FABRICS
    from opticcl.registry import Registry
    from opticcl.schedule import ALGORITHMS
    from opticcl.simulate import ENGINES

    for registry in (FABRICS, ALGORITHMS, RULES, ENGINES):
        registry.names()
    modules = [module for name, module in sys.modules.items() if name.startswith("opticcl.")]
    for registry in {value for module in modules for value in vars(module).values() if isinstance(value, Registry)}:
        registry.names()  # what is found during the test must stay known after it
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(_plugins, "_loaded", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv(_plugins.VARIABLE, raising=False)


@pytest.fixture
def answer(opticcl):
    """Function that runs a verb for its JSON value; returns that and the exit code."""

    def run(*arguments):
        done = opticcl(*arguments, "--json")
        return json.loads(done.stdout), done.returncode

    return run
