"""Headers of plan files: the largest and smallest values that are read, and what is beyond them."""

import base64
import json
import re
import zlib
from dataclasses import replace
from random import Random

import msgspec
import numpy as np
import pytest
from tests.fabrics.network_files import SIMAI

import opticcl
from opticcl.collective import collective
from opticcl.errors import PlanFileError
from opticcl.fabrics.networks import contents
from opticcl.formats import plan_header
from opticcl.formats.plan_header import check_claims, decode_header, encode_header, fabric_and_collective
from opticcl.ir import CircuitPlan, Schedule, Transfers

SUM = {"name": "all_reduce", "num_ranks": 4, "num_chunks": 4}
RIGHT = {"format": "opticcl-plan", "version": 3, "opticcl": "1", "fabric": "ideal:nodes=4", "collective": SUM}
RIGHT |= {"algorithm": "ring", "num_steps": 2, "size_bytes": 100}


def header_of(**change):
    """A header with changed fields."""
    return decode_header(json.dumps({**RIGHT, **change}), "a.json")


def packed(raw):
    """Bytes, deflated, in base 64."""
    return base64.b64encode(zlib.compress(raw)).decode("ascii")


def a_run(step, count):
    """A run that moves nothing."""
    return {"step": step, "count": count, "members": [{}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 0}, "a.json: header: version=0; versions count from 1"),
        ({"version": 1}, ""),
        ({"version": 5}, ""),
        ({"version": 6}, "a.json: is version 6, this program reads up to 5; update opticcl"),
        ({"format": "opticcl-programme"}, ""),
        ({"format": "opticcl"}, "a.json: is a 'opticcl' file, not 'opticcl-plan'"),
        ({"num_steps": 0, "size_bytes": 0}, ""),
        ({"num_steps": -1}, "header: num_steps=-1 is negative"),
        ({"size_bytes": -1}, "header: size_bytes=-1 is negative"),
        ({"size_bytes": 2**60}, ""),
        ({"size_bytes": 2**60 + 1}, "header: size_bytes=1152921504606846977 is more than 2**60"),
    ],
)
def test_fields(change, said):
    """What every header has."""
    if not said:
        assert header_of(**change) == decode_header(encode_header(header_of(**change)), "b.json")
        return
    with pytest.raises(PlanFileError, match=re.escape(said)):
        header_of(**change)


def test_what_a_plan_does_not_have_is_not_written():
    """No runs, no claims, no phases, no file of a network."""
    assert {*json.loads(encode_header(header_of()))} == {*RIGHT, "nodes"}
    more = {"runs": [a_run(0, 2)], "steps": {"radices": [4], "parts": [[[0, 1, 4]]], "phases": []}, "content": "x"}
    assert {*json.loads(encode_header(header_of(**more)))} == {*RIGHT, "nodes", *more}


@pytest.mark.parametrize("bad", [b"\xff", b"[]", b"{}", b'{"format": "\xff"}', b"{" * 10])
def test_what_is_no_header_is_refused(bad):
    """In one line."""
    with pytest.raises(PlanFileError, match=r"a\.json: its header is not opticcl-plan of version 5"):
        decode_header(bad, "a.json")


@pytest.mark.parametrize(
    ("change", "rows", "said"),
    [
        ({}, 2, ""),
        ({"num_steps": 3}, 2, "header: num_steps=3, but a file of 2 circuits has at most 2"),
        ({"num_steps": 4, "runs": [a_run(0, 3)]}, 2, ""),
        ({"num_steps": 5, "runs": [a_run(0, 3)]}, 2, "header: num_steps=5, without repetitions=3, but a file of 2"),
        ({"num_steps": 99, "steps": {"radices": [4], "parts": [[[0, 1, 4]]], "phases": [{}, {}]}}, 2, ""),
        ({"num_steps": 5, "runs": [a_run(0, 9)]}, 2, "header: runs[0].count=9 is not 1 to 8"),
        ({"collective": {**SUM, "num_chunks": 1024 + 128}}, 2, ""),
        ({"collective": {**SUM, "num_chunks": 1024 + 129}}, 2, "collective.num_chunks=1,153, but a file of 2 circuits"),
        ({"collective": {**SUM, "num_ranks": 1024 + 128}}, 2, ""),
        ({"collective": {**SUM, "num_ranks": 1024 + 129}}, 2, "collective.num_ranks=1,153, but a file of 2 circuits"),
        ({"nodes": [0] * (1024 + 128)}, 2, ""),
        ({"nodes": [0] * (1024 + 129)}, 2, "nodes=1,153, but a file of 2 circuits has at most 1,152"),
        ({"collective": {**SUM, "num_ranks": 2**22}}, 2**20, ""),
        ({"collective": {**SUM, "num_ranks": 2**22 + 1}}, 2**20, "has at most 4,194,304"),
        ({"collective": {**SUM, "num_chunks": 2**22 + 1}}, 2**20, ""),
    ],
)
def test_counts_that_rows_bear_out(change, rows, said):
    """Steps, chunks, ranks and nodes."""
    if not said:
        check_claims(header_of(**change), rows, "a.json")
        return
    with pytest.raises(PlanFileError, match=re.escape(said)):
        check_claims(header_of(**change), rows, "a.json")


