"""Insides of servers: what NVLinks are between, and which network cards GPUs have.

Rules of `nvidia-smi topo -m` and of NCCL's topologies that both readers share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics.networks.file_graph import FileFaultError, FileGraph, FileGraphBuilder, FileOptions, Nic, Way
from opticcl.routing.reach import connected_parts

__all__ = ["MOST_NIC_RATE", "PCIE_LEFT_OUT", "copied", "joined", "nvlinks_are_switched", "rate_of_nvlinks"]

MOST_NIC_RATE = 1.6e12  # [bit/s]
PCIE_LEFT_OUT = "PCIe is not part of the network; with_pcie=yes adds it."


def _generation(options: FileOptions) -> dict[str, Any] | None:
    """Numbers of the GPU that the caller names; None where none is named.

    Raises: FileFaultError: it is not in the table.
    """
    if options.gpu is None:
        return None
    table = datasheet("network")["gpu"]
    name = options.gpu.strip().lower()
    if name not in table:
        raise FileFaultError(
            0, f"gpu={options.gpu[:20]} is not in the table: {', '.join(table)}; nvlink_rate= says it of others"
        )
    entry: dict[str, Any] = table[name]
    return entry


def rate_of_nvlinks(options: FileOptions, made: FileGraphBuilder, links: int, known: str | None = None) -> float:
    """Rate of a link between GPUs in one direction [bit/s].

    Args:
        options: of the caller.
        made: takes the note.
        links: that the file has at a GPU, at most [count].
        known: generation that the file itself says.
    Raises: FileFaultError: neither the caller nor the file says it, or a GPU has more links than those of its generation.
    """
    named = _generation(options)
    if named is not None and links > named["links"]:
        raise FileFaultError(
            0,
            f"a GPU with {links} links to others, and gpu={options.gpu} has {named['links']}; name another generation, or "
            "nvlink_rate= alone",
        )
    if options.nvlink_rate is not None:
        return options.nvlink_rate
    table = named or (datasheet("network")["gpu"].get(known) if known else None)
    if table is None:
        raise FileFaultError(
            0,
            "no such file says the rate of a link between GPUs; give nvlink_rate=, such as 25GB/s for A100 and H100, "
            f"or gpu={'|'.join(datasheet('network')['gpu'])}",
        )
    rate: float = table["rate"]
    made.notes.append(
        f"A link between GPUs has {rate / 8e9:g} GB/s in a direction, that of {options.gpu or known} in network.toml."
    )
    return rate


def nvlinks_are_switched(options: FileOptions, gpus: int, links: int) -> bool:
    """Whether equal NVLinks between all GPUs are those of GPUs to NVSwitches, not direct ones.

    Args:
        options: of the caller.
        gpus: joined [count].
        links: between every two, by the matrix [count].
    Raises: FileFaultError: the matrix fits both.
    """
    if options.nvswitch is not None:
        return options.nvswitch
    table, known = datasheet("network")["gpu"], _generation(options)
    if known is not None:
        return bool((gpus - 1) * links > known["links"])
    if (gpus - 1) * links > max(one["links"] for one in table.values()):
        return True
    if any(one["switched"] and one["links"] == links for one in table.values()):
        raise FileFaultError(
            0,
            f"NV{links} between {gpus} GPUs may be NVSwitches or direct links; say gpu=, or nvswitch=yes or nvswitch=no",
        )
    return False


def joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Least member of the set that each of some things is in, where pairs join sets.

    Args:
        count: things [count].
        pairs: of their numbers.
    """
    tail, head = np.ascontiguousarray(np.array([*pairs], np.int64).reshape(-1, 2).T)
    least: list[int] = connected_parts(tail, head, count).tolist()
    return least


# --- copies of a server -----------------------------------------------------------------------------------------------


