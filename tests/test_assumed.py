"""Assumptions about time: every value has a source, and a message is charged what it passes."""

import re
from math import ceil

import numpy as np
import pytest

from opticcl.assumptions import KEYS, LATENCY_KEYS, SETS, assumptions, meaning_of, set_of, value_text, values
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.plans.compare import compare_plans
from opticcl.plans.plan import compile
from opticcl.simulate import simulate
from opticcl.units import format_seconds
from opticcl.verify.time._rows import path_latency_s
from tests.docs.pages import ROOT

PASSED = """\
bcube:radix=2,levels=1 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
bcube:radix=8,levels=2 | 0, 63 | 4 | 2 | 0 | 1 | 4 | 8 | 0
dragonfly:nodes=64,nodes_per_router=2,routers_per_group=4,global_links=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
dragonfly:nodes=64,nodes_per_router=2,routers_per_group=4,global_links=2 | 0, 63 | 5 | 4 | 0 | 0 | 5 | 10 | 0
fat_tree:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
fat_tree:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
ideal:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
ideal:nodes=64 | 0, 63 | 2 | 1 | 0 | 0 | 2 | 4 | 0
leaf_spine:nodes=2 | 0, 1 | 2 | 1 | 0 | 0 | 2 | 4 | 0
leaf_spine:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
lightpath:shape=1x2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0.03
lightpath:shape=8x8 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 1 | 0.42
ocs:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ocs:nodes=64 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 4 | 0
oddl:shape=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
oddl:shape=8x8 | 0, 56 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ramp:groups=2,racks=1,wavelengths=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
ramp:groups=8,racks=1,wavelengths=8 | 0, 63 | 1 | 0 | 0 | 0 | 1 | 4 | 0
sip_ring:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
sip_ring:nodes=64 | 0, 32 | 1 | 0 | 0 | 0 | 1 | 32 | 0
sipac:radix=2,levels=1 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
sipac:radix=8,levels=2 | 0, 56 | 1 | 0 | 0 | 0 | 1 | 4 | 0
superpod:nodes=2 | 0, 1 | 2 | 0 | 1 | 0 | 0 | 4 | 0
superpod:nodes=64 | 0, 63 | 4 | 3 | 0 | 0 | 4 | 8 | 0
terarack:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
terarack:nodes=64 | 0, 32 | 1 | 0 | 0 | 0 | 1 | 32 | 0
terarack_torus:shape=1x2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 1 | 0
terarack_torus:shape=8x8 | 0, 4 | 1 | 0 | 0 | 0 | 1 | 4 | 0
topoopt:nodes=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 4 | 0
topoopt:nodes=64 | 0, 32 | 32 | 0 | 0 | 31 | 32 | 128 | 0
torus:shape=2 | 0, 1 | 1 | 0 | 0 | 0 | 1 | 2 | 0
torus:shape=8x8 | 0, 36 | 8 | 0 | 0 | 7 | 8 | 16 | 0
""".splitlines()
"""What one message passes, by hand: fabric, two nodes of it, links, switches, NVSwitches, nodes that forward, receivers,
metres of fibre and of waveguide.

In one rack a link has 2 m of fibre, 4 m through the centre; a segment of a ring of light has 1 m, a tile 3 cm, the step from
wafer to wafer 1 m.
"""
ENGINES = ("closed_form", "flow", "flow:mode=asynchronous", "packet", "packet:mode=asynchronous", "device")

OF_SYSTEMS = re.compile(r"^\| `(\w+)` \|.*\| `(\w+)`[^|]*\| ([^|]*) \|$", re.MULTILINE)
"""A row of the table of docs/systems.md: the system, the algorithm of its paper, the times."""


def test_the_table_of_systems_is_up_to_date():
    """Times of an all_reduce of 1 MB on 64 nodes: common, and published in parentheses."""
    rows = OF_SYSTEMS.findall((ROOT / "docs/systems.md").read_text("utf-8").partition("\n## ")[0])
    assert len(rows) == 7
    for name, algorithm, printed in rows:
        (entry,) = compare_plans([fabric_at_scale(name, 64)], "all_reduce", [10**6], algorithm=algorithm).entries
        both = format_seconds(entry.total_s), format_seconds(entry.under["published"].total_s)
        assert printed == f"{both[0]} ({both[1]})", name


def test_the_page_of_time_has_every_value():
    """Of `common`, with what it is a value of."""
    page = (ROOT / "docs/time.md").read_text("utf-8")
    for one in values():
        assert f"| `{one.key}` | {value_text(one.key, one.value)} | {one.about} |" in page


def latency_ns(
    spec: str, links: float, switches: float, nvswitches: float, nodes: float, receivers: float, *metres: float
) -> float:
    """Sum of the values of what one message passes, with its gap, by hand [ns].

    Args:
        spec: fabric, of which the slot counts.
        links: of its path [count].
        switches, nvswitches, nodes: that forward it [count].
        receivers: that it passes [count].
        metres: of fibre and of waveguide [m].
    """
    assert switches + nvswitches + nodes == links - 1
    late = 700 + 100 * receivers + 150 * (switches + nodes) + 100 * nvswitches + 4.9 * metres[0] + 14 * metres[1]
    return 5 + (20 * ceil(late / 20) if spec.startswith("ramp") else late)


def test_every_fabric_is_counted():
    """Near and far."""
    assert sorted(line.split(":")[0] for line in PASSED) == sorted(2 * FABRICS.names())


@pytest.mark.parametrize("line", PASSED)
def test_a_message_is_charged_what_it_passes(line):
    """By every engine and by the judge of time; h links have h - 1 that forward."""
    spec, nodes, *counts = line.split(" | ")
    late_ns = latency_ns(spec, *map(float, counts))
    where = fabric(spec)
    if where.num_nodes > 2:
        where = job(where, [int(node) for node in nodes.split(", ")])
    plan, common = compile(where, "send_recv", "100B", algorithm="send_recv").circuits, assumptions("common")
    changes_s = where.reconfiguration_s + where.control_s(np.array([0]), np.array([1]))
    for engine in ENGINES:
        total_s = simulate(plan, 0, common, engine=engine).timeline.total_s
        assert 1e9 * (total_s - changes_s) == pytest.approx(late_ns, abs=1e-3), engine
    for circuits in plan.rounds(0):
        assert 1e9 * path_latency_s(plan, circuits, common) == pytest.approx(late_ns - 5)


@pytest.mark.parametrize("one", [*values(), *values("floor")], ids=lambda one: one.key)
def test_every_value_has_a_source(one):
    """And says what it is."""
    assert one.source
    assert one.about
    assert one.value > 0


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_every_rule_and_a_source(name):
    """Sets other than `common` are laid over `published`."""
    found = set_of(name)
    assert found["source"]
    assert set(KEYS) - set(LATENCY_KEYS) - {"memory_bytes_per_s"} <= set(found)
    for key in set(KEYS) & set(found):
        assert meaning_of(key, found[key]).endswith(".")
