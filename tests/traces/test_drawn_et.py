"""Drawn PyTorch execution traces of both schemas: the calls are those of the job, and those of a parser of the tests."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.drawn_job import SAID, WIDTHS, drawn_job
from tests.traces.independent import CANONICAL
from tests.traces.test_drawn_pytorch import files, found, wanted
from tests.traces.test_pytorch_et import call as node_of
from tests.traces.test_pytorch_et import load, old, text

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

C_TYPES = {"Float": "float", "BFloat16": "c10::BFloat16", "Long": "long int", "Byte": "unsigned char"}
TENSOR = [7, 8, 0, 9, 4, "cuda:0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that every example empties."""
    return tmp_path_factory.mktemp("et")


def stride_of(members):
    """Distance of the members of a group; 0 if they have none."""
    steps = {b - a for a, b in itertools.pairwise(members)}
    return steps.pop() if len(steps) == 1 else 0


def recorded(call, job, rank, schema, sequence):
    """The node of a call as one rank records it.

    Args:
        call, job, rank: of `drawn_job`.
        schema: "1.1" with attributes, "1.0" with columns beside each other.
        sequence: whether its number stands alone or as a pair; None: there is none.
    """
    members, word = job.groups[call.group], call.word(rank)
    sent, received = call.sides(rank)
    rank_or_root = rank if call.kind != "broadcast" else 0
    if call.kind == "transfer":
        rank_or_root = members.index(call.ranks[word == "send"])
    parts = [], []
    if call.kind == "all_to_all":
        at = call.ranks.index(rank)
        parts = list(call.matrix[at]), [line[at] for line in call.matrix]
    number = {"alone": call.number, "pair": [call.number, call.kind == "transfer"], None: 0}[sequence]
    about = members[0], stride_of(members), len(members)
    values = [[TENSOR], number, [call.group, "d"], rank_or_root, SAID[word], *parts, *about]
    shapes, kind = [[[sent]]], [f"GenericList[Tensor({C_TYPES[call.dtype]})]"]
    out = [[[received]]]
    node = {"id": 3, "name": "record_param_comms"}
    if schema == "1.0":
        node |= {"inputs": values, "input_shapes": shapes, "input_types": kind}
        return {**node, "outputs": [[TENSOR]], "output_shapes": out, "output_types": kind}
    node["inputs"] = {"values": values, "shapes": shapes, "types": kind}
    node["outputs"] = {"values": [[TENSOR]], "shapes": out, "types": kind}
    known = {"collective_name": SAID[word], "dtype": call.dtype, "in_msg_nelems": sent, "out_msg_nelems": received}
    known |= {
        "in_split_size": str(parts[0]),
        "out_split_size": str(parts[1]),
        "pg_name": call.group,
        "pg_size": about[2],
    }
    known |= {"global_rank_start": about[0], "global_rank_stride": about[1]}
    return {**node, "attrs": [{"name": key, "type": "x", "value": value} for key, value in known.items()]}


def trace(job, rank, schema, sequence, listed, first=0, last=0):
    """The trace of one rank, without its first and last calls; the groups are listed, or known by first rank and stride."""
    groups = [{"pg_name": name, "ranks": list(map(str, ranks))} for name, ranks in job.groups.items()]
    groups[-1]["ranks"] = dict.fromkeys(groups[-1]["ranks"], 0)
    init = {"id": 1, "fw_parent": 0, "name": "## process_group:init ##"}
    init |= {"inputs": [json.dumps(groups)]} if schema == "1.0" else {"inputs": {"values": [json.dumps(groups)]}}
    mine = [recorded(call, job, rank, schema, sequence) for call in job.calls if rank in call.ranks]
    other = {"id": 2, "ctrl_deps": 1, "name": "aten::add", "inputs": {"values": []}, "attrs": []}
    nodes = [*[init] * listed, other, *mine[first : max(first, len(mine) - last)]]
    return json.dumps({"pid": 1, "nodes": nodes, "schema": f"{schema}.2-chakra.0.0.4", "time": {"a": [1]}})


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from(["1.0", "1.1"]), st.sampled_from([None, "alone", "pair"]), st.booleans())
def test_a_file_a_rank(folder, seed, schema, sequence, listed):
    """Calls, bytes, ranks and parts of all_to_alls."""
    job = drawn_job(seed)
    if not all(any(rank in call.ranks for call in job.calls) for rank in range(job.world)):
        return
    texts = {f"et.rank{rank}.json": trace(job, rank, schema, sequence, listed) for rank in range(job.world)}
    read = load_workload(files(folder, texts), num_ranks=job.world)
    uneven = [call.parts for call in job.calls if call.matrix]
    assert sorted(call.matrix_bytes for call in read.calls if call.matrix_bytes) == sorted(uneven)
    assert found(read) == wanted(job)
    assert not any("counterpart" in note for note in read.notes)
    assert "no durations are recorded: the calls follow each other" in read.notes


