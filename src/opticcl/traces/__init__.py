"""Readers of training jobs: the collective calls of a trace, and its task graph.

::

    step.et, step.json    Chakra execution trace of a real or simulated job         chakra.py, chakra_json.py
    step.json             trace of the PyTorch profiler (Kineto)                    kineto.py
    et.json               PyTorch execution trace                                   pytorch_et.py
    nccl_trace_rank_0     dump of the NCCL flight recorder                          flight_recorder.py
    report.sqlite         Nsight Systems report, exported                           nsys.py
    nccl.log              log of the NCCL Inspector                                 nccl_inspector.py
    profile.json          trace of NCCL's example profiler plugin                   nccl_profiler.py
    host.trace.json.gz    profile of XLA, as JAX writes it                          xla.py
    comms.log             LUMORPH's log of all-reduces and transfers                lumorph.py
    flows.csv             list of flows                                             flow_list.py
    job.goal              operations of all ranks, as ATLAHS and LogGOPSim read them  goal.py
    graph.fbuf            task graph of TopoOpt                                     topoopt.py
    workload.csv          rows of AICB                                              aicb.py
    layers.txt            layers with their collectives, ASTRA-sim's text form      astra.py
    calls.parquet         table of calls, as `opticcl trace` writes it                call_file.py
    sizes.toml            a list of sizes, written by hand                          sizes.py
    builtin(name)         the same form, in builtin/

To add a format, write one file here with a `TraceReader` and register it; no list is edited. Traces may be packed
with gzip, xz or bzip2. Readers stream, and count in `notes` what they leave out. Several files, a directory or an archive are
the ranks of one job.
Files that are no traces are refused by their kind, with what to give instead (foreign.py).
"""

from opticcl.ir.task_graph import CollectiveCall, Workload
from opticcl.traces.loading import BUILTIN_WORKLOADS, builtin, load_job, load_steps, load_workload
from opticcl.traces.reader import TRACES, ReadOptions, TraceFormat, TraceReader, register_trace

__all__ = [
    "BUILTIN_WORKLOADS",
    "TRACES",
    "CollectiveCall",
    "ReadOptions",
    "TraceFormat",
    "TraceReader",
    "Workload",
    "builtin",
    "load_job",
    "load_steps",
    "load_workload",
    "register_trace",
]
