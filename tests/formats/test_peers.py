"""What is written, read by those whom it is for: fetched at a commit when the test runs, no part of the repository.

`OPTICCL_PEERS` names a folder with checkouts, `OWNER/NAME` each, for machines that cannot fetch.
"""

import importlib.util
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import opticcl
from opticcl.formats.chakra import rank_file
from opticcl.ir import Op

CHAKRA = "mlcommons/chakra", "21585d8"
PLANS = (
    ("ideal:nodes=4", "all_reduce", "ring"),
    ("ideal:nodes=5", "all_to_all", "bruck"),
    ("sipac:radix=2,levels=2", "all_reduce", "sipco"),
    ("torus:shape=2x3", "all_gather", "ring"),
    ("ideal:nodes=6", "broadcast", "tree"),
)
FETCH_S = 300


def checkout(folder, repository, commit):
    """The files of a repository of GitHub at a commit; the test is skipped where they cannot be had."""
    kept = os.environ.get("OPTICCL_PEERS")
    if kept is not None:
        return Path(kept) / repository
    for words in (
        ("init", "-q"),
        ("fetch", "-q", "--filter=blob:none", f"https://github.com/{repository}"),
        ("checkout", "-q", commit),
    ):
        try:
            done = subprocess.run(
                ["git", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_S
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{repository} is not to be had: git {words[0]} takes longer than {FETCH_S} s")
        if done.returncode:
            pytest.skip(
                f"{repository} is not to be had: git {words[0]}: {done.stderr.strip()[-200:] or done.returncode}"
            )
    return folder


def messages(text):
    """Classes of the messages that a schema of protobuf 3 describes, by name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    made = descriptor_pb2.FileDescriptorProto(name="schema", syntax="proto3")
    kinds = {name[5:].lower(): number for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()}
    words = iter(re.findall(r"[\w.]+|[^\w\s]", re.sub(r"//[^\n]*", "", text)))
    enums = set(re.findall(r"enum (\w+)", text))
    message, numbers, in_choice = None, None, False
    for word in words:
        if word == "package":
            made.package = next(words)
        elif word == "message":
            message, numbers = made.message_type.add(name=next(words)), None
        elif word == "enum":
            message, numbers = None, made.enum_type.add(name=next(words))
        elif word == "oneof":
            message.oneof_decl.add(name=next(words))
            in_choice = True
        elif word == "}":
            in_choice = False
        elif numbers is not None and word.isidentifier():
            numbers.value.add(name=word, number=int((next(words), next(words))[1]))
        elif message is not None and word.isidentifier():
            many = word == "repeated"
            kind, name, _, number = (next(words) if many else word, next(words), next(words), next(words))
            field = message.field.add(name=name, number=int(number), label=3 if many else 1)
            field.type = kinds.get(kind) or kinds["enum" if kind in enums else "message"]
            if kind not in kinds:
                field.type_name = f".{made.package}.{kind}"
            if in_choice:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(made)
    return {
        one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{made.package}.{one.name}"))
        for one in made.message_type
    }


def attributes(node):
    """Values of the attributes of a node, by name."""
    return {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}


@pytest.mark.deep
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "-".join(plan))
def test_chakra(plan, tmp_path):
    """Its own reader and schema find nothing unknown, and the sends, receives and sums of the plan."""
    unknown = pytest.importorskip(
        "google.protobuf.unknown_fields", reason="protobuf is not installed: pip install protobuf"
    )
    (folder := tmp_path / "peer").mkdir()
    peer = checkout(folder, *CHAKRA)
    found = importlib.util.spec_from_file_location("protolib", peer / "src/third_party/utils/protolib.py")
    reader = importlib.util.module_from_spec(found)
    found.loader.exec_module(reader)
    types = messages((peer / "schema/protobuf/et_def.proto").read_text())
    fabric, collective, algorithm = plan
    made = opticcl.compile(fabric, collective, "1 MB", algorithm=algorithm)
    made.export(tmp_path / "plan.et")
    ends = {"COMM_SEND_NODE": Counter(), "COMM_RECV_NODE": Counter()}
    sums = 0
    for rank in range(made.schedule.collective.num_ranks):
        head, nodes = types["GlobalMetadata"](), []
        with reader.openFileRd(str(rank_file(tmp_path / "plan.et", rank))) as file:
            assert reader.decodeMessage(file, head)
            while reader.decodeMessage(file, node := types["Node"]()):
                nodes.append(node)
            assert not file.read()
        assert head.version == "0.0.4"
        assert [node.id for node in nodes] == list(range(len(nodes)))
        for node in nodes:
            assert not any(len(unknown.UnknownFieldSet(one)) for one in (node, *node.attr))
            assert all(cause < node.id for cause in node.data_deps)
            kind, known = (
                node.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[node.type].name,
                attributes(node),
            )
            if kind in ends:
                assert known["comm_src" if kind == "COMM_SEND_NODE" else "comm_dst"] == rank
                ends[kind][tuple(known[f"comm_{what}"] for what in ("src", "dst", "tag", "size"))] += 1
            else:
                assert kind == "COMP_NODE"
                sums += known["tensor_size"] > 0
    assert ends["COMM_SEND_NODE"] == ends["COMM_RECV_NODE"]
    assert set(ends["COMM_SEND_NODE"].values()) == {1}
    steps = [made.schedule.step(i) for i in range(made.schedule.num_steps)]
    pairs = Counter(pair for step in steps for pair in zip(step.src.tolist(), step.dst.tolist(), strict=True))
    assert Counter(key[:2] for key in ends["COMM_SEND_NODE"]) == pairs
    assert sums == sum(int((step.op & Op.REDUCE > 0).sum()) for step in steps)