def test_nodes_are_at_most_those_of_a_machine():
    """However many rows a file has."""
    most = msgspec.structs.replace(header_of(), nodes=[0] * 2**22)
    check_claims(most, 2**20, "a.json")
    most.nodes.append(0)
    with pytest.raises(PlanFileError, match=r"nodes=4,194,305, .* has at most 4,194,304"):
        check_claims(most, 2**20, "a.json")


@pytest.mark.parametrize(
    ("text", "value"), [("800", 800), ("8e+2", 800), ("800.0", 800), ("2.5e3", 2500), ("1.5", 1.5), ("5e-1", 0.5)]
)
def test_numbers_are_in_si_units(text, value):
    """Whole ones and others."""
    machine, promised = fabric_and_collective(header_of(fabric=f"ideal:nodes=4,rate={text}"), "a.json")
    assert machine == opticcl.fabric("ideal", nodes=4, rate=value)
    assert (promised.name, promised.num_ranks, promised.num_chunks) == ("all_reduce", 4, 4)


def test_values_that_are_no_numbers():
    """Words stay words."""
    machine, _ = fabric_and_collective(header_of(fabric="ocs:nodes=4,planes=1,forwarding=any"), "a.json")
    assert machine == opticcl.fabric("ocs", nodes=4, planes=1, forwarding="any")


def test_nodes_of_a_job():
    """In the order of its ranks."""
    machine, _ = fabric_and_collective(header_of(fabric="ideal:nodes=9", nodes=[7, 2, 8, 0]), "a.json")
    assert machine.node_of_rank.tolist() == [7, 2, 8, 0]


CUSTOM = {"name": "own", "num_ranks": 5, "num_chunks": 3, "reduces": False}
BITS = {"before": packed(b"\xff\xfe"), "after": packed(b"\xff\xfe")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fabric": "ideal:nodes=5"}, "header: 4 ranks on 5 nodes of ideal"),
        ({"fabric": "ideal:nodes=4194304"}, "header: 4 ranks on 4194304 nodes"),
        ({"fabric": "ideal:nodes=4194305"}, "has more than 4,194,304 nodes"),
        ({"nodes": [0, 1, 2, 2**31]}, "header: a node number that no machine has"),
        ({"nodes": [0, 1, 2, -(2**31) - 1]}, "header: a node number that no machine has"),
        ({"nodes": [0, 1, 2, -(2**31)]}, "no node -2147483648"),
        ({"nodes": [0, 1, 2, 2**31 - 1]}, "no node 2147483647"),
        ({"collective": {**SUM, "name": "all_gather", "owner": packed(bytes(12))}}, "not one owner for each chunk"),
        ({"collective": {**SUM, "name": "all_gather", "owner": packed(bytes(20))}}, "not one owner for each chunk"),
        ({"collective": {**SUM, "name": "all_gather", "owner": "????"}}, "header: "),
        (
            {"collective": {**SUM, "name": "all_gather", "owner": "*" + packed(bytes(range(4)) * 4)}},
            "header: Only base64",
        ),
        (
            {"collective": {**CUSTOM, **BITS, "after": "*" + BITS["after"]}, "fabric": "ideal:nodes=5"},
            "header: Only base64",
        ),
        ({"content": "*" + packed(b"x")}, "header: Only base64"),
        ({"collective": CUSTOM}, "a custom collective needs tables of 1 to 67,108,864 bits before and after"),
        ({"collective": {**CUSTOM, **BITS, "num_chunks": 0}}, "needs tables of 1 to"),
        ({"collective": {**CUSTOM, **BITS, "num_ranks": 0}}, "needs tables of 1 to"),
        ({"collective": {**CUSTOM, **BITS, "num_ranks": 2**13, "num_chunks": 2**13}}, "not one bit for each"),
        ({"collective": {**CUSTOM, **BITS, "num_ranks": 2**13, "num_chunks": 2**13 + 1}}, "needs tables of 1 to"),
        ({"collective": {**CUSTOM, **BITS, "after": packed(b"\xff")}}, "not one bit for each chunk and rank"),
        ({"collective": {**CUSTOM, **BITS, "after": packed(b"\xff\xff\xff")}}, "not one bit for each chunk and rank"),
        ({"collective": {**CUSTOM, **BITS, "after": "AAAA"}}, "header: "),
        ({"content": packed(b"x"), "fabric": "network:content=abc"}, "content: its digest is"),
        ({"content": packed(b"x")}, "content: its digest is"),
    ],
)
def test_machines_and_collectives_that_cannot_be(change, said):
    """They do not exist, or do not fit each other."""
    with pytest.raises(PlanFileError, match=re.escape(said)):
        fabric_and_collective(header_of(**change), "a.json")


