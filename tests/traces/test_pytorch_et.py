"""PyTorch execution traces, of the schemas before and since attributes of communication."""

import gzip
import json

import pytest
from tests.optional import shared_file

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

GROUPS = '[{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}, {"pg_name": "7", "ranks": []}]'


def column(values, shapes, types):
    """Inputs or outputs of a node."""
    return {"values": values, "shapes": shapes, "types": types}


def call(name, elements, out, root=1, **known):
    """A record_param_comms node of schema 1.1."""
    attributes = {"collective_name": name, "dtype": "Float", "in_msg_nelems": elements, "out_msg_nelems": out}
    attributes |= {"pg_name": "0", "pg_size": 4, **known}
    return {
        "id": 5,
        "name": "record_param_comms",
        "inputs": column(
            [[[1, 2, 0, 8, 4, "cpu"]], 3, ["0", "default_pg"], root, name, [], [], 0, 1, 4], [[[8]]], ["x"]
        ),
        "outputs": column([], [], []),
        "attrs": [{"name": k, "type": "x", "value": v} for k, v in attributes.items()],
    }


def old(name, shape, type_="Tensor(float)"):
    """A record_param_comms node of schema 1.0.2: lists beside each other, no attributes."""
    return {
        "id": 5,
        "name": "record_param_comms",
        "inputs": [[1, 2, 0, 8, 4, "cpu"], 3, ["0", "default_pg"], 1, name, [], [], 0, 1, 4],
        "input_shapes": [shape],
        "input_types": [type_],
        "outputs": [],
        "output_shapes": [],
        "output_types": [],
    }


def text(*nodes, schema="1.1.1-chakra.0.0.4"):
    """A whole trace."""
    first = {"id": 1, "name": "## process_group:init ##", "inputs": column([GROUPS], [[]], ["String"])}
    return json.dumps({"schema": schema, "pid": 1, "nodes": [first, *nodes]}, indent=1)


def load(folder, content):
    """What the reader makes of a file with that content."""
    (folder / "et.json").write_text(content)
    return load_workload(folder / "et.json")


def test_the_real_trace_has_the_calls_of_its_recording():
    """The same job, recorded by both observers; an independent count of the nodes agrees."""
    path = shared_file("pytorch-et/resnet-2gpu.json.gz")
    found = load_workload(path)
    profiled = load_workload(shared_file("kineto/nccl-data.json.gz"))
    nodes = json.loads(gzip.decompress(path.read_bytes()))["nodes"]
    wanted = [{a["name"]: a["value"] for a in n.get("attrs", ())} for n in nodes if n["name"] == "record_param_comms"]
    wanted = [one for one in wanted if one["collective_name"] != "wait"]
    width = {"Float": 4, "Int": 4, "Long": 8, "Byte": 1, "Char": 1}
    sizes = sorted(width[one["dtype"]] * one["in_msg_nelems"] for one in wanted)
    assert sorted(c.size_bytes for c in found.calls) == sizes
    assert (len(found.calls), found.total_bytes) == (21, 307_323_096)
    assert sorted(c.size_bytes for c in profiled.calls) == sizes
    assert {c.collective for c in found.calls} == {"all_reduce", "broadcast"}


def test_names_sizes_and_groups(tmp_path):
    """The bytes of all ranks of an all_gather, both sides of an all_to_all, the group by the list of the init node."""
    found = load(
        tmp_path,
        text(
            call("allreduce", 10, 10),
            call("_allgather_base", 10, 40),
            call("_reduce_scatter_base", 40, 10),
            call("all_to_allv", 6, 8, in_split_size="[1, 2, 3, 0]", out_split_size="[2, 2, 2, 2]"),
            call("wait", 0, 0),
        ),
    )
    assert [(c.collective, c.size_bytes) for c in found.calls[:3]] == [
        ("all_reduce", 40),
        ("all_gather", 160),
        ("reduce_scatter", 160),
    ]
    assert found.num_ranks == 4
    assert {c.group for c in found.calls} == {"0"}
    assert any("wait" in note for note in found.notes)
    assert any("process groups without a list of ranks: 1 of 2" in note for note in found.notes)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_transfer_begins_or_ends_at_the_rank_of_the_trace(tmp_path, rank):
    """Which the node of a collective says; that of a transfer has the other end in its place, a number within the group."""
    calls = [call("allreduce", 4, 4, root=rank), call("send", 6, 6, root=3), call("recv", 5, 5, root=3)]
    found = load(tmp_path, text(*calls))
    assert [(c.collective, c.size_bytes) for c in found.calls] == [
        ("all_reduce", 16),
        ("send_recv", 24),
        ("send_recv", 20),
    ]
    assert [tuple(c.ranks) for c in found.calls[1:]] == [(rank, 3), (3, rank)]


