"""Number of ranks, members of groups and sizes: one model for all formats, said in notes, contradictions refused."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.independent import chakra_nodes
from tests.traces.test_chakra import SEND, attribute, coll, node, trace
from tests.traces.test_kineto import event, record, text

from opticcl.errors import ParameterError, WorkloadError
from opticcl.traces import load_job, load_workload, sidecar
from opticcl.traces.ranks import rank_count, rank_model, workload_from
from opticcl.traces.reader import ReadOptions, TraceReader
from opticcl.traces.recording import GroupEnds, RankCall, RankTrace
from opticcl.traces.sidecar import add_groups_beside, is_group_list, rank_in_name

LLAMA = "chakra/llama-dp2-tp4-pp2"


def one(**more):
    """A trace of one all_reduce."""
    return RankTrace("job", "a test", "rank0.et", [RankCall("call", "all_reduce", 8, **more.pop("call", {}))], **more)


# --- the number of ranks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("traces", "given", "value", "source"),
    [
        ([one()], 0, 0, ""),
        ([one()], 6, 6, "the given number"),
        ([one(rank=3)], 0, 0, ""),
        ([one(rank=3)], 8, 8, "the given number"),
        ([one(world_size=8, world_source="world_size")], 0, 8, "world_size of rank0.et"),
        ([one(groups={"a": (2, 3), "b": (0, 1)}, groups_source="w.json")], 0, 4, "the groups in w.json"),
        ([one(groups={"a": (0, 1, 2)})], 0, 3, "process group 'a' of rank0.et"),
        ([one(groups={"a": (1, 2)})], 0, 0, ""),
        ([one(call={"ranks": (0, 1), "group": "dp"})], 0, 2, "process group 'dp' of rank0.et"),
        ([one(call={"ranks": (0, 1)}, rank=5)], 0, 0, ""),
        ([one(rank=1), one(rank=0)], 0, 2, "the number of files"),
        ([one(rank=1), one(rank=2)], 0, 0, ""),
        ([one(), one()], 0, 0, ""),
        ([one(rank=1), one(rank=0, call={"ranks": (0, 2)})], 0, 0, ""),
        ([one(rank=1), one(rank=0, call={"ranks": (0, 9)})], 0, 0, ""),
        ([one(call={"ranks": (4, 2)}, whole_job=True)], 0, 5, "the ranks that occur"),
    ],
)
def test_the_first_source_decides(traces, given, value, source):
    """The caller, the world size, a group without a gap from 0, the number of files; an occurring rank never."""
    found = rank_count(traces, given)
    assert (found.value, found.source) == (value, source)


@pytest.mark.parametrize(
    ("made", "at_least"),
    [
        (one(), 0),
        (one(rank=3), 4),
        (one(rank=3, call={"ranks": (2, 5)}), 6),
        (one(rank=3, call={"ranks": (6, 5)}), 7),
        (one(rank=7, call={"ranks": (2, 5)}), 8),
        (one(call={"group_size": 8}), 8),
        (one(groups={"a": (2, 5), "b": (1, 4)}), 6),
    ],
)
def test_ranks_that_occur_are_a_lower_bound(made, at_least):
    """Of a trace, its groups and its calls, where the number is nowhere recorded."""
    assert rank_count([made], 0) == (0, "", at_least)


def test_ends_of_transfers_beside_a_list_of_groups(tmp_path):
    """The rank in the name of the file is the end that a call does not record, and no other."""
    calls = [("send", -1, 1), ("recv", 1, -1), ("send", 0, 1), ("recv", 1, 0), ("recv", -1, -1), ("send", -1, -1)]
    kept = [("recv", -1, 3), ("send", 3, -1)]  # ends that are not those of the file
    for name, rank in (("w.2.et", 2), ("w.et", -1)):
        made = one()
        made.calls = [RankCall("x", kind, 8, ranks=(src, dst)) for kind, src, dst in calls + kept]
        add_groups_beside(made, tmp_path / name)
        assert [call.ranks for call in made.calls] == [
            (rank, 1),
            (1, rank),
            (0, 1),
            (1, 0),
            (-1, rank),
            (rank, -1),
            (-1, 3),
            (3, -1),
        ]


@pytest.mark.parametrize(
    ("rank", "groups", "ends", "options"),
    [
        (2, {"b": (0, 2, 5), "a": (0, 1, 2, 3)}, ("send", -1, 1), [(2, 1)]),
        (2, {"b": (2, 5), "a": (0, 1, 2, 3)}, ("send", -1, 1), [(2, 1), (2, 5)]),
        (2, {"b": (0, 5, 2), "a": (0, 1, 2, 3)}, ("recv", 1, -1), [(1, 2), (5, 2)]),
        (4, {"x": (4, 6), "y": (6, 4)}, ("send", 0, 1), [(4, 6)]),
        (0, {"x": (4, 6), "y": (0, 6)}, ("send", 0, 1), [(0, 6)]),
        (-1, {"x": (4, 6), "y": (0, 6)}, ("send", 0, 1), [(4, 6), (0, 6)]),
        (-1, {"x": (4, 6)}, ("send", -1, -1), [(-1, -1)]),
        (0, {"z": (0, 3), "y": (0, 1, 2), "x": (0, 1, 5)}, ("send", 0, 1), [(0, 1), (0, 3)]),
    ],
)
def test_ends_that_count_within_a_group(rank, groups, ends, options):
    """Of the groups that have both numbers and the rank at its own; that of all ranks goes first, others are kept."""
    kind, src, dst = ends
    made = one(rank=rank, groups=groups)
    made.calls = [RankCall("x", kind, 8, ends=GroupEnds(src, dst))]
    rank_model([made], 8)
    (call,) = made.calls
    assert (call.ranks, list(call.options)) == (options[0], options if len(options) > 1 else [])
    assert sum("ends of 1 transfer count within a group" in note for note in made.after) == (len(options) > 1)


def test_a_number_of_ranks_that_is_not_recorded():
    """What occurs is said."""
    for made, said in ((one(rank=3), ["ranks: the number is not recorded, at least 4"]), (one(), [])):
        assert [note for note in workload_from(made).notes if note.startswith("ranks")] == said


def test_groups_beside_a_trace_without_a_rank_in_its_name(tmp_path):
    """The groups count, and the rank is unknown."""
    (tmp_path / "w.json").write_text('{"tp": [0, 1]}')
    made = one(call={"group": "tp"})
    add_groups_beside(made, tmp_path / "w.et")
    assert (made.groups, made.rank) == ({"tp": (0, 1)}, -1)
    (tmp_path / "w.json").write_text('{"tp": [0, 1], "dp": [1, 3]}')
    made.calls = [RankCall("a", "all_reduce", 8, group=name) for name in ("tp", "dp")]
    add_groups_beside(made, tmp_path / "w.et")
    assert made.rank == 1


@pytest.mark.parametrize(
    ("content", "is_list"),
    [
        (b'{"a": [0, 1], "b": []}', True),
        (b'{"a": [0, 1]', False),
        (b'{"a": []}', False),
        (b'{"a": [0, "x"]}', False),
        (b'{"a": [0], "b": ' + b"[" * 100_000, False),
        (b'{"a": [0], "\xff": [1]}', False),
        (b'{"a": [0], "b": [1, 2]}' + b" " * 60, False),
    ],
)
def test_what_is_a_list_of_groups(tmp_path, monkeypatch, content, is_list):
    """Names of groups with ranks, one of them at least, in a file that is not larger than such lists are."""
    monkeypatch.setattr(sidecar, "MAX_BYTES", 80 if b"[[" not in content else 2**20)
    (tmp_path / "a.json").write_bytes(content)
    assert is_group_list(tmp_path / "a.json") == is_list


def test_what_stands_beside_a_trace(tmp_path):
    """The list of its whole name counts; folders, files of other names, empty lists and the trace itself are no lists."""
    (tmp_path / "w.0.et").write_bytes(trace(coll(1, 8, 0, attribute("pg_name", "tp"))))
    (tmp_path / "groups.txt").write_text('{"tp": [0, 1]}')
    (tmp_path / "empty.json").write_text('{"tp": []}')
    (tmp_path / "folder.json").mkdir()
    read = load_workload(tmp_path / "w.0.et", num_ranks=4)
    assert read.calls[0].group_source == "assumed: all ranks"
    assert not any(note.startswith("ignored") for note in read.notes)
    (tmp_path / "w.0.json").write_text('{"tp": [0, 3]}')
    assert load_workload(tmp_path / "w.0.et").calls[0].ranks == (0, 3)
    (tmp_path / "w.0.json").write_text('{"dp": [0, 3]}')
    (tmp_path / "x.json").write_text('{"tp": [0, 2]}')
    assert load_workload(tmp_path / "w.0.et", num_ranks=4).calls[0].group_source == "assumed: all ranks"
    made = one(call={"group": "tp"})
    for name in ("w.0.json", "x.json"):
        (tmp_path / name).unlink()
    (tmp_path / "t.json").write_text('{"tp": [0, 1]}')
    add_groups_beside(made, tmp_path / "t.json")
    assert (made.groups, made.after) == ({}, [])


@pytest.mark.parametrize(
    ("traces", "given", "sources"),
    [
        ([one(rank=9)], 8, ("the given number is 8 ranks", "the trace is of rank 9; give 10 or more")),
        ([one(call={"ranks": (0, 9)})], 8, ("the given number is 8 ranks", "a group of 'call' has rank 9")),
        ([one(groups={"tp": (0, 9)})], 8, ("the given number is 8 ranks", "group 'tp' has rank 9")),
        ([one(world_size=4, world_source="world_size", rank=4)], 0, ("world_size of rank0.et is 4 ranks", "rank 4")),
        (
            [one(world_size=4, world_source="world_size")],
            8,
            ("the given number is 8 ranks", "world_size of rank0.et is 4"),
        ),
        (
            [one(world_size=4, world_source="world_size"), one(world_size=8, world_source="world_size")],
            0,
            ("world_size of rank0.et is 4 ranks", "world_size of rank0.et is 8"),
        ),
    ],
)
def test_contradictions_are_refused_with_both_sources(traces, given, sources):
    """One line."""
    with pytest.raises(WorkloadError) as caught:
        rank_count(traces, given)
    assert all(source in str(caught.value) for source in sources)
    assert str(caught.value).isprintable()


@examples(100)
@given(
    rank=st.integers(-1, 20),
    world=st.integers(0, 20),
    members=st.lists(st.integers(0, 20), unique=True, max_size=5),
    given=st.integers(0, 20),
)
def test_the_number_is_never_below_what_is_given_or_occurs(rank, world, members, given):
    """Whatever the file has: the given number, no rank beyond it, or a refusal."""
    made = one(rank=rank, world_size=world, world_source="world", call={"ranks": tuple(members)} if members else {})
    try:
        found = rank_count([made], given)
    except WorkloadError:
        assert world or given
        return
    assert found.value in ((given,) if given else (world,) if world else range(21))
    if found.value:
        assert found.value > max([rank, *members])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_ranks": -1}, "num_ranks=-1 is negative; try 0: as recorded"),
        ({"clock_hz": 0.0}, "clock_hz: 0.0 is not a clock rate"),
        ({"clock_hz": float("inf")}, "clock_hz: inf is not a clock rate"),
        ({"clock_hz": "1e9"}, "clock_hz: '1e9' is not a clock rate"),
        ({"dialect": "other"}, "dialect: 'other' is not astra or simai"),
        ({"num_ranks": 0, "clock_hz": 0.5, "dialect": "astra"}, ""),
        ({"dialect": "simai"}, ""),
    ],
)
def test_what_the_caller_adds(options, said):
    """Numbers that a job has, and dialects that there are."""
    if not said:
        made = ReadOptions(**options)
        assert {name: getattr(made, name) for name in options} == options
        return
    with pytest.raises(ParameterError) as caught:
        ReadOptions(**options)
    assert said in str(caught.value)


def test_a_reader_reads():
    """One rank or several."""
    for name, value in (
        ("read", lambda self, path, options, tasks: one()),
        ("read_ranks", lambda self, *a, **b: [one()]),
    ):
        reader = type("Mine", (TraceReader,), {name: value})()
        assert reader.read(None, ReadOptions(), tasks=False).name == "job"
        assert [made.name for made in reader.read_ranks(None, ReadOptions(), tasks=False)] == ["job"]
    with pytest.raises(TypeError, match="Mine implements neither read nor read_ranks"):
        type("Mine", (TraceReader,), {})


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_group_that_is_nowhere_recorded_is_assumed_and_said_so(tmp_path):
    """`pg_name` alone: all ranks, in a note and in the group of the job."""
    (tmp_path / "a.et").write_bytes(trace(coll(1, 8, 0, attribute("pg_name", "7"))))
    job = load_job(tmp_path / "a.et", num_ranks=4)
    assert job.groups["7"].source.startswith("assumed")
    assert any("groups assumed: 1 of 1 calls of group '7': taken to be all ranks" in note for note in job.notes)


def test_groups_beside_the_trace(tmp_path):
    """`w.json` beside `w.5.et` gives the members of the groups, the rank of the trace and its transfers."""
    (tmp_path / "w.json").write_text(
        json.dumps({"tp": [4, 5], "dp": [1, 5, 9], "other": [0, 1, 2, 3, 6, 7, 8, 10, 11]})
    )
    ends = [attribute("comm_size", 16), attribute("comm_dst", 1, 7)]
    calls = [coll(1, 8, 2, attribute("pg_name", "tp")), coll(2, 8, 0, attribute("pg_name", "dp")), node(3, SEND, *ends)]
    (tmp_path / "w.5.et").write_bytes(trace(*calls))
    read = load_workload(tmp_path / "w.5.et")
    assert [(c.ranks, c.size_bytes, c.group_source) for c in read.calls] == [
        ((4, 5), 16, "w.json"),
        ((1, 5, 9), 8, "w.json"),
        ((5, 1), 16, "recorded"),
    ]
    assert (read.num_ranks, read.ranks_source) == (12, "the groups in w.json")


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 5}', '{"a": ["x"]}', '{"traceEvents": []}', ""])
def test_a_file_beside_it_of_another_form_is_ignored_and_said_so(tmp_path, content):
    """A note, no refusal."""
    (tmp_path / "w.json").write_text(content)
    (tmp_path / "w.0.et").write_bytes(trace(coll(1, 8)))
    assert any(note.startswith("ignored: w.json") for note in load_workload(tmp_path / "w.0.et").notes)


@pytest.mark.parametrize("name", ["comm_group.json", "groups of job.JSON", "a.json"])
def test_a_list_of_groups_is_known_by_its_content(tmp_path, name):
    """In a directory, for one file, by a pattern and named beside the traces; other JSON beside it is no list."""
    groups = {"tp": [0, 2], "dp": [0, 1, 2, 3]}
    (tmp_path / name).write_text(json.dumps(groups))
    (tmp_path / "notes.json").write_text('{"tp": "[0, 1]"}')
    (tmp_path / "other.json").write_text('{"pp": [0, 3]}')
    for rank in range(4):
        calls = [coll(1, 8, 2, attribute("pg_name", "tp"))] if rank in groups["tp"] else []
        (tmp_path / f"w.{rank}.et").write_bytes(trace(*calls, coll(2, 8, 0, attribute("pg_name", "dp"))))
    files = [tmp_path / f"w.{rank}.et" for rank in range(4)]
    for paths in ([*files, tmp_path / name], [tmp_path / name, *files], [tmp_path / "w.*"]):
        read = load_workload(paths)
        assert [(c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
            ("all_gather", 16, (0, 2)),
            ("all_reduce", 8, (0, 1, 2, 3)),
        ]
    alone = load_workload(files[2])
    assert [(c.ranks, c.group_source) for c in alone.calls] == [((0, 2), name), ((0, 1, 2, 3), name)]
    assert alone.num_ranks == 4


def test_the_list_of_the_traces_name_goes_first(tmp_path):
    """Then the lists that have a called group; several that disagree are refused, equal ones are one."""
    (tmp_path / "w.0.et").write_bytes(trace(coll(1, 8, 0, attribute("pg_name", "tp"))))
    (tmp_path / "one.json").write_text('{"tp": [0, 1]}')
    (tmp_path / "two.json").write_text('{"tp": [0, 1, 2]}')
    with pytest.raises(WorkloadError, match=r"one.json and two.json beside it list different groups of the same names"):
        load_workload(tmp_path / "w.0.et")
    (tmp_path / "w.json").write_text('{"tp": [0, 3]}')
    assert load_workload(tmp_path / "w.0.et").calls[0].ranks == (0, 3)
    (tmp_path / "w.json").write_text("[]")
    (tmp_path / "two.json").write_text('{"tp": [0, 1]}')
    assert load_workload(tmp_path / "w.0.et").calls[0].ranks == (0, 1)


def test_a_list_of_groups_alone_is_no_trace(tmp_path):
    """It is named."""
    (tmp_path / "comm_group.json").write_text('{"0": [0, 1]}')
    with pytest.raises(WorkloadError, match=r"is a list of process groups, .* give the traces beside it"):
        load_workload(tmp_path / "comm_group.json")


def test_groups_without_a_common_rank_are_refused(tmp_path):
    """The trace of one rank calls in two groups that share none."""
    (tmp_path / "w.json").write_text('{"a": [0, 1], "b": [2, 3]}')
    (tmp_path / "w.0.et").write_bytes(
        trace(coll(1, 8, 0, attribute("pg_name", "a")), coll(2, 8, 0, attribute("pg_name", "b")))
    )
    with pytest.raises(WorkloadError, match=r"calls the groups 'a', 'b', which have no common rank in w.json"):
        load_workload(tmp_path / "w.0.et")


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"a": [-1]}, "w.json: group 'a' has rank -1, not 0 to 1,073,741,823"),
        ({"a": [0, 10**12]}, "w.json: group 'a' has rank 1,000,000,000,000"),
        ({"a": [0, 1, 0]}, "w.json: group 'a' has rank 0 twice"),
        ({"a": [1, 2]}, "w.0.et: its name says rank 0, but the groups that it calls, in w.json, do not all have it"),
        ({"a": [1, 2], "b": [0, 2]}, "w.0.et: its name says rank 0, .* are those of rank 2"),
    ],
)
def test_groups_that_cannot_be_are_refused(tmp_path, groups, said):
    """The group and the rank, or both sources of the rank."""
    (tmp_path / "w.json").write_text(json.dumps(groups))
    calls = [coll(number, 8, 0, attribute("pg_name", name)) for number, name in enumerate(groups, 1)]
    (tmp_path / "w.0.et").write_bytes(trace(*calls))
    with pytest.raises(WorkloadError, match=said):
        load_workload(tmp_path / "w.0.et")


def test_groups_of_several_traces_are_those_who_call_them(tmp_path):
    """Without a list of groups: a group that some ranks call and others do not; what all call is of all."""
    for rank in range(4):
        name = f"pair {rank // 2}"
        calls = [coll(1, 8, 2, attribute("pg_name", name)), coll(2, 8, 0, attribute("pg_name", "all"))]
        (tmp_path / f"w.{rank}.et").write_bytes(trace(*calls))
    read = load_workload(tmp_path)
    assert [(c.collective, c.size_bytes, c.ranks) for c in read.calls] == [
        ("all_gather", 16, (0, 1)),
        ("all_gather", 16, (2, 3)),
        ("all_reduce", 8, ()),
    ]
    assert any("taken to be the ranks whose traces call it" in note for note in read.notes)
    assert not any(note.startswith("without a counterpart") for note in read.notes)


def test_the_llama_files_without_their_groups_are_the_same_job(tmp_path):
    """The ranks that call a group are its members."""
    folder = shared_file(LLAMA)
    for path in folder.glob("w.*.et"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    ours, right = load_workload(tmp_path), load_workload(folder)
    assert [(c.collective, c.size_bytes, c.ranks) for c in ours.calls] == [
        (c.collective, c.size_bytes, c.ranks) for c in right.calls
    ]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("w.12.et", 12),
        ("rank3.et.gz", 3),
        ("a-rank_7.json", 7),
        ("worker2_step_12.169.pt.trace.json", 2),
        ("vgg_16.et", -1),
    ],
)
def test_ranks_in_names(name, rank):
    """Only where the name says so."""
    assert rank_in_name(name) == rank


TRANSFORMER = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 1 0 checkpoint_initiates: 1 1
2
a -1 10 ALLGATHER 8 20 NONE 0 30 ALLREDUCE 100 1
b -1 11 ALLREDUCE 16 21 NONE 0 31 REDUCESCATTER 200 1
"""


