"""Text topologies of ns-3 as ASTRA-sim and SimAI write them: a head, the numbers of the switches, a line for each link.

    ASTRA-sim   nodes switches links
    SimAI       nodes gpus_per_server nvswitches switches links gpu_type
    then        numbers of the switches on one line, which is empty where there are none
    then        source target rate latency error_rate

Nodes count the switches too; links lead both ways.
"""

from __future__ import annotations

import re

from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks.file_graph import (
    NODE,
    SWITCH,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Way,
    exact_quantity,
    whole,
)

HEADS = {
    3: ("nodes", "switches", "links"),
    6: ("nodes", "gpus_per_server", "nvswitches", "switches", "links", "gpu_type"),
}


def _sniff(text: str) -> bool:
    rows = text.lstrip("\n").split("\n", 3)
    head = rows[0].split()
    numbers = len(head) >= 3 and all(re.fullmatch("[0-9]+", cell) for cell in head[:3])
    return numbers and re.search(r"^[ \t]*[0-9]+\s+[0-9]+\s+[0-9.]+\w*bps\s", text, re.MULTILINE) is not None


@register_network("ns3", "ns-3 text of ASTRA-sim and SimAI", _sniff)
def read_ns3(text: str, options: FileOptions) -> FileGraph:
    """The graph of a text topology.

    Raises: FileFaultError: a head of another form, counts that the rows do not keep, or rows that are no links.
    """
    rows = text.splitlines()
    cells = rows[0].split()
    if len(cells) not in HEADS:
        known = " or ".join(" ".join(head) for head in HEADS.values())
        raise FileFaultError(1, f"a head of {len(cells)} values; known are {known}")
    head = dict(zip(HEADS[len(cells)], cells, strict=True))
    count = {key: whole(value, key, 1) for key, value in head.items() if key != "gpu_type"}
    made = FileGraphBuilder(options)
    made.expect(max(count.values()), "vertices or links")
    if count["nodes"] > count["links"] + 1:
        raise FileFaultError(1, f"{count['links']} links cannot join {count['nodes']:,} vertices")
    switches = [whole(cell, "a switch", 2) for cell in (rows[1].split() if len(rows) > 1 else [])]
    due = count["switches"] + count.get("nvswitches", 0)
    if len(switches) != due or len(set(switches)) != due or max(switches, default=0) >= count["nodes"]:
        raise FileFaultError(
            2, f"numbers of {len(set(switches))} switches, and the head says {due} of {count['nodes']} vertices"
        )
    kinds = [NODE] * count["nodes"]
    for place, number in enumerate(switches):
        kinds[number] = "NVSwitch" if place < count.get("nvswitches", 0) else SWITCH
    for number, kind in enumerate(kinds):
        made.vertex(str(number), kind)
    for line, row in enumerate(rows[2:], 3):
        if not row.strip():
            continue
        link = row.split()
        if len(link) != 5:
            raise FileFaultError(line, f"{len(link)} values; source, target, rate, latency and error rate are due")
        source, target = (made.end(str(whole(cell, "an end", line)), line) for cell in link[:2])
        if float(exact_quantity(link[4], "s", "s")) != 0:
            raise FileFaultError(line, f"an error rate of {link[4][:20]}; links without errors are read")
        try:
            made.edge(
                source, target, exact_quantity(link[2], "bit/s", ""), exact_quantity(link[3], "s", ""), Way.BOTH, line
            )
        except FileFaultError as fault:
            raise FileFaultError(0 if str(fault).startswith("line") else line, str(fault)) from None
    if len(made.edges) != count["links"]:
        raise FileFaultError(1, f"the head says {count['links']} links, and {len(made.edges)} rows follow")
    return made.graph()
