"""Files that look like networks and are none that can be read: refused by name, as foreign.toml says, with what to take."""

from __future__ import annotations

import re

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._elements import root_is
from opticcl.fabrics.networks.file_graph import FileFaultError, FileGraph, FileOptions
from opticcl.files import read_toml


def _refusal(text: str) -> str | None:
    for entry in read_toml("opticcl.fabrics.networks", "foreign.toml").values():
        if "roots" in entry and not root_is(text, *entry["roots"]):
            continue
        if all(re.search(pattern, text, re.MULTILINE) for pattern in entry.get("patterns", ())):
            return f"is {entry['kind']}; {entry['instead']}"
    return None


def _sniff(text: str) -> bool:
    return _refusal(text) is not None


@register_network("foreign", "files of others", _sniff)
def refuse_foreign(text: str, options: FileOptions) -> FileGraph:
    """No graph.

    Raises: FileFaultError: always, with the name of the format.
    """
    known = "CSV, GraphML, GML, node-link JSON, nvidia-smi, NCCL, htsim, ASTRA-sim, ns-3, SimGrid, MSCCL-tools"
    raise FileFaultError(0, f"{_refusal(text) or 'is not a network file'}; read are {known}")
