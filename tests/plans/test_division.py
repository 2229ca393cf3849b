"""`compare --workload`: every call of a file is compared, left out with count and bytes, or omitted for a reason."""

import json
from collections import Counter

import pytest
from tests.optional import shared_file
from tests.traces.independent import archive, chakra_nodes, kineto
from tests.traces.test_kineto import record, text

from opticcl.errors import ParameterError
from opticcl.plans.division import CallClass, divide
from opticcl.traces import load_workload


def numbers(path):
    """Calls of a file by an independent parse."""
    if path.suffix == ".et":
        nodes = [n for n in chakra_nodes(path) if n["type"] in (5, 6, 7)]
        return sum(not n["attributes"].get("is_cpu_op") for n in nodes)
    if path.name.endswith(".tar.gz"):
        traces = archive(path).values()
        return max(sum(e["name"].startswith("nccl:") for e in one["traceEvents"]) for one in traces)
    if path.parent.name == "pytorch-et":
        return sum(node["name"] == "record_param_comms" for node in kineto(path)["nodes"])
    if path.name.endswith(".json.gz"):
        names = Counter(e["name"] for e in kineto(path)["traceEvents"] if e.get("cat") in ("cpu_op", "user_annotation"))
        with_arguments = any("Collective name" in e.get("args", {}) for e in kineto(path)["traceEvents"])
        kinds = ("record_param_comms",) if with_arguments else ("nccl:",)
        return sum(n for name, n in names.items() if name.startswith(kinds))
    if path.suffix == ".log":
        return len(path.read_text("utf-8").splitlines())
    if path.suffix == ".txt":
        rows = [line.split() for line in path.read_text("utf-8").splitlines()[2:]]
        return sum(row[at] != "NONE" for row in rows if row for at in (3, 6, 9))
    read = load_workload(path)  # FlatBuffers: the task types in the first note
    kinds = dict(reversed(part.split(" ", 1)) for part in read.notes[0].split(": ")[1].split("; ")[0].split(", "))
    return sum(int(kinds.get(kind, "0").replace(",", "")) for kind in ("all_reduce", "transfer", "comm"))


FILES = [
    "chakra/resnet50-ddp.rank0.et",
    *(f"chakra/llama-dp2-tp4-pp2/w.{rank}.et" for rank in (0, 5, 15)),
    "kineto/nccl-data.json.gz",
    "kineto/timeline-rank0.json.gz",
    "kineto/dlrm-8ranks.tar.gz",
    "pytorch-et/resnet-2gpu.json.gz",
    "lumorph/ncf-8.log",
    "astra-sim/resnet50-data-parallel.txt",
    "astra-sim/dlrm-hybrid-parallel.txt",
    "topoopt/100vgg_16.fbuf",
    "topoopt/100candle_16.fbuf",
]


LARGE = (
    "kineto/timeline-rank0.json.gz",
    "kineto/nccl-data.json.gz",
    "kineto/dlrm-8ranks.tar.gz",
    "pytorch-et/resnet-2gpu.json.gz",
)


@pytest.mark.parametrize("name", [pytest.param(one, marks=pytest.mark.deep) if one in LARGE else one for one in FILES])
def test_every_call_of_a_real_file_is_accounted_for(name, answer, opticcl):
    """Compared, left out and omitted are all calls of the file; the bytes too, in JSON and in text."""
    path = shared_file(name)
    known = load_workload(path).num_ranks
    options = ["--workload", path, "--fabric", "ideal", *([] if known else ["--nodes", "16"])]
    found, code = answer("compare", *options)
    assert code == 0
    work = found["workload"]
    parts = [work["compared"], *work["left_out"]]
    assert sum(one["calls"] for one in [*parts, *work["omitted"]]) == work["calls"] == numbers(path)
    read = load_workload(path, num_ranks=known or 16)
    assert sum(one["bytes"] for one in parts) == read.total_bytes
    assert sum(row["total_bytes"] for row in found["rows"]) == work["compared"]["bytes"]
    assert {row["num_nodes"] for row in found["rows"]} == {work["compared"]["group_size"]}
    shown = opticcl("compare", *options, "--notes").stdout.split("\n")
    assert any(f"{work['compared']['calls']:,} call" in line for line in shown)
    assert sum(line.startswith("not compared: ") for line in shown) == len(work["left_out"])


