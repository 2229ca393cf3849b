"""The program in a process of its own, as a user starts it; all but a few tests run it within their own process."""

import subprocess
import sys

COMMAND = (sys.executable, "-m", "opticcl")


def opticcl_process(*arguments, cwd=None):
    """Run the program; returns the finished process."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=240)
