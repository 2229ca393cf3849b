"""The program as a user calls it, in a process of its own."""

import json
import subprocess
import sys


def opticcl(*arguments, cwd=None):
    """Run the program; returns the finished process."""
    command = [sys.executable, "-c", "from opticcl.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=240)


def answer(*arguments):
    """The JSON value that a good call prints, and its exit code."""
    done = opticcl(*arguments, "--json")
    return json.loads(done.stdout), done.returncode
