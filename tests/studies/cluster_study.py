"""A script that runs a study on a dask cluster of two processes: FILE FOLDER KILLS [PLUGIN]; it prints its counts as JSON.

KILLS workers are killed while they compute, each after some more points are known.
"""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import dask
from distributed import Client, LocalCluster

from opticcl import __version__
from opticcl.cli._plugins import load_plugins
from opticcl.studies.space.cluster import connected
from opticcl.studies.space.design import read_design
from opticcl.studies.space.runner import run_space


def main(file, folder, kills, *plugins):
    """Run it."""
    paths = [Path(one) for one in plugins]
    load_plugins(paths)
    space, killed = read_design(Path(file)), []
    dask.config.set({"distributed.scheduler.allowed-failures": 0 if paths else 3})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster.scheduler_address, set_as_default=False) as control,
        connected(cluster.scheduler_address, partial(load_plugins, paths)) as workers,
    ):

        def kill(label, done=0, total=0):
            if len(killed) < int(kills) and done * (int(kills) + 1) > len(killed) * total:
                busy = [address for address, tasks in control.processing().items() if tasks]
                if busy:
                    (pid,) = control.run(os.getpid, workers=busy[:1]).values()
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        began = time.monotonic()
        found = run_space(space, Path(folder), cluster=workers, progress=kill, version=__version__)
        print(json.dumps(found.record() | {"killed": len(killed), "s": time.monotonic() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
