"""ASTRA-sim v2: the network of a fabric (YAML) and a system whose collective is the plan (JSON).

`plan.yml` becomes the network and `plan.system.json` the system; the system names the Chakra traces `plan.<rank>.et`, which
`opticcl compile --out plan.et` writes.

| fabric | dimensions |
|---|---|
| ideal | one Switch |
| torus | a Ring each, the last of its shape first; FullyConnected where a side has two nodes |
| bcube | a Switch a level |

Other fabrics have no such form: ASTRA-sim's analytical network knows rings, switches and full meshes, and no circuits.
Bandwidth is that of one direction of one link in GB/s of 1e9 bytes/s; before 2026 ASTRA-sim reads 2**30, which is 7.4% more.
Latency is that of one hop in ns; a Switch has two hops.

Source: astra-sim/astra-sim, examples of the analytical network and of custom collectives.
"""

from __future__ import annotations

import json
from functools import singledispatch
from pathlib import Path
from typing import NamedTuple

from opticcl.errors import OutputError
from opticcl.fabrics.bcube import BCube
from opticcl.fabrics.ideal import Ideal
from opticcl.fabrics.torus import Torus
from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.ir import Fabric, ProgressCallback

__all__ = ["Dimension", "dimensions_of", "system_file", "write_astra_sim"]

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
LOCAL_MEMORY_GB_PER_S = 1555  # of an A100, for what is summed outside the plan


class Dimension(NamedTuple):
    """A dimension of an analytical network.

    Args:
        topology: Ring, Switch or FullyConnected.
        nodes: along it [count].
        rate_bits_per_s: of one direction of a link [bit/s].
        latency_s: of one hop [s].
    """

    topology: str
    nodes: int
    rate_bits_per_s: float
    latency_s: float


@singledispatch
def dimensions_of(fabric: Fabric) -> tuple[Dimension, ...]:
    """Dimensions of a fabric, the fastest-varying first; none where the analytical network cannot express it."""
    return ()


@dimensions_of.register
def _(fabric: Ideal) -> tuple[Dimension, ...]:
    return (Dimension("Switch", fabric.nodes, fabric.rate, fabric.latency / 2),)


@dimensions_of.register
def _(fabric: Torus) -> tuple[Dimension, ...]:
    return tuple(
        Dimension("Ring" if side > 2 else "FullyConnected", side, fabric.rate, fabric.link_latency)
        for side in reversed(fabric.shape)
        if side > 1
    )


@dimensions_of.register
def _(fabric: BCube) -> tuple[Dimension, ...]:
    hop_s = fabric.link_latency + fabric.router_latency / 2
    rate = fabric.node_rate / len(fabric.sides)
    return tuple(Dimension("Switch", side, rate, hop_s) for side in fabric.sides)


def system_file(path: Path) -> Path:
    """The system file beside a network file.

    >>> str(system_file(Path("out/plan.yml")))
    'out/plan.system.json'
    """
    return path.with_suffix(".system.json")


def write_astra_sim(path: Path, fabric: Fabric, collective: str) -> tuple[Path, Path]:
    """Write the network and the system.

    Args:
        path: of the network file.
        fabric: the whole of an ideal switch, a torus or a BCube.
        collective: that the Chakra traces beside it carry out, such as "all_reduce".
    Returns: both files.
    Raises: OutputError: another fabric or collective, or not writable.
    """
    dimensions = dimensions_of(fabric)
    if not dimensions:
        raise OutputError(
            f"cannot write {path}: ASTRA-sim's analytical network cannot express {fabric.name}; try ideal, torus or bcube"
        )
    if collective not in COLLECTIVES:
        raise OutputError(f"cannot write {path}: ASTRA-sim has no custom {collective}; known: {', '.join(COLLECTIVES)}")
    rows: dict[str, list[str]] = {
        "topology": [d.topology for d in dimensions],
        "npus_count": [str(d.nodes) for d in dimensions],
        "bandwidth": [f"{d.rate_bits_per_s / 8e9:.9g}" for d in dimensions],
        "latency": [f"{d.latency_s * 1e9:.9g}" for d in dimensions],
    }
    network = "".join(f"{key}: [ {', '.join(values)} ]\n" for key, values in rows.items())
    system = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        f"{collective.replace('_', '-')}-implementation-custom": [str(path.with_suffix(""))],
        "collective-optimization": "localBWAware",
        "local-mem-bw": LOCAL_MEMORY_GB_PER_S,
        "boost-mode": 0,
    }
    with write_whole(system_file(path)) as file:
        file.write((json.dumps(system, indent=2) + "\n").encode())
    with write_whole(path) as file:
        file.write(network.encode())
    return path, system_file(path)


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    network, system = write_astra_sim(path, plan.circuits.fabric, plan.circuits.schedule.collective.name)
    traces = path.with_suffix(".et")
    return f"ASTRA-sim: network {network}, system {system}; its schedule is in {traces}, which --out {traces} writes"


register_format(
    Format(
        "astra_sim",
        (".yml",),
        "network and system of ASTRA-sim v2, for Chakra traces of the same name",
        writes="a fabric, without a schedule",
        write=_write,
    )
)
