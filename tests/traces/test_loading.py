"""Files of a job: which are traces, what the job is called, whose ranks they are, by every function that loads."""

import json

import pytest
from tests.traces.test_astra import GOOD
from tests.traces.test_chakra import COMP, SEND, attribute, coll, field, node, packed, trace
from tests.traces.test_files import zipped
from tests.traces.test_kineto import record, text

from opticcl.errors import ParameterError, WorkloadError
from opticcl.traces import load_job, load_steps, load_workload
from opticcl.traces.loading import load_traces

ONE = trace(coll(1, 8, 0, attribute("pg_name", "g")))


def folder_of(path, files):
    """A folder of files."""
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


def names_and_notes(paths, **options):
    """Names and notes, by each of the functions."""
    workload, steps = load_workload(paths, **options), load_steps(paths, **options)
    traces = load_traces(paths, **options)
    return [
        (workload.name, workload.notes),
        (steps[0].name, steps[0].notes),
        (traces[0].name, tuple(traces[0].before)),
    ]


@pytest.mark.parametrize("ranks", [1, 2])
def test_other_files_are_ignored_with_a_note(tmp_path, ranks):
    """Before all other notes, whether there is one trace or several."""
    files = {f"w.{rank}.et": ONE for rank in range(ranks)}
    folder = folder_of(tmp_path / "job", files | {"run.sh": b"#!/bin/sh\n", "more.sh": b"#!/bin/sh\n"})
    alone = names_and_notes([folder / one for one in files], num_ranks=2)
    for (name, notes), (other, others) in zip(names_and_notes(folder, num_ranks=2), alone, strict=True):
        assert notes == ("ignored: 2 files beside the traces, such as more.sh", *others)
        assert others
        assert (name, other) in (("w.0", "w.0"), ("job", "w"), ("job", "w.0"))
    for content, said in ((b"#!/bin/sh\n", "more.sh: has the form of no trace"), (b"", "more.sh: the file is empty")):
        (folder / "more.sh").write_bytes(content)
        with pytest.raises(WorkloadError, match=said):
            load_workload(folder / "more.sh")
    with pytest.raises(WorkloadError, match="no file in it has a known trace format"):
        load_workload(folder_of(tmp_path / "none", {"run.sh": b"#!/bin/sh\n", "more.sh": b"#!/bin/sh\n"}))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("schedule.xml", b'<algo name="a" nchunksperloop="2" ngpus="2"></algo>'),
        ("job.log", b"node0:1:1 [0] NCCL INFO cudaDriverVersion 12020\n"),
        ("report.nsys-rep", b"abc"),
    ],
)
def test_files_that_are_refused_alone_are_ignored_beside_traces(tmp_path, name, content):
    """Whatever they are; a trace that holds such a text is none of them."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(WorkloadError, match="not a trace that opticcl reads"):
        load_workload(tmp_path)
    made = trace(coll(1, 8), metadata=field(1, "0.0.4") + field(2, attribute("input_file", content.decode())))
    (tmp_path / "w.0.et").write_bytes(made)
    (tmp_path / "w.1.et").write_bytes(made)
    for paths in (tmp_path / "w.0.et", tmp_path):
        for _, notes in names_and_notes(paths, num_ranks=2):
            note = f"ignored: 1 file beside the traces, such as {name}"
            assert (note in notes) == (paths == tmp_path)


def test_the_names_have_the_rank_of_the_trace_that_does_not_record_it(tmp_path):
    """Beside one that does."""
    args = {"Collective name": "allreduce", "In msg nelems": 2, "dtype": "Float"}
    for rank, info in enumerate([{"rank": 0, "world_size": 2}, {"world_size": 2}]):
        events = [{"name": "record_param_comms", "ts": 1, "args": args}]
        (tmp_path / f"t{rank}.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    read = load_workload(tmp_path)
    assert (len(read.calls), read.notes[0]) == (1, "files: 2, ranks 0 to 1")


def test_names_of_jobs(tmp_path):
    """Of a folder its name; of several files what their names have in common; a wrong suffix is noted."""
    folder = folder_of(tmp_path / "llama", {"w.0.et": ONE, "w.1.et": ONE})
    assert [name for name, _ in names_and_notes(folder)] == ["llama"] * 3
    assert [name for name, _ in names_and_notes([folder / "w.0.et", folder / "w.1.et"])][:2] == ["w", "w"]
    assert [name for name, _ in names_and_notes(folder / "w.*.et")][:2] == ["w", "w"]
    assert load_workload([folder, folder_of(tmp_path / "more", {"w.2.et": ONE, "w.3.et": ONE})]).name == "w"
    (tmp_path / "llama.zip").write_bytes(zipped({"w.0.et": ONE, "w.1.et": ONE}))
    assert [name for name, _ in names_and_notes(tmp_path / "llama.zip")] == ["llama"] * 3
    (folder / "w.0.et").rename(folder / "w.0.json")
    note = "format: chakra by content; 1 file, such as w.0.json, named as if "
    assert all(
        any(one.startswith(note) for one in notes) for _, notes in names_and_notes(folder / "w.0.json", num_ranks=2)
    )


def test_built_in_workloads(tmp_path, monkeypatch):
    """By their name alone, unless there is such a file; a name of several paths is a file."""
    monkeypatch.chdir(tmp_path)
    assert load_workload("resnet50_ddp").total_bytes == load_workload(["ResNet50-DDP"]).total_bytes == 102_228_128
    assert load_steps("resnet50_ddp", num_ranks=4)[0].network_bytes == 102_228_128
    assert len(load_traces("resnet50_ddp", num_ranks=4)) == 1
    with pytest.raises(WorkloadError, match="resnet50_ddp: no such file"):
        load_workload(["resnet50_ddp", "resnet50_ddp"])
    with pytest.raises(WorkloadError, match="resnet: no such file"):
        load_workload("resnet")
    (tmp_path / "resnet50_ddp").write_bytes(ONE)
    assert load_workload("resnet50_ddp").total_bytes == 8
    for load in (load_workload, load_steps, load_job, load_traces):
        with pytest.raises(WorkloadError, match=f"{load.__name__}: no file is given"):
            load([])


def test_a_workload_needs_no_order(tmp_path):
    """Dependencies that run in a circle are refused where tasks are wanted."""
    circle = trace(node(1, COMP, needs=packed(2)), node(2, COMP, needs=packed(1)), coll(3, 8))
    folder = folder_of(tmp_path / "circles", {"w.0.et": circle, "w.1.et": circle})
    assert load_workload(folder).total_bytes == 8
    for load in (load_steps, load_job, load_traces):
        with pytest.raises(WorkloadError, match="cyclic dependencies"):
            load(folder)


def test_options_that_do_not_fit(tmp_path):
    """Sizes of kernels for a format without kernels, and numbers that are none."""
    (tmp_path / "w.0.et").write_bytes(ONE)
    (tmp_path / "sizes.toml").write_text('[[kernels]]\nname = "x"\ncollective = "all_reduce"\nsize = 8\n')
    for load in (load_workload, load_steps, load_job, load_traces):
        with pytest.raises(ParameterError, match=r"kernel_sizes: w.0.et is a trace without kernels \(chakra\)"):
            load(tmp_path / "w.0.et", kernel_sizes=tmp_path / "sizes.toml")
        with pytest.raises(ParameterError, match=f"{load.__name__}: num_ranks"):
            load(tmp_path / "w.0.et", num_ranks="two")
    (tmp_path / "t.json").write_bytes(profiled(0))
    assert len(load_workload(tmp_path / "t.json", kernel_sizes=tmp_path / "sizes.toml").calls) == 1
    (tmp_path / "model.txt").write_text("HYBRID model_parallel_NPU_group: 4 ep: 1 pp: 1\n1\n" + GOOD)
    for given in (0, 16):
        (trace,) = load_traces(tmp_path / "model.txt", **{"num_ranks": given} if given else {})
        assert [(call.group, call.group_size) for call in trace.calls] == [("DP", given // 4)]


def test_files_of_several_formats(tmp_path):
    """Those that surely are traces count; where these are of two formats they are refused."""
    folder = folder_of(tmp_path / "job", {"a.csv": b"0,0,1,8\n", "b.log": b"AR;9;0,1\n"})
    read = load_workload(folder)
    assert (read.total_bytes, read.notes[0]) == (8, "ignored: 1 file beside the traces, such as b.log")
    (folder / "c.goal").write_text("num_ranks 2\nrank 0 {\nsend 7b to 1\n}\n")
    with pytest.raises(WorkloadError, match=r"c.goal and a.csv have different formats"):
        load_workload(folder)


def profiled(rank):
    """A trace of the profiler of one all_reduce; it does not record a rank that is None."""
    return text(record("allreduce", 8), info={"rank": rank, "world_size": 4}).encode()


@pytest.mark.parametrize(
    ("names", "recorded", "ranks"),
    [
        (["n0_0.json", "n1_1.json"], [0, 0], [0, 1]),
        (["a5.json", "a7.json"], [3, 2], [3, 2]),
        (["b2.json", "b3.json"], [2, 2], [2, 3]),
        (["c2.json", "c3.json"], [0, 0], "are both of rank 0"),
        (["d0.json", "d1.json"], [1, 0], [1, 0]),
        (["x.json", "y.json"], [None, None], "x.json: the rank of this trace is not recorded"),
        (["n02_0.json", "x_1.json"], [None, None], [0, 1]),
        (["a1_7.json", "a0_9.json"], [None, None], [1, 0]),
        (["a1_5.json", "a2_5.json"], [None, None], [1, 2]),
        (["rank1_n0.json", "rank0_n1.json"], [None, None], [1, 0]),
        (["rank2_n0", "rank3_n1"], [None, None], [2, 3]),
        (["rank2.json", "x3.json"], [None, None], [2, 3]),
    ],
)
def test_ranks_of_files(tmp_path, names, recorded, ranks):
    """Of their content; where it has none, or two are equal, of the names, if these have the recorded ones."""
    files = {name: profiled(rank) for name, rank in zip(names, recorded, strict=True)}
    folder = folder_of(tmp_path / "job", files)
    if isinstance(ranks, str):
        with pytest.raises(WorkloadError, match=ranks):
            load_traces(folder)
        return
    assert {one.file: one.rank for one in load_traces(folder)} == dict(zip(names, ranks, strict=True))
    assert load_workload(folder).notes[0] == f"files: 2, ranks {min(ranks)} to {max(ranks)}"


def test_calls_that_are_none(tmp_path):
    """Traces of several ranks without a call are refused by each function."""
    alone = trace(coll(1, 8, 0, attribute("pg_name", "g")))
    folder = folder_of(tmp_path / "job", {"w.0.et": alone, "w.1.et": alone, "groups.json": b'{"g": [0]}'})
    (folder / "w.1.et").write_bytes(trace(node(1, COMP, attribute("is_cpu_op", 0, 27), duration_us=3)))
    for load in (load_workload, load_steps, load_job):
        with pytest.raises(WorkloadError, match="no collective with a size among several ranks"):
            load(folder)


@pytest.mark.parametrize(
    ("groups", "called", "name", "rank"),
    [
        ({"a": [1, 2], "b": [2, 3]}, "ab", "w.et", 2),
        ({"a": [1, 2], "b": [2, 1]}, "ab", "w.et", -1),
        ({"a": [1, 2], "b": [2, 1]}, "ab", "w.1.et", 1),
        ({"a": [1, 2]}, "", "w.5.et", 5),
        ({"a": [1, 2]}, "", "w.et", -1),
    ],
)
def test_the_rank_that_is_in_all_groups(tmp_path, groups, called, name, rank):
    """That of the name of the file, else the only one; its transfers begin and end there."""
    (tmp_path / "w.json").write_text(json.dumps(groups))
    calls = [coll(i, 8, 0, attribute("pg_name", one)) for i, one in enumerate(called, 1)]
    ends = [attribute("comm_size", 16), attribute("comm_dst", 0, 7)]
    calls += [node(8, SEND, *ends), node(9, 6, attribute("comm_size", 7), attribute("comm_src", 0, 7))]
    (tmp_path / name).write_bytes(trace(*calls))
    (found,) = load_traces(tmp_path / name, num_ranks=8)
    assert found.rank == rank
    assert [one.ranks for one in found.calls[len(called) :]] == [(rank, 0), (0, rank)]
    both = [attribute("comm_size", 16), attribute("comm_src", 3, 7), attribute("comm_dst", 0, 7)]
    (tmp_path / name).write_bytes(trace(*calls, node(8, SEND, *both), node(9, 6, *both)))
    (found,) = load_traces(tmp_path / name, num_ranks=8)
    assert [one.ranks for one in found.calls[-2:]] == [(3, 0)] * 2