@examples(40)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 3), min_size=16, max_size=16), st.sampled_from(["alone", "pair"]))
def test_recordings_that_begin_and_end_at_different_calls(folder, seed, cuts, sequence):
    """Calls of one number are one call, whatever each rank recorded before."""
    job = drawn_job(seed, transfers=False, uneven=False, repeated=bool(seed % 2))
    texts, due = {}, set()
    for rank in range(job.world):
        mine = [call for call in job.calls if rank in call.ranks]
        kept = mine[cuts[rank] : max(cuts[rank], len(mine) - cuts[rank + 8])]
        due |= {(call.group, call.number, call.kind, call.size, call.ranks) for call in kept}
        if kept:
            texts[f"et.rank{rank}.json"] = trace(job, rank, "1.1", sequence, True, cuts[rank], cuts[rank + 8])
    if len(texts) < 2:
        return
    read = load_workload(files(folder, texts), num_ranks=job.world)
    assert found(read) == sorted(one[2:] for one in due)


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from(["1.0", "1.1"]))
def test_a_trace_alone(folder, seed, schema):
    """Its calls in order, with their groups, as a parser of its own reads the attributes; the rank is in its nodes."""
    job = drawn_job(seed, transfers=False, uneven=False)
    rank = seed % job.world
    mine = [call for call in job.calls if rank in call.ranks]
    if not mine:
        return
    content = trace(job, rank, schema, "alone", True)
    read = load_workload(files(folder, {"x.json": content}) / "x.json")
    everyone = tuple(range(job.world))
    assert [(c.collective, c.size_bytes, c.ranks or everyone, c.group) for c in read.calls] == [
        (c.kind, c.size, c.ranks, c.group) for c in mine
    ]
    due = []
    for one in json.loads(content)["nodes"]:
        about = {a["name"]: a["value"] for a in one.get("attrs", ())}
        if about:
            size = max(about["in_msg_nelems"], about["out_msg_nelems"]) * WIDTHS[about["dtype"]]
            due.append((CANONICAL[about["collective_name"]], size))
    assert due in ([], [(c.collective, c.size_bytes) for c in read.calls])
    assert (read.num_ranks, f"nodes: {len(mine) + 2}") == (job.world, read.notes[0])
    job_read = load_job(folder / "x.json")
    assert job_read.num_calls == len(mine)


def attributes(node, **more):
    """The node with other attributes; those that are None are left out."""
    known = {one["name"]: one["value"] for one in node["attrs"]} | more
    node["attrs"] = [{"name": k, "value": v} for k, v in known.items() if v is not None]
    return node


