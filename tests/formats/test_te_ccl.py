"""Schedules of TE-CCL: chunks by source and number, GPUs with gaps in their numbers, flows in epochs."""

import json

import numpy as np
import pytest

import opticcl
from opticcl.errors import PlanFileError
from opticcl.formats import format_of, te_ccl
from opticcl.formats.te_ccl import read_te_ccl
from opticcl.plans.graph_schedule import plan_of_graph, schedule_of_graph
from opticcl.verify.time.dependencies import verify_graph

GPUS = (1, 2, 4)  # 0 and 3 are switches


def flow(chunk, source, src, dst, epoch, extra=""):
    """A flow as TE-CCL writes it."""
    return f"Chunk {chunk} from {source} traveled over {src}->{dst}{extra} in epoch {epoch}"


RING = [
    flow(0, 1, 1, 2, 0),
    flow(0, 2, 2, 4, 0) + " via switches 0",
    flow(0, 4, 4, 1, 0, " with volume 1.0"),
    flow(0, 1, 2, 4, 3),
    flow(0, 2, 4, 1, 3) + " via switches 0 -> 3",
    flow(0, 4, 1, 2, 3),
]
DEMANDS = {f"GPU {s}": {f"GPU {d}": {"Chunk 0": 1e-6} for d in GPUS if d != s} for s in GPUS}


def written(tmp_path, flows=RING, demands=DEMANDS, **more):
    """A file with those flows and demands."""
    path = tmp_path / "ring.json"
    content = {"1-Epoch_Duration": 2e-08, "3-Epochs_Required": 4, "6-Demand_Met": demands, "7-Flows": flows, **more}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    return path


