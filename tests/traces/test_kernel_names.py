"""Names of device events, and sizes of kernels without a record from a list."""

import json
import tomllib

import pytest
from tests.traces.drawn_job import COMPUTE, Call, Job, Recorder, information, kineto

from opticcl.errors import ParameterError, WorkloadError
from opticcl.traces import kernel_names, load_workload
from opticcl.traces.kernel_names import library_of

DEEP = "void deep_ep::internode::dispatch<false>(int4*)"
ROW = '[[kernels]]\nname = "dispatch"\ncollective = "all_to_all"\nsize = "1 kB"\n'


def trace(*names, extra=()):
    """An all_reduce, and kernels of these names."""
    job = Job(4, {"0": (0, 1, 2, 3)})
    made = Recorder(0, job)
    made.call(Call("all_reduce", "0", (0, 1, 2, 3), "Byte", 8, number=1), 9)
    for name in names:
        made.launch(name, COMPUTE, 50, {})
    return kineto([*made.events, *extra], information(job, 0))


def test_every_library_has_a_source():
    """And a pattern that is not that of another one."""
    with open(kernel_names.__file__.replace(".py", ".toml"), "rb") as file:
        table = tomllib.load(file)
    rows = table["kernels"]
    assert all(row["source"] and row["pattern"] for row in rows)
    assert len({row["pattern"] for row in rows}) == len({row["library"] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16", "NCCL"),
        ("mscclKernel_Sum_float_Simple_false", "RCCL"),
        ("hcom_allReduce__123_0_1", "HCCL"),
        ("void deep_ep::intranode::notify_dispatch<8>(int const*)", "DeepEP"),
        ("void deep_ep::layout::get_dispatch_layout<256>(long const*)", None),
        ("void sglang::cross_device_reduce_2stage<__half, 8>(x)", "custom all-reduces of vLLM and SGLang"),
        ("moeA2ACombineKernel<float>", "flashinfer"),
        ("oneccl_reduce_base<float, 2, 16, 1, 1, 2>", "oneCCL"),
        ("void hybrid_ep::dispatch_kernel<4, 8>(x)", "DeepEP"),
        ("void hybrid_ep::scan<256>(x)", None),
        ("void mori::moe::EpCombineIntraNodeKernel<float>(x)", "MORI"),
        ("EpDispatchInterNodeKernel", "MORI"),
        ("void rose::a2a_dispatch_send_kernel<true, 16>(x)", "pplx"),
        ("hybridCubeMeshAllReduceKernel<true>(x)", "PyTorch's symmetric memory"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", None),
        ("triton_red_fused_all_reduce_sum", None),
        ("void at::native::reduce_kernel<512, 1>(x)", None),
    ],
)
def test_names_of_kernels(name, library):
    """As profilers write them."""
    found = library_of(name)
    assert (found.name if found else None) == library


def test_the_longest_name_of_a_list_counts(tmp_path):
    """Bytes and ranks are those of the list; a note counts what each name was used for."""
    (tmp_path / "a.json").write_text(trace(DEEP, DEEP, "gemm", "void mscclpp::x(y)"))
    longer = '[[kernels]]\nname = "internode::dispatch"\ncollective = "all_gather"\nsize = 64\nranks = [0, 2]\n'
    (tmp_path / "sizes.toml").write_text(ROW + longer)
    read = load_workload(tmp_path / "a.json", kernel_sizes=tmp_path / "sizes.toml")
    found = [(call.collective, call.size_bytes, call.ranks, call.measured_s) for call in read.calls[1:]]
    assert found == 2 * [("all_gather", 64, (0, 2), pytest.approx(50e-6))]
    assert read.compute_s == pytest.approx(50e-6)
    assert "sizes of sizes.toml: 0 kernels of dispatch" in read.notes
    assert "sizes of sizes.toml: 2 kernels of internode::dispatch" in read.notes
    assert any(note.startswith("left out: 1 kernels of MSCCL++ without a size") for note in read.notes)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("kernels = 3", "kernels"),
        ("", "kernels"),
        ("kernels = []", "empty"),
        ("[[kernels]", "TOML"),
        (ROW + "rate = 3\n", "rate"),
        (ROW.replace("all_to_all", "all_to_some"), "all_to_some"),
        (ROW.replace("all_to_all", "send_recv"), "transfer"),
        (ROW.replace("1 kB", "-1 kB"), "size"),
        (ROW.replace("1 kB", "1 kX"), "kX"),
        ("kernels = " + 9_000 * "[", "TOML"),
        (ROW.replace("dispatch", ""), "name"),
        (ROW + "ranks = [0, 0]\n", "ranks"),
        (ROW + "ranks = [-1]\n", "ranks"),
    ],
)
def test_a_list_that_is_none_is_refused_in_one_line(tmp_path, content, word):
    """With the file, the field and what to write."""
    (tmp_path / "a.json").write_text(trace(DEEP))
    (tmp_path / "sizes.toml").write_text(content)
    with pytest.raises(WorkloadError, match=word) as refused:
        load_workload(tmp_path / "a.json", kernel_sizes=str(tmp_path / "sizes.toml"))
    assert "sizes.toml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_list_without_kernels_to_use_it_is_refused(tmp_path, opticcl):
    """Of a trace without kernels, or of a model."""
    (tmp_path / "sizes.toml").write_text(ROW)
    with pytest.raises(ParameterError, match="without kernels"):
        load_workload("examples/ring.0.et", kernel_sizes=tmp_path / "sizes.toml")
    done = opticcl("train", "-m", "vgg19", "-n", "8", "-f", "ideal", "--kernel-sizes", str(tmp_path / "sizes.toml"))
    assert (done.returncode, "--kernel-sizes" in done.stderr) == (2, True)


