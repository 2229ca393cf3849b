"""Chakra traces as JSON: they say what the same trace says in protobuf."""

import json

import pytest
from tests.optional import shared_file
from tests.traces.independent import chakra_nodes
from tests.traces.test_chakra import attribute, coll, node, packed, trace
from tests.traces.test_drawn_chakra import COLL, Node
from tests.traces.test_drawn_chakra import as_json as drawn_json

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

TYPES = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]


def as_json(nodes, *, snake=False, listed=False, metadata=True, flat=False):
    """Nodes as the jsonizer prints them, or in another form of the same; flat: as the feeder reads them."""
    objects = [{"version": "0.0.4"}] if metadata else []
    if flat:
        keys = {"Id": "id", "Name": "name", "NodeType": "type", "data_deps": "needs", "runtime": "duration_us"}
        known = [{key: one[name] for key, name in keys.items()} for one in nodes]
        graph = [
            one
            | {
                key: bool(value) if key == "is_cpu_op" else value
                for key, value in attributes.items()
                if value is not None
            }
            for one, attributes in zip(known, (one["attributes"] for one in nodes), strict=True)
        ]
        return json.dumps({"schema": "json", "workload_graph": graph, "after": [{}]})
    for one in nodes:
        attributes = []
        for name, value in one["attributes"].items():
            if value is None:
                form = {}
            elif isinstance(value, str):
                form = {"stringVal": value}
            elif name == "is_cpu_op":
                form = {"boolVal": bool(value)}
            else:
                form = {"int64Val": str(value)}
            attributes.append({"name": name, **form})
        found = {"id": str(one["id"]), "name": one["name"], "type": TYPES[one["type"]] + "_NODE"}
        found |= {"dataDeps": [str(need) for need in one["needs"]], "durationMicros": str(one["duration_us"])}
        if snake:
            found["data_deps"], found["duration_micros"] = found.pop("dataDeps"), found.pop("durationMicros")
            attributes = [{k.replace("Val", "_val"): v for k, v in one.items()} for one in attributes]
        objects.append({**found, "attr": attributes})
    return json.dumps(objects) if listed else "\n".join(json.dumps(one, indent=2) for one in objects)


@pytest.mark.parametrize("form", [{}, {"snake": True}, {"listed": True}, {"metadata": False}, {"flat": True}], ids=str)
@pytest.mark.parametrize(
    "name", ["chakra/llama-dp2-tp4-pp2/w.0.et", pytest.param("chakra/resnet50-ddp.rank0.et", marks=pytest.mark.deep)]
)
def test_both_forms_of_a_real_trace_are_equal(tmp_path, name, form):
    """Calls and tasks, in every form that JSON takes; the nodes come from an independent parse."""
    source = shared_file(name)
    file = tmp_path / "job.json"
    file.write_text(as_json(chakra_nodes(source), **form))
    plain = tmp_path / "job.et"  # away from its sidecar
    plain.write_bytes(source.read_bytes())
    assert load_workload(file).calls == load_workload(plain).calls
    ours, theirs = load_job(file, num_ranks=16), load_job(plain, num_ranks=16)
    assert ours.tasks == theirs.tasks


def test_the_sidecar_counts_for_json_too(tmp_path):
    """The list of process groups is no trace, whether the traces are .et or .json."""
    message = trace(node(1, 4, duration_us=5), coll(2, 64, 0, attribute("pg_name", "3"), needs=packed(1)))
    (tmp_path / "w.0.et").write_bytes(message)
    nodes = chakra_nodes(tmp_path / "w.0.et")
    (tmp_path / "w.0.et").unlink()
    for rank in range(2):
        (tmp_path / f"w.{rank}.json").write_text(as_json(nodes))
    (tmp_path / "w.json").write_text('{"3": [0, 1]}')
    found = load_workload(tmp_path)
    assert (found.num_ranks, len(found.calls), found.calls[0].ranks) == (2, 1, (0, 1))


def test_the_form_that_the_feeder_reads(tmp_path):
    """Attributes are keys of the nodes: the same calls and tasks as of the same nodes in protobuf."""
    called = coll(2, 64, 0, attribute("pg_name", "3"), needs=packed(1))
    sent = node(4, 5, attribute("comm_size", 9), attribute("comm_src", 0), attribute("comm_dst", 1), name="s")
    (tmp_path / "a.et").write_bytes(trace(node(1, 4, duration_us=5), called, sent))
    (tmp_path / "b.json").write_text(as_json(chakra_nodes(tmp_path / "a.et"), flat=True))
    plain, flat = (load_workload(tmp_path / name, num_ranks=4) for name in ("a.et", "b.json"))
    assert [(call.collective, call.size_bytes, call.group) for call in flat.calls] == [
        ("all_reduce", 64, "3"),
        ("send_recv", 9, ""),
    ]
    assert (flat.calls, flat.compute_s, flat.omitted) == (plain.calls, plain.compute_s, plain.omitted)
    assert load_job(tmp_path / "b.json", num_ranks=4).tasks == load_job(tmp_path / "a.et", num_ranks=4).tasks


