"""Speed of `opticcl train`: CPU seconds and peak memory of one job on all fabrics, and of a sweep.

python benchmarks/train.py [NAME ...]
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

MODELS = ("lenet", "alexnet", "vgg16", "vgg19", "resnet50", "inception_v3", "beit_l", "bert", "ncf", "transformer")
SYSTEMS = ("ideal", "ramp", "sipac", "oddl", "lightpath", "terarack", "fat_tree", "torus")
SCALES = (8, 16, 32, 64, 128, 256)
TRACE = Path(__file__).parents[2] / "shared" / "data" / "chakra" / "resnet50-ddp.rank0.et"


def vgg19() -> str:
    """VGG19 on 1,024 nodes of every fabric."""
    from opticcl.fabrics import FABRICS, fabric_at_scale
    from opticcl.training.partition import partition
    from opticcl.training.train import train

    found = train(partition("vgg19", 1024), [fabric_at_scale(name, 1024, 100e9) for name in FABRICS.names()])
    return f"{len(found.rows)} fabrics, all verified: {all(row.verified for row in found.rows)}"


def sweep() -> str:
    """Ten models on eight systems at six scales, plans shared."""
    from opticcl.fabrics import fabric_at_scale
    from opticcl.training.communication import Fastest
    from opticcl.training.partition import partition
    from opticcl.training.train import train

    planner, rows = Fastest(resolution_s=1e-6), 0
    for nodes in SCALES:
        machines = [fabric_at_scale(name, nodes, 100e9) for name in SYSTEMS]
        for name in MODELS:
            job = partition(name, nodes, local_batch=1, fit=False)
            rows += len(train(job, machines, planner=planner).rows)
    return f"{rows} rows"


def table9() -> str:
    """The rows of RAMP's table 9 up to 2,048 devices on all fabrics."""
    from opticcl.errors import FabricError
    from opticcl.fabrics import FABRICS, fabric_at_scale
    from opticcl.papers.ramp_models import ramp_table9
    from opticcl.training.communication import Fastest
    from opticcl.training.train import train

    planner, rows = Fastest(resolution_s=1e-5), 0
    for cross_entropy in (2.5, 2.4, 2.2, 2.0, 1.8):
        job = ramp_table9(cross_entropy).job
        machines = []
        for name in FABRICS.names():
            try:
                machines.append(fabric_at_scale(name, job.num_ranks))
            except FabricError:
                continue
        rows += len(train(job, machines, planner=planner).rows)
    return f"{rows} rows"


def megatron_everywhere() -> str:
    """The last row of RAMP's table 9, 65,536 devices, on all fabrics that have a machine of that size."""
    from opticcl.errors import FabricError
    from opticcl.fabrics import FABRICS, fabric_at_scale
    from opticcl.papers.ramp_models import ramp_table9
    from opticcl.training.train import train

    machines = []
    for name in FABRICS.names():
        try:
            machines.append(fabric_at_scale(name, 65536))
        except FabricError:
            continue
    found = train(ramp_table9(1.0).job, machines)
    return f"{len(found.rows)} fabrics, all verified: {all(row.verified for row in found.rows)}"


def megatron_65536() -> str:
    """The last row of RAMP's table 9, 65,536 devices, on RAMP."""
    from opticcl.fabrics import fabric_at_scale
    from opticcl.papers.ramp_models import ramp_table9
    from opticcl.training.train import train

    row = train(ramp_table9(1.0).job, [fabric_at_scale("ramp", 65536)], algorithm="ramp").rows[0]
    return f"{row.iteration.total_s:.3g} s an iteration, verified: {row.verified}"


def trace() -> str:
    """A real trace of 3 MB as a job."""
    from opticcl.traces.groups import load_job, network_bytes

    return f"{network_bytes(load_job(TRACE, num_ranks=64)):,} bytes" if TRACE.exists() else "no trace here"


CASES: dict[str, tuple[Callable[[], str], str]] = {
    "vgg19": (vgg19, "< 5 s"),
    "sweep": (sweep, "< 60 s"),
    "table9": (table9, "< 60 s, < 2 GB"),
    "megatron_65536": (megatron_65536, "< 60 s, < 2 GB"),
    "trace": (trace, "< 0.5 s"),
}
BY_NAME: dict[str, tuple[Callable[[], str], str]] = {"megatron_everywhere": (megatron_everywhere, "< 60 s, < 2 GB")}
"""Minutes: only where somebody asks for it."""


def main(names: list[str]) -> None:
    """Print a row a case; each in this process, one after the other, imports and kernels of the first included."""
    for name in names or CASES:
        case, mark = (CASES | BY_NAME)[name]
        started = time.process_time()
        said = case()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{case.__doc__ or name:<66}{time.process_time() - started:>8.2f} s{peak:>8.0f} MB  {mark}  {said}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
