"""Works for processes of a pool under test."""

import os
import time

from opticcl.explorer.pool import Answer


def work(task, progress):
    """Do what the task names."""
    if task == "sleep":
        progress("sleeping")
        time.sleep(60)
    if task == "die":
        os._exit(3)
    if task == "memory":
        bytearray(1 << 40)
    return Answer(0, f'"{task}"')