def test_groups_of_the_first_line_of_a_layer_file(tmp_path):
    """Blocks of 4 for activations, every 4th rank for gradients; the first layer is repeated before the second's backward."""
    (tmp_path / "t.txt").write_text(TRANSFORMER)
    job = load_job(tmp_path / "t.txt", num_ranks=16, clock_hz=1e9)
    calls = [(t.name, t.size_bytes, tuple(job.groups[t.group].ranks)) for t in job.tasks if t.communicates]
    model, data = (0, 1, 2, 3), (0, 4, 8, 12)
    assert calls == [
        ("a forward", 32, model),
        ("b forward", 16, model),
        ("a forward", 32, model),
        ("b weight gradient", 200, data),
        ("a weight gradient", 100, data),
    ]
    assert job.compute_s == pytest.approx((10 + 11 + 10 + 21 + 31 + 20 + 30) * 1e-9)
    assert {group.source for group in job.groups.values()} == {"model_parallel_NPU_group: 4"}
    (tmp_path / "t.txt").write_text(TRANSFORMER.replace("checkpoints: 1 0", "checkpoints: 1 5"))
    with pytest.raises(WorkloadError, match="checkpoints names layer 5 of 2"):
        load_workload(tmp_path / "t.txt")


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "annotation", "dims", "size", "group"),
    [
        ("c10d::_allgather_base_", "nccl:_all_gather_base", [[640], [10]], 640, 64),
        ("c10d::_reduce_scatter_base_", "nccl:_reduce_scatter_base", [[10], [80]], 80, 8),
    ],
)
def test_shapes_of_the_operator_give_size_and_group(tmp_path, operator, annotation, dims, size, group):
    """Kineto before PyTorch 2.2: output over input is the size of the group, among 128 ranks a block assumed."""
    shapes = {"Input Dims": [*dims, []], "Input type": ["signed char", "signed char", ""]}
    inner = {"Input Dims": [dims[1]], "Input type": ["signed char"]}
    events = [event(operator, ts=10, dur=9, **shapes), event(annotation, "user_annotation", ts=12, dur=3, **inner)]
    (tmp_path / "a.json").write_text(text(*events, info={"rank": 70, "world_size": 128}))
    (call,) = load_workload(tmp_path / "a.json").calls
    first = 70 // group * group
    assert (call.size_bytes, call.ranks) == (size, tuple(range(first, first + group)))
    assert call.group_source == "assumed: a block of the recorded group size"


