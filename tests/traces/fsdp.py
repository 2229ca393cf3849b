"""A synthetic step of fully sharded data parallelism, as the PyTorch profiler records it on a fast network."""

import json

FORWARD_US, BACKWARD_US = 1_000.0, 4_000.0
COMPUTE, GATHER, SCATTER = 7, 20, 21  # streams


def fsdp_step(
    layers: int = 20,
    ranks: int = 8,
    elements: int = 25_000_000,
    call_us: float = 300.0,
    waits: str = "cuda_sync",
    extra: list[dict] = (),
) -> str:
    """A trace with all-gathers prefetched one ahead and reduce-scatters behind the backward pass.

    Args:
        layers: each of one kernel forward and one backward.
        ranks: of the job.
        elements: of the parameters of a layer, in single precision.
        call_us: duration of a call in the recording, shorter than what hides it.
        waits: "cuda_sync" records stream waits with their streams, "runtime" without, "none" not at all.
        extra: further events.
    """
    events: list[dict] = []
    device = {COMPUTE: 0.0, GATHER: 0.0, SCATTER: 0.0}  # when each stream is free
    recorded: dict[str, tuple[int, int, float]] = {}  # event -> stream, correlation, time
    host = [0.0, 0]  # time, correlation

    def runtime(name: str) -> int:
        host[0] += 2.0
        host[1] += 1
        args = {"correlation": host[1]}
        events.append(
            {"ph": "X", "cat": "cuda_runtime", "name": name, "tid": 1, "ts": host[0], "dur": 1.0, "args": args}
        )
        return host[1]

    def record(key: str, stream: int) -> None:
        number = host[1] + 1
        if waits != "none":
            number = runtime("cudaEventRecord")
        recorded[key] = stream, number, device[stream]

    def wait(key: str, stream: int) -> None:
        of, number, until = recorded[key]
        device[stream] = max(device[stream], until)
        if waits == "none":
            return
        correlation = runtime("cudaStreamWaitEvent")
        if waits == "cuda_sync":
            args = {"stream": stream, "correlation": correlation, "wait_on_stream": of}
            args |= {"wait_on_cuda_event_record_corr_id": number, "wait_on_cuda_event_id": number}
            sync = {
                "ph": "X",
                "cat": "cuda_sync",
                "name": "Stream Wait Event",
                "tid": stream,
                "ts": host[0],
                "dur": 0.0,
            }
            events.append({**sync, "args": args})

    def kernel(name: str, stream: int, us: float, **args: object) -> None:
        correlation = runtime("cudaLaunchKernel")
        start = max(device[stream], host[0] + 3.0)
        device[stream] = start + us
        args = {"stream": stream, "correlation": correlation, **args}
        events.append({"ph": "X", "cat": "kernel", "name": name, "tid": stream, "ts": start, "dur": us, "args": args})

    def call(name: str, kernel_name: str, stream: int, sizes: tuple[int, int]) -> None:
        start, own = host[0] + 1.0, len(events)
        host[0] = start
        record(f"before {stream}", COMPUTE)
        wait(f"before {stream}", stream)
        kernel(kernel_name, stream, call_us)
        host[0] += 2.0
        args = {"Collective name": name, "In msg nelems": sizes[0], "Out msg nelems": sizes[1], "dtype": "Float"}
        args |= {"Group size": ranks, "Process Group Name": "0", "Process Group Ranks": str(list(range(ranks)))}
        row = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "tid": 1, "ts": start, "dur": host[0] - start}
        events.insert(own, {**row, "args": args})

    def gather(layer: int) -> None:
        call("_allgather_base", "ncclDevKernel_AllGather", GATHER, (elements // ranks, elements))
        record(f"gathered {layer}", GATHER)

    gather(0)
    for layer in range(layers):
        if layer + 1 < layers:
            gather(layer + 1)
        wait(f"gathered {layer}", COMPUTE)
        kernel("forward", COMPUTE, FORWARD_US)
    for layer in reversed(range(layers)):
        kernel("backward", COMPUTE, BACKWARD_US)
        call("_reduce_scatter_base", "ncclDevKernel_ReduceScatter", SCATTER, (elements, elements // ranks))
        record(f"scattered {layer}", SCATTER)
    info = {"rank": 0, "world_size": ranks}
    return json.dumps({"distributedInfo": info, "traceEvents": [*events, *extra]})