@pytest.mark.parametrize("rank", range(16))
def test_every_call_of_every_llama_file_is_accounted_for(rank):
    """The same of each of the 16 files, without the command line."""
    path = shared_file(f"chakra/llama-dp2-tp4-pp2/w.{rank}.et")
    read = load_workload(path)
    record = divide(read).record()
    parts = [record["compared"], *record["left_out"]]
    assert sum(one["calls"] for one in [*parts, *record["omitted"]]) == record["calls"] == numbers(path)
    assert sum(one["bytes"] for one in parts) == read.total_bytes


def mixed(path):
    """75 all_gathers, 10 all_reduces of all ranks, one more in a group of two, one send."""
    pair = {"Process_Group_Name": "2", "Process_Group_Ranks": "[0, 1]", "Group_size": 2}
    events = [record("_allgather_base", 5, 20, ts=i) for i in range(75)]
    events += [record("allreduce", 100, ts=100 + i) for i in range(10)]
    events += [record("allreduce", 7, ts=200, **pair), record("send", 3, ts=201, Src_Rank=0, Dst_Rank=1)]
    path.write_text(text(*events))
    return path


def test_what_is_not_compared_is_said(tmp_path, answer, opticcl):
    """The class with the most bytes is compared, the others have a line and a field each."""
    path = mixed(tmp_path / "a.json")
    found, _ = answer("compare", "--workload", path, "--fabric", "ideal")
    assert found["workload"]["compared"] == {"collective": "all_gather", "group_size": 4, "calls": 75, "bytes": 6000}
    assert found["workload"]["left_out"] == [
        {"collective": "all_reduce", "group_size": 4, "calls": 10, "bytes": 4000},
        {"collective": "all_reduce", "group_size": 2, "calls": 1, "bytes": 28},
        {"collective": "transfer", "group_size": 2, "calls": 1, "bytes": 12},
    ]
    shown = opticcl(
        "compare", "--workload", path, "--fabric", "ideal", "--collective", "all_reduce", "--notes"
    ).stdout.split("\n")
    assert "a: 10 calls of all_reduce, 4 KB (4,000 bytes), on 4 nodes" in shown
    assert (
        "not compared: 75 calls, 6 KB (6,000 bytes): all_gather in groups of 4 ranks; opticcl train times all" in shown
    )


def test_other_ranks_than_the_recorded_ones_are_refused(tmp_path, opticcl):
    """By --nodes, and by a fabric with a shape of its own."""
    path = mixed(tmp_path / "a.json")
    for options, said in (
        (["--nodes", "64"], "the given number is 64 ranks, but world_size of a.json is 4"),
        (["--fabric", "torus:shape=4x4"], "has 16 nodes, not 4"),
        (
            ["--fabric", "ideal", "--collective", "barrier"],
            "has no barrier to compare, but 75 all_gather in groups of 4",
        ),
    ):
        done = opticcl("compare", "--workload", path, *options)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert said in done.stderr


def test_two_files_are_both_read(tmp_path, answer):
    """Of two ranks of one job the calls count once."""
    for rank in (0, 1):
        content = json.loads(mixed(tmp_path / f"rank{rank}.json").read_text())
        content["distributedInfo"]["rank"] = rank
        content["traceEvents"] = [e for e in content["traceEvents"] if e["args"]["Collective name"] != "send"]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(content))
    files = [option for rank in (1, 0) for option in ("--workload", tmp_path / f"rank{rank}.json")]
    found, code = answer("compare", *files, "--fabric", "ideal")
    assert (code, found["workload"]["calls"], found["workload"]["compared"]["calls"]) == (0, 86, 75)


def test_only_transfers_cannot_be_compared(tmp_path):
    """The message lists what the workload has."""
    (tmp_path / "a.log").write_text("L2L;8;0;0;0;1\n")
    with pytest.raises(ParameterError, match="has no collective to compare, but 1 transfers between two ranks"):
        divide(load_workload(tmp_path / "a.log"))


def test_a_class_of_calls_in_words():
    """As it stands in messages."""
    assert str(CallClass("all_gather", 0)) == "all_gather"
    assert str(CallClass("all_gather", 8)) == "all_gather in groups of 8 ranks"
