"""Tests that PyTorch and mpi4py have for their own backends, with ours in their place: what the peer passes, we pass."""

import pytest
from tests.execute.launch import needs_mpi, needs_torch
from tests.execute.suites import NotFetchedError, of_mpi4py, of_torch

REFUSED = {
    "test_sparse_all_reduce_sum",
    "test_monitored_barrier_gloo",
    "test_monitored_barrier_gloo_rank_0_timeout",
    "test_monitored_barrier_gloo_subgroup",
}
"""Sparse tensors; and monitored_barrier, which PyTorch refuses for all backends but Gloo."""


def lost(ours, theirs):
    """What the peer passes and we do not; a skip counts as failed."""
    assert any(outcome == "passed" for outcome in theirs.values())
    return {name: ours.get(name) for name, outcome in theirs.items() if outcome == "passed" != ours.get(name)}


@pytest.mark.deep
@pytest.mark.timeout(7200)
@needs_mpi
@pytest.mark.parametrize("processes", [3, 5])
def test_mpi4py(tmp_path, processes):
    """Collectives on buffers: all kinds of arrays, COMM_SELF and COMM_WORLD."""
    try:
        theirs = of_mpi4py(tmp_path, processes, "mpi")
    except NotFetchedError as reason:
        pytest.skip(f"the source archive of mpi4py is not to be had: {reason}")
    assert lost(of_mpi4py(tmp_path, processes, "opticcl"), theirs) == {}


@pytest.mark.deep
@pytest.mark.timeout(7200)
@needs_torch
def test_torch(tmp_path):
    """DistributedTest on four processes; the edits of its copy are listed in torch_suite.py."""
    try:
        theirs = of_torch(tmp_path, "gloo")
    except NotFetchedError as reason:
        pytest.skip(f"what PyTorch's tests import is not to be had: {reason}")
    wanted = [name for name, outcome in theirs.items() if outcome == "passed"]
    assert set(lost(of_torch(tmp_path, "opticcl", wanted), theirs)) <= REFUSED