@pytest.mark.parametrize(
    "content",
    [
        '{"workload_graph": [{"NodeType": 7, "comm_type": 0, "comm_size": 8, "loss": 0.5, "more": [1]}]}',
        """{"type": "COMM_COLL_NODE", "attr": [{"name": "comm_type", "int64Val": 0}, {"name": "loss", "int64Val": 0.5},
        {"name": "comm_size", "int64Val": 8}]}""",
    ],
)
def test_attributes_that_do_not_count_may_be_anything(tmp_path, content):
    """Also a number that is not whole."""
    (tmp_path / "a.json").write_text(content)
    assert load_workload(tmp_path / "a.json").total_bytes == 8


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"version": "1"} {"type": "COMP_NODE", "id": "x"}', "id is 'x', not a whole number"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1, "attr": [{"int64Val": 1}]}', "an attribute without a name"),
        ('[{"type": "COMP_NODE", "id": 1}, 5]', "a node that is not an object"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1, "attr": [5]}', "an attribute without a name"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1, "attr": [[1, 2]]}', "an attribute without a name"),
        ('{"type": "COMP_NODE"} {"id": 1}', "a node without content"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1', "character"),
        ('{"type": "COMM_COLL_NODE", "id": true}', "not a whole number"),
        ('{"workload_graph": [{"NodeType": 7, "comm_size": 8.5}]}', "int64_val is '8.5', not a whole number"),
        ('{"workload_graph": [{"NodeType": 7}, 5]}', "a node that is not an object"),
        ('{"workload_graph": [{"NodeType": 7}]} {}', "more text after the end"),
    ],
)
def test_damage_is_refused(tmp_path, content, said):
    """In one line that names the place."""
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(WorkloadError, match=said) as caught:
        load_workload(tmp_path / "job.json")
    assert "character" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"name": "comm_size"', '"none": "comm_size"', "an attribute without a name"),
        ('"name": "comm_size"', '"name": 5', "an attribute without a name"),
        ('"int64Val": 8', '"int64Val": 8.5', "int64Val is '8.5', not a whole number"),
        ('"int64Val": 8', '"int64Val": "8x", "doc": 1', "int64Val is '8x', not a whole number"),
        ('"int64Val": 8', '"int64Val": [8]', r"int64Val is '\[8\]', not a whole number"),
        ('"id": 1', '"id": [[1]]', r"id is '\[1\]', not a whole number"),
        ('"dataDeps": []', '"dataDeps": [1, true]', "dataDeps is 'True', not a whole number"),
        ('"ctrlDeps": []', '"ctrlDeps": [{}]', "ctrlDeps is '{}', not a whole number"),
        ('"id": 1', '"id": 111111111111111111111', "id is '1{21}', not a whole number"),
    ],
)
def test_numbers_and_attributes_of_another_form(tmp_path, old, new, said):
    """One line with the place."""
    nodes = [Node(1, COLL, False, [], 0, 0, {"comm_type": 0, "comm_size": 8})]
    text = drawn_json(nodes, False, False, False)
    assert old in text
    (tmp_path / "a.json").write_text(text.replace(old, new))
    with pytest.raises(WorkloadError, match=f"character 21: {said}"):
        load_workload(tmp_path / "a.json")


def test_json_in_other_forms(tmp_path):
    """Types as numbers and in small letters, the last of several numbers, repeated fields, attributes that are none."""
    first = {"type": 7, "id": [3, 1], "name": "a", "attr": [{"name": "comm_size", "uint32Val": 8}]}
    first["attr"] += [{"name": "comm_type", "int32Val": "0"}, {"name": "pg_name", "stringVal": 7}]
    first["attr"] += [
        {"name": "is_cpu_op", "boolVal": False},
        {"name": "unused", "floatList": [1.5]},
        {"name": "comm_src"},
    ]
    second = {"id": 2, "type": "comp", "durationMicros": 5, "attr": [{"name": "is_cpu_op", "int32Val": 0, "doc": ""}]}
    second |= {"attr": "none", "dataDeps": 1, "data_deps": [1, 9]}
    third = {"id": 5, "type": -3, "durationMicros": []}
    fourth = {"id": -1, "type": "LATER_NODE"}
    (tmp_path / "a.json").write_text(" ".join(map(json.dumps, [first, second, third, fourth])))
    read = load_workload(tmp_path / "a.json")
    assert [(c.name, c.collective, c.size_bytes, c.group) for c in read.calls] == [("a", "all_reduce", 8, "7")]
    assert "nodes: 1 comm_coll, 1 comp, 2 invalid; 4 in all" in read.notes
    assert "dangling dependencies, ignored: 1 on 1 unknown ids" in read.notes
    (tmp_path / "b.json").write_text(json.dumps([{"version": "1"}, *([first] * 2)]) + " 5")
    with pytest.raises(WorkloadError, match="more text after the end"):
        load_workload(tmp_path / "b.json")
