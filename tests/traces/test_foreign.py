"""Files that are no traces are recognised and refused with what to give instead."""

import bz2
import gzip
import lzma
import pickle

import pytest
from tests.optional import shared_file

CASES = {
    "report.nsys-rep": (b"\0\1\2", "nsys export --type sqlite --include-json true"),
    "report.qdrep": (b"\0\1\2", "nsys export --type sqlite"),
    "ring.xml": (b'<algo name="ring" proto="Simple" nchunksperloop="8"><gpu id="0"></gpu></algo>', "schedule of MSCCL"),
    "te.json": (b'{"1-Epoch_Duration": 0.1, "7-Flows": []}', "schedule of TE-CCL"),
    "plan.parquet": (b"PAR1abc", "Parquet"),
    "plan.json": (b'{"header": {"format": "opticcl-plan", "version": 1', "a plan of opticcl"),
    "plan.csv": (b'# {"format": "opticcl-plan", "version": 1', "a plan of opticcl"),
    "nccl.log": (b"host:1:2 [0] NCCL INFO Bootstrap : Using eth0\n", "NCCL_DEBUG"),
    "trace.pftrace": (b"\x0a\x05abcde", "export_chrome_trace"),
    "trace.json.zst": (b"\x28\xb5\x2f\xfd\0", "packed with zstd"),
    "twice.json.gz": (gzip.compress(bz2.compress(b"{}")), "packed twice"),
    "again.json.xz": (lzma.compress(lzma.compress(b"{}")), "packed twice"),
    "wide.json": ('{"traceEvents": []}'.encode("utf-32"), "a text in UTF-32"),
    "wider.json": ("\ufeff{}".encode("utf-32-be"), "a text in UTF-32"),
    "narrow.json": ('{"traceEvents": []}'.encode("utf-16"), "a text in UTF-16"),
    "results.json": (b'{ "traceEvents":[{}\n,{"args":{"BeginNs":"5","EndNs":"9"},"ph":"X"}\n]}', "AMD's rocprof"),
    "out_results.json": (b'{"rocprofiler-sdk-tool": [{"metadata": {}}]}', "AMD's rocprof"),
    "communication.json": (
        b'{"step0": {"p2p": {}, "collective": {"hcom_allReduce__1_0_1@1": {"Communication Time Info": {}}}}}',
        "give trace_view.json",
    ),
    "communication_matrix.json": (
        b'{"step0": {"collective": {"allreduce-top1@1": {"0-1": {"Transport Type": "SDMA", "Transit Size(MB)": 1.0}}}}}',
        "give trace_view.json",
    ),
    "host.xplane.pb": (b"\x0a\x90\x4e\x08\x01\x12\x0d/device:GPU:0\x1a\x04", "give the trace.json.gz beside it"),
    "gemm.ncu-rep": (b"\0\1\2", "nsys profile"),
    "traces.otf2": (b"\0\1\2", "Score-P"),
    "comms.json": (b'[{"comms": "all_reduce", "in_msg_size": 100, "dtype": "Float"}]', "PARAM's replay"),
    "report.json": (b'{"Type":80,"TraceProcessEvent":{"startNs":"1"}}\n{"Type":79,"CudaEvent":{}}\n', "--type sqlite"),
    "stats.csv": (b"Time (%),Total Time (ns),Instances\n50.0,100,1\n", "nsys stats"),
    "module.txt": (b"HloModule jit_step, is_scheduled=true\n\nENTRY main {\n}\n", "module of XLA"),
    "inspector.prom": (b"# HELP nccl_bus_bandwidth_gbs bandwidth\n", "NCCL Inspector for Prometheus"),
    "timeline.json": (b'[\n{"name": "NEGOTIATE_ALLREDUCE", "ph": "B", "ts": 1, "pid": 1},\n', "timeline of Horovod"),
    "train.log": (b"[INFO] [Rank 0] rank=0 | comm op: all_reduce | time (ms): 9.4 | msg size: 1.0 GB\n", "DeepSpeed"),
    "memory.pickle": (pickle.dumps({"segments": [], "device_traces": [[]]}), "PyTorch's memory"),
    "training.log": (b'step 1 {"loss": 3}\nhost:1:2 [0] NCCL INFO Bootstrap : Using eth0\n', "a log of NCCL_DEBUG"),
    "table.txt": (
        b"#       size         count      type   redop\n#        (B)    (elements)\n",
        "a table of nccl-tests",
    ),
    "mpirun.txt": (b"[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 8\n", "a table of nccl-tests"),
    "all_reduce.json": (b'{"version": "2.18", "start_time": "2026", "nccl_version": 22900}', "nccl-tests in JSON"),
    "osu.txt": (b"# OSU MPI Allreduce Latency Test v7.3\n# Size  Avg Latency(us)\n", "a benchmark of MPI"),
    "profile.mpiP": (b"@ mpiP\n@ Command : ./a.out\n", "a profile of mpiP"),
    "dumpi.txt": (b"MPI_Init entering at walltime 8.0, cputime 0.1 seconds in thread 0.\n", "a trace of MPI in text"),
    "pmpi.txt": (b"# collprof 0.9 output file\n#\n\nMPI_Init:-:1:2:3.0\n", "make GOAL of it with Schedgen"),
    "otf2.txt": (b"\n=== OTF2-PRINT ===\n", "Score-P (OTF2) in text"),
    "trace.prv": (b"#Paraver (10/10/2024 at 10:10):100_ns:1(4):1\n", "a trace of Paraver"),
    "allreduce.json": (b'{"name": "x", "reuse_resources": false, "gpus": [{"id": 0}]}', "a plan of MSCCL++ in JSON"),
    "flow.txt": (b"1\n0 1 3 100 1000000 2.0\n", "a list of flows for ns-3"),
    "calls.csv": (b"rank,collective,size_bytes\n-1,all_reduce,100\n", "give it as Parquet"),
    "flows.csv": (b"start,src,dst,size\n0,0,1,100\n", "leave the header out"),
    "gpu_trace.csv": (b"Start (ns),Duration (ns),CorrId,Name\n1,2,3,kernel\n", "nsys stats"),
    "step.mlir": (b"module @jit_step attributes {mhlo.num_replicas = 1 : i32} {\n", "a module of XLA"),
    "summary.txt": (b"Comm. Op            Message Size        Count\nall_reduce\n", "DeepSpeed"),
    "all_reduce_perf.txt": (b"# nThread 1 nGpus 8 minBytes 8 maxBytes 1024\n", "nccl-tests"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_foreign_file_is_named(tmp_path, opticcl, name):
    """One line, exit code 2, with advice; also under another name where the content tells."""
    content, said = CASES[name]
    (tmp_path / name).write_bytes(content)
    done = opticcl("train", "--workload", tmp_path / name, "--nodes", "4", "--fabric", "ideal")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert name in done.stderr


@pytest.mark.parametrize("name", ["communication.json", "results.json", "host.xplane.pb", "wide.json"])
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_foreign_file_is_named_without_its_name_and_packed(tmp_path, opticcl, name, pack):
    """By what it holds."""
    content, said = CASES[name]
    (tmp_path / "file").write_bytes(pack(content))
    done = opticcl("train", "--workload", tmp_path / "file", "--nodes", "4", "--fabric", "ideal")
    assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "content",
    [b"src " * 15_000, b"," * 50_000, b"src,dst\n0" + b" " * 50_000 + b"x", b"\n" * 60_000 + b"x", b"A" * 60_000],
)
def test_what_repeats_itself_is_no_long_search(tmp_path, opticcl, content):
    """Patterns go through it once; some would have taken hours."""
    (tmp_path / "file.csv").write_bytes(content)
    assert opticcl("train", "--workload", tmp_path / "file.csv", "--nodes", "4", "--fabric", "ideal").returncode == 2


def test_a_real_schedule_is_refused(opticcl):
    """Of MSCCL, by its content."""
    done = opticcl(
        "train", "--workload", shared_file("msccl/ring-allreduce-8.xml"), "--nodes", "8", "--fabric", "ideal"
    )
    assert done.returncode == 2
    assert "schedule of MSCCL" in done.stderr
