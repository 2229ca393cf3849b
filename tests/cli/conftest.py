"""The program as a user calls it, within this process: much quicker than one of its own."""

import json
import sys
from types import SimpleNamespace

import pytest

from opticcl import cli


@pytest.fixture
def opticcl(monkeypatch, capsys):
    """Runs the program within this process, which is much quicker; returns code and texts."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["opticcl", *map(str, arguments)])
        code = cli._run()
        told = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=told.out, stderr=told.err)

    return run


@pytest.fixture
def answer(opticcl):
    """Runs a verb for its JSON value; returns that and the exit code."""

    def run(*arguments):
        done = opticcl(*arguments, "--json")
        return json.loads(done.stdout), done.returncode

    return run