def test_an_uneven_all_to_all_is_the_larger_of_both_sides(tmp_path):
    """By record and by shapes."""
    (tmp_path / "a.json").write_text(text(record("all_to_allv", 10, 40)))
    assert load_workload(tmp_path / "a.json").total_bytes == 160
    dims = {"Input Dims": [[40], [10], []], "Input type": ["float", "float", ""]}
    inner = {"Input Dims": [[10]], "Input type": ["float"]}
    events = [
        event("c10d::alltoall_base_", ts=1, dur=9, **dims),
        event("nccl:all_to_all", "user_annotation", ts=2, dur=3, **inner),
    ]
    (tmp_path / "a.json").write_text(text(*events))
    read = load_workload(tmp_path / "a.json")
    assert read.total_bytes == 160
    said = "each taken as the larger of what the rank sends to others and receives from them"
    assert f"uneven all_to_all: 1, {said}" in read.notes


# --- real files -------------------------------------------------------------------------------------------------------

WHOLE_MESSAGES = {
    # What the generator means: collective, size of the group, whole message, calls in each file.
    ("all_reduce", 2, 3_145_728): 8,  # gradients of a layer over the data-parallel copies
    ("all_reduce", 2, 32_768_000): 1,  # gradients of an embedding over the copies
    ("all_reduce", 4, 32_768_000): 1,  # and over the tensor-parallel ranks
    ("all_gather", 4, 4 * 524_288): 48,  # activations: a share of 524,288 bytes from each of four ranks
    ("reduce_scatter", 4, 2_097_152): 32,  # activations: the whole message is recorded
    ("send_recv", 2, 524_288): 8,  # four micro-batches to the other stage, four back
}


