"""Small files of forms that people bring, each with the right value in a line beside it: ../shared/data/cases/traces."""

import pytest
from tests.optional import shared_file

from opticcl.errors import WorkloadError
from opticcl.traces import load_workload

CASES = {
    "01-simai-groups.txt": [
        ("all_gather", 4_000, (0, 1)),
        ("reduce_scatter", 4_000, (0, 1)),
        ("reduce_scatter", 6_400, (0, 8)),
        ("all_to_all", 1_600, (0, 2, 4, 6)),
        ("all_gather", 8_000, tuple(range(0, 32, 4))),
    ],
    "06-nsys-communicators.rank5.sqlite": [
        ("all_reduce", 4_000, (4, 5, 6, 7)),
        ("all_gather", 2_000, (4, 5)),
        ("all_reduce", 800, tuple(range(8))),
    ],
    "08-comm-group-json": [("all_gather", 8_192, tuple(range(8))), ("all_reduce", 1_024, (4, 5, 6, 7))],
    "08-comm-group-json/a.6.et": [("all_reduce", 1_024, (4, 5, 6, 7)), ("all_gather", 8_192, tuple(range(8)))],
    "13-nccl-inspector.log": [
        ("all_reduce", 1_048_576, tuple(range(8))),
        ("reduce_scatter", 8_388_608, tuple(range(8))),
        ("all_gather", 8_388_608, tuple(range(8))),
    ],
    "14-nccl-profiler.json": [("all_reduce", 4_194_304, ())],
    "15-goal.goal": [("send_recv", 1_048_576, (0, 1)), ("send_recv", 1_048_576, (1, 0))],
    "16-aicb.csv": [("all_reduce", 1_048_576, (0, 2, 4, 6)), ("all_gather", 2_048, (0, 1))],
}
RANKS = {"01": 32, "06": 8, "08": 8, "13": 8, "14": 0, "15": 2, "16": 8}


@pytest.mark.parametrize("name", CASES)
def test_calls_of_a_case_file(name):
    """Collective, bytes and ranks of every call, and the number of ranks."""
    read = load_workload(shared_file(f"cases/traces/{name}"))
    assert [(call.collective, call.size_bytes, call.ranks) for call in read.calls] == CASES[name]
    assert read.num_ranks == RANKS[name[:2]]


def test_computation_of_the_case_files():
    """Beside the calls: 1,000 ns of GOAL, 1.5 ms of AICB."""
    assert load_workload(shared_file("cases/traces/15-goal.goal")).compute_s == pytest.approx(1e-6)
    assert load_workload(shared_file("cases/traces/16-aicb.csv")).compute_s == pytest.approx(1.5e-3)
    inspector = load_workload(shared_file("cases/traces/13-nccl-inspector.log"))
    assert [call.measured_s for call in inspector.calls] == pytest.approx([50e-6, 40e-6, 40e-6])


def test_an_export_without_its_values():
    """The true cause, with the command that keeps them."""
    path = shared_file("cases/traces/07-nsys-binary-payload.rank5.sqlite")
    with pytest.raises(WorkloadError, match=r"only in a packed form .* nsys export --type sqlite --include-json true"):
        load_workload(path)