def copied(graph: FileGraph, options: FileOptions) -> FileGraph:
    """Several servers of one file, whose network cards a switch joins.

    Each card is given to the nearest GPU, of several the first with the fewest; GPUs that none is left for share one with their
    neighbours, through the PCI switch between them.

    Args:
        graph: of one server.
        options: of the caller.
    Raises: FileFaultError: no card carries traffic of GPUs, or a rate is unknown.
    """
    nics = _wanted_nics(options, graph.nics)
    owners = _owners(nics)
    made = FileGraphBuilder(options, notes=list(graph.notes))
    made.expect(options.copies * max(len(graph.names), len(graph.source) + len(nics)), "vertices or edges")
    columns = [
        column.tolist()
        for column in (graph.source, graph.target, graph.rate_bits_per_s, graph.latency_s, graph.way, graph.line)
    ]
    for server in range(options.copies):
        first = len(made.kinds)
        for name, kind in zip(graph.names, graph.kinds, strict=True):
            made.vertex(f"{server}/{name}", kind)
        for source, target, *rest in zip(*columns, strict=True):
            made.edge(first + source, first + target, *rest)
    switch = made.vertex("switch of the NICs", "switch")
    for server in range(options.copies):
        for nic, gpus in zip(nics, owners, strict=True):
            _attach(made, graph, nic, gpus, server, switch)
    made.notes.append(
        f"{options.copies} servers are joined by a switch of {len(nics)} NICs each: {', '.join(nic.name for nic in nics[:16])}."
    )
    return replace(made.graph(), rate_hint=graph.rate_hint)


def _attach(made: FileGraphBuilder, graph: FileGraph, nic: Nic, gpus: list[int], server: int, switch: int) -> None:
    """Links of a card of a server to the switch of all.

    Args:
        made: collects edges.
        graph: of one server.
        nic: the card.
        gpus: that send through it.
        server: its number.
        switch: of all cards.
    """
    rate = made.options.nic_rate if made.options.nic_rate is not None else nic.rate_bits_per_s
    if rate != rate:
        raise FileFaultError(
            0, f"copies={made.options.copies}: the file does not say the rate of {nic.name[:40]}; give nic_rate="
        )
    if rate > MOST_NIC_RATE:
        raise FileFaultError(
            0, f"{nic.name[:40]} of {rate / 1e9:,.0f} Gb/s is faster than any NIC; say it: nic_rate=200Gb/s"
        )
    first = server * len(graph.names)
    ends = [nic.hub] if nic.hub >= 0 else gpus
    if len(ends) == 1:
        made.edge(first + ends[0], switch, rate, way=Way.BOTH)
        return
    if graph.pcie_bits_per_s != graph.pcie_bits_per_s:
        raise FileFaultError(
            0,
            f"{len(ends)} GPUs share {nic.name[:40]} through a PCI switch; pcie= is the rate of links to it",
        )
    shared = made.vertex(f"{server}/PCI switch of {nic.name}", "PCI switch")
    for gpu in ends:
        made.edge(first + gpu, shared, graph.pcie_bits_per_s, way=Way.BOTH)
    made.edge(shared, switch, rate, way=Way.BOTH)


def _owners(nics: Sequence[Nic]) -> list[list[int]]:
    """GPUs that send through each card."""
    sent: Counter[int] = Counter()
    owners: list[list[int]] = []
    for nic in nics:
        gpu = min(nic.near, key=lambda one: (sent[one], one))
        sent[gpu] += 1
        owners.append([gpu])
    for gpu in sorted({one for nic in nics for one in nic.near} - sent.keys()):
        fewest = min((k for k, nic in enumerate(nics) if gpu in nic.near), key=lambda k: (len(owners[k]), k))
        owners[fewest].append(gpu)
    return owners


def _wanted_nics(options: FileOptions, nics: Sequence[Nic]) -> list[Nic]:
    """Network cards that carry traffic of GPUs: those that share a PCI switch with one, or that `nics=` names.

    Raises: FileFaultError: there is none.
    """
    if options.nics is None:
        wanted = [nic for nic in nics if nic.shares_switch]
    else:
        patterns = options.nics.split("+")
        wanted = [nic for nic in nics if any(fnmatchcase(nic.name, pattern) for pattern in patterns)]
    if not wanted:
        names = ", ".join(nic.name for nic in nics[:8])
        which = (
            f"nics={options.nics[:40]} names none of {names}"
            if options.nics
            else f"none of {names} shares a PCI switch with a GPU"
        )
        raise FileFaultError(
            0, f"copies={options.copies}: {which if nics else 'the file has no NICs'}; nics=NAME+NAME names them"
        )
    return wanted
