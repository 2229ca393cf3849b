"""Several ranks of one job: matched calls, one task graph, the matrix of an all_to_all; files that disagree are refused."""

import io
import json
import random
import tarfile
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import shared_file
from tests.profiles import examples
from tests.traces.independent import archive, chakra_nodes
from tests.traces.test_chakra import COMP, RECV, SEND, attribute, coll, node, packed, trace
from tests.traces.test_kineto import event, record, text

from opticcl.errors import WorkloadError
from opticcl.fabrics import fabric_at_scale
from opticcl.plans.search import Searches
from opticcl.traces import load_job, load_steps, load_workload
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import Runtime, simulate_iteration
from opticcl.training.train import train

ON_DEVICE = attribute("is_cpu_op", 0, 27)


def simulated(job, rate=200e9):
    """An iteration on an ideal network."""
    times = CommunicationTimes(fabric_at_scale("ideal", job.num_ranks, rate), Searches("auto", assumptions="published"))
    return simulate_iteration(job, times, Runtime(fusion="none"))


def kernel(number, us, *needs):
    """A kernel of a feeder's trace."""
    return node(number, COMP, ON_DEVICE, needs=packed(*needs) if needs else b"", duration_us=us)


def transfer(number, kind, size, peer, *needs, tag=0):
    """A send to a rank, or a receive from one."""
    ends = attribute("comm_dst" if kind == SEND else "comm_src", peer, 7)
    return node(number, kind, attribute("comm_size", size), ends, attribute("comm_tag", tag), needs=packed(*needs))


def written(folder, *ranks, name="w.{}.et"):
    """A file for each rank."""
    for rank, nodes in enumerate(ranks):
        (folder / name.format(rank)).write_bytes(trace(*nodes))
    return folder


# --- matching ---------------------------------------------------------------------------------------------------------


def test_a_receive_waits_for_the_computation_of_the_sender(tmp_path):
    """Two stages: the second computes after the first, which alone it cannot know."""
    first = [kernel(1, 1000), transfer(2, SEND, 1, 1, 1)]
    second = [transfer(1, RECV, 1, 0), kernel(2, 500, 1)]
    folder = written(tmp_path, first, second)
    (job,) = load_steps(folder)
    assert (job.num_devices, job.device_ranks, job.num_calls, job.bound) == (2, (0, 1), 1, "")
    assert simulated(job).total_s == pytest.approx(1500e-6, rel=0.01)
    alone = load_job(folder / "w.1.et", num_ranks=2)
    assert (alone.bound, alone.num_calls) == ("lower", 1)
    assert simulated(alone).total_s == pytest.approx(500e-6, rel=0.02)


def test_a_collective_starts_when_its_last_rank_arrives(tmp_path):
    """The slower rank decides; the other neither computes nor communicates in the meantime."""
    ranks = [[kernel(1, us), coll(2, 8, 0, ON_DEVICE, needs=packed(1)), kernel(3, 100, 2)] for us in (100, 900)]
    job = load_job(written(tmp_path, *ranks))
    assert job.num_calls == 1
    iteration = simulated(job)
    assert iteration.total_s == pytest.approx(1000e-6, rel=0.01)
    assert (iteration.job.device_ranks[iteration.device], iteration.compute_s) == (1, pytest.approx(1000e-6))
    late = simulate_iteration(job, lambda *_: 1e-6, Runtime(fusion="none"), {0: 20.0})
    assert late.total_s == pytest.approx(20 * 200e-6 + 1e-6)


def test_transfers_are_matched_by_their_tags(tmp_path):
    """Received in another order than sent."""
    first = [kernel(1, 10), transfer(2, SEND, 7, 1, 1, tag=1), kernel(3, 1000, 1), transfer(4, SEND, 9, 1, 3, tag=2)]
    second = [transfer(1, RECV, 9, 0, tag=2), transfer(2, RECV, 7, 0, tag=1), kernel(3, 1, 2)]
    job = load_job(written(tmp_path, first, second))
    assert sorted(t.size_bytes for t in job.tasks if t.communicates) == [7, 9]
    last = next(t for t in job.tasks if t.devices == (1,))
    assert [job.tasks[i].size_bytes for i in last.after] == [7]


