"""MSCCL XML: read, verified for every order of execution, written, and executed by an interpreter of its own."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.formats.msccl_interpreter import run
from tests.formats.msccl_mutants import KINDS, mutants
from tests.optional import shared_file
from tests.profiles import examples

import opticcl
from opticcl.collective import as_request
from opticcl.errors import OpticclError, OutputError, PlanFileError
from opticcl.fabrics import fabric_at_scale
from opticcl.formats import format_of, format_to_write, msccl_read
from opticcl.formats.msccl import read_msccl, write_msccl
from opticcl.ir import Op, Schedule, Transfers
from opticcl.schedule import all_variants, generate
from opticcl.verify.time.dependencies import verify_graph

FILES = ("ring-allreduce-8.xml", "alltoall-allpairs-8.xml", "allreduce-hierarchical-4.xml")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
PLANS = (
    ("ideal:nodes=4", "all_reduce", "ring"),
    ("ideal:nodes=5", "all_to_all", "bruck"),
    ("sipac:radix=2,levels=2", "all_reduce", "sipco"),
    ("lightpath:shape=2x4,lasers=3", "reduce_scatter", "lumorph"),
    ("ramp:groups=2,racks=2,wavelengths=4", "all_gather", "ramp"),
    ("lightpath:shape=2x2", "all_reduce", "de_bruijn:steps=4"),
)

SMALL = """<algo name="a test" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""


def shared(name):
    """Text of a file that others wrote."""
    return shared_file(f"msccl/{name}").read_text("utf-8")


def graph_of(text, tmp_path):
    """The graph of a file with that text."""
    path = tmp_path / "a.xml"
    path.write_text(text, "utf-8")
    return read_msccl(path)


def written(tmp_path, fabric, collective, algorithm):
    """A plan of ours as text."""
    plan = opticcl.compile(fabric, collective, "1MB", algorithm=algorithm)
    write_msccl(tmp_path / "written.xml", plan.schedule, algorithm)
    return (tmp_path / "written.xml").read_text("utf-8")


def judged(text, tmp_path):
    """Rule that a text breaks ("" for none), and the messages that a connection must hold."""
    try:
        verdict = verify_graph(graph_of(text, tmp_path))
    except PlanFileError as error:
        return re.search(r": ([a-z_]+): ", str(error))[1], 0
    if not verdict.ok:
        return verdict.violations[0].rule, 0
    return "", int(re.search(r"deadlocks: (\d+)", verdict.notes[-1])[1])


# --- files of others ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_files_of_others_are_right(name, tmp_path):
    """Verified, and executed in random orders with connections that hold one message and four."""
    text = shared(name)
    verdict = verify_graph(graph_of(text, tmp_path))
    assert verdict.ok, verdict
    assert verdict.exhaustive
    assert {run(text, seed=seed, depth=depth) for seed in range(3) for depth in (1, 4)} == {"right"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", [FILES[0], *(pytest.param(one, marks=pytest.mark.deep) for one in FILES[1:]), *range(len(PLANS))]
)
def test_what_executes_wrong_is_refused_by_its_rule(name, kind, tmp_path):
    """Twenty mutants of each kind of a file of others, five of ours: none that the interpreter finds wrong is accepted."""
    text = shared(name) if isinstance(name, str) else written(tmp_path, *PLANS[name])
    wrong, changed = 0, mutants(text, kind, 20 if isinstance(name, str) else 5)
    for mutant in changed:
        rule, depth = judged(mutant, tmp_path)
        runs = 8 if not rule else 2
        outcomes = {run(mutant, seed=seed, depth=max(depth, (1, 4)[seed % 2]) or 4) for seed in range(runs)}
        assert rule or outcomes == {"right"}, (kind, outcomes)
        wrong += outcomes != {"right"}
    if kind not in ("dropped_dependency", "swapped_offset"):
        assert wrong >= 0.4 * len(changed)


# --- files of ours --------------------------------------------------------------------------------------------------------