def test_an_all_gather_is_read(tmp_path):
    """Verified, and run on a fabric; GPUs become ranks in ascending order."""
    path = written(tmp_path)
    assert format_of(path).name == "te_ccl"
    graph = read_te_ccl(path)
    assert str(graph) == "ring: all_gather among 3 ranks, 3 chunks, 12 operations, 6 messages"
    assert graph.notes == ("ranks 0 to 2 are GPUs 1, 2, 4",)
    assert (len(graph.output_cell), {buffer.count for buffer in graph.buffers}) == (9, {1})
    operations = graph.operations
    assert {len(column) for column in (operations.step, operations.accumulates, operations.message)} == {12}
    assert operations.block.tolist() == [number // 2 for number in range(12)]
    verdict = verify_graph(graph)
    assert verdict.ok, verdict
    assert schedule_of_graph(graph).num_steps == 2
    plan = plan_of_graph(graph, opticcl.fabric("ramp:groups=1,racks=1,wavelengths=3"), 3_000_000)
    assert plan.verify().ok
    blocks = [np.full(4, rank) for rank in range(3)]
    assert all((result == np.repeat([0, 1, 2], 4)).all() for result in plan.execute(blocks))


def test_a_custom_collective_is_read(tmp_path):
    """Two chunks of one GPU for different others, one of them through a third that does not want it."""
    demands = {"GPU 1": {"GPU 2": {"Chunk 0": 1e-6}, "GPU 4": {"Chunk 1": 1e-6}}}
    graph = read_te_ccl(written(tmp_path, [flow(0, 1, 1, 2, 0), flow(1, 1, 1, 2, 0), flow(1, 1, 2, 4, 1)], demands))
    assert (graph.collective, graph.num_chunks) == ("custom", 2)
    assert verify_graph(graph).ok
    schedule = schedule_of_graph(graph)
    held = schedule.collective.after(np.arange(3)[:, None], np.arange(2)[None, :])
    assert held.tolist() == [[False, False], [True, False], [False, True]]
    assert plan_of_graph(graph, opticcl.fabric("ideal:nodes=3"), 1000).verify().ok


@pytest.mark.parametrize("names", [("7-Flows", "8-Chunk paths"), ("6-Flows", "7-chunk paths")])
def test_demands_follow_from_paths(tmp_path, names):
    """Where the demands are not listed, and where the sections are numbered otherwise."""
    paths = {f"Demand at {d} for chunk 0 from {s} met by epoch 9": [] for s in GPUS for d in GPUS if s != d}
    path = written(tmp_path, None, None, **dict(zip(names, (RING, paths), strict=True)))
    graph = read_te_ccl(path)
    assert graph.collective == "all_gather"
    assert verify_graph(graph).ok
    path = written(tmp_path, None, None, **dict(zip(names, (RING, {"Demand": []}), strict=True)))
    with pytest.raises(PlanFileError, match="8-Chunk paths: 'Demand' is none of the form"):
        read_te_ccl(path)


@pytest.mark.parametrize(
    ("chunks", "left_out", "gathers"),
    [
        ({1: 2, 2: 2}, 0, True),
        ({1: 1, 2: 1, 4: 1}, 0, True),
        ({1: 1, 2: 1, 4: 1}, 1, False),
        ({1: 3, 2: 1, 4: 2}, 0, False),
        ({1: 2, 2: 2, 3: 0, 4: 0}, 0, False),
        ({1: 2, 2: 1}, 0, False),
    ],
)
def test_what_is_an_all_gather(tmp_path, chunks, left_out, gathers):
    """All others want equally many chunks of each GPU."""
    demands = {
        f"GPU {s}": {f"GPU {d}": {f"Chunk {k}": 1e-6 for k in range(count)} for d in chunks if d != s}
        for s, count in chunks.items()
    }
    for _ in range(left_out):
        demands["GPU 1"].popitem()
    graph = read_te_ccl(written(tmp_path, [], demands))
    assert graph.collective == ("all_gather" if gathers else "custom")
    assert (graph.num_ranks, graph.num_chunks) == (len(chunks), sum(chunks.values()))


def test_gpus_and_chunks_are_those_of_demands_and_flows(tmp_path):
    """Whether they send, receive, or neither."""
    demands = {"GPU 1": {"GPU 2": {"Chunk 0": 1}}}
    alone = read_te_ccl(written(tmp_path, [], demands))
    assert (alone.num_ranks, alone.num_chunks, alone.num_cells) == (2, 1, 2)
    graph = read_te_ccl(written(tmp_path, [flow(3, 9, 6, 7, 0)], demands))
    assert (graph.num_ranks, graph.num_chunks) == (5, 2)
    assert graph.notes == ("ranks 0 to 4 are GPUs 1, 2, 6, 7, 9",)


def test_listed_demands_go_before_paths(tmp_path):
    """Paths are read where demands are not listed."""
    paths = {"Demand at 2 for chunk 0 from 1 met by epoch 9": []}
    assert read_te_ccl(written(tmp_path, **{"8-Chunk paths": paths})).collective == "all_gather"
    assert read_te_ccl(written(tmp_path, [], None, **{"8-Chunk paths": paths})).num_ranks == 2


def test_the_largest_file(tmp_path, monkeypatch):
    """Larger ones are refused unread."""
    path = written(tmp_path)
    monkeypatch.setattr(te_ccl, "MOST_BYTES", path.stat().st_size)
    assert read_te_ccl(path).num_ranks == 3
    monkeypatch.setattr(te_ccl, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(PlanFileError, match="is larger than 0 MiB"):
        read_te_ccl(path)


def test_redundant_flows_do_no_harm(tmp_path):
    """What is already there arrives in a cell that nothing reads."""
    graph = read_te_ccl(written(tmp_path, [*RING, flow(0, 1, 1, 2, 5), flow(0, 1, 2, 1, 5)]))
    assert graph.notes[1] == "2 flows bring a chunk that is already there"
    assert verify_graph(graph).ok


@pytest.mark.parametrize(
    ("flows", "rule"),
    [
        (RING[:-1], "contribution_missing"),
        ([flow(0, 1, 1, 2, 3), *RING[1:]], "read_before_written"),
        ([flow(0, 4, 2, 4, 0), *RING], "read_before_written"),
    ],
)
def test_wrong_schedules_are_refused_by_rule(tmp_path, flows, rule):
    """A demand that is not met, and a chunk that leaves a GPU before it has come."""
    verdict = verify_graph(read_te_ccl(written(tmp_path, flows)))
    assert rule in {violation.rule for violation in verdict.violations} or "race" in str(verdict)
    assert not verdict.ok


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flows": [flow(0, 1, 1, 2, 0, " with volume 0.5")]}, "volume 0.5: parts of chunks are not supported"),
        ({"flows": [flow(0, 1, 1, 2, 0, " with volume ...")]}, "volume ..."),
        ({"flows": ["Chunk 0 went home"]}, "7-Flows: flow 0: 'Chunk 0 went home' is none of the form"),
        ({"flows": [3]}, "7-Flows: flow 0: '3'"),
        ({"flows": [flow(0, 1, 1, 1, 0)]}, "GPU 1 sends to itself"),
        ({"flows": None}, "7-Flows: is missing"),
        ({"demands": None}, "6-Demand_Met: is missing or empty"),
        ({"demands": {}}, "6-Demand_Met: is missing or empty"),
        ({"demands": [1]}, "6-Demand_Met: is missing or empty"),
        ({"demands": {"GPU 1": {}}, "flows": []}, "6-Demand_Met: is missing or empty"),
        ({"demands": {"GPU 1": {"GPU 2": {}}}, "flows": []}, "6-Demand_Met: is missing or empty"),
        ({"demands": {"GPU 1": 3}}, "6-Demand_Met: GPU 1: is not an object"),
        ({"demands": {"CPU\x1b 1": {"GPU 2": {"Chunk 0": 1}}}}, "is none of the form 'GPU 1'"),
        ({"demands": {"GPU 1": {"GPU 99999999999": {"Chunk 0": 1}}}}, "is none of the form 'GPU 1'"),
    ],
)
def test_malformed_files_are_refused(tmp_path, change, words):
    """One printable line."""
    with pytest.raises(PlanFileError) as caught:
        read_te_ccl(written(tmp_path, **change))
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("text", ["", "[", "[1]", "[" * 100_000, '{"1-Epoch_Duration":' + "[" * 100_000])
def test_what_is_no_schedule_is_refused(tmp_path, text):
    """No JSON, another value, and nesting without end."""
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(PlanFileError):
        read_te_ccl(tmp_path / "a.json")
    for path, said in ((tmp_path, "is a directory; give one"), (tmp_path / "absent.json", "there is no such file")):
        with pytest.raises(PlanFileError, match=said):
            read_te_ccl(path)


def test_far_numbers_allocate_nothing(tmp_path):
    """Numbers of chunks and GPUs are names."""
    far = 999_999_999
    graph = read_te_ccl(
        written(tmp_path, [flow(far, far, far, 1, far)], {f"GPU {far}": {"GPU 1": {f"Chunk {far}": 1}}})
    )
    assert (graph.num_ranks, graph.num_chunks, graph.num_cells) == (2, 1, 2)
    assert verify_graph(graph).ok