def test_the_largest_network(monkeypatch):
    """A file in the header is not inflated beyond what a network may be."""
    monkeypatch.setattr(plan_header, "MOST_BYTES", 2**20)
    for size, said in ((2**20, "content: its digest is"), (2**20 + 1, "content: a network of more than 1 MiB")):
        with pytest.raises(PlanFileError, match=said):
            fabric_and_collective(header_of(content=packed(bytes(size))), "a.json")


def test_owners_and_tables():
    """Numbers of ranks, and a bit for each chunk and rank, chunk by chunk."""
    owner = [3, 1, 0, 2]
    given = {**SUM, "name": "reduce_scatter", "owner": packed(np.array(owner, "<i4").tobytes())}
    assert fabric_and_collective(header_of(collective=given), "a.json")[1].owner.tolist() == owner
    random = Random(1)
    for ranks, chunks in ((5, 3), (4, 4), (1, 1), (3, 8), (9, 8)):
        tables = [[[True, *(random.random() < 0.5 for _ in range(ranks - 1))] for _ in range(chunks)] for _ in range(2)]
        bits = ["".join("01"[one] for row in table for one in row) for table in tables]
        raw = [int(one.ljust(-(-len(one) // 8) * 8, "0"), 2).to_bytes(-(-len(one) // 8), "big") for one in bits]
        given = {"name": "own", "num_ranks": ranks, "num_chunks": chunks, "reduces": True}
        given |= dict(zip(("before", "after"), map(packed, raw), strict=True))
        promised = fabric_and_collective(header_of(fabric=f"ideal:nodes={ranks}", collective=given), "a.json")[1]
        everywhere = np.arange(ranks), np.arange(chunks)[:, None]
        assert [
            np.broadcast_to(held(*everywhere), (chunks, ranks)).tolist() for held in (promised.before, promised.after)
        ] == tables
        assert promised.reduces


def test_owners_in_rank_order_are_not_written():
    """They are those of a header without owners."""
    for order, said in (([0, 0, 1, 1], False), ([0, 1, 0, 1], True)):
        own = collective("all_gather", 2, 4, owner=np.array(order))
        plan = CircuitPlan(opticcl.fabric("ideal:nodes=2"), Schedule("idle", own, 0, len), len)
        assert (plan_header.header_of(plan, 8, "idle").collective.owner is not None) == said


@pytest.mark.parametrize(
    ("system", "asked", "version"),
    [
        ("ideal:nodes=4", ("all_reduce", "ring"), 4),
        ("ideal:nodes=4", ("broadcast", "mesh"), 1),
        ("lightpath:shape=3x3", ("all_reduce", "de_bruijn:steps=4"), 3),
    ],
)
def test_the_oldest_version_that_can_say_it(system, asked, version):
    """So that older programs read the file."""
    plan = opticcl.compile(system, asked[0], 9000, algorithm=asked[1])
    assert plan_header.header_of(plan.circuits, 9000, "any").version == version


def test_paths_and_networks_need_the_newest_version():
    """A path that a step states, and the file of a network, which is in the header."""
    stated = Transfers.of([0], [1], [0], [1], [0])
    for one, version in ((stated, 1), (replace(stated, hops=np.array([5]), hop_offsets=np.array([0, 1])), 5)):
        schedule = Schedule("any", collective("all_reduce", 4, 4), 1, lambda i, one=one: one)
        plan = CircuitPlan(opticcl.fabric("ideal:nodes=4"), schedule, len)
        assert plan_header.header_of(plan, 8, "any").version == version
    digest = contents.digest_of(SIMAI.encode())
    for number in range(contents.MOST_KEPT):  # it is not remembered
        contents.keep(bytes([number]))
    header = header_of(fabric=f"network:file=gone.txt,content={digest}", content=packed(SIMAI.encode()))
    machine, promised = fabric_and_collective(header, "a.json")
    assert machine.num_nodes == 4
    found = plan_header.header_of(CircuitPlan(machine, Schedule("idle", promised, 0, len), len), 8, "idle")
    assert found.version == 5
    assert zlib.decompress(base64.b64decode(found.content)) == SIMAI.encode()