def keeps_to_what_runtimes_load(text):
    """Rules of the parser and the kernel of the MSCCL executor for NCCL: a step is numbered with the waits before it.

    Source: github.com/Azure/msccl-executor-nccl, src/misc/msccl/msccl_parser.cc, src/device/msccl_kernel.cu, commit c6f6b36.
    """
    algo = ElementTree.fromstring(text)
    assert {int(algo.get(bound)) for bound in ("minBytes", "maxBytes")} == {0}  # no bound
    assert algo.get("coll") in {"allreduce", "allgather", "reducescatter", "alltoall"}
    assert algo.get("proto") == "Simple"
    for gpu in algo:
        chunks = {name: int(gpu.get(f"{name}_chunks")) for name in "ios"}
        assert [int(block.get("id")) for block in gpu] == list(range(len(gpu)))
        for way in ("send", "recv"):
            peers = [peer for block in gpu if (peer := int(block.get(way))) >= 0]
            assert len(peers) <= 32
            assert int(gpu.get("id")) not in peers
        for block in gpu:
            assert block[-1].get("type") != "nop"
            assert [int(step.get("s")) for step in block] == list(range(len(block)))
            for step, after in pairwise([*block, None]):
                if step.get("type") == "nop":  # one more wait of the step after it, which must have one of its own
                    assert int(step.get("depid")) >= 0 <= int(after.get("depid"))
                    assert step.get("hasdep") == "0"
                    continue
                assert 0 < int(step.get("cnt")) < 72
                for end in ("src", "dst"):
                    assert int(step.get(f"{end}off")) < max(1, chunks[step.get(f"{end}buf")])


@examples(25, suppress=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_right(tmp_path, data):
    """Read back, verified and executed with connections that hold one message: any algorithm, fabric and size."""
    collective = data.draw(st.sampled_from(COLLECTIVES))
    fabric = fabric_at_scale(
        data.draw(st.sampled_from(("ideal", "torus"))), data.draw(st.sampled_from((2, 3, 4, 6, 8, 12)))
    )
    wanted = as_request(collective)
    algorithm = data.draw(st.sampled_from(all_variants(wanted, fabric)))
    try:
        schedule = generate(algorithm, wanted, fabric)
    except OpticclError:
        return
    write_msccl(tmp_path / "a.xml", schedule, algorithm)
    text = (tmp_path / "a.xml").read_text("utf-8")
    assert judged(text, tmp_path) == ("", 1)
    assert {run(text, seed=seed, depth=1) for seed in range(2)} == {"right"}
    keeps_to_what_runtimes_load(text)


@pytest.mark.parametrize("plan", PLANS)
def test_plans_of_optical_systems_are_written(plan, tmp_path):
    """With as many messages as the plan has contiguous transfers, and every step read back as it was written."""
    text = written(tmp_path, *plan)
    graph = graph_of(text, tmp_path)
    assert graph.name == plan[2]
    assert graph.collective == plan[1]
    assert len(graph.operations) == text.count("<step ")
    assert verify_graph(graph).ok
    assert run(text, depth=1) == "right"


def test_only_what_the_format_holds_is_written(tmp_path):
    """No rooted collectives, no rank with too many peers, and nothing of a plan that sends what it has not."""
    rooted = opticcl.compile("ideal:nodes=4", "broadcast", "1MB", algorithm="tree")
    with pytest.raises(OutputError, match="not broadcast"):
        write_msccl(tmp_path / "a.xml", rooted.schedule, "tree")
    mesh = opticcl.compile("ideal:nodes=40", "all_to_all", "1MB", algorithm="mesh")
    with pytest.raises(OutputError, match="rank 0 has 39 thread blocks that send, more than 32"):
        write_msccl(tmp_path / "a.xml", mesh.schedule, "mesh")
    twice = Schedule("own", as_request("all_to_all").on(3, 3), 2, lambda i: Transfers.of([0], [1], 1, 1, Op.MOVE, [1]))
    with pytest.raises(OutputError, match="rank 0 sends chunk 1, of which it has nothing"):
        write_msccl(tmp_path / "a.xml", twice, "own")
    assert not list(tmp_path.iterdir())


def test_names_are_quoted(tmp_path):
    """An algorithm whose parameters hold characters of XML."""
    plan = opticcl.compile("ideal:nodes=2", "all_reduce", "1MB", algorithm="ring")
    write_msccl(tmp_path / "a.xml", plan.schedule, 'a"<&>:b=1')
    assert read_msccl(tmp_path / "a.xml").name == 'a"<&>:b=1'
    assert "'" not in (tmp_path / "a.xml").read_text()  # a runtime looks for the next double quote


def test_the_format_is_registered(tmp_path):
    """For reading and writing, by suffix."""
    (tmp_path / "a.XML").write_text(SMALL)
    assert format_of(tmp_path / "a.XML").name == format_to_write(tmp_path / "b.xml").name == "msccl"


# --- what the format can express ------------------------------------------------------------------------------------------


def step(number, kind, source="i 0", target="i 0", count=1, wait=(-1, -1), signals=0):
    """A step as XML."""
    (a, b), (c, d) = source.split(), target.split()
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{a}" srcoff="{b}" dstbuf="{c}" dstoff="{d}" cnt="{count}" '
        f'depid="{wait[0]}" deps="{wait[1]}" hasdep="{signals}"/>'
    )


