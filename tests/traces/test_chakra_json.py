"""Chakra traces as JSON: they say what the same trace says in protobuf."""

import json

import pytest
from tests.optional import shared_file
from tests.traces.independent import chakra_nodes
from tests.traces.test_chakra import attribute, coll, node, packed, trace

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_workload

TYPES = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]


def as_json(nodes, *, snake=False, listed=False, metadata=True):
    """Nodes as the jsonizer prints them, or in another form of the same."""
    objects = [{"version": "0.0.4"}] if metadata else []
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


@pytest.mark.parametrize("form", [{}, {"snake": True}, {"listed": True}, {"metadata": False}], ids=str)
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"version": "1"} {"type": "COMP_NODE", "id": "x"}', "id is 'x', not a whole number"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1, "attr": [{"int64Val": 1}]}', "an attribute without a name"),
        ('[{"type": "COMP_NODE", "id": 1}, 5]', "a node that is not an object"),
        ('{"version": "1"} {"type": "COMP_NODE", "id": 1', "character"),
        ('{"type": "COMM_COLL_NODE", "id": true}', "not a whole number"),
    ],
)
def test_damage_is_refused(tmp_path, content, said):
    """In one line that names the place."""
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(WorkloadError, match=said) as caught:
        load_workload(tmp_path / "job.json")
    assert "character" in str(caught.value)