def test_ranks_that_disagree_are_matched_by_kind_and_counted(tmp_path):
    """One has a broadcast more in front: the all_reduces are matched all the same."""
    calls = [coll(2, 8, 0, ON_DEVICE), coll(3, 16, 0, ON_DEVICE)]
    folder = written(tmp_path, [coll(1, 5, 5, ON_DEVICE), *calls], calls)
    read = load_workload(folder)
    assert Counter((c.collective, c.size_bytes) for c in read.calls) == {
        ("broadcast", 5): 1,
        ("all_reduce", 8): 1,
        ("all_reduce", 16): 1,
    }
    assert any("disagree on the calls of a group (2 to 3 calls)" in note for note in read.notes)
    assert "without a counterpart in the trace of another rank: 1 broadcast" in read.notes


def test_missing_ranks_are_counted(tmp_path):
    """Files of two of four ranks."""
    (tmp_path / "w.json").write_text('{"all": [0, 1, 2, 3]}')
    for rank in (1, 3):
        (tmp_path / f"w.{rank}.et").write_bytes(trace(coll(1, 8, 0, attribute("pg_name", "all"))))
    read = load_workload(tmp_path)
    assert (len(read.calls), read.num_ranks) == (1, 4)
    assert "without a trace: 2 of 4 ranks (0, 2); they are taken to keep up" in read.notes


def test_ranks_that_wait_for_each_other_are_refused(tmp_path):
    """Each sends only after it has received."""
    first = [transfer(1, RECV, 8, 1), transfer(2, SEND, 8, 1, 1)]
    second = [transfer(1, RECV, 8, 0), transfer(2, SEND, 8, 0, 1)]
    folder = written(tmp_path, first, second)
    assert load_workload(folder).total_bytes == 16
    with pytest.raises(WorkloadError, match="the ranks wait for each other: 2 tasks can never start, such as"):
        load_job(folder)


def test_ranks_that_send_before_they_receive(tmp_path):
    """A ring of three, each of which receives only after it has sent: a transfer starts when its sender is ready."""
    ring = [
        [transfer(1, SEND, 8, (rank + 1) % 3), transfer(2, RECV, 8, (rank - 1) % 3, 1), kernel(3, 100, 2)]
        for rank in range(3)
    ]
    ring[1].insert(0, kernel(4, 900))
    ring[1][1] = transfer(1, SEND, 8, 2, 4)
    job = load_job(written(tmp_path, *ring))
    assert (job.num_calls, job.bound) == (3, "lower")
    assert any(note.startswith("transfers start when their sender is ready") for note in job.notes)
    last = [task for task in job.tasks if not task.communicates and task.compute_s == pytest.approx(100e-6)]
    assert [len(task.after) for task in last] == [2, 2, 2]  # what the rank has sent, and what it receives
    assert simulated(job).total_s == pytest.approx(1000e-6, rel=0.01)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.0.et", "b.0.et"], "are both of rank 0"),
        (["first.et", "second.et"], "the rank of this trace is not recorded"),
    ],
)
def test_ranks_that_are_not_distinct_are_refused(tmp_path, names, message):
    """The same rank twice, or none."""
    for name in names:
        (tmp_path / name).write_bytes(trace(coll(1, 8)))
    with pytest.raises(WorkloadError, match=message):
        load_workload(tmp_path)


def profiled(rank, base, steps=("ProfilerStep#1",), **more):
    """A profiler's trace of one step with one all_reduce of 30 us; the clock starts at `base`."""
    events = []
    for number, name in enumerate(steps):
        at = base + 1000 * number
        events.append(event(name, "user_annotation", ts=at, dur=900))
        pair = {"Group_size": 2, "Process_Group_Ranks": "[0, 1]"}
        events.append(record("allreduce", 10, ts=at + 5, dur=5, External_id=number, **pair))
        ends = at + 500
        begins = ends - (30 if rank else 130)
        args = {"External id": number, "stream": 20}
        events.append(event("ncclDevKernel_AllReduce", "kernel", ts=begins, dur=ends - begins, **args))
    return text(*events, info={"rank": rank, "world_size": 2}, **more)


def test_skew_and_the_time_of_the_last_rank(tmp_path):
    """Rank 0 waits 100 us for rank 1, whose clock is 7 ms ahead; the collective takes what the last rank records."""
    (tmp_path / "a.json").write_text(profiled(0, 1000))
    (tmp_path / "b.json").write_text(profiled(1, 8000))
    read = load_workload([tmp_path / "b.json", tmp_path / "a.json"])
    assert [call.measured_s for call in read.calls] == [pytest.approx(30e-6)]
    skew = "skew between ranks: the first rank of a collective waited 100 us for the last (median of 1), 100 us at most"
    assert f"{skew}; rank 1 was last in 1" in read.notes