def block(number, *steps, send=-1, receive=-1, channel=0):
    """A thread block as XML."""
    return f'<tb id="{number}" send="{send}" recv="{receive}" chan="{channel}">{"".join(steps)}</tb>'


def gpu(number, *blocks, i=0, o=0, s=0):
    """A GPU as XML."""
    return f'<gpu id="{number}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">{"".join(blocks)}</gpu>'


def algo(*gpus, collective="allreduce", chunks=1, in_place=1, channels=1):
    """A file."""
    return (
        f'<algo name="t" proto="LL" nchannels="{channels}" nchunksperloop="{chunks}" ngpus="{len(gpus)}" '
        f'coll="{collective}" inplace="{in_place}">{"".join(gpus)}</algo>'
    )


def pair(*steps, chunks=1, scratch=0):
    """An all_reduce of two ranks that do the same, with one thread block each."""
    both = (gpu(r, block(0, *steps, send=1 - r, receive=1 - r), i=chunks, s=scratch) for r in range(2))
    return algo(*both, chunks=chunks)


def ring_of_three():
    """An all_reduce of three: receive-reduce-send, receive-reduce-copy-send and receive-copy-send all occur."""
    return (
        algo(
            gpu(0, block(0, step(0, "s"), step(1, "r"), send=1, receive=2), i=1),
            gpu(1, block(0, step(0, "rrs"), step(1, "r"), send=2, receive=0), block(1, send=-1), i=1).replace(
                step(1, "r"), step(1, "nop")
            ),
            gpu(
                2,
                block(0, step(0, "rrcs"), send=0, receive=1),
                block(1, step(0, "s", wait=(0, 0)), send=1, channel=1),
                i=1,
            ).replace(step(0, "rrcs"), step(0, "rrcs", signals=1)),
            channels=2,
        )
        .replace(block(1, send=-1), block(1, step(0, "r", wait=(0, 0)), receive=2, channel=1))
        .replace(step(0, "rrs"), step(0, "rrs", signals=1))
    )


