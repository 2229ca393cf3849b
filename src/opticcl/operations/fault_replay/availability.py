"""Goodput of a machine of cubes whose hosts fail: jobs of whole cubes, any healthy ones or those of fixed cabling.

A cube is healthy while all its hosts are. With optical switches a job takes any healthy cubes: H of C cubes form
floor(H / c) jobs of c cubes. With fixed cabling the machine is divided into floor(C / c) parts beforehand, and a part with a
cube that failed runs no job. Goodput is the share of all cubes that run a job.

Source: Jouppi et al., TPU v4 (ISCA 2023), section 2.5 and figure 4.
"""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import IntArray

__all__ = ["goodput_of_hosts"]


def goodput_of_hosts(out: IntArray, hosts_per_cube: int, cubes_per_job: int, *, any_cubes: bool) -> float:
    """Share of the cubes that run a job.

    Args:
        out: whether each host is out, bool (cubes hosts_per_cube,), cube by cube.
        hosts_per_cube: hosts of a cube [count].
        cubes_per_job: cubes of a job [count].
        any_cubes: whether a job takes any cubes; else those of fixed cabling.
    Raises: ParameterError: hosts or cubes that do not divide.
    """
    if hosts_per_cube < 1 or len(out) % hosts_per_cube or not 1 <= cubes_per_job <= len(out) // hosts_per_cube:
        raise ParameterError(
            f"cubes: {len(out)} hosts, {hosts_per_cube} a cube, jobs of {cubes_per_job} cubes; whole cubes and at least one job"
        )
    healthy = np.logical_not(np.any(np.reshape(out, (-1, hosts_per_cube)), axis=1)).ravel()
    if any_cubes:
        jobs = int(healthy.sum()) // cubes_per_job
    else:
        parts = len(healthy) // cubes_per_job
        jobs = int(healthy[: parts * cubes_per_job].reshape(parts, cubes_per_job).all(axis=1).sum())
    return jobs * cubes_per_job / len(healthy)