@pytest.mark.parametrize("rank", range(16))
def test_every_llama_file_alone_gives_the_whole_job(rank):
    """16 ranks in groups of 2 and 4, its own rank in each, the generator's sizes, every communication node a call."""
    path = shared_file(f"{LLAMA}/w.{rank}.et")
    read = load_workload(path)
    assert (read.num_ranks, read.ranks_source) == (16, "the groups in w.json")
    groups = json.loads((path.parent / "w.json").read_text())
    assert all(list(call.ranks) == groups[call.group] for call in read.calls if call.group)
    assert all(rank in call.ranks for call in read.calls)
    assert Counter((c.collective, len(c.ranks), c.size_bytes) for c in read.calls) == WHOLE_MESSAGES
    recorded = [node["attributes"] for node in chakra_nodes(path) if node["type"] in (5, 6, 7)]
    shares = sum(
        3 * a["comm_size"] for a in recorded if a.get("comm_type") == 2
    )  # three more shares of each all_gather
    assert read.total_bytes == sum(a["comm_size"] for a in recorded) + shares
    job = load_job(path)
    assert (job.num_ranks, job.num_calls) == (16, len(recorded))
    assert {len(group.ranks) for group in job.groups.values()} == {2, 4}
    assert load_job(path, num_ranks=16).tasks == job.tasks
    with pytest.raises(WorkloadError, match=r"the given number is 8 ranks, but (group|the trace)"):
        load_job(path, num_ranks=8)


