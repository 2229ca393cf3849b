"""Traces that PyTorch wrote itself, of four ranks on Gloo: the calls, bytes and ends that the script sent."""

import os
from collections import Counter

import pytest
from tests.execute.launch import needs_torch, torchrun
from tests.traces.torch_sizes import HIDDEN, ROWS

from opticcl.traces import load_workload

pytestmark = [needs_torch, pytest.mark.deep]
FLOAT = 4


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder with the traces of a run."""
    folder = tmp_path_factory.mktemp("run")
    script = os.path.join(os.path.dirname(__file__), "torch_job.py")
    done = torchrun(4, script, str(folder), TORCH_FR_BUFFER_SIZE="2000", TORCH_NCCL_TRACE_BUFFER_SIZE="2000")
    assert done.returncode == 0, done.stderr
    return folder


def counted(read):
    """Collectives with their bytes."""
    return Counter((call.collective, call.size_bytes) for call in read.calls if not call.is_transfer)


def test_transfers_of_a_pipeline(recorded):
    """Ends and bytes, also of a pair whose group is not recorded: by the trace of the other rank."""
    read = load_workload(recorded / "pipeline")
    sent = [((rank, rank + 1), 500) for rank in range(3) for _ in range(3)]
    sent += [((rank, (rank + 1) % 4), 500) for rank in range(4)] + [((0, 2), 7), ((1, 3), 7)]
    found = Counter((tuple(call.ranks), call.size_bytes) for call in read.calls if call.is_transfer)
    assert found == Counter((ends, FLOAT * elements) for ends, elements in sent)


def test_parts_of_an_moe_layer(recorded):
    """Rows times the size of a row, from the values of the operator."""
    (call,) = load_workload(recorded / "moe").calls
    assert call.matrix_bytes == tuple(tuple(rows * HIDDEN * FLOAT for rows in line) for line in ROWS)


def test_steps_of_data_parallel_training(recorded):
    """Gradients and parameters of two layers; sharded, the parameters of each layer."""
    first, second = 32 * 64 + 64, 64 * 8 + 8
    assert counted(load_workload(recorded / "ddp"))["all_reduce", FLOAT * (first + second)] == 1
    sharded = counted(load_workload(recorded / "fsdp"))
    assert {sharded["all_gather", FLOAT * first], sharded["all_gather", FLOAT * second]} <= {1, 2}


@pytest.mark.parametrize("form", ["json", "pickle"])
def test_the_flight_recorder_has_the_same_collectives(recorded, form):
    """All parts together, without transfers; an all_to_all without its parts, and a note that says so."""
    dumped = load_workload(recorded / form)
    parts = [counted(load_workload(recorded / name)) for name in ("ddp", "fsdp", "pipeline", "moe")]
    found, wanted = counted(dumped), sum(parts, Counter())
    uneven = [key for key in {*found, *wanted} if key[0] == "all_to_all"]
    assert {key: n for key, n in found.items() if key not in uneven} == {
        key: n for key, n in wanted.items() if key not in uneven
    }
    assert sum(found[key] for key in uneven) == sum(wanted[key] for key in uneven) == 1
    assert any("Gloo's recorder" in note for note in dumped.notes)
    assert any("uneven all_to_all are not recorded" in note for note in dumped.notes)