def test_what_is_left_out_is_counted(tmp_path):
    """Nodes without a name, of what moves no data, and without elements of a known type."""
    nameless = {"name": "record_param_comms", "inputs": {"values": [5, "hello"]}}
    other = {"name": "record_param_comms", "inputs": 7, "attrs": 9}
    broken = {"name": "record_param_comms", "attrs": [7, {"name": "collective_name", "value": "allreduce"}]}
    columns = {"name": "record_param_comms", "inputs": {"values": 5, "shapes": {"a": 1}, "types": "x"}}
    beside = {"name": "record_param_comms", "inputs": ["allreduce"], "input_shapes": 5, "input_types": {}}
    nodes = [call_of("allreduce"), nameless, other, broken, columns, beside, call_of("wait"), call_of("wait")]
    read = load(tmp_path, text(*nodes, attributes(call_of("allreduce"), dtype="Float4_x2", in_msg_nelems=4)))
    assert [(c.collective, c.size_bytes) for c in read.calls] == [("all_reduce", 16)]
    assert {(one.what, one.calls, one.missing) for one in read.omitted} == {
        ("record_param_comms without a collective's name", 3, False),
        ("record_param_comms of wait, which moves no data itself", 2, False),
        ("record_param_comms of allreduce without elements of a known type", 3, True),
    }


def call_of(name, elements=4, **more):
    """A node of float32."""
    return attributes(node_of(name, elements, elements), **more)


def test_groups_by_first_rank_stride_and_size(tmp_path):
    """By the attributes, else by the last three numbers of the inputs; a list of ranks goes first."""
    about = {"pg_name": "9", "pg_size": 2}
    nodes = [
        call_of("allreduce", **about, global_rank_start=1, global_rank_stride=2),
        call_of("allreduce", **about, global_rank_start=0, global_rank_stride=0),
        call_of("allreduce", **about, pg_ranks="[2, 3]", global_rank_start=0, global_rank_stride=1),
        call_of("allreduce", pg_name=None, pg_size=None),
        call_of("allreduce", pg_name="7", pg_size=2**21, global_rank_start=0, global_rank_stride=1),
    ]
    nodes.append(call_of("allreduce", pg_name="9", pg_size=None))
    nodes[5]["inputs"]["values"] = ["allreduce", 0, 3, 2]
    nodes[3]["inputs"]["values"][-3:] = [0, 3, 2]
    nodes[3]["inputs"]["values"][2] = ["0"]
    (tmp_path / "rank1.json").write_text(text(*nodes[:4]))
    (tmp_path / "rank3.json").write_text(text(nodes[5]))
    assert load_workload(tmp_path / "rank3.json", num_ranks=4).calls[0].ranks == (0, 3)
    read = load_workload(tmp_path / "rank1.json", num_ranks=4)
    assert [(c.group, c.ranks) for c in read.calls] == [("9", (1, 3)), ("9", (0, 1)), ("9", (2, 3)), ("0", (0, 3))]
    (tmp_path / "rank1.json").write_text(text(nodes[4]))
    with pytest.raises(WorkloadError, match="has 1,048,576 ranks"):
        load_workload(tmp_path / "rank1.json", num_ranks=4)


@pytest.mark.parametrize("tail", [[], [2], [-2], [-5, 1, 2], [0, -1, 2], [0, 1, -2]])
@pytest.mark.parametrize("known", ["start", "stride", "size"])
def test_groups_that_are_not_whole(tmp_path, tail, known):
    """Without a first rank, a stride or a size, whether among the attributes or behind the name, no ranks are known."""
    about = {"start": ("global_rank_start", 1), "stride": ("global_rank_stride", 2), "size": ("pg_size", 2)}
    node = call_of(
        "allreduce", pg_name="7", **{"pg_size": None, **{name: n for key, (name, n) in about.items() if key != known}}
    )
    node["inputs"]["values"][-5:] = [[], [], *tail]
    (tmp_path / "rank1.json").write_text(text(node))
    (call,) = load_workload(tmp_path / "rank1.json", num_ranks=8).calls
    size = {"size": next((n for n in tail[-1:] if n > 0), 0)}.get(known, 2)
    start = {"start": tail[0] if len(tail) == 3 else -1}.get(known, 1)
    stride = {"stride": tail[1] if len(tail) == 3 else 0}.get(known, 2)
    whole = start >= 0 and stride > 0 and size
    assert (call.group_source == "recorded") == bool(whole)
    assert not whole or call.ranks == tuple(range(start, start + stride * size, stride))


