"""Goodput of a machine of cubes whose hosts fail: jobs of whole cubes, any healthy ones or those of fixed cabling.

A cube is healthy while all its hosts are. With optical switches a job takes any healthy cubes: H of C cubes form
floor(H / c) jobs of c cubes. With fixed cabling the machine is divided into floor(C / c) parts beforehand, and a part with a
cube that failed runs no job. Goodput is the share of all cubes that run a job.

Source: Jouppi et al., TPU v4 (ISCA 2023), section 2.5 and figure 4.
"""

from __future__ import annotations

from math import comb

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import IntArray
from opticcl.operations.fault_replay.fault_trace import OUT, FaultTrace, servers_at

__all__ = ["expected_goodput", "goodput_of_hosts", "trace_goodput"]


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


def trace_goodput(
    trace: FaultTrace, num_hosts: int, hosts_per_cube: int, cubes_per_job: int, *, any_cubes: bool, seed: int = 0
) -> float:
    """Mean over a record of the share of the cubes that run a job.

    Args:
        trace: whose servers are hosts at random.
        num_hosts: of the machine [count].
        hosts_per_cube: hosts of a cube [count].
        cubes_per_job: cubes of a job [count].
        any_cubes: whether a job takes any cubes; else those of fixed cabling.
        seed: of the choice of hosts.
    Raises: ParameterError: the trace has more servers than the machine, or cubes that do not divide.
    """
    if len(trace.servers) > num_hosts:
        raise ParameterError(f"cubes: {len(trace.servers)} servers of the record do not fit on {num_hosts} hosts")
    whole = 0.0
    for start_s, end_s, health in trace.states(num_hosts, servers_at(trace, num_hosts, seed)):
        share = goodput_of_hosts(health == OUT, hosts_per_cube, cubes_per_job, any_cubes=any_cubes)
        whole += (end_s - start_s) * share
    return whole / trace.end_s if trace.end_s else 1.0


def expected_goodput(
    availability: float, num_cubes: int, hosts_per_cube: int, cubes_per_job: int, *, any_cubes: bool
) -> float:
    """Expected share of the cubes that run a job where hosts fail independently.

    Args:
        availability: of a host, 0 to 1.
        num_cubes: of the machine [count].
        hosts_per_cube: hosts of a cube [count].
        cubes_per_job: cubes of a job [count].
        any_cubes: whether a job takes any cubes; else those of fixed cabling.
    """
    healthy = availability**hosts_per_cube
    if not any_cubes:
        return num_cubes // cubes_per_job * cubes_per_job / num_cubes * healthy**cubes_per_job
    chances = [comb(num_cubes, h) * healthy**h * (1 - healthy) ** (num_cubes - h) for h in range(num_cubes + 1)]
    return sum(p * (h // cubes_per_job) * cubes_per_job / num_cubes for h, p in enumerate(chances))
