"""What is in a trace: sums by kind, group, rank and step, of drawn logs and dumps, by adding up what was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.fsdp import fsdp_step
from tests.traces.test_flight_recorder import entry
from tests.traces.test_nsys import training

from opticcl.errors import WorkloadError
from opticcl.traces import TRACES, load_steps
from opticcl.traces.contents import load_contents

MEMBERS = [(0, 1, 2, 3), (0, 1), (2, 3), (3, 0)]
rows = st.lists(
    st.tuples(st.sampled_from(MEMBERS), st.booleans(), st.integers(0, 2**50), st.integers(0, 3)), min_size=1, max_size=8
)


@pytest.mark.parametrize(
    ("name", "head", "sureness"),
    [
        ("topoopt", b"\x10\0\0\0" + b"x" * 13, 1),
        ("topoopt", b"\x10\0\0\0" + b"x" * 12, 0),
        ("topoopt", b"\x10\0\1\0" + b"x" * 13, 0),
        ("topoopt", b"\0\0\0\0" + b"x" * 13, 0),
        ("xla", b'[{"name": "/host:CPU"', 3),
        ("xla", b'{"name": "a.b /device:TPU:0"', 3),
        ("xla", b'x {"name": "/device:TPU:0"', 0),
        ("xla", b'{"name": "device"', 0),
        ("pytorch_et", b'{"schema": "1.1.1-chakra', 2),
        ("pytorch_et", b'x {"schema": "1.1.1-chakra', 0),
        ("pytorch_et", b'{"schema": 5', 0),
        ("flight_recorder", b"\x80\x02", 2),
        ("flight_recorder", b"\x80\x05", 2),
        ("flight_recorder", b"\x80\x01}", 0),
        ("flight_recorder", b"\x80\x06}", 0),
        ("flight_recorder", b"\x81\x02}", 0),
        ("flight_recorder", b"\x80", 0),
        ("flight_recorder", b'\xef\xbb\xbf {"entries" :', 2),
        ("flight_recorder", b'["entries":', 0),
        ("flight_recorder", b'{"entry":', 0),
        ("nccl_inspector", b'\xef\xbb\xbf\n{"coll_perf" :', 3),
        ("nccl_inspector", b'x {"coll_perf":', 0),
        ("nccl_inspector", b'{"coll":', 0),
        ("nccl_profiler", b'\xef\xbb\xbf\n[{"cat": "COLL"', 3),
        ("nccl_profiler", b'x [{"cat": "COLL"', 0),
        ("nccl_profiler", b'[{"cat": "OTHER"', 0),
        ("goal", b"// a\n/* b\n */ num_ranks 2\nrank", 2),
        ("goal", b"num_ranks 2 x", 0),
        ("lumorph", b"\xef\xbb\xbfAR; 8", 1),
        ("lumorph", b"x AR;8", 0),
        ("htsim", b"# a\n Nodes 2\r\nConnections 1\n", 2),
        ("htsim", b"Nodes 2\nConnection 1\n", 0),
        ("htsim", b"Node 2\nConnections 1\n", 0),
        ("flow_list", b"# a\n0,1,2,3\n\n1,1,2,3\n0,1", 2),
        ("flow_list", b"# a\n\n", 0),
        ("flow_list", b"0,1,2,3\n0,1,2\n0,1,2,3\n", 0),
        ("chakra", b"\7\x0a\x050.0.4", 1),
        ("chakra", b"\xac\2\x0a\5", 1),
        ("chakra", b"\x80\1\x0a\5", 1),
        ("chakra", b"\xff\xff\xff\xff\3\x12\5", 1),
        ("chakra", b"\xff\xff\xff\xff\xff\3\x12", 0),
        ("chakra", b"\0\5\x08\1", 1),
        ("chakra", b"\0\5\x12\1", 0),
        ("chakra", b"\7\x1a\5", 0),
        ("chakra", b"\x0a\x0a\5\0", 0),
        ("chakra", b"\r\x0a\5\0", 0),
        ("chakra", b"A\x0ab", 0),
        ("chakra", b"A\x0a\5", 1),
        ("chakra", b"\xff\xff\2", 0),
        ("chakra_json", b'{"version": "0.0.4"} {"type": "COMM_COLL_NODE"', 2),
        ("chakra_json", b'\xef\xbb\xbf\n[{"dataDeps": [', 2),
        ("chakra_json", b'node: {"type": "COMM_COLL_NODE"', 0),
        ("chakra_json", b'{"version": "0.0.4"} {"type": "NODE"', 0),
    ],
)
def test_how_surely_a_file_is_of_a_format(name, head, sureness):
    """By its first bytes."""
    assert int(TRACES.get(name).sniff(head)) == sureness


def sums(mine):
    """Number, bytes and times of calls (bytes, ms)."""
    sizes, timed = [size for size, _ in mine], [(size, ms * 1e-3) for size, ms in mine if ms]
    total_s = sum(took for _, took in timed)
    return {
        "calls": len(mine),
        "bytes": sum(sizes),
        "smallest_bytes": min(sizes),
        "largest_bytes": max(sizes),
        "timed_calls": len(timed),
        "measured_s": pytest.approx(total_s) if timed else None,
        "rate_bits_per_s": pytest.approx(8 * sum(size for size, _ in timed) / total_s) if timed else None,
    }


@examples(60)
@given(drawn=rows, log=st.booleans())
def test_sums_by_kind_and_group(tmp_path_factory, drawn, log):
    """Of a log, which is kept as columns, and of a dump of the flight recorder."""
    folder = tmp_path_factory.mktemp("contents")
    kinds, groups = {}, {}
    everyone = False
    for members, transfer, size, ms in drawn:
        transfer = transfer and len(members) == 2
        everyone |= len(members) == 4
        known = () if len(members) == 4 else members
        kinds.setdefault(("transfer" if transfer else "all_reduce", len(members)), []).append((size, ms))
        groups.setdefault(() if transfer else ("x" if not log else "", known or members), []).append((size, ms))
    if not everyone:
        drawn = [*drawn, ((0, 1, 2, 3), False, 7, 0)]
        kinds.setdefault(("all_reduce", 4), []).append((7, 0))
        groups.setdefault(("" if log else "x", (0, 1, 2, 3)), []).append((7, 0))
    if log:
        path = folder / "a.log"
        lines = [
            f"L2L;{size};1;0;{members[0]};{members[1]}" if transfer and len(members) == 2
            else f"AR;{size};{','.join(map(str, members))}"
            for members, transfer, size, _ in drawn
        ]  # fmt: skip
        path.write_text("".join(f"{line}|{ms}\n" for line, (*_, ms) in zip(lines, drawn, strict=True)))
    else:
        path = folder / "rank_0.json"
        config, entries = {}, []
        for number, (members, transfer, size, ms) in enumerate(drawn):
            name = "".join(map(str, members))
            config[name] = {"name": name, "ranks": str(list(members))}
            word = "nccl:send 0->1" if transfer and len(members) == 2 else "nccl:all_reduce"
            about = {"input_dtypes": ["Byte"], "output_dtypes": ["Byte"], "collective_seq_id": number}
            entries.append(entry(word, ((size,),), duration_ms=ms, process_group=[name, "d"], **about))
        path.write_text(json.dumps({"version": "2", "pg_config": config, "entries": entries}))
    found = load_contents(path)
    by_kind = found.by_kind()
    assert {(row["collective"], row["ranks"]): {k: row[k] for k in sums([(0, 0)])} for row in by_kind} == {
        key: sums(mine) for key, mine in kinds.items()
    }
    assert [row["bytes"] for row in by_kind] == sorted((row["bytes"] for row in by_kind), reverse=True)
    by_group = {tuple(row["members"]): row for row in found.by_group()}
    assert {ranks: {k: row[k] for k in sums([(0, 0)])} for ranks, row in by_group.items()} == {
        key[1] if key else (): sums(mine) for key, mine in groups.items()
    }
    for ranks, row in by_group.items():
        assert row["size"] == (len(ranks) or 2)
        named = "".join(map(str, ranks))
        assert row["group"] == ("transfers" if not ranks else None if log else named)
        assert (row["source"] is None) == (not ranks)
    (rank,) = found.by_rank()
    assert (rank["rank"], rank["file"], rank["calls"], rank["steps"]) == (None if log else 0, path.name, len(drawn), 0)
    assert (rank["computed_s"], rank["iteration_s"], found.median, found.by_step()) == (0, None, None, [])


def test_groups_of_unknown_and_of_many_ranks(tmp_path):
    """Without a number of ranks there is no size; members are cut after the 64th."""
    config = {"1": {"name": "1", "ranks": str(list(range(70)))}, "2": {"name": "transfers", "ranks": "[0, 2, 5]"}}
    unknown = {"version": "2", "entries": [entry()]}
    named = entry(process_group=["transfers", "d"])
    for value, size, members in (
        (unknown, None, []),
        ({"version": "2", "pg_config": config, "entries": [named]}, 3, [0, 2, 5]),
        ({"version": "2", "pg_config": config, "entries": [entry(process_group=["1", "d"])]}, 70, list(range(64))),
    ):
        (tmp_path / "rank_0.json").write_text(json.dumps(value))
        found = load_contents(tmp_path / "rank_0.json")
        (row,) = found.by_group()
        assert (row["size"], row["members"]) == (size, members)
        assert found.by_kind()[0]["ranks"] == size
    (tmp_path / "rank_0.json").write_text(json.dumps(unknown))
    found = load_contents(tmp_path / "rank_0.json", num_ranks=70)
    assert [(row["size"], row["members"]) for row in found.by_group()] == [(70, list(range(64)))]
    assert [row["ranks"] for row in found.by_kind()] == [70]
    (tmp_path / "rank_0.json").write_text(json.dumps({**unknown, "entries": [entry("nccl:wait")]}))
    with pytest.raises(WorkloadError, match="no collective with a size among several ranks; entries: 1"):
        load_contents(tmp_path / "rank_0.json")


def test_steps_and_ranks_have_their_recorded_times(tmp_path):
    """Those of the task graphs; the rank has those of the step that stands for all."""
    (tmp_path / "a.json").write_text(fsdp_step(layers=3, call_us=2_500.0, waits="cuda_sync"))
    found, (step,) = load_contents(tmp_path / "a.json"), load_steps(tmp_path / "a.json")
    (row,), (rank,) = found.by_step(), found.by_rank()
    times = step.recorded.record()
    assert {name: row[name] for name in times} == times == {name: rank[name] for name in times}
    assert (row["calls"], row["bytes"], row["bound"]) == (step.num_calls, step.network_bytes, step.bound or None)
    assert row["computed_s"] == step.compute_s == pytest.approx(rank["computed_s"])
    assert (found.median.step, rank["steps"], row["step"]) == (step.step, 1, step.step or None)


@pytest.mark.parametrize(("waits", "bound"), [(True, None), (False, "upper")])
def test_steps_have_names_and_bounds(tmp_path, waits, bound):
    """Of a report of two steps; without a number of ranks there is no graph of them."""
    report = training(waits)
    rows = load_contents(report.write(tmp_path / "a.sqlite")).by_step()
    assert [(row["step"], row["bound"]) for row in rows] == [("ProfilerStep#0", bound), ("ProfilerStep#1", bound)]
    del report.rows["NVTX_EVENTS"][0]
    found = load_contents(report.write(tmp_path / "b.sqlite"))
    assert (found.steps, found.workload.num_ranks, len(found.workload.calls)) == ((), 0, 2)
