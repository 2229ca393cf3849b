"""Trees on packet networks: the narrowest cut, and schedules as fast as it allows."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from measure import Run, register

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.fabrics.spanning_trees import spanning_trees
from opticcl.plans.plan import compile
from opticcl.routing.concurrent_flow import concurrent_flow
from opticcl.routing.flow_paths import whole_paths
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum
from opticcl.routing.forest.packing import pack


def ready() -> None:
    """Kernels compiled by a small machine."""
    spanning_trees(fabric("superpod:nodes=16"), None, False, 1, False)


def cut(name: str) -> Callable[[], Run]:
    """The narrowest cut, with every node as a target.

    Args: name: of a fabric.
    """

    def prepare() -> Run:
        ready()
        machine = fabric(name)
        graph = machine.graph(np.arange(machine.num_nodes))

        def run() -> dict[str, float]:
            best = optimum(graph)
            assert best is not None
            return {"nodes_beyond": float((~best.inside[: graph.num_compute]).sum())}

        return run

    return prepare


def packed(maker: str, *sizes: float, within: Fraction = Fraction(1, 100)) -> Callable[[], Run]:
    """All trees of an all-gather; the result has their time over the optimum.

    Args:
        maker: of the network, in tests/routing/forest/networks.py.
        sizes: its arguments.
        within: what the trees may take more than the optimum, as a share of it.
    """

    def prepare() -> Run:
        ready()
        sys.path.append(str(Path(__file__).parents[2]))
        from tests.routing.forest import networks

        network = getattr(networks, maker)(*sizes)

        def run() -> dict[str, float]:
            best = optimum(network)
            packing = None if best is None else pack(network, best, within=within)
            assert best is not None
            assert packing is not None
            return {"time_to_optimum": float(packing.time / best.time)}

        return run

    return prepare


def planned(name: str, pieces: int, collective: str = "all_gather") -> Callable[[], Run]:
    """The schedule of a collective of 1 GB and its time without sums; the result has the time over its bound.

    Args:
        name: of a fabric.
        pieces: of the data of a tree, or of a block [count].
        collective: its name.
    """

    def prepare() -> Run:
        ready()

        def run() -> dict[str, float]:
            plan = compile(name, collective, 10**9, algorithm=f"forest:pipeline={pieces}")
            return {"gap": plan.simulate(assumptions=assumptions("published", compute="none")).gap}

        return run

    return prepare


def exchanged(maker: str, *sizes: float) -> Callable[[], Run]:
    """Paths of an all_to_all; the result has the load of their busiest link over the flow, and the flow over its bound.

    Args: maker, sizes: as of `packed`.
    """

    def prepare() -> Run:
        sys.path.append(str(Path(__file__).parents[2]))
        from tests.routing.forest import networks

        def paths(network: CapacityGraph) -> dict[str, float]:
            flow = concurrent_flow(network, relays=True)
            links, room = np.arange(len(network.tail)), np.maximum(1.0, network.capacity)
            found = whole_paths(flow.flow, network.tail, network.head, room, links, PARTS)
            load = np.bincount(found.hops, np.repeat(found.parts, np.diff(found.offsets)), len(links)) / PARTS
            return {
                "time_to_flow": float((load / room).max()) / flow.time,
                "flow_to_bound": flow.time / float(flow.bound),
            }

        paths(networks.torus(3, 3))  # compiles kernels
        network = getattr(networks, maker)(*sizes)
        return lambda: paths(network)

    return prepare


def from_file(maker: str, *sizes: int) -> Callable[[], Run]:
    """As `planned`, an all_gather on a network of 1,024 GPUs whose file has its links in no order, read and cut too.

    Args:
        maker: of its links, in tests/routing/forest/networks.py.
        sizes: its arguments.
    """

    def prepare() -> Run:
        ready()
        sys.path.append(str(Path(__file__).parents[2]))
        from tests.routing.forest import networks

        lines = [",".join(link) for link in getattr(networks, maker)(*sizes)]
        random.Random(1).shuffle(lines)
        with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
            file.write("\n".join(["source,target,rate", *lines, ""]))
        name = f"network:file={file.name},nodes=n*,directed=no"
        return planned(name, 32)()

    return prepare


PARTS = 32
for _maker, *_sizes in (("rails", 128), ("grid", 32, 32), ("leaves", 32, 32, 8), ("cards", 128)):
    register(
        f"forest.file_{_maker}_1024", f"all_gather on {_maker} of 1,024 GPUs from a file", from_file(_maker, *_sizes)
    )
for _name in ("superpod:nodes=1024", "torus:shape=32x32"):
    _kind = _name.partition(":")[0]
    register(f"forest.cut_{_kind}_1024", f"narrowest cut of {_name}, all nodes tried", cut(_name))
    register(f"forest.plan_{_kind}_1024", f"all_gather on {_name} by translated trees", planned(_name, 32))
register(
    "forest.mi250",
    "trees of two boxes of 16 halves of MI250, as fast as the optimum",
    packed("mi250", 2, 16, within=Fraction(0)),
)
register("forest.a100", "trees of four boxes of A100", packed("boxes", 4, 8, 300, 25, 2))
register(
    "forest.exchange_kautz_81", "paths of an all_to_all on a Kautz graph of 81 vertices", exchanged("kautz", 81, 2)
)
register("forest.exchange_torus_256", "paths of an all_to_all on a torus 16x16", exchanged("torus", 16, 16))
for _collective in ("all_gather", "all_reduce", "broadcast"):
    _title = f"{_collective} on two boxes of A100"
    register(f"forest.boxes_{_collective}", _title, planned("superpod:nodes=16", 128, _collective))
register(
    "forest.boxes_all_to_all", "all_to_all on boxes of 8 and 3 A100", planned("superpod:nodes=11", 32, "all_to_all")
)
