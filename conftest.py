"""Modules that need an optional package are collected only where it is installed."""

from importlib.util import find_spec

collect_ignore = ["src/opticcl/mpi.py"]  # its import starts MPI
collect_ignore_glob = [] if find_spec("torch") else ["src/opticcl/execute/torch/*"]