FORMS = {
    "rrs, rrcs, nop and waits": ring_of_three(),
    "cpy and re with scratch": algo(
        *(
            gpu(
                r,
                block(0, step(0, "s", signals=1), step(1, "re", "s 0", "i 0", wait=(1, 0)), send=1 - r),
                block(1, step(0, "r", target="s 0", signals=1), receive=1 - r),
                i=1, s=1,
            )
            for r in range(2)
        )
    ),
    "out of place": algo(
        *(
            gpu(
                r,
                block(0, step(0, "cpy", "i 0", "o 0"), step(1, "s", "i 0"), step(2, "rrc", "o 0", "o 0"), send=1 - r,
                      receive=1 - r),
                i=1, o=1,
            )
            for r in range(2)
        ),
        in_place=0,
    ),
    "copies before everything": algo(
        *(
            gpu(r, f'<copy i_off="0" o_off="{r}"/>',
                block(0, step(0, "s", f"o {r}"), step(1, "r", target=f"o {1 - r}"), send=1 - r, receive=1 - r), i=1, o=2)
            for r in range(2)
        ),
        collective="allgather", chunks=2, in_place=0,
    ),
    "several copies": algo(
        *(
            gpu(r, "".join(f'<copy i_off="{k}" o_off="{2 * r + k}"/>' for k in range(2)),
                block(0, step(0, "s", f"o {2 * r}", count=2), step(1, "r", target=f"o {2 - 2 * r}", count=2), send=1 - r,
                      receive=1 - r), i=2, o=4)
            for r in range(2)
        ),
        collective="allgather", chunks=4, in_place=0,
    ),
    "all_gather in place": algo(
        *(
            gpu(r, block(0, step(0, "s", "i 0"), step(1, "r", target=f"o {1 - r}"), send=1 - r, receive=1 - r), i=1, o=2)
            for r in range(2)
        ),
        collective="allgather", chunks=2,
    ),
    "reduce_scatter in place": algo(
        *(
            gpu(r, block(0, step(0, "s", f"i {1 - r}"), step(1, "rrc", "o 0", "o 0"), send=1 - r, receive=1 - r), i=2, o=1)
            for r in range(2)
        ),
        collective="reduce_scatter", chunks=2,
    ),
    "several chunks and channels": algo(
        *(
            gpu(
                r,
                block(0, step(0, "s", "i 0", count=2, signals=1), step(1, "rrc", "i 0", "i 0", count=2, wait=(1, 0)),
                      send=1 - r, receive=1 - r, channel=3),
                block(1, step(0, "s", "i 2", signals=1), step(1, "rrc", "i 2", "i 2"), send=1 - r, receive=1 - r, channel=1),
                i=3,
            )
            for r in range(2)
        ),
        chunks=3, channels=4,
    ),
    "rcs": algo(
        gpu(0, block(0, step(0, "s", "o 0"), send=1),
            block(1, step(0, "r", target="o 1"), step(1, "r", target="o 2"), receive=2), i=1, o=3),
        gpu(1, block(0, step(0, "rcs", target="o 0"), step(1, "s", "o 1"), send=2, receive=0),
            block(1, step(0, "r", target="o 2"), receive=2), i=1, o=3),
        gpu(2, block(0, step(0, "r", target="o 0"), step(1, "rcs", target="o 1"), step(2, "s", "o 2"), send=0, receive=1),
            block(1, step(0, "s", "o 2"), send=1), i=1, o=3),
        collective="allgather", chunks=3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_everything_that_the_format_expresses_is_read(form, tmp_path):
    """Each form is right for the verifier and for the interpreter."""
    verdict = verify_graph(graph_of(FORMS[form], tmp_path))
    assert verdict.ok, verdict
    assert {run(FORMS[form], seed=seed, depth=depth) for seed in range(6) for depth in (1, 4)} == {"right"}


def test_a_block_without_peers_needs_no_channel(tmp_path):
    """Some generators number it -1; with a peer it is refused."""
    alone = '</tb><tb id="1" send="-1" recv="-1" chan="-1"></tb>'
    assert verify_graph(graph_of(SMALL.replace("</tb>", alone), tmp_path)).ok
    first, last = SMALL.split("<tb ")[1:]
    for peer in (first, last):
        with pytest.raises(PlanFileError, match="chan='-1' is not a whole number of 0 or more"):
            graph_of(SMALL.replace(peer, peer.replace('chan="0"', 'chan="-1"')), tmp_path)
    with pytest.raises(PlanFileError, match="chan='-2' is not a whole number of -1 or more"):
        graph_of(SMALL.replace("</tb>", alone.replace('chan="-1"', 'chan="-2"')), tmp_path)
    assert verify_graph(graph_of(SMALL.replace(' chan="0"', "", 1), tmp_path)).ok  # that of the other end


def test_a_buffer_that_is_not_named_has_no_chunks(tmp_path):
    """Sizes may be left out."""
    assert graph_of(SMALL.replace(' s_chunks="1"', ""), tmp_path).num_cells == 4


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("per", [1, 2])
@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reducescatter", "alltoall"])
def test_what_each_cell_must_hold(tmp_path, collective, n, per):
    """Of a file without steps, apart: chunks of the input and of the output, counted by hand."""
    chunks = n * per
    whole, scattered = range(chunks), {r: range(r * per, r * per + per) for r in range(n)}
    sizes = {"i": per if collective == "allgather" else chunks, "o": per if collective == "reducescatter" else chunks}
    gpus = (gpu(r, i=sizes["i"], o=sizes["o"]) for r in range(n))
    graph = graph_of(algo(*gpus, collective=collective, chunks=chunks, in_place=0), tmp_path)
    width = sizes["i"] + sizes["o"]
    into = {r: scattered[r] if collective == "allgather" else whole for r in range(n)}
    out = {r: scattered[r] if collective == "reducescatter" else whole for r in range(n)}
    if collective == "alltoall":  # a piece for each pair of ranks
        into = {r: [r * chunks + k for k in whole] for r in range(n)}
        out = {r: [k // per * chunks + r * per + k % per for k in whole] for r in range(n)}
    assert graph.input_result.tolist() == [k for r in range(n) for k in into[r]]
    assert graph.input_cell.tolist() == [r * width + at for r in range(n) for at in range(sizes["i"])]
    assert graph.output_result.tolist() == [k for r in range(n) for k in out[r]]
    assert graph.output_cell.tolist() == [r * width + sizes["i"] + at for r in range(n) for at in range(sizes["o"])]


def test_what_precedes_everything(tmp_path):
    """Copies are a block of their own, whose last precedes the first step of each other block; one may have no steps."""
    text = FORMS["several copies"].replace('<copy i_off="0"', '<copy cnt="1" i_off="0"')
    for more in ("", block(1)):
        graph = graph_of(text.replace("</gpu>", more + "</gpu>"), tmp_path)
        assert graph.operations.block.tolist() == [-1, -1, 0, 0] * 2
        assert sorted(zip(graph.before.tolist(), graph.after.tolist(), strict=True)) == [
            (at + k, at + k + 1) for at in (0, 4) for k in range(3)
        ]


def test_steps_wait_for_earlier_ones(tmp_path):
    """Of their own block too; for the first from there on that says that it is waited for."""
    lines = SMALL.splitlines()
    lines[5] = lines[5].replace('hasdep="0"', 'hasdep="1"')
    lines[6] = lines[6].replace(NO_WAIT, 'depid="0" deps="1"')
    graph = graph_of("\n".join(lines), tmp_path)
    assert sorted(zip(graph.before.tolist(), graph.after.tolist(), strict=True)) == [
        (0, 1), (1, 2), (2, 3), (2, 3), (4, 5), (5, 6), (6, 7)
    ]  # fmt: skip
    assert verify_graph(graph).ok
    nothing = FORMS["rrs, rrcs, nop and waits"].replace(step(1, "nop"), step(1, "nop", count=0))
    assert nothing != FORMS["rrs, rrcs, nop and waits"]
    assert verify_graph(graph_of(nothing, tmp_path)).ok


@pytest.mark.parametrize(("text", "visits"), [(SMALL, 14), (FORMS["copies before everything"], 10)])
def test_the_most_cells_that_steps_visit(tmp_path, monkeypatch, text, visits):
    """Each cell that is read, written or received, of copies too."""
    monkeypatch.setattr(msccl_read, "MOST_CELL_VISITS", visits)
    assert len(graph_of(text, tmp_path).operations)
    monkeypatch.setattr(msccl_read, "MOST_CELL_VISITS", visits - 1)
    with pytest.raises(PlanFileError, match=f"all steps together have more than {visits - 1} chunks"):
        graph_of(text, tmp_path)


@pytest.mark.parametrize("form", ["all_gather in place", "reduce_scatter in place"])
def test_the_part_of_a_rank_in_place(form, tmp_path):
    """Stands at its place in the whole, however many chunks the file says that it has."""
    text = re.sub('[io]_chunks="1"', lambda size: size[0].replace("1", "2"), FORMS[form])
    assert text != FORMS[form]
    assert verify_graph(graph_of(text, tmp_path)).ok
    assert run(text, depth=1) == "right"
    gathered = graph_of(algo(gpu(0), gpu(1), collective="allgather", chunks=4), tmp_path)
    assert gathered.input_cell.tolist() == [0, 1, 4 + 2, 4 + 3]


def test_the_most_chunks_of_a_file_without_steps(tmp_path):
    """Those of the collective and of the buffers together; a buffer in place may be longer than the collective asks."""
    text = algo(gpu(0, i=1365, o=1366), chunks=1365, in_place=0)
    graph = graph_of(text.replace(' s_chunks="0"', ""), tmp_path)
    assert graph.num_cells == 1365 + 1366
    with pytest.raises(PlanFileError, match="4,097 chunks in all, but a file of 0 steps has at most 4,096"):
        graph_of(algo(gpu(0, i=1365, o=1367), chunks=1365, in_place=0), tmp_path)
    assert graph_of(algo(gpu(0, i=5, s=2), chunks=2), tmp_path).num_cells == 7


def test_deep_connections_are_noted(tmp_path):
    """Both ranks send three messages before they receive any: a connection must hold them."""
    sends, receives = (
        (step(k, "s", f"i {k}") for k in range(3)),
        (step(3 + k, "rrc", f"i {k}", f"i {k}") for k in range(3)),
    )
    both = pair(*sends, *receives, chunks=3)
    verdict = verify_graph(graph_of(both, tmp_path))
    assert verdict.ok
    assert verdict.notes[-1].endswith("deadlocks: 3, more than 2")
    assert [run(both, depth=depth) for depth in (1, 2, 3)] == ["deadlock", "deadlock", "right"]


# --- well-formed and wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        (SMALL.replace('type="rrc"', 'type="r"'), "contribution_missing", "chunk 0 of rank 0 i[0] at rank 0"),
        (pair(step(0, "s"), step(1, "re"), step(2, "rrc")), "contribution_doubled", "rank 0 chunk 0 x2"),
        (SMALL.replace('srcoff="1" dstbuf', 'srcoff="0" dstbuf', 1), "contribution_foreign", "chunk 0 x1"),
        (
            pair(step(0, "re", "s 0", "i 0"), step(1, "s"), step(2, "rrc"), scratch=1),
            "read_before_written",
            "data in rank 0 s[0]",
        ),
        (FORMS["cpy and re with scratch"].replace('depid="1" deps="0"', 'depid="-1" deps="-1"'), "race", "rank 0 s[0]"),
        (pair(step(0, "rrc"), step(1, "s")), "deadlock", "a cycle of 4: step"),
        (FORMS["cpy and re with scratch"].replace('hasdep="1"', 'hasdep="0"'), "deadlock", "it waits forever"),
        (
            pair(step(0, "cpy", "i 0", "i 1", count=2), step(1, "s", count=3), step(2, "rrc", count=3), chunks=3),
            "race",
            "its own source and target overlap",
        ),
    ],
)
def test_well_formed_and_wrong_names_rank_chunk_and_count(text, rule, words, tmp_path):
    """The rule, and where it is broken."""
    verdict = verify_graph(graph_of(text, tmp_path))
    assert rule in {violation.rule for violation in verdict.violations}
    assert words in str(verdict)


def test_counts_are_exact(tmp_path):
    """A contribution that arrives five times is said to."""
    text = pair(*(step(k, "s") for k in range(5)), *(step(5 + k, "rrc") for k in range(5)))
    verdict = verify_graph(graph_of(text, tmp_path))
    assert [violation.found for violation in verdict.violations] == ["rank 1 chunk 0 x5"]


def test_counts_do_not_overflow(tmp_path):
    """What is doubled 64 times and added to itself once is the same modulo 2^64, and is refused."""
    double = (("cpy", "i 0", "s 1"), ("re", "s 1", "i 0"))
    local = (("cpy", "i 0", "s 0"), *64 * double, ("re", "s 0", "i 0"))
    steps = (step(2 + k, kind, source, target) for k, (kind, source, target) in enumerate(local))
    verdict = verify_graph(graph_of(pair(step(0, "s"), step(1, "rrc"), *steps, scratch=2), tmp_path))
    assert {violation.rule for violation in verdict.violations} == {"contribution_doubled"}
    assert "chunk 0 x" in verdict.violations[0].found


# --- malformed ------------------------------------------------------------------------------------------------------------


SELF = "line 4, step: deadlock: thread block 0 of gpu 0 waits for itself"
FEW = "but a file of 8 steps has at most 12,288"
NO_WAIT = 'depid="-1" deps="-1"'
LAST = 's="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1"'
END = "    </tb>\n  </gpu>\n</algo>"
SECOND_SENDER = '    </tb>\n    <tb id="1" send="0" recv="-1" chan="0">' + step(0, "s") + "</tb></gpu></algo>"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<tb id", "<tc id", "line 3, an element 'tc' inside gpu"),
        ("</algo>", "", "no XML: no element found"),
        ("<algo ", "<?xml version='1.0' encoding='klingon'?><algo ", "no XML: unknown encoding"),
        ('coll="allreduce"', 'coll="custom"', "line 1, algo: collective_unknown: coll='custom'"),
        ('ngpus="2"', 'ngpus="3"', "rank_unknown: ngpus=3, but 2 gpu elements"),
        ('ngpus="2"', 'ngpus="2000000000"', "rank_unknown: ngpus=2000000000, but 2 gpu elements"),
        ('nchunksperloop="2"', 'nchunksperloop="2000000000"', FEW),
        ('s_chunks="1"', 's_chunks="2000000000"', FEW),
        ('<gpu id="1"', '<gpu id="0"', "rank_unknown: id=0 is given twice"),
        ('<gpu id="1"', '<gpu id="2"', "rank_unknown: id=2 is given twice or none of 0 to 1"),
        ('type="rrc"', 'type="rr\x7f"', "line 5, step: operation_unknown: type='rr\\x7f'"),
        ('type="rrc"', "", "line 5, step: attribute_missing: type is missing"),
        ('srcoff="1"', 'srcoff="-1"', "line 5, step: attribute_wrong: srcoff='-1'"),
        ('srcoff="1"', 'srcoff="one"', "srcoff='one' is not a whole number"),
        ('srcoff="1"', 'srcoff="99999999999999999999"', "attribute_wrong"),
        ('hasdep="0"', 'hasdep="2"', "hasdep=2 is neither 0 nor 1"),
        ('srcbuf="i"', 'srcbuf="x"', "line 4, step: buffer_unknown: buffer 'x' of gpu 0"),
        ('srcoff="1"', 'srcoff="2"', "line 5, step: chunk_unknown: chunks 2 to 2 of buffer i of gpu 0"),
        ('cnt="1"', 'cnt="3"', "chunk_unknown: chunks 0 to 2"),
        ('cnt="1"', 'cnt="2147483647"', "more than 67,108,864 chunks"),
        (LAST, LAST.replace('cnt="1"', 'cnt="33554432"'), "more than 67,108,864 chunks"),
        (' s="1"', ' s="2"', "step_unknown: s=2 where step 1 is due"),
        ('send="1"', 'send="7"', "line 3, tb: rank_unknown: send=7 is no other gpu"),
        ('send="1"', 'send="0"', "rank_unknown: send=0 is no other gpu"),
        ('send="1"', 'send="-1"', "rank_unknown: type=s, but its thread block has send=-1"),
        ('chan="0"', 'chan="1"', "channel_unknown: chan=1 is none of nchannels=1"),
        ('send="1"', 'send="-2"', "attribute_wrong: send='-2'"),
        ('send="1"', 'send="2"', "rank_unknown: send=2 is no other gpu; there are 0 to 1"),
        (NO_WAIT, 'depid="-2" deps="0"', "attribute_wrong: depid='-2'"),
        (NO_WAIT, 'depid="-1" deps="-2"', "attribute_wrong: deps='-2'"),
        (NO_WAIT, 'depid="0" deps="0"', SELF),
        (NO_WAIT, 'depid="5" deps="0"', "dependency_unknown: waits for step 0 of thread block 5"),
        (NO_WAIT, 'depid="0" deps="9"', "dependency_unknown: waits for step 9"),
        ('type="r"', 'type="nop"', "line 14, step: messages_unmatched: 2 sends and 1 receives from gpu 1 to gpu 0"),
        (LAST, LAST.replace('cnt="1"', 'cnt="2"'), "messages_unmatched: 2 chunks received of 1 sent"),
        (END, SECOND_SENDER, "connection_shared: thread blocks 0 and 1 of gpu 1 both send with gpu 0 on channel 0"),
        ("</gpu>", block(0) + "</gpu>", "thread_block_unknown: id=0 is given twice"),
        ('inplace="1"', 'inplace="0"', "chunk_unknown: o_chunks=0, but all_reduce has 2 there"),
        ('inplace="1"', "", "chunk_unknown: o_chunks=0, but all_reduce has 2 there"),
        ('cnt="1"', 'cnt="0"', "attribute_wrong: cnt='0' is not a whole number of 1 or more"),
        (
            'perloop="2" ngpus="2" coll="allreduce"',
            'perloop="3" ngpus="2" coll="allgather"',
            "3 is not a multiple of ngpus=2",
        ),
    ],
)
def test_malformed_files_are_refused_with_line_and_rule(old, new, words, tmp_path):
    """One printable line, and nothing of a size that the file only claims is allocated."""
    assert old in SMALL
    with pytest.raises(PlanFileError) as caught:
        graph_of(SMALL.replace(old, new, 1), tmp_path)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>' + SMALL.replace("a test", "&x;"), "refused unread"),
        ('<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>' + SMALL, "line 1, a document type declaration"),
        ("", "no XML: no element found"),
        ("<a>" * 100_000, "'a' at the top is unknown to the format"),
    ],
)
def test_what_is_no_schedule_is_refused(text, words, tmp_path):
    """Entities are never expanded and other files never opened; nesting has no depth."""
    with pytest.raises(PlanFileError) as caught:
        graph_of(text, tmp_path)
    assert words in str(caught.value)
    assert "/hostname" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path):
    """Nothing, and a directory."""
    with pytest.raises(PlanFileError, match="there is no such file"):
        read_msccl(tmp_path / "a.xml")
    with pytest.raises(PlanFileError, match="is a directory"):
        read_msccl(tmp_path)


@examples(150, suppress=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_never_give_a_traceback(tmp_path, data):
    """Whatever is in the file: an error of ours, or a verdict."""
    raw = bytearray(SMALL.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "a.xml").write_bytes(bytes(raw))
    try:
        verdict = verify_graph(read_msccl(tmp_path / "a.xml"))
    except PlanFileError:
        return
    if verdict.ok:
        assert run(bytes(raw).decode()) == "right"


def test_a_graph_can_be_read_by_people(tmp_path):
    """One line, and names of cells."""
    graph = graph_of(SMALL, tmp_path)
    assert str(graph) == "a test: all_reduce among 2 ranks, 2 chunks, 8 operations, 4 messages"
    assert repr(graph).startswith("<DependencyGraph a test")
    assert [graph.cell_name(cell) for cell in (0, 1, 2, 5)] == [
        "rank 0 i[0]",
        "rank 0 i[1]",
        "rank 0 s[0]",
        "rank 1 s[0]",
    ]
    assert np.array_equal(graph.rank_of_cell(), [0, 0, 0, 1, 1, 1])