def test_only_common_steps_are_merged(tmp_path):
    """Rank 1 recorded one step more; without a common step the files are refused."""
    (tmp_path / "a.json").write_text(profiled(0, 1000))
    (tmp_path / "b.json").write_text(profiled(1, 8000, ("ProfilerStep#1", "ProfilerStep#2")))
    assert [step.step for step in load_steps(tmp_path)] == ["ProfilerStep#1"]
    (tmp_path / "b.json").write_text(profiled(1, 8000, ("ProfilerStep#2", "ProfilerStep#3")))
    with pytest.raises(
        WorkloadError,
        match=r"no step in common: a\.json has ProfilerStep#1; b\.json has ProfilerStep#2, ProfilerStep#3; give",
    ):
        load_steps(tmp_path)


# --- matrices ---------------------------------------------------------------------------------------------------------


def uneven(rank, row, column):
    """The all_to_all of one of three ranks, with its splits."""
    args = {
        "In_split_size": str(row),
        "Out_split_size": str(column),
        "Group_size": 3,
        "Process_Group_Ranks": "[0, 1, 2]",
    }
    return text(record("all_to_allv", sum(row), sum(column), **args), info={"rank": rank, "world_size": 3})


@examples(40)
@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=3, max_size=3))
def test_recorded_splits_are_the_matrix(tmp_path_factory, matrix):
    """As recorded; the message is that of the busiest rank."""
    folder = tmp_path_factory.mktemp("splits")
    for rank in range(3):
        (folder / f"rank{rank}.json").write_text(uneven(rank, matrix[rank], [row[rank] for row in matrix]))
    (call,) = load_workload(folder).calls
    assert call.matrix_bytes == tuple(tuple(4 * x for x in row) for row in matrix)
    off = [[0 if i == j else 4 * x for j, x in enumerate(row)] for i, row in enumerate(matrix)]
    busiest = max([sum(row) for row in off] + [sum(column) for column in zip(*off, strict=True)])
    assert busiest * 3 / 2 <= call.size_bytes < busiest * 3 / 2 + 1


def test_the_matrix_of_each_all_to_all_of_dlrm():
    """Sums of rows and columns are what each file records; 53,248 bytes go into rank 3 of the fourth."""
    path = shared_file("kineto/dlrm-8ranks.tar.gz")
    sent, received = {}, {}
    for whole in archive(path).values():
        rank = whole["distributedInfo"]["rank"]
        events = [e for e in whole["traceEvents"] if e["name"] == "c10d::alltoall_base_"]
        events.sort(key=lambda e: e["ts"])
        widths = [{"float": 4, "int": 4, "long int": 8}[e["args"]["Input type"][0]] for e in events]
        sides = [(e["args"]["Input Dims"][1][0] * w, e["args"]["Input Dims"][0][0] * w) for e, w in zip(events, widths)]  # noqa: B905
        sent[rank], received[rank] = [s for s, _ in sides], [r for _, r in sides]
    calls = [call for call in load_workload(path).calls if call.collective == "all_to_all"]
    assert len(calls) == 5
    for number, call in enumerate(calls):
        matrix = call.matrix_bytes
        assert [sum(row) for row in matrix] == [sent[rank][number] for rank in range(8)]
        assert [sum(column) for column in zip(*matrix, strict=True)] == [received[rank][number] for rank in range(8)]
    assert sum(row[3] for row in calls[3].matrix_bytes) == 53_248
    assert calls[3].size_bytes == 53_248


# --- real jobs --------------------------------------------------------------------------------------------------------


def test_the_llama_files_in_any_order_are_one_pipeline():
    """16 ranks on 16 devices, each collective and transfer once; stage 1 computes after stage 0 and back again."""
    folder = shared_file("chakra/llama-dp2-tp4-pp2")
    paths = sorted(folder.glob("w.*.et"))
    shuffled = list(paths)
    random.Random(1).shuffle(shuffled)
    (job,) = load_steps(folder)
    for other in (load_steps(shuffled), load_steps([*reversed(paths)]), load_steps(str(folder / "w.*.et"))):
        assert (other[0].tasks, other[0].groups) == (job.tasks, job.groups)
    nodes = {int(path.name.split(".")[1]): chakra_nodes(path) for path in paths}
    groups = json.loads((folder / "w.json").read_text())
    collectives = sum(
        1 / len(groups[n["attributes"]["pg_name"]]) for found in nodes.values() for n in found if n["type"] == 7
    )
    sends = sum(n["type"] == 5 for found in nodes.values() for n in found)
    assert job.num_calls == round(collectives) + sends == 460
    assert (job.num_ranks, job.device_ranks, job.bound) == (16, tuple(range(16)), "")
    iteration = simulated(job)
    assert iteration.total_s == simulated(load_steps(shuffled)[0]).total_s
    first = {d: min(s.start_s for s in iteration.spans_of(d)) for d in range(16)}
    crossing = [s for s in iteration.spans if s.queue and len(s.devices) == 2 and s.devices[0] < 8 <= s.devices[1]]
    assert len(crossing) == 64
    forward = min(s.end_s for s in crossing)
    assert all(first[d] == 0 for d in range(8))
    assert min(s.start_s for d in range(8, 16) for s in iteration.spans_of(d) if s not in crossing) >= forward


