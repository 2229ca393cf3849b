"""Trees of all ranks on packet networks: right at every rank, and as fast as the narrowest cut allows."""

import random
from fractions import Fraction
from pathlib import Path

import pytest
from tests.routing.forest.networks import PUBLISHED, cards, grid, rails
from tests.schedule.oracle import check, requests

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.fabrics.spanning_trees import spanning_trees
from opticcl.formats.plan_read import read_plan_file
from opticcl.formats.plan_write import write_plan_file
from opticcl.ir import Fabric, no_progress
from opticcl.plans.plan import compile
from opticcl.schedule import search_space
from opticcl.units import quantity
from opticcl.verify import verify
from opticcl.verify.light.circuits import check_light

MACHINES = [
    "superpod:nodes=11",
    "superpod:nodes=16",
    "superpod:nodes=24,nodes_per_server=4",
    "leaf_spine:nodes=20",
    "fat_tree:nodes=9",
    "torus:shape=2x3x2",
    "bcube:radices=2x4",
    "dragonfly:nodes=10,nodes_per_router=1,routers_per_group=3,global_links=1",
]


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"])
def test_right_at_every_rank(name: str, collective: str) -> None:
    """Machines with and without switches, part of a server, any root, more and fewer pieces than trees are deep."""
    where = fabric(name)
    for request in requests(collective, where.num_nodes):
        for written in ("forest:pipeline=1", "forest:pipeline=9,trees=3"):
            check(written, request, where)


@pytest.mark.parametrize(
    ("collective", "share", "rate", "pieces", "within"),
    [
        ("all_gather", Fraction(15, 16), "2.6Tb/s", 64, 1.03),
        ("reduce_scatter", Fraction(15, 16), "2.6Tb/s", 64, 1.03),
        ("all_reduce", Fraction(15, 8), "2.6Tb/s", 64, 1.03),
        ("broadcast", Fraction(1), "1.6Tb/s", 128, 1.05),
        ("reduce", Fraction(1), "1.6Tb/s", 128, 1.05),
    ],
)
def test_two_boxes_of_a100(collective: str, share: Fraction, rate: str, pieces: int, within: float) -> None:
    """Fifteen shards of sixteen through NVLink and card of a GPU (ForestColl: 3/65 s a GB), a broadcast through eight cards."""
    plan = compile("superpod:nodes=16", collective, 10**9, algorithm=f"forest:pipeline={pieces}")
    law = assumptions("published", compute="none")
    least_s = float(share) * 8e9 / quantity(rate, "bit/s")
    assert least_s < plan.simulate(assumptions=law).total_s < within * least_s


@pytest.mark.parametrize("boxes", [4, 20])
def test_boxes_of_a100_by_one_tree(boxes: int) -> None:
    """All shards of others through the eight cards of a box (ForestColl: 3/25 s a GB for four)."""
    plan = compile(f"superpod:nodes={8 * boxes}", "all_gather", 10**9, algorithm="forest:pipeline=64")
    assert plan.verify().ok
    least_s = (boxes - 1) / boxes * 8e9 / 1.6e12
    total_s = plan.simulate(assumptions=assumptions("published", compute="none")).total_s
    assert least_s < total_s < 1.03 * least_s


def shuffled(folder: Path, links: list[tuple[str, str, str]]) -> Fabric:
    """The network of links (source, target, rate), written in any order; nodes are those whose names begin with n."""
    lines = [f"{a},{b},{rate}\n" for a, b, rate in random.Random(0).sample(links, len(links))]
    return written(folder, "source,target,rate\n" + "".join(lines), nodes="n*")


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize(
    ("links", "seconds"),
    [(rails(33), Fraction(256, 200 * 264)), (grid(18, 18), Fraction(323, 200 * 324))],
)
def test_networks_from_files_by_one_tree(
    collective: str, links: list[tuple[str, str, str]], seconds: Fraction, tmp_path: Path
) -> None:
    """More nodes than are packed one by one, in no order: their names say where they are; a link that is narrower breaks it."""
    where = shuffled(tmp_path, links)
    plan = compile(where, collective, 10**9, algorithm="forest:pipeline=64")
    assert plan.verify().ok
    least_s = float(seconds) * (2 if collective == "all_reduce" else 1)
    total_s = plan.simulate(assumptions=assumptions("published", compute="none")).total_s
    assert least_s < total_s < 1.06 * least_s
    with pytest.raises(TooLargeError, match=r"trees of ... nodes are packed one by one; at most 256"):
        compile(shuffled(tmp_path, [(*links[0][:2], "10GB/s"), *links[1:]]), collective, 10**9, algorithm="forest")


