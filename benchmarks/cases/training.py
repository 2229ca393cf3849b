"""Training iterations, whole processes: imports and kernels from the disk included."""

from __future__ import annotations

from measure import Run, case, command

from opticcl.errors import FabricError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.ir import Fabric

MODELS = ("lenet", "alexnet", "vgg16", "vgg19", "resnet50", "inception_v3", "beit_l", "bert", "ncf", "transformer")
SYSTEMS = ("ideal", "ramp", "sipac", "oddl", "lightpath", "terarack", "fat_tree", "torus")
SCALES = (8, 16, 32, 64, 128, 256)


def machines(nodes: int) -> list[Fabric]:
    """Every fabric that has a machine of that size."""
    made = []
    for name in FABRICS.names():
        try:
            made.append(fabric_at_scale(name, nodes))
        except FabricError:
            continue
    return made


@case("training.vgg19_1024", "opticcl train --model vgg19 --nodes 1024 --as-built, every fabric", whole=True)
def vgg19() -> Run:
    """The command as a user gives it."""
    return command("train", "--model", "vgg19", "--nodes", "1024", "--as-built")


@case("training.sweep", "ten models on eight systems at six scales, plans shared", whole=True)
def sweep() -> Run:
    """Up to 256 nodes of 100 Gb/s."""

    def run() -> dict[str, float]:
        from opticcl.plans.search import Searches
        from opticcl.training.partition import partition
        from opticcl.training.train import train

        planner, rows = Searches(resolution_s=1e-6), 0
        for nodes in SCALES:
            fabrics = [fabric_at_scale(name, nodes, 100e9) for name in SYSTEMS]
            for name in MODELS:
                job = partition(name, nodes, local_batch=1, fit=False)
                rows += len(train(job, fabrics, planner=planner).rows)
        return {"rows": rows}

    return run


@case("training.table9", "the rows of RAMP's table 9 up to 2,048 devices, every fabric", whole=True)
def table9() -> Run:
    """Five models."""

    def run() -> dict[str, float]:
        from opticcl.papers.ramp_models import ramp_table9
        from opticcl.plans.search import Searches
        from opticcl.training.train import train

        planner, rows = Searches(resolution_s=1e-5), 0
        for cross_entropy in (2.5, 2.4, 2.2, 2.0, 1.8):
            job = ramp_table9(cross_entropy).job
            rows += len(train(job, machines(job.num_ranks), planner=planner).rows)
        return {"rows": rows}

    return run


@case("training.megatron_65536", "the last row of RAMP's table 9, 65,536 devices, every fabric", whole=True)
def megatron_everywhere() -> Run:
    """All verified."""

    def run() -> dict[str, float]:
        from opticcl.papers.ramp_models import ramp_table9
        from opticcl.training.train import train

        found = train(ramp_table9(1.0).job, machines(65536))
        assert all(row.verified for row in found.rows)
        return {"rows": len(found.rows)}

    return run


@case("training.megatron_65536_ramp", "the same on RAMP alone", whole=True)
def megatron_ramp() -> Run:
    """Its own algorithm."""

    def run() -> None:
        from opticcl.papers.ramp_models import ramp_table9
        from opticcl.training.train import train

        assert train(ramp_table9(1.0).job, [fabric_at_scale("ramp", 65536)], algorithm="ramp").rows[0].verified

    return run