def test_the_schema_before_attributes(tmp_path):
    """Name, group and size stand among the inputs, the type among the types."""
    found = load(tmp_path, text(old("allreduce", [3, 5]), old("broadcast", [2], "Tensor(c10::Half)"), schema="1.0.2-x"))
    assert [(c.collective, c.size_bytes, len(c.ranks)) for c in found.calls] == [
        ("all_reduce", 60, 4),
        ("broadcast", 4, 4),
    ]
    assert load_job(tmp_path / "et.json").num_ranks == 4


@pytest.mark.parametrize(
    ("name", "sent", "received", "size"),
    [
        ("all_gather", [[3]], [[[3], [3]]], 24),
        ("reduce_scatter", [[[3], [3]]], [[3]], 24),
        ("all_gather", [[2, 2], []], [[[2, 2], [2, 2]], [[], []]], 40),
        ("allreduce", [[2, 2], [5]], [[2, 2], [5]], 36),
        ("allreduce", [[[[3]]]], [[3]], 12),
        ("allreduce", [[3]], [[[3], "x"]], 12),
    ],
)
def test_lists_of_tensors_and_groups_by_their_back_end(tmp_path, name, sent, received, size):
    """As PyTorch 2.1 writes them: the group by a number, its size as the only number behind the name."""

    def columns(shapes):
        words = ["Tensor(float)"]
        for _ in range(2):
            words.append(f"GenericList[{words[-1]}]")
        return {"values": [[]], "shapes": [shapes], "types": [words[-1]]}

    node = {"id": 5, "name": "record_param_comms", "inputs": columns(sent), "outputs": columns(received)}
    node["inputs"]["values"] += [12, 82149104, 1, name, [], [], 2]
    listed = [{"pg_name": "0", "backend_id": 5, "ranks": [], "group_size": 4, "group_count": 2}]
    listed += [{"pg_name": "1", "backend_id": 82149104, "ranks": ["1", "3"], "group_size": 2, "group_count": 2}]
    for known in (listed, listed[:1], []):
        first = {"id": 1, "name": "## process_group:init ##", "inputs": column([json.dumps(known)], [[]], ["String"])}
        content = {"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [first, node]}
        (tmp_path / "et.json").write_text(json.dumps(content))
        read = load_workload(tmp_path / "et.json")
        assert [(call.size_bytes, call.group) for call in read.calls] == [(size, "1" if len(known) == 2 else "")]
        assert read.num_ranks == (4 if known else 0)
        assert len(read.calls[0].ranks) == 2
        assert not any("without a list" in note for note in read.notes)
    assert read.calls[0].ranks == (0, 1)
    assert load_workload(tmp_path / "et.json", num_ranks=2).calls[0].group_source == "recorded group size"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema": "1.1.1-x", "nodes": [5]}', "a node that is not an object"),
        ('{"schema": "1.1.1-x", "pid": 3}', "there are no nodes"),
        ('{"schema": "1.1.1-x", "nodes": [', "character"),
        (text(call("allreduce", 2**62, 2**62)), "allreduce of this node"),
        (text(), "no collective with a size"),
        (text() + "5", "more text after the end of the trace"),
    ],
)
def test_damage_is_refused(tmp_path, content, said):
    """In one line."""
    with pytest.raises(WorkloadError, match=said) as caught:
        load(tmp_path, content)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", [None, [1], {"a": 1}, 5, True])
def test_attributes_with_another_name_do_not_count(tmp_path, name):
    """The others of the node do."""
    node = call("allreduce", 8, 8)
    node["attrs"].insert(0, {"name": name, "type": "x", "value": 3})
    assert load(tmp_path, text(node)).total_bytes == 32


