"""Profiles of XLA, read by the package and by a parser written here."""

import itertools
import json
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.traces.damage import one_line, survives_damage

from opticcl.errors import WorkloadError
from opticcl.traces import load_job, load_steps, load_workload


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file that every test writes anew."""
    return tmp_path_factory.mktemp("xla") / "host.trace.json"


def profile(operations, num_devices, steps=(), *, as_list=False):
    """A profile in which every device runs the same operations (text, duration), one after the other, in microseconds."""
    events = [{"ph": "M", "pid": 99, "name": "process_name", "args": {"name": "/host:CPU"}}]
    for device in range(num_devices):
        about, at = {"pid": 3 + device}, 0
        for name, tid, given_name in (("process_name", 0, f"/device:TPU:{device}"), ("thread_name", 2, "XLA Ops")):
            events.append({**about, "ph": "M", "tid": tid, "name": name, "args": {"name": given_name}})
        events.append({**about, "ph": "M", "tid": 1, "name": "thread_name", "args": {"name": "Steps"}})
        for number, (start, end) in enumerate(steps):
            events.append({**about, "ph": "X", "tid": 1, "ts": start, "dur": end - start, "name": str(number)})
        for text, took in operations:
            name = text.split(" ")[0].lstrip("%")
            args = {"long_name": text, "hlo_category": "any"}
            events.append({**about, "ph": "X", "tid": 2, "ts": at, "dur": took, "name": name, "args": args})
            at += took
    return json.dumps(events if as_list else {"displayTimeUnit": "ns", "metadata": {}, "traceEvents": events})


FUSION = "%fusion.{} = f32[8]{{0}} fusion(f32[8]{{0}} %p), kind=kLoop"
OPERATIONS = [
    (FUSION.format(1), 10),
    (
        "%all-reduce.1 = bf16[256,4]{1,0:T(8,128)(2,1)} all-reduce(bf16[256,4]{1,0} %fusion.1), channel_id=1, "
        "replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add",
        5,
    ),
    (
        "%all-gather-start = (f32[8]{0}, f32[16]{0}) all-gather-start(f32[8]{0} %fusion.1), "
        "replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}",
        1,
    ),
    (FUSION.format(2), 7),
    ("%all-gather-done = f32[16]{0} all-gather-done((f32[8]{0}, f32[16]{0}) %all-gather-start)", 1),
    ("%fusion.3 = f32[8]{0:T(8)S(1)} fusion(f32[8]{0} %all-reduce.1), kind=kLoop, calls=%all-reduce", 3),
    ("%rs = f32[8]{0} reduce-scatter(f32[32]{0} %p), replica_groups={}, dimensions={0}", 3),
    ("%cp = f32[8]{0} collective-permute(f32[8]{0} %p), source_target_pairs={{0,1},{1,2},{3,3},{2,3,0}}", 4),
    ("%fusion.9 = f32[8]{0} fusion(f32[32] %p), kind=kCustom, calls=%all-reduce-scatter.5", 2),
    ("%async-collective.1 = f32[8]{0} custom-call(f32[8]{0} %p)", 4),
]


@pytest.mark.parametrize("as_list", [False, True])
def test_calls_of_all_devices(path, as_list):
    """Each call once a group; whole messages; a duration where an operation is not divided into start and done."""
    path.write_text(profile(OPERATIONS, 4, as_list=as_list))
    read = load_workload(path)
    assert [(c.collective, c.size_bytes, c.ranks, c.measured_s) for c in read.calls] == [
        ("all_reduce", 2048, (0, 1), 5e-6),
        ("all_reduce", 2048, (2, 3), 5e-6),
        ("all_gather", 64, (0, 2), 0),
        ("all_gather", 64, (1, 3), 0),
        ("reduce_scatter", 128, (0, 1, 2, 3), 3e-6),
        ("send_recv", 32, (0, 1), 4e-6),
        ("send_recv", 32, (1, 2), 4e-6),
    ]
    assert (read.num_ranks, read.ranks_source) == (4, "replica_groups of host.trace.json")
    assert read.compute_s == pytest.approx(20e-6)
    assert not any("itself" in note for note in read.notes)
    assert "left out: 4 fusion.9, whose text has no shape and groups" in read.notes
    assert "left out: 4 async-collective.1, whose text has no shape and groups" in read.notes


def test_what_waits_for_what(path):
    """Computation beside a collective between start and done; what follows the done waits for it."""
    path.write_text(profile(OPERATIONS[:6], 2))
    tasks = [task for task in load_job(path, num_ranks=4).tasks if 0 in task.devices]
    job = load_job(path, num_ranks=4).tasks
    names = {id(task): i for i, task in enumerate(job)}
    assert len(names) == len(job)
    compute = [i for i, task in enumerate(job) if not task.communicates and task.devices == (0,)]
    reduce, gather = (
        next(i for i, task in enumerate(job) if task.collective == kind and 0 in task.devices)
        for kind in ("all_reduce", "all_gather")
    )
    assert [round(job[i].compute_s * 1e6) for i in compute] == [10, 7, 3]
    assert reduce in job[compute[1]].after
    assert gather not in job[compute[1]].after
    assert gather in job[compute[2]].after
    assert compute[0] in job[reduce].after
    assert len(tasks) == 5


def test_steps_divide_a_profile(path):
    """By the thread Steps; what is outside is counted."""
    twice = [*OPERATIONS[:2], *OPERATIONS[:2], *OPERATIONS[:1]]
    path.write_text(profile(twice, 2, steps=[(0, 15), (15, 30)]))
    assert [(step.step, step.num_calls) for step in load_steps(path, num_ranks=4)] == [("step 0", 1), ("step 1", 1)]
    assert "left out: 1 operations outside of the steps" in load_workload(path).notes


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("%a = f32[6]{0} all-reduce(f32[6] %p), replica_groups={{0}}, channel_id=1", [("all_reduce", 24, (0, 1))]),
        ("%a = (s4[3]{0}, pred[5]) all-reduce(s4[3] %p, pred[5] %q), replica_groups={}", [("all_reduce", 7, (0, 1))]),
        ("%a = f8e4m3fn[4,4]{1,0} all-to-all(f8e4m3fn[4,4] %p), replica_groups={{0,1}}", [("all_to_all", 16, (0, 1))]),
        (
            "%a = (f32[4]{0}, f32[4]{0}, u32[], u32[]) collective-permute-start(f32[4] %p), source_target_pairs={{0,1}}",
            [("send_recv", 16, (0, 1))],
        ),
        (
            "%a = ((f32[4]{0:T(8)}, s8[3]), (f32[4], s8), u32[]{:S(2)}, u32[]) collective-permute-start(f32[4] %p, s8[3] %q), "
            "source_target_pairs={{0,1}}",
            [("send_recv", 19, (0, 1))],
        ),
        ("%a = f32[4] all-reduce(f32[4] %p), replica_groups=[2,]<=[,2], to_apply=%x", [("all_reduce", 16, (0, 1))]),
        (
            "%a = ((c64[4,2]{1,0:T(8)S(1)}), c64[4,2]{1,0}) all-to-all-start(c64[4,2] %p), replica_groups={{0,1}}",
            [("all_to_all", 64, (0, 1))],
        ),
        (
            "%a = ((f32[8]{0}, s8[4]), (f32[4]{0}, s8[2])) reduce-scatter-start(f32[8] %p, s8[4] %q), replica_groups={{0,1}}",
            [("reduce_scatter", 36, (0, 1))],
        ),
        (
            "%a = (f32[8]{0}, s8[4], f32[16], s8[8]) all-gather-start(f32[8] %p, s8[4] %q), replica_groups={{0,1}}",
            [("all_gather", 72, (0, 1))],
        ),
        ("%a = (f32[8], s8[4]) all-reduce-start(%p, %q), replica_groups={{0,1}}", [("all_reduce", 36, (0, 1))]),
        ("%a = c64[<=4]{0} collective-broadcast(c64[<=4] %p), replica_groups={{1,0}}", [("broadcast", 32, (1, 0))]),
        ("%a = (f32[4], s8[3]) collective-permute(%p, %q), source_target_pairs={{0,1}}", [("send_recv", 19, (0, 1))]),
        ("%a = (f32[16], s8[8]) all-gather(%p, %q), replica_groups={{0,1}}", [("all_gather", 72, (0, 1))]),
        ("%a = f32[4] all-reduce(%p), channel_id=1, replica_groups={{1,0}}", [("all_reduce", 16, (1, 0))]),
        ("%a = f32[4] all-reduce(%p), channel_id=1, to_apply=%x", [("all_reduce", 16, (0, 1))]),
    ],
)
def test_shapes_and_groups(path, text, calls):
    """Bits of types, tuples, one replica over all partitions, dimensions of a bound."""
    pad = "%b = f32[1]{0} all-reduce(f32[1] %p), replica_groups={{0,1}}"
    path.write_text(profile([(text, 5), (pad, 1)], 2))
    found = [(c.collective, c.size_bytes, c.ranks or (0, 1)) for c in load_workload(path).calls]
    assert found == [*calls, ("all_reduce", 4, (0, 1))]


# --- drawn profiles ---------------------------------------------------------------------------------------------------

BITS = {"f32": 32, "bf16": 16, "f8e5m2": 8, "s8": 8, "pred": 8, "f64": 64}


@st.composite
def profiles(draw):
    """Texts of operations with groups as lists or as the order of a mesh, and the number of devices."""
    mesh = draw(st.sampled_from([(2,), (4,), (2, 2), (2, 3), (2, 2, 2)]))
    count = math.prod(mesh)
    texts = []
    for number in range(draw(st.integers(1, 6))):
        type_ = draw(st.sampled_from(sorted(BITS)))
        # a scalar, or an array that an all_to_all can divide
        sides = draw(st.one_of(st.just([]), st.lists(st.integers(1, 99), max_size=3).map(lambda rest: [840, *rest])))
        shape = f"{type_}[{','.join(map(str, sides))}]{{0:T(8,128)}}"
        turned = draw(st.permutations(range(len(mesh))))
        per_group = math.prod(mesh[axis] for axis in turned[len(mesh) // 2 :])
        groups = f"[{count // per_group},{per_group}]<=[{','.join(map(str, mesh))}]"
        groups += f"T({','.join(map(str, turned))})" if turned != list(range(len(mesh))) else ""
        if draw(st.booleans()):
            members = draw(st.permutations(range(count)))
            cut = draw(st.integers(1, count))
            groups = (
                f"{{{{{','.join(map(str, members[:cut]))}}}}}"
                if cut == count
                else (f"{{{{{','.join(map(str, members[:cut]))}}},{{{','.join(map(str, members[cut:]))}}}}}")
            )
        kind = draw(st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", *(["all-to-all"] if sides else [])]))
        more = f"channel_id={number}, replica_groups={groups}, use_global_device_ids=true"
        texts.append(f"%x.{number} = {shape} {kind}({shape} %p), {more}")
    texts.append(
        "%last = f32[1] all-reduce(f32[1] %p), replica_groups={" + "{" + ",".join(map(str, range(count))) + "}}"
    )
    return texts, count


def parsed(text):
    """Kind, bytes of the result and groups of an operation, by a parser of its own."""
    result, kind = text.split(" = ")[1].split(" ")[:2]
    type_, _, sides = result.partition("]")[0].partition("[")
    size = math.prod(int(side) for side in sides.split(",") if side) * BITS[type_] // 8
    groups = text.partition("replica_groups=")[2]
    if groups.startswith("{"):
        lists = groups[2:].partition("}}")[0].split("},{")
        return kind.partition("(")[0], size, [tuple(map(int, one.split(","))) for one in lists]
    shape, _, rest = groups[1:].partition("]<=[")
    dims, _, rest = rest.partition("]")
    dims = [int(side) for side in dims.split(",")]
    turned = [int(axis) for axis in rest[2:].partition(")")[0].split(",")] if rest.startswith("T") else range(len(dims))
    strides = [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]
    ordered = [
        sum(i * strides[axis] for i, axis in zip(index, turned, strict=True))
        for index in itertools.product(*(range(dims[axis]) for axis in turned))
    ]
    width = int(shape.split(",")[1])
    return kind.partition("(")[0], size, [tuple(ordered[i : i + width]) for i in range(0, len(ordered), width)]


@examples(40)
@given(drawn=profiles())
def test_drawn_profiles_by_an_independent_parser(path, drawn):
    """Every operation is a call of each of its groups."""
    texts, count = drawn
    due = Counter()
    for text in texts:
        kind, size, groups = parsed(text)
        for group in groups:
            whole = size * len(group) if kind == "reduce-scatter" else size
            if len(group) > 1:
                due[kind.replace("-", "_"), whole, tuple(sorted(group))] += 1
    path.write_text(profile([(text, 1) for text in texts], count))
    read = load_workload(path)
    assert Counter((c.collective, c.size_bytes, tuple(sorted(c.ranks))) for c in read.calls) == due
    assert read.num_ranks == count


FILE = profile(OPERATIONS, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace("XLA Ops", "Other"), "no device has a thread of XLA's operations"),
        (FILE[:-40], "is this a whole profile of XLA"),
        (FILE.replace("bf16[256,4]", "bf16[99999999999,99999999999]"), "not 0 to 2"),
        (profile(OPERATIONS[:1], 2), "no collective with a size"),
        (FILE + "5", "more text after the end of the trace"),
    ],
)
def test_a_wrong_profile_is_refused(path, text, said):
    """One printable line."""
    path.write_text(text)
    for read in (load_workload, load_steps):
        with pytest.raises(WorkloadError, match=said) as caught:
            read(path)
        assert str(caught.value).isprintable()


def load(path, content):
    """What is read of a file with that content."""
    path.write_bytes(content)
    return load_workload(path)


@examples(60)
@given(at=st.integers(0, len(FILE) - 1), byte=st.integers(0, 255), cut=st.integers(0, len(FILE)))
def test_cut_and_flipped_profiles_raise_nothing_else(path, at, byte, cut):
    """A workload or one line."""
    assert survives_damage(load, path, FILE, at, byte, cut)


def test_computation_between_a_start_and_its_done(path):
    """It is beside the collective; computation without a duration is none."""
    start = "%ag-start.7 = (f32[8], f32[16]) all-gather-start(f32[8] %p), replica_groups={{0,1}}"
    done = "%ag-done = f32[16] all-gather-done((f32[8], f32[16]) %ag-start.7)"
    took = [5, 0, 1, 6, 2, 7, 8]
    last = "send-buffer.5 = f32[8] add(f32[8] %p)"  # computes, whatever its name
    texts = [FUSION.format(1), FUSION.format(2), start, FUSION.format(3), done, FUSION.format(4), last]
    path.write_text(profile(list(zip(texts, took, strict=True)), 1))
    job = load_job(path)
    assert [(round(task.compute_s * 1e6), task.collective, task.after) for task in job.tasks] == [
        (5, "", ()),
        (0, "all_gather", (0,)),
        (6, "", (0,)),
        (15, "", (1, 2)),
    ]
    assert "without a duration: 1 collective between start and done" in job.notes
    assert "computation: 26 us in operations of device 0" in job.notes
    named = "%all-gather-fusion.2 = f32[8] fusion(f32[8] %p), kind=kCustom, calls=%fused"
    path.write_text(profile([(FUSION.format(1), 0), (start, 1), (done, 1), (named, 3)], 1))
    only = load_job(path)
    assert [(task.compute_s, task.collective) for task in only.tasks] == [(0, "all_gather")]
    assert "left out: 1 all-gather-fusion.2, whose text has no shape and groups" in only.notes
    assert not any(note.startswith("computation") for note in only.notes)
    assert any(note.startswith("ranks: numbers in replica_groups") for note in job.notes)
    assert not any("outside of the steps" in note for note in job.notes)


def test_groups_of_other_devices(path):
    """Devices that no group names have no call; numbers with gaps are no number of ranks; a group of one is left out."""
    path.write_text(profile([("%a = f32[4] all-reduce(f32[4] %p), replica_groups={{0,2}}", 1)], 3))
    read = load_workload(path)
    assert [(c.size_bytes, c.ranks) for c in read.calls] == [(16, (0, 2))]
    assert "left out: 1 a, in groups without device 1, 16 bytes in all" in read.notes
    assert read.num_ranks == 3
    assert not any("computation" in note or "without a duration" in note for note in read.notes)
    own = ", channel_id=1, use_global_device_ids=true"
    for groups in ("{{0}}", "{{0},{1}}", "[1,1]<=[1]", f"{{{{0}},{{1}}}}{own}", f"{{{{0}}}}{own}"):
        path.write_text(profile([(f"%a = f32[4] all-reduce(f32[4] %p), replica_groups={groups}", 1)], 2))
        said = one_line(load, path, path.read_bytes())
        assert "no collective with a size" in said
        assert "all_reduce in a group of one rank" in said
    text = "%a = f32[4] all-reduce(f32[4] %p), replica_groups={}"
    for groups in ("[3,2]<=[4]", "[0]<=[0]", f"[1,{2**21}]<=[{2**21}]", "mesh['x'=2] {'x'}"):
        path.write_text(profile([(text.format("{}"), 1), (text.format(groups), 1)], 2))
        read = load_workload(path, num_ranks=2)
        assert [(call.ranks, call.group_source) for call in read.calls] == [((), "assumed: all ranks")]
        assert "left out: 2 a, whose groups have a form that is not read, 32 bytes in all" in read.notes
        assert load_job(path, num_ranks=2).bound in ("lower", "estimate")


def test_names_of_devices(path):
    """With the name of the host; SparseCores are no devices, and devices of several hosts are refused."""
    plain = profile(OPERATIONS[:2], 2)
    assert '"/device:TPU:1"' in plain
    path.write_text(plain.replace('"/device:TPU:', '"t1v-n-0.local /device:TPU:'))
    known = load_workload(path, num_ranks=4)
    path.write_text(plain)
    assert known.calls == load_workload(path, num_ranks=4).calls
    path.write_text(plain.replace('"/device:TPU:1"', '"/device:TPU:0 SparseCore 1"'))
    read = load_workload(path, num_ranks=4)
    assert [call.ranks for call in read.calls] == [(0, 1)]
    assert read.compute_s == pytest.approx(10e-6)
    path.write_text(
        plain.replace('"/device:TPU:1"', '"b /device:TPU:0"').replace('"/device:TPU:0"', '"a /device:TPU:0"')
    )
    with pytest.raises(WorkloadError, match=r"has devices of 2 hosts \(a, b\), .* give one"):
        load_workload(path)
    path.write_text(plain.replace('"/device:TPU:1"', '"b /device:TPU:1"'))
    with pytest.raises(WorkloadError, match=r"has devices of 2 hosts \(, b\)"):
        load_workload(path)
    path.write_text(plain.replace('"pid": 3', '"pid": "a"').replace('"pid": 4', '"pid": "b"'))
    assert load_workload(path, num_ranks=4).calls == known.calls
    for texts, count in ((["replica_groups={{0,1}}"], 2), (["source_target_pairs={{0,1},{1,2}}"], 3)):
        kind = "all-reduce" if count == 2 else "collective-permute"
        path.write_text(profile([(f"%a = f32[4] {kind}(%p), {text}", 1) for text in texts], count))
        read = load_workload(path)
        assert (read.num_ranks, read.ranks_source) == (count, "replica_groups of host.trace.json")


def test_operations_without_their_text(path):
    """Kernels of a GPU by the name of their operation; events without a time, of a begin, or of the host are none."""
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0 A100"}},
        {"ph": "M", "pid": 1, "tid": 5, "name": "thread_name", "args": {"name": "Stream #13(Compute)"}},
        {"ph": "M", "pid": 1, "tid": 5, "name": "thread_sort_index", "args": {"sort_index": 5}},
        {"ph": "M", "pid": 1, "name": "process_labels", "args": {"name": "/device:GPU:7"}},
        {"ph": "X", "pid": 1, "tid": 5, "dur": 2, "name": "gemm"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": 1, "name": "gemm"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": 40, "dur": 2, "name": "all-gather.7"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": 0.5, "dur": 2.5, "name": "gemm", "args": {"hlo_op": "dot.1"}},
        {"ph": "X", "pid": 1, "tid": 5, "ts": 4, "dur": 2, "name": "all-reduce.3", "args": {"hlo_op": "all-reduce.3"}},
        {"ph": "X", "pid": 1, "tid": 5, "ts": -4, "dur": 2, "name": "gemm"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": "4", "dur": 2, "name": "gemm"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": 4, "dur": 1e19, "name": "gemm"},
        {"ph": "B", "pid": 1, "tid": 5, "ts": 4, "dur": 2, "name": "gemm"},
        {"ph": "X", "pid": 1, "tid": 6, "ts": 4, "dur": 2, "name": "python"},
        {"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 2, "tid": 5, "name": "thread_name", "args": {"name": "Stream of the host"}},
        {"ph": "X", "pid": 2, "tid": 5, "ts": 4, "dur": 2, "name": "gemm"},
        {
            "ph": "X",
            "pid": 1,
            "tid": 5,
            "ts": 9,
            "dur": 3,
            "name": "nothing else",
            "args": {"long_name": OPERATIONS[1][0]},
        },
        5,
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    read = load_workload(path)
    assert read.compute_s == pytest.approx(2.5e-6)
    assert "left out: 1 all-reduce.3, whose text has no shape and groups" in read.notes
    assert "left out: 1 all-gather.7, whose text has no shape and groups" in read.notes
    assert "computation: 2.5 us in operations of device 0" in read.notes
    assert [c.ranks for c in read.calls] == [(0, 1)]


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all-reduce-start.1"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "fusion.7"),
        ("one_shot_kernel", "all-reduce.3"),
    ],
)
def test_kernels_of_collectives_on_a_gpu_are_no_computation(path, name, operation):
    """A profile of a GPU has the names of kernels and operations alone: without shapes they are counted, and left out."""
    about = {"pid": 1, "tid": 13}
    events = [
        {**about, "ph": "M", "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {**about, "ph": "M", "name": "thread_name", "args": {"name": "Stream #13(Compute,NcclKernel)"}},
    ]
    kernels = [
        ("gemm_fusion_dot_1", "gemm_fusion_dot.1", 8),
        (name, operation, 5),
        ("loop_add_fusion", "loop_add_fusion", 2),
    ]
    at = 0
    for kernel, of, took in kernels:
        args = {"hlo_module": "jit_step", "hlo_op": of, "program_id": "7", "correlation_id": "3"}
        events.append({**about, "ph": "X", "ts": at, "dur": took, "name": kernel, "args": args})
        at += took
    text = "%all-reduce.9 = f32[4]{0} all-reduce(f32[4]{0} %p), replica_groups={{0,1}}"
    events.append({**about, "ph": "X", "ts": at, "dur": 1, "name": "all-reduce.9", "args": {"long_name": text}})
    path.write_text(json.dumps({"traceEvents": events}))
    read = load_workload(path, num_ranks=2)
    assert read.compute_s == pytest.approx(10e-6)
    assert [(one.calls, one.missing) for one in read.omitted] == [(1, True)]
