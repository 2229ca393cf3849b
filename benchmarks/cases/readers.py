"""Readers of traces, in bytes of text a CPU second. Recorded traces lie in `../shared/data`, beside the checkout."""

from __future__ import annotations

import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import NotRunError, Run, case

SHARED = Path(__file__).parents[3] / "shared" / "data"


def recorded(name: str) -> bytes:
    """The content of a recorded trace.

    Raises: NotRunError: it is not there.
    """
    path = SHARED / name
    if not path.exists():
        raise NotRunError(f"../shared/data/{name} is not there")
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def reads(name: str, text: bytes) -> Run:
    """Read the text as a job, after a first time that imports the reader.

    Args:
        name: of the file, whose suffix selects the reader.
        text: its content.
    """
    from opticcl.traces import load_workload

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / name
    path.write_bytes(text)

    def run() -> dict[str, float]:
        begun = time.process_time()
        calls = len(load_workload(path).calls)
        spent = time.process_time() - begun
        folder.cleanup()
        return {"bytes_per_s": len(text) / spent, "calls": calls}

    return run


@case("readers.lumorph", "LUMORPH log of 29 MB")
def lumorph() -> Run:
    """Groups of 8 of 256 GPUs, each with a thousand sizes."""
    from opticcl.traces import load_workload

    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.log"
        small.write_text("AR;1000000;0,1,2\n")
        load_workload(small)
    groups = [",".join(str(first + 32 * k) for k in range(8)) for first in range(32)]
    lines = [f"AR;{1_000_000 + 64 * k};{groups[k % 32]}\n" for k in range(1000)]
    lines += [f"L2L;{4096 + k};{k % 12};{k % 2};{k % 256};{(k + 32) % 256}\n" for k in range(1000)]
    text = "".join(lines).encode()
    return reads("job.log", text * (29_000_000 // len(text)))


@case("readers.flow_list", "list of flows of 20 MB")
def flow_list() -> Run:
    """Flows between 1,024 hosts, a thousand of each start."""
    reads("small.csv", b"0,0,1,8\n")()
    lines = [f"{1000 * (k // 1000)},{k % 1024},{(k * 7 + 1) % 1024},{100_000 + k}\n" for k in range(1_000_000)]
    return reads("job.csv", "".join(lines).encode())


@case("readers.astra", "ASTRA-sim layer file of 20 MB")
def astra() -> Run:
    """A collective in each phase of 250,000 layers, in groups of two kinds."""
    head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 all_gpus: 64\n"
    line = "layer_{0}\t-1\t{1}\tALLREDUCE\t{2}\t{1}\tALLGATHER\t{2}\t{1}\tREDUCESCATTER\t{2}\t100\n"
    reads("small.txt", f"{head}1\n{line.format(0, 5, 8)}".encode())()
    lines = [line.format(k, 1000 + k, 4096 + k) for k in range(250_000)]
    return reads("job.txt", f"{head}{len(lines)}\n{''.join(lines)}".encode())


@case("readers.sizes", "list of sizes of 16 MB")
def sizes() -> Run:
    """200,000 calls with a name each, as a program writes them."""
    call = '[[calls]]\ncollective = "all_reduce"\nsize = {1}\nname = "gradients of {0}"\n\n'
    reads("small.toml", b'name = "a"\n' + call.format(1, 8).encode())()
    return reads("job.toml", ('name = "a"\n' + "".join(call.format(k, 4096 + k) for k in range(190_000))).encode())


@case("readers.chakra_json", "Chakra trace in JSON of 20 MB")
def chakra_json() -> Run:
    """Host nodes, kernels and collectives in the form of Chakra's jsonizer, three dependencies each."""

    def node(k: int) -> str:
        value = {"id": str(k), "name": f"aten::op_{k % 50}", "type": "COMP_NODE"}
        attributes: list[dict[str, object]] = [{"name": "is_cpu_op", "boolVal": k % 2 == 0}]
        attributes += [{"name": "fw_parent", "int64Val": "0"}, {"name": "rf_id", "int64Val": str(k)}]
        attributes.append({"name": "op_schema", "stringVal": f"aten::op_{k % 50}(Tensor a, Tensor b) -> Tensor"})
        if k % 20 == 19:
            value["type"] = "COMM_COLL_NODE"
            attributes += [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": str(4096 + k)}]
        needs = [str(k - back) for back in (1, 2, 7) if k >= back]
        return json.dumps({**value, "dataDeps": needs, "durationMicros": "5", "attr": attributes}, indent=2)

    reads("small.json", f'{{"version": "0.0.4"}} {node(19)}'.encode())()
    return reads("job.json", "\n".join(['{"version": "0.0.4"}', *map(node, range(38_000))]).encode())


@case("readers.flight_recorder", "flight recorder dump of 20 MB in JSON")
def flight_recorder() -> Run:
    """All-reduces of all ranks, with a stack of four frames each."""
    frames = [{"name": f"f{i}", "filename": "/usr/lib/python3/torch/distributed/x.py", "line": i} for i in range(4)]
    call: dict[str, object] = {
        "profiling_name": "nccl:all_reduce",
        "process_group": ["0", "default_pg"],
        "frames": frames,
    }
    call |= {"input_dtypes": ["Float"], "output_dtypes": ["Float"], "state": "completed", "duration_ms": 0.5}

    def dump(calls: int) -> bytes:
        entries = [{**call, "record_id": k, "input_sizes": [[k, 8]], "output_sizes": [[k, 8]]} for k in range(calls)]
        config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
        return json.dumps({"version": "2.5", "pg_config": config, "entries": entries}).encode()

    reads("small.json", dump(2))()
    return reads("job.json", dump(32_000))


@case("readers.kineto", "Kineto trace of 10 MB, recorded")
def kineto() -> Run:
    """Three steps of a distributed job."""
    text = recorded("kineto/nccl-data.json.gz")
    reads("small.json", recorded("kineto/timeline-rank0.json.gz"))()
    return reads("job.json", text)


def kineto_steps(steps: int, calls: int, kernels: int) -> Iterator[str]:
    """Lines of a trace of the PyTorch profiler: operators, launches and kernels, and all_reduces with their records.

    Args:
        steps: of the profiler [count].
        calls: in each step [count].
        kernels: beside each call, with an operator and a launch each [count].
    """
    host = (
        '{{"ph": "X", "cat": "{}", "name": "{}", "pid": 71, "tid": 71, "ts": {}.125, "dur": {}.500, "args": {{{}}}}},\n'
    )
    card = '{{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {}.250, "dur": {}.750, "args": {{{}}}}},\n'
    sizes = '"Collective name": "allreduce", "In msg nelems": {0}, "Out msg nelems": {0}, "Group size": 8, "dtype": "Float", '
    sizes += (
        '"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "Seq": {1}, "External id": {2}'
    )
    on_card = (
        '"device": 0, "context": 1, "stream": {}, "correlation": {}, "registers per thread": 32, "External id": {}, '
    )
    on_card += '"shared memory": 0, "blocks per SM": 2.5, "grid": [512, 1, 1], "block": [128, 1, 1]'
    yield '{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": [\n'
    number, at = 0, 1_000_000
    for step in range(steps):
        begun = at
        for _ in range(calls):
            for _ in range(kernels):
                number, at = number + 1, at + 20
                about = f'"External id": {number}, "Sequence number": {number}, "Fwd thread id": 0, "Ev Idx": {number}'
                yield host.format("cpu_op", "aten::convolution", at, 12, about)
                about = f'"External id": {number}, "cbid": 211, "correlation": {number}'
                yield host.format("cuda_runtime", "cudaLaunchKernel", at + 4, 3, about)
                about = on_card.format(7, number, number)
                yield card.format("void cudnn::winograd_nonfused::kernel<float, 4, 4>(Params)", 7, at + 10, 15, about)
            number, at = number + 1, at + 40
            about = sizes.format(4096 + number % 1000, number, number)
            yield host.format("cpu_op", "record_param_comms", at, 20, about)
            about = f'"External id": {number}, "cbid": 211, "correlation": {number}'
            yield host.format("cuda_runtime", "cudaLaunchKernelExC", at + 4, 3, about)
            yield card.format(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, at + 10, 30, on_card.format(20, number, number)
            )
        at += 100
        yield host.format("user_annotation", f"ProfilerStep#{step}", begun, at - begun, "")
    yield '{"ph": "M", "name": "process_name", "pid": 71, "args": {"name": "python"}}]}\n'


@case("readers.kineto_2gb", "Kineto trace of 2 GB, written here")
def kineto_2gb() -> Run:
    """2,600 steps of 40 all_reduces, 7.7 million events: also whether memory is bounded."""
    from opticcl.traces import load_workload

    reads("small.json", "".join(kineto_steps(2, 2, 2)).encode())()
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "job.json"
    with path.open("w") as file:
        file.writelines(kineto_steps(2_600, 40, 24))

    def run() -> dict[str, float]:
        begun = time.process_time()
        calls, size = len(load_workload(path).calls), path.stat().st_size
        spent = time.process_time() - begun
        folder.cleanup()
        return {"bytes_per_s": size / spent, "calls": calls, "gb": size / 1e9}

    return run


@case("readers.chakra", "Chakra trace of 3 MB as a job of 64 ranks, recorded", whole=True)
def chakra() -> Run:
    """The whole process."""
    recorded("chakra/resnet50-ddp.rank0.et")

    def run() -> dict[str, float]:
        from opticcl.traces import load_job

        path = SHARED / "chakra" / "resnet50-ddp.rank0.et"
        return {"network_mb": load_job(path, num_ranks=64).network_bytes / 1e6}

    return run