def test_groups_in_other_forms(tmp_path):
    """Lists of numbers and of texts, and keys of an object; values that are none are passed over."""
    groups = [{"pg_name": "a", "ranks": [0, 1]}, {"pg_name": "b", "ranks": {"0": 0, "2": 1}}, 7, {"pg_name": 5}]
    groups += [{"pg_name": "c", "ranks": ["0", "x"]}, {"pg_name": "d", "ranks": 4}, {"pg_name": "e", "ranks": ["1", 2]}]
    values = [json.dumps(groups), "{", "[" * 100_000, "5", 7, json.dumps([{"pg_name": "f", "ranks": [1, 3]}])]
    init = {"name": "## process_group:init ##", "inputs": {"values": values}}
    nodes = [
        call_of("allreduce", pg_name=name, pg_size=2, global_rank_start=0, global_rank_stride=0) for name in "abef"
    ]
    other = {"name": "other", "inputs": {"values": [json.dumps([{"pg_name": "a", "ranks": [2, 3]}])]}}
    (tmp_path / "et.json").write_text(json.dumps({"schema": "1.1.1", "nodes": [init, *nodes, other]}))
    read = load_workload(tmp_path / "et.json", num_ranks=4)
    assert read.source == "PyTorch execution trace et.json, schema 1.1.1"
    assert [(c.group, c.ranks, c.group_source) for c in read.calls] == [
        ("a", (0, 1), "process_group:init"),
        ("b", (0, 2), "process_group:init"),
        ("e", (1, 2), "process_group:init"),
        ("f", (1, 3), "process_group:init"),
    ]
    assert "process groups without a list of ranks: 2 of 6" in read.notes


def test_the_rank_of_a_trace(tmp_path):
    """Of the last node that has it; not of a broadcast's root or a transfer's other end; else of the name of the file."""
    transfer = call_of("send", 6)
    transfer["inputs"]["values"][3] = 3
    nameless, other = {"name": "record_param_comms"}, call_of("allreduce")
    other["inputs"]["values"][3] = "x"
    begins = {**call_of("allreduce"), "inputs": {"values": ["allreduce", 0, 1, 3]}}
    second = {**call_of("allreduce"), "inputs": {"values": [1, "allreduce", 0, 1, 4]}}
    for nodes, rank in (
        ([call_of("broadcast"), transfer], 2),
        ([nameless, call_of("wait"), other, begins, transfer], 2),
        ([second, transfer], 1),
        ([call_of("broadcast"), call_of("allreduce"), transfer], 1),
    ):
        (tmp_path / "et.rank2.json").write_text(text(*nodes))
        read = load_workload(tmp_path / "et.rank2.json")
        assert read.calls[-1].ranks == (rank, 3)
    for at, ends in ((-1, (2, -1)), ("x", (2, -1)), (2**31, (2, -1)), (0, (2, 0))):
        transfer["inputs"]["values"][3] = at
        (tmp_path / "et.rank2.json").write_text(text(transfer))
        assert load_workload(tmp_path / "et.rank2.json", num_ranks=4).calls[0].ranks == ends
    first = {**transfer, "inputs": {"values": ["send", [], [], 0, 1, 3], "shapes": [], "types": []}}
    (tmp_path / "et.rank2.json").write_text(text(first))
    assert load_workload(tmp_path / "et.rank2.json", num_ranks=4).calls[0].ranks == (2, -1)
    for end, ranks, notes in ((3, (2, 3), 1), ("x", (2, -1), 0)):
        first["inputs"]["values"] = [end, "send"]
        (tmp_path / "et.rank2.json").write_text(json.dumps({"schema": "1.1.1", "nodes": [first]}))
        read = load_workload(tmp_path / "et.rank2.json", num_ranks=4)
        assert read.calls[0].ranks == ranks
        assert sum(note.startswith("ends of 1 transfer count within a group") for note in read.notes) == notes


