"""Small files of PyTorch that people bring, each with the right value in a line beside it: ../shared/data/cases/traces."""

import pytest
from tests.optional import shared_file

from opticcl.traces import load_job, load_steps, load_workload
from opticcl.training.iteration import replay

MIB = 2**20
CASES = {
    "02-deepep-beside-nccl.json": [("all_reduce", 4 * MIB, ())],
    "03-splits-in-rows": [("all_to_all", 48, ())],
    "04-cuda-graph-replays.json": 20 * [("all_reduce", 2 * MIB, ())],
    "05-coalesced-p2p.json": [("send_recv", 8_192, (0, 1)), ("send_recv", 8_192, (1, 2))],
    "09-flight-recorder-windows": 8 * [("all_reduce", 400, ())],
    "10-host-runs-ahead.json": 3 * [("all_reduce", 4 * MIB, ())],
    "12-ranks-fused-in-one-file.json": [("all_reduce", 4 * MIB, ())],
    "17-gloo-send-recv": [("send_recv", 2_000, ends) for ends in ((0, 1), (1, 2), (2, 3), (3, 0))],
    "18-key-order.json": [("send_recv", 8_192, (1, 2))],
    "19-flight-recorder-names": 3 * [("all_reduce", 400, ())],
    "21-begin-end-events.json": [("all_reduce", 4_000, ())],
    "23-ends-within-the-group": [("send_recv", 2_000, (1, 3))],
    "24-unescaped-quotes.json": [("all_reduce", 4_000, ())],
    "25-trace-beside-a-script": [("all_reduce", 2_000, ())],
}
RANKS = {"02": 16, "03": 2, "05": 4, "09": 2, "12": 2, "17": 4, "18": 4, "19": 2, "23": 4}
COMPUTE_S = {"02": 1e-3, "04": 11e-3, "10": 9e-3, "12": 1e-3, "21": 1e-3, "24": 1e-3}
MEASURED_S = {"05": 100e-6, "21": 100e-6, "24": 100e-6, "04": 6e-3}


@pytest.mark.parametrize("name", CASES)
def test_calls_of_a_case(name):
    """Collective, bytes and ranks of every call, ranks of the job, computation, recorded times."""
    read = load_workload(shared_file(f"cases/traces/{name}"))
    whole = tuple(range(read.num_ranks))
    found = [(call.collective, call.size_bytes, () if call.ranks == whole else call.ranks) for call in read.calls]
    assert sorted(found) == sorted(CASES[name])
    assert read.num_ranks == RANKS.get(name[:2], 8)
    assert read.compute_s == pytest.approx(COMPUTE_S.get(name[:2], read.compute_s))
    measured_s = sum(call.measured_s for call in read.calls)
    assert measured_s == pytest.approx(MEASURED_S.get(name[:2], measured_s))
    assert not any("before the recording" in note or "assumed" in note for note in read.notes)


def test_uneven_parts_are_rows_times_the_size_of_a_row():
    """Rows of four bfloat16."""
    (call,) = load_workload(shared_file("cases/traces/03-splits-in-rows")).calls
    assert call.matrix_bytes == ((8, 24), (16, 16))


def test_an_ascend_trace_has_its_collective_and_its_computation():
    """HCCL's event has size and time; a task of the AI core computes."""
    read = load_workload(shared_file("cases/traces/22-ascend.json"), num_ranks=8)
    assert [(c.collective, c.size_bytes, c.measured_s) for c in read.calls] == [
        ("all_reduce", 4_096, pytest.approx(50e-6))
    ]
    assert read.compute_s == pytest.approx(100e-6)


def test_what_a_case_leaves_out_is_named():
    """Kernels of DeepEP with their time; the file that is no trace; the event that is no JSON."""
    for name, *said in (
        ("02-deepep-beside-nccl.json", "2 kernels of DeepEP without a size, 5 ms", "dispatch", "combine"),
        ("04-cuda-graph-replays.json", "launched 10 times, with 20 kernels"),
        ("24-unescaped-quotes.json", "events that are not JSON, left out, such as that at character 253: 1"),
        ("25-trace-beside-a-script", "train.py"),
        ("09-flight-recorder-windows", "3 to 8, 5 to 10"),
    ):
        notes = "\n".join(load_workload(shared_file(f"cases/traces/{name}")).notes)
        assert all(word in notes for word in said), notes


def test_bounds_of_cases():
    """No upper bound where calls are left out; a lower one for a stage of a pipeline alone."""
    assert load_job(shared_file("cases/traces/04-cuda-graph-replays.json")).bound != "upper"
    stage = load_job(shared_file("cases/traces/20-one-pipeline-stage.rank0.json"))
    assert stage.bound == "lower"
    assert "4 receives" in stage.notes[0]


def test_recorded_times_are_those_of_the_device():
    """A host that runs ahead: 5 ms a step, not its own 1 ms; two streams as recorded: 7 ms, not one after the other."""
    for step in load_steps(shared_file("cases/traces/10-host-runs-ahead.json")):
        times = step.recorded
        assert (times.total_s, times.busy_s, times.exposed_s, times.idle_s) == pytest.approx((5e-3, 3e-3, 2e-3, 0))
    job = load_job(shared_file("cases/traces/11-two-streams-one-node-rate.json"))
    assert replay(job).total_s == pytest.approx(7e-3)