def test_paths_of_translated_trees_are_stated(tmp_path: Path) -> None:
    """136 GPUs with two cards each: routes take the cards by chance, stated paths in turn."""
    where = shuffled(tmp_path, cards(17))
    law, least_s = assumptions("published", compute="none"), 128 / 136 / 400
    for collective, passes in (("all_gather", 1), ("all_reduce", 2)):
        plan = compile(where, collective, 10**9, algorithm="forest:pipeline=64")
        assert plan.verify().ok
        for engine in ("closed_form", "flow"):
            assert passes * least_s < plan.simulate(engine, assumptions=law).total_s < 1.05 * passes * least_s


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PUBLISHED[name][0]().num_compute <= 128])
def test_published_networks(name: str, tmp_path: Path) -> None:
    """In the time of the narrowest cut, 1 % for fewer trees and H + s - 1 steps of s pieces more: data, paths, engines."""
    make, seconds = PUBLISHED[name]
    graph = make()
    names = [f"{'n' if k < graph.num_compute else 's'}{k}" for k in range(graph.num_vertices)]
    arcs = zip(graph.tail.tolist(), graph.head.tolist(), (graph.capacity * graph.unit_bits_per_s).tolist(), strict=True)
    rows = [f"{names[tail]},{names[head]},{rate:.12g}GB/s,yes" for tail, head, rate in arcs]
    (tmp_path / "net.csv").write_text("\n".join(["source,target,rate,directed", *rows]))
    where = fabric("network", file=str(tmp_path / "net.csv"), nodes="n*")
    pieces, law = 16, assumptions("published", compute="none")
    plan = compile(where, "all_gather", graph.num_compute << 20, algorithm=f"forest:pipeline={pieces}")
    assert plan.verify().verdict == "right"
    assert check_light(plan.circuits, progress=no_progress).violations == ()
    least_s = float(Fraction(seconds)) * (1 << 20) / 1e9
    most_s = 1.01 * plan.schedule.num_steps / pieces * least_s
    by_engine = {engine: plan.simulate(engine, assumptions=law) for engine in ("closed_form", "flow")}
    for result in by_engine.values():
        assert least_s * (1 - 1e-9) <= result.total_s <= most_s * (1 + 1e-9)
        assert result.lower_bound_s == pytest.approx(least_s, rel=1e-6)
    if graph.num_compute <= 32:
        cell = plan.size_bytes / plan.schedule.collective.num_chunks // 16
        longest = max(
            int(c.num_hops().max()) for step in range(plan.schedule.num_steps) for c in plan.circuits.rounds(step)
        )
        cells_s = plan.schedule.num_steps * 2 * longest * cell * 8 / where.network.rate_bits_per_s.min()
        packets = plan.simulate("packet", assumptions=law, cell_bytes=cell)
        assert least_s <= packets.total_s <= 1.05 * by_engine["flow"].total_s + cells_s


@pytest.mark.parametrize("name", ["torus:shape=2x3x2", "superpod:nodes=11"])
def test_one_packing_serves_both_directions(name: str) -> None:
    """Trees towards the roots are those out of them, link by link the other way at the same rate."""
    where = fabric(name)
    net = where.network
    out, towards = (spanning_trees(where, None, inwards, 1, False) for inwards in (False, True))
    assert towards.way is out.way
    for there, back in zip(out.ways.path, towards.ways.path, strict=True):
        assert net.tail[list(there)].tolist() == net.head[list(back)].tolist()
        assert net.head[list(there)].tolist() == net.tail[list(back)].tolist()
        assert net.rate_bits_per_s[list(there)].tolist() == net.rate_bits_per_s[list(back)].tolist()


SIDES = "source,target,rate\nx,y,80Gb/s\ny,z,80Gb/s\nx,z,8Gb/s\n"
"""Routes between x and z lead over y, so that no route takes the slow side."""
SWITCHED = "source,target,rate\n" + "".join(
    f"{node},{switch},{rate}Gb/s\n" for node in "xyz" for switch, rate in (("fast", 80), ("slow", 24))
)
"""Routes lead over one of two switches."""


def written(folder: Path, text: str, nodes: str = "x+y+z") -> Fabric:
    """The network of a file, whose nodes pass on what is for others.

    Args:
        folder: to write the file in.
        text: of the file.
        nodes: patterns of their names.
    """
    (folder / "net.csv").write_text(text, "utf-8")
    return fabric("network", file=str(folder / "net.csv"), nodes=nodes, directed=False, relays=True)