def test_a_job_of_several_ranks_is_trained_on_fabrics():
    """The archive of eight ranks, by the public function."""
    steps = load_steps(shared_file("kineto/dlrm-8ranks.tar.gz"))
    found = train(steps, ["ideal", "ramp"], assumptions="published")
    assert {row.machine.name for row in found.rows} == {"ideal", "ramp"}
    assert all(row.verified for row in found.rows)
    assert found.job.name == "dlrm-8ranks"
    assert found.record()["job"]["devices"] == 8


# --- files ------------------------------------------------------------------------------------------------------------


def packed_files(path, members, mode="w:gz"):
    """An archive."""
    with tarfile.open(path, mode) as out:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


def test_archives_directories_and_patterns_are_the_same(tmp_path):
    """Names with folders and dots stay inside; a file of another kind is counted."""
    content = trace(coll(1, 8))
    (tmp_path / "d").mkdir()
    for rank in range(3):
        (tmp_path / "d" / f"w.{rank}.et").write_bytes(content)
    (tmp_path / "d" / "notes").write_bytes(b"\x89PNG")
    members = [(f"../../x/w.{rank}.et", content) for rank in range(3)]
    for suffix, mode in ((".tar.gz", "w:gz"), (".tgz", "w:gz"), (".tar", "w")):
        packed_files(tmp_path / f"a{suffix}", members, mode)
        read = load_workload(tmp_path / f"a{suffix}")
        assert (read.name, read.num_ranks, read.total_bytes) == ("a", 3, 8)
    for path in (tmp_path / "d", tmp_path / "d" / "w.*.et", [tmp_path / "d" / f"w.{rank}.et" for rank in (2, 0, 1)]):
        assert load_workload(path).calls == read.calls
    assert any(note.startswith("ignored: 1 file beside the traces") for note in load_workload(tmp_path / "d").notes)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "a.tar.gz", "a.tgz", "d"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tar.gz", b"", "not a readable archive"),
        ("a.tar.gz", b"no archive", "not a readable archive"),
        ("a.tgz", b"\x1f\x8b\x08\0garbage", "not a readable archive"),
        ("none*.et", None, "matches no file"),
        ("none.tar.gz", None, "no such file"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path, opticcl, name, content, message):
    """One line, exit code 2."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = opticcl("train", "--workload", tmp_path / name, "--nodes", "4", "--fabric", "ideal")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert message in done.stderr


def test_archives_with_damage_doubles_or_links_are_refused(tmp_path):
    """A cut archive, two members of one name, a member that links to a file outside, formats that differ."""
    content = trace(coll(1, 8))
    whole = packed_files(tmp_path / "a.tar.gz", [(f"w.{rank}.et", content * 500) for rank in range(2)]).read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WorkloadError, match=r"a\.tar\.gz: is not a readable archive"):
        load_workload(tmp_path / "a.tar.gz")
    packed_files(tmp_path / "b.tar", [("x/w.0.et", content), ("y/w.0.et", content)], "w")
    with pytest.raises(WorkloadError, match=r"two files are called w\.0\.et"):
        load_workload(tmp_path / "b.tar")
    with tarfile.open(tmp_path / "c.tar", "w") as out:
        link = tarfile.TarInfo("w.0.et")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    with pytest.raises(WorkloadError, match="no traces in it"):
        load_workload(tmp_path / "c.tar")
    packed_files(tmp_path / "d.tar", [("w.0.et", content), ("w.1.log", b"AR;8;0,1\n")], "w")
    with pytest.raises(WorkloadError, match="different formats"):
        load_workload(tmp_path / "d.tar")