def test_the_name_among_the_inputs(tmp_path):
    """A text that is the collective's name, the last of several; without attributes the first that is one of c10d."""
    node = call_of("allreduce")
    node["inputs"]["values"] = [[TENSOR], 3, ["0", "broadcast"], "broadcast", 1, "allreduce", [], [], 0, 1, 4]
    node["inputs"]["values"][4] = 3
    (tmp_path / "et.json").write_text(text(node, call_of("recv", 2)))
    assert load_workload(tmp_path / "et.json").calls[1].ranks == (1, 3)
    second = old("allreduce", [3])
    second["inputs"] = [[TENSOR], 3, ["0", "gather"], "hello", 2, "allreduce", "gather", [], 0, 1, 4]
    second["input_shapes"] = [[[3]]]
    second["input_types"] = ["GenericList[Tensor(float)]"]
    (tmp_path / "et.json").write_text(text(second, schema="1.0.2"))
    (found_,) = load_workload(tmp_path / "et.json").calls
    assert (found_.collective, found_.size_bytes) == ("all_reduce", 12)


def test_parts_of_an_all_to_all_that_do_not_fit(tmp_path):
    """A note for each side; lists among the inputs count where attributes have none."""
    bad = call_of("all_to_allv", 6, in_split_size="[1, 2, 3, 1]", out_split_size="[1, 5]")
    (tmp_path / "et.rank0.json").write_text(text(call_of("allreduce"), bad))
    notes = load_workload(tmp_path / "et.rank0.json").notes
    assert "left out: 1 in split sizes that do not fit, not used: the list has 7 rows in all for 6 elements" in notes
    assert "left out: 1 out split sizes that do not fit, not used: the list has 2 parts for 4 ranks" in notes
    nodes = []
    for rank, (sent, received) in enumerate((([1, 3], [1, 2]), ([2, 0], [3, 0]))):
        node = call_of("all_to_allv", 0, in_msg_nelems=sum(sent) * 2, out_msg_nelems=sum(received) * 2, pg_size=2)
        node["inputs"]["values"] = [[TENSOR], rank * 0 + 5, ["0", "d"], rank, "all_to_allv", sent, received, 0, 1, 2]
        nodes.append(node)
        (tmp_path / f"et.rank{rank}.json").write_text(text(node).replace("[0, 1, 2, 3]", "[0, 1]"))
    (read,) = load_workload([tmp_path / f"et.rank{rank}.json" for rank in range(2)]).calls
    assert read.matrix_bytes == ((8, 24), (16, 0))
    bare = call_of("all_to_allv", 6)
    bare = attributes(bare, pg_name=None)
    bare["inputs"]["values"] = []
    assert [(c.size_bytes, c.matrix_bytes) for c in load(tmp_path, text(bare)).calls] == [(24, ())]
    one_side = call_of("all_to_allv", 6, out_msg_nelems=None)
    assert load(tmp_path, text(one_side)).calls[0].size_bytes == 24
    uneven = call_of("all_to_allv", 4, pg_size=2, pg_ranks="[0, 1]", in_split_size="[3, 1]", out_split_size="[1, 3]")
    uneven["inputs"]["values"][3] = 0
    assert load(tmp_path, text(uneven)).calls[0].size_bytes == 3 * 4 * 2
    chars = old("all_to_allv", [3], "Tensor(signed char)")
    chars["inputs"][5:7] = [[1, 2, 0, 0], [2, 1, 0, 0]]
    assert not any("split sizes" in note for note in load(tmp_path, text(chars, schema="1.0.2")).notes)


def test_ranks_without_numbers_that_disagree(tmp_path):
    """Calls without a number in the sequence are matched by their place, or by collective and size, which a note says."""
    for rank, names in enumerate((["allreduce", "broadcast"], ["broadcast"])):
        nodes = []
        for name in names:
            node = call_of(name)
            node["inputs"]["values"][1] = (("x", []), ("x",))[rank][len(nodes)]
            nodes.append(node)
        (tmp_path / f"et.rank{rank}.json").write_text(text(*nodes).replace("[0, 1, 2, 3]", "[0, 1]"))
    read = load_workload([tmp_path / f"et.rank{rank}.json" for rank in range(2)])
    assert [c.collective for c in read.calls] == ["all_reduce", "broadcast"]
    assert any(
        "disagree on the calls of group '0' (1 to 2 calls): matched by collective" in note for note in read.notes
    )