@pytest.mark.parametrize(("text", "gigabits"), [(SIDES, 88), (SWITCHED, 104)])
@pytest.mark.parametrize("engine", ["closed_form", "flow", "device", "packet"])
def test_trees_leave_the_routes_where_these_are_slower(tmp_path: Path, text: str, gigabits: int, engine: str) -> None:
    """A node receives two shards over all its links; on routes one would be idle. The bound and a file of the plan agree."""
    where = written(tmp_path, text)
    plan = compile(where, "all_gather", 3 * 10**8, algorithm="forest:pipeline=64")
    assert plan.circuits.schedule.step(0).path is not None
    result = plan.simulate(engine, assumptions="published")
    least_s = 2 * 8e8 / (gigabits * 1e9)
    assert least_s < result.total_s < 1.05 * least_s
    assert result.gap == pytest.approx(result.total_s / least_s, rel=1e-3)
    path = tmp_path / "plan.parquet"
    write_plan_file(path, plan.circuits, plan.size_bytes, plan.algorithm)
    read = read_plan_file(path).plan
    assert verify(read).ok
    assert read.schedule.steps == plan.circuits.schedule.steps


@pytest.mark.parametrize("text", [SIDES, SWITCHED])
@pytest.mark.parametrize(
    "collective", ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "all_to_all"]
)
def test_stated_paths_are_right_at_every_rank(tmp_path: Path, text: str, collective: str) -> None:
    """Up and down, from any root."""
    where = written(tmp_path, text)
    for request in requests(collective, 3):
        check("forest:pipeline=3", request, where)


@pytest.mark.parametrize("name", MACHINES)
def test_blocks_at_every_rank(name: str) -> None:
    """An all_to_all of one part of a block, and of several that take paths of their own."""
    for written in ("forest:pipeline=1", "forest:pipeline=9"):
        check(written, "all_to_all", fabric(name))


@pytest.mark.parametrize("engine", ["closed_form", "flow", "packet"])
def test_blocks_between_boxes_of_unlike_size(engine: str) -> None:
    """Boxes of 8 and 3: three cards of 200 Gb/s receive the 24 blocks of the other box."""
    plan = compile("superpod:nodes=11", "all_to_all", 11 * 10**7, algorithm="forest")
    result = plan.simulate(engine, assumptions=assumptions("published", compute="none"))
    least_s = 24 * 8e7 / (3 * quantity("200Gb/s", "bit/s"))
    assert least_s < result.total_s < 1.01 * least_s
    assert result.gap < 1.01


def test_blocks_of_nodes_that_forward_nothing(tmp_path: Path) -> None:
    """Between y and z a block takes their slow link alone; the bound counts what x could send of them in a later step."""
    (tmp_path / "net.csv").write_text(SIDES.replace("x,z", "z,x"), "utf-8")
    for relays, over_bound in ((False, 11 / 2), (True, 1)):
        where = fabric("network", file=str(tmp_path / "net.csv"), nodes="x+y+z", directed=False, relays=relays)
        plan = compile(where, "all_to_all", 3 * 10**8, algorithm="forest:pipeline=32")
        assert plan.verify().ok
        result = plan.simulate(assumptions=assumptions("published", compute="none"))
        assert result.gap == pytest.approx(over_bound, rel=0.03)


def test_an_exchange_has_no_trees() -> None:
    """A number of trees is refused."""
    with pytest.raises(UnsupportedError, match="trees=3: an all_to_all has paths and no trees; leave it out"):
        compile("superpod:nodes=11", "all_to_all", 10**6, algorithm="forest:trees=3")


def test_a_broadcast_to_many_boxes() -> None:
    """Eight trees from one root, one over each card of its box: right, and within a tenth of those cards' time."""
    plan = compile("superpod:nodes=160", "broadcast", 10**9, algorithm="forest:pipeline=512")
    assert plan.verify().ok
    total_s = plan.simulate(assumptions=assumptions("published", compute="none")).total_s
    assert 8e9 / 1.6e12 < total_s < 1.1 * 8e9 / 1.6e12


def test_fastest_of_all() -> None:
    """A search finds them where links are unlike."""
    law = assumptions("published", compute="none")
    assert compile("superpod:nodes=16", "all_gather", 10**9, assumptions=law).algorithm.startswith("forest")


def test_jobs_on_parts_of_machines() -> None:
    """Nodes beside the job forward on a torus, and have no part in it on a SuperPod."""
    torus = job(fabric("torus:shape=4x4"), [0, 1, 2, 5, 6, 11])
    pod = job(fabric("superpod:nodes=32"), [0, 1, 2, 8, 9, 24])
    for where in (torus, pod):
        check("forest:pipeline=3", "all_to_all", where)
        for collective in ("all_reduce", "broadcast"):
            for request in requests(collective, where.num_nodes):
                check("forest:pipeline=3", request, where)


@pytest.mark.parametrize(("nodes", "tried"), [(512, True), (16384, False)])
def test_trees_of_few_ranks_on_a_large_machine_are_left_out(nodes, tried):
    """All other nodes are switches that would have to be split off; the search says so."""
    some = job(fabric("torus", nodes), range(0, 3 * 7, 7))
    calls, left_out = search_space(Request("all_gather"), some)
    assert any(call.startswith("forest") for call in calls) == tried
    assert any("vertices that are not ranks, times ranks; a search splits" in line for line in left_out) != tried
