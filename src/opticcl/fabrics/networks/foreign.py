"""Files that look like networks and are none that can be read: refused by name, with what to take instead."""

from __future__ import annotations

import re

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._elements import root_is
from opticcl.fabrics.networks.file_graph import FileFaultError, FileGraph, FileOptions

FOREIGN = (
    (
        lambda text: root_is(text, "graphs"),
        "is a graph of NCCL (rings and trees), not a topology; take NCCL_TOPO_DUMP_FILE",
    ),
    (
        lambda text: (
            re.search(r"^topology\s*:\s*(#.*)?$", text, re.M) and re.search(r"^\s+(nodes|kinds)\s*:", text, re.M)
        ),
        "is a containerlab file, without rates; write its links as a CSV edge list, or take GraphML, GML, node-link JSON",
    ),
    (
        lambda text: (
            "ROCm System Management Interface" in text or re.search(r"(Weight|Hops|Link Type) between two GPUs", text)
        ),
        "is a table of rocm-smi, without links; take RCCL's NCCL_TOPO_DUMP_FILE",
    ),
    (
        lambda text: root_is(text, "fnss-topology", "topology"),
        "is a topology of FNSS; write it as GraphML with networkx",
    ),
    (
        lambda text: re.match(r"\s*\{", text) and re.search(r'"(node_invbws_list|nics_per_node|alpha)"\s*:', text),
        "is a topology of TACCL; write its links as a CSV edge list",
    ),
)


def _refusal(text: str) -> str | None:
    return next((what for fits, what in FOREIGN if fits(text)), None)


def _sniff(text: str) -> bool:
    return _refusal(text) is not None


@register_network("foreign", "files of others", _sniff)
def refuse_foreign(text: str, options: FileOptions) -> FileGraph:
    """No graph.

    Raises: FileFaultError: always, with the name of the format.
    """
    known = "CSV, GraphML, GML, node-link JSON, nvidia-smi, NCCL, htsim, ASTRA-sim, ns-3, SimGrid, MSCCL-tools"
    raise FileFaultError(0, f"{_refusal(text) or 'is not a network file'}; read are {known}")