def test_the_timeline_of_128_ranks_gathers_in_groups_of_64():
    """2,147,483,648 bytes in two all_gathers, which only the operators' shapes tell."""
    read = load_workload(shared_file("kineto/timeline-rank0.json.gz"))
    gathers = [call for call in read.calls if call.collective == "all_gather"]
    assert sum(call.size_bytes for call in gathers) == 2_147_483_648
    assert {call.ranks for call in gathers} == {tuple(range(64))}
    assert read.num_ranks == 128


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"Process_Group_Ranks": "[0, 1]", "Group_size": 4}, "the group of 'allreduce' has the size 4, but 2 ranks"),
        (
            {"Process_Group_Ranks": "[0, 1, ...]", "Group_size": 64},
            "world_size .* is 4 ranks, but a group .* has 64 ranks",
        ),
    ],
)
@pytest.mark.parametrize("read", [load_workload, load_job])
def test_groups_that_contradict_the_trace_are_refused(tmp_path, more, said, read):
    """With both sources; no collective is left on ranks that there are not."""
    path = tmp_path / "a.json"
    path.write_text(text(record("allreduce", 10, ts=5, dur=5, **more), info={"rank": 0, "world_size": 4}))
    with pytest.raises(WorkloadError, match=said):
        read(path)


def test_groups_larger_than_the_job_are_refused(tmp_path):
    """Of ASTRA-sim's first line."""
    path = tmp_path / "a.txt"
    path.write_text("HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n1\na -1 1 ALLREDUCE 8 1 NONE 0 1 NONE 0 1\n")
    with pytest.raises(WorkloadError, match="the given number is 4 ranks, but model_parallel_NPU_group: 8 has 8 ranks"):
        load_workload(path, num_ranks=4)
    assert load_workload(path, num_ranks=16).calls[0].ranks == tuple(range(8))


def test_calls_of_other_ranks_are_counted(tmp_path):
    """A trace of rank 0 with a call of ranks 2 and 3."""
    path = tmp_path / "a.json"
    pair = {"Process_Group_Ranks": "[2, 3]", "Group_size": 2}
    path.write_text(text(record("allreduce", 10), record("allreduce", 10, **pair), info={"rank": 0, "world_size": 4}))
    note = "the trace is of rank 0, but 1 call of groups without it, such as 'allreduce' of ranks 2, 3"
    assert note in load_workload(path).notes
    assert note in load_job(path).notes
