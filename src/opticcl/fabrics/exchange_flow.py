"""The flow of an exchange between all ranks of a job on a packet fabric, and paths of packets that follow it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from opticcl.fabrics._packet import PacketFabric
from opticcl.ir import Fabric
from opticcl.routing.concurrent_flow import ConcurrentFlow, concurrent_flow
from opticcl.routing.flow_paths import WholePaths, whole_paths

__all__ = ["exchange_flow", "exchange_paths", "num_exchange_flows"]


def num_exchange_flows(fabric: Fabric) -> int:
    """Ranks times links of the machine [count].

    Args: fabric: with a network: a machine or a job on one.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    return fabric.num_nodes * machine.network.num_links


@lru_cache(maxsize=64)
def exchange_flow(fabric: Fabric) -> ConcurrentFlow:
    """The flow of equal blocks between all ranks that loads links least; an arc is a link of the network.

    Args: fabric: with a network: a machine or a job on one.
    Raises: UnsupportedError: rates without a common unit, or ranks that no links lead to.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    graph = machine.graph(fabric.machine_nodes(np.arange(fabric.num_nodes)))
    return concurrent_flow(graph, machine.rate_pools, relays=machine.network.relays)


def exchange_paths(fabric: Fabric, parts: int) -> WholePaths:
    """Links that parts of all blocks take.

    Args:
        fabric: as of `exchange_flow`.
        parts: of a block [count].
    Raises: UnsupportedError: as `exchange_flow`.
    """
    machine = fabric.machine
    assert isinstance(machine, PacketFabric)
    graph = machine.graph(fabric.machine_nodes(np.arange(fabric.num_nodes)))
    pool = np.arange(len(graph.tail)) if machine.rate_pools is None else machine.rate_pools
    room = np.maximum(1.0, np.bincount(pool, graph.capacity) / np.bincount(pool))
    return whole_paths(exchange_flow(fabric).flow, graph.tail, graph.head, room, pool, parts)