def operator(id, name, tensors, *values):
    """An operator of collectives, with its tensors (lists of shapes or shapes) and what follows its process group."""

    def of(part, inner):
        nested = part and isinstance(part[0], list)
        return f"GenericList[{','.join(of(one, inner) for one in part)}]" if nested or not part else inner

    inputs = column(
        [*tensors, "<Object>", *values],
        [*tensors, [], *([] for _ in values)],
        [*(of(one, "Tensor(float)") for one in tensors), "Object", *("Int" for _ in values)],
    )
    return {
        "id": id,
        "name": f"c10d::{name}",
        "ctrl_deps": 2,
        "inputs": inputs,
        "outputs": column([], [], []),
        "attrs": [],
    }


def of_gloo(rank):
    """The operators of a rank of three, with the annotations of Gloo."""
    own, parts = [[10]], [[[10], [10], [10]]]
    rooted = ([parts, own], [own, parts]) if rank == 0 else ([[], own], [own, []])
    return [
        operator(10, "allreduce_", [own], False, -1),
        {"id": 11, "name": "gloo:all_reduce", "inputs": column([[1]], [[10]], ["Tensor(float)"]), "attrs": []},
        operator(12, "_allgather_base_", [[30], [10]], False, -1),
        operator(13, "_reduce_scatter_base_", [[10], [30]], "<Object>", False),
        operator(14, "alltoall_base_", [[3, 2], [3, 2]], [1, 1, 1], [1, 1, 1], False),
        operator(15, "gather_", rooted[0], 0, False),
        operator(16, "scatter_", rooted[1], 0, False),
        *([operator(17, "send", [own], 2, 7)] if rank == 1 else [operator(17, "recv_", [own], 1, 7)] * (rank == 2)),
        operator(18, "barrier", [[1]], [], False),
    ]


def test_a_trace_of_gloo(tmp_path):
    """Its calls are the operators, by their tensors; of a gather and a scatter only the root has the whole message."""
    for rank in range(3):
        (tmp_path / f"rank{rank}.json").write_text(text(*of_gloo(rank)).replace("[0, 1, 2, 3]", "[0, 1, 2]"))
    found = load_workload(tmp_path)
    assert sorted((c.collective, c.size_bytes) for c in found.calls) == [
        ("all_gather", 120),
        ("all_reduce", 40),
        ("all_to_all", 24),
        ("barrier", 0),
        ("gather", 120),
        ("reduce_scatter", 120),
        ("scatter", 120),
        ("send_recv", 40),
    ]
    assert [c.ranks for c in found.calls if c.is_transfer] == [(1, 2)]
    alone = load_workload(tmp_path / "rank1.json")
    assert "operators c10d:: without a record, as those of Gloo: 8" in alone.notes
    assert len(alone.calls) == 8


def test_operators_that_do_not_say_all(tmp_path):
    """Parts that do not fit are not used, and tensors of no known type are no call; both are counted."""
    odd = operator(14, "alltoall_base_", [[3, 2], [3, 2]], [1, 1, 5], [1, 1, 1], False)
    untyped = operator(15, "alltoall_base_", [[3, 2], [3, 2]], [1, 1, 1], [1, 1, 1], False)
    untyped["inputs"]["types"] = []
    notes = load(tmp_path, text(odd, untyped)).notes
    assert any(note.startswith("left out: 1 out split sizes that do not fit") for note in notes)
    assert "left out: 1 alltoall_base_ without shapes of a known type" in {note.replace("c10d::", "") for note in notes}


def test_elements_by_shapes_where_the_attributes_have_none(tmp_path):
    """The type alone is no size."""
    node = call("allreduce", None, None)
    node["inputs"] |= {"types": ["GenericList[Tensor(float)]"]}
    assert load(tmp_path, text(node)).total_bytes == 32


def test_operators_of_recorded_calls_are_no_second_calls(tmp_path):
    """Those of NCCL have a record within; a job may use both, and its calls are in the order of the file."""
    recorded = call("allreduce", 5, 5) | {"ctrl_deps": 20}
    found = load(tmp_path, text(*of_gloo(0)[:1], recorded, operator(20, "allreduce_", [[[5]]]), *of_gloo(0)[2:3]))
    assert [(c.collective, c.size_bytes) for c in found.calls] == [
        ("all_reduce", 40),
        ("all_reduce", 20),
        ("all_gather", 120),
    ]