def test_sizes_by_the_command_line(tmp_path, answer):
    """The calls of the list are part of the iteration."""
    (tmp_path / "a.json").write_text(trace(DEEP))
    (tmp_path / "sizes.toml").write_text(ROW)
    command = ["train", "-w", tmp_path / "a.json", "-f", "ideal", "--equal", "rate=100Gb/s"]
    alone, _ = answer(*command)
    found, _ = answer(*command, "--kernel-sizes", tmp_path / "sizes.toml")
    assert (alone["job"]["calls"], found["job"]["calls"]) == (1, 2)


@pytest.mark.parametrize("category", ["mtia_ccp_events", "hpu_op", "collective_comm", "Some Device"])
def test_device_events_of_other_makers_are_counted_and_named(tmp_path, category):
    """They are neither communication nor computation."""
    odd = {"ph": "X", "cat": category, "name": "odd job", "pid": 1, "tid": 2, "ts": 5, "dur": 40, "args": {}}
    (tmp_path / "a.json").write_text(trace("gemm", extra=[odd, odd]))
    read = load_workload(tmp_path / "a.json")
    assert read.compute_s == pytest.approx(50e-6)
    assert "left out: 2 device events of an unknown kind, 80 us: odd job (2)" in read.notes


def test_copies_between_devices_are_counted_with_their_bytes(tmp_path):
    """Other copies are no communication."""
    about = {"device": 0, "stream": 3, "correlation": 9_000, "bytes": 1_000_000}
    copy = {
        "ph": "X",
        "cat": "gpu_memcpy",
        "name": "Memcpy PtoP",
        "pid": 0,
        "tid": 3,
        "ts": 5,
        "dur": 40,
        "args": about,
    }
    local = {**copy, "name": "Memcpy DtoD (Device -> Device)"}
    (tmp_path / "a.json").write_text(trace("gemm", extra=[copy, local]))
    notes = load_workload(tmp_path / "a.json").notes
    said = "left out: 1 copies between devices without a size, 40 us, 1 MB: Memcpy PtoP (1)"
    assert f"{said}; --kernel-sizes gives their sizes" in notes


def ascend(*events):
    """A trace of an Ascend device."""
    host = {"ph": "X", "cat": "cpu_op", "name": "c10d::allreduce_", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "args": {}}
    return json.dumps([host, *events])


def test_tasks_of_an_ascend_device(tmp_path):
    """Cores compute, HCCL communicates by bytes or by elements of a type, other tasks are unknown."""
    task = {"ph": "X", "pid": 2, "tid": 1, "ts": "10.5", "dur": 100.0}
    events = [
        {**task, "name": "MatMul", "args": {"Task Type": "AI_CORE"}},
        {**task, "name": "Cast", "args": {"Task Type": "AI_VECTOR_CORE"}},
        {**task, "name": "EVENT_WAIT", "args": {"Task Type": "EVENT_WAIT"}},
        {
            **task,
            "name": "hcom_allGather__9_0_1",
            "args": {"Task Type": "Communication", "count": 8, "data_type": "FP16"},
        },
        {**task, "name": "hcom_reduceScatter__9_1_1", "args": {"Task Type": "Communication", "size(Byte)": 64}},
        {**task, "name": "hcom_allReduce__9_2_1", "args": {"Task Type": "Communication"}},
    ]
    (tmp_path / "a.json").write_text(ascend(*events))
    read = load_workload(tmp_path / "a.json", num_ranks=4)
    assert [(c.collective, c.size_bytes) for c in read.calls] == [("all_gather", 16), ("reduce_scatter", 64)]
    assert [c.measured_s for c in read.calls] == pytest.approx([100e-6] * 2)
    assert read.compute_s == pytest.approx(200e-6)
    assert any("1 communication kernels of allReduce without a size" in note for note in read.notes)
    assert any("1 device events of an unknown kind" in note and "EVENT_WAIT" in note for note in read.notes)


def test_events_of_the_host_and_the_size_of_a_list(tmp_path, monkeypatch):
    """Categories of Python and of the user are none of a device; a list as long as allowed is read."""
    assert all(map(kernel_names.is_host, ("python_function", "user_defined", "cuda_event")))
    assert not any(map(kernel_names.is_host, ("kernel", "mtia")))
    (tmp_path / "sizes.toml").write_text(ROW)
    for most, fits in ((len(ROW), True), (len(ROW) - 1, False)):
        monkeypatch.setattr(kernel_names, "MAX_LIST_BYTES", most)
        if fits:
            assert kernel_names.KernelSizes.read(tmp_path / "sizes.toml").calls
        else:
            with pytest.raises(WorkloadError, match=f"more than {most} bytes"):
                kernel_names.KernelSizes.read(tmp_path / "sizes.toml")


def test_names_in_a_note():
    """The three that took the most time, of equal times by name; of 10,002 names the last two are others."""
    counts, more = kernel_names.Activity(), kernel_names.Activity()
    for number in range(10_000):
        counts.add("kernels", f"k{number}", 1)
    for name, took_us in (("k7", 4), ("new", 9), ("newer", 9)):
        counts.add("kernels", name, took_us)
    for name, took_us, size in (("c", 2, 70), ("b", 2, 0), ("a", 2, 9)):
        counts.add("copies", name, took_us, size)
        more.add("copies", "c", took_us, size)
    more.add("copies", "z", 1, 2)
    assert list(counts.notes()) == [
        "left out: 10,003 kernels, 10.02 ms: others (2), k7 (2), k0 (1), ...",
        "left out: 3 copies, 6 us, 79 B: a (1), b (1), c (1)",
    ]
    counts.add_all(more)
    assert list(counts.notes())[1:] == ["left out: 7 copies, 13 us, 160 B: c (4), a (1), b (1), ..."]
