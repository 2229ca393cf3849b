"""Claims of symmetry of every algorithm: none is refused, on any fabric and for any collective.

A refused claim is no error of the plan: the verifier drops it and follows every chunk, which takes longer and shows as a note.
"""

import pytest
from tests.matrix import VARIANTS

from opticcl.collective import COLLECTIVES, Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.schedule import ALGORITHMS, generate
from opticcl.verify import data as data_module
from opticcl.verify.data import check_data

NODES = (96, 144, 210, 225, 243, 256)


def claiming(name, nodes):
    """Every schedule of an algorithm and its variants on every fabric that claims a symmetry, each once."""
    seen = set()
    for system in FABRICS.names():
        try:
            where = fabric_at_scale(system, nodes)
        except FabricError:  # it has no such shape
            continue
        for algorithm in VARIANTS.get(name, (name,)):
            for wanted in COLLECTIVES:
                try:
                    made = generate(algorithm, Request(wanted, 0), where)
                except UnsupportedError:
                    continue
                step = made.step(0) if made.num_steps else None
                first = () if step is None else (step.src.tobytes(), step.dst.tobytes(), step.chunk_lo.tobytes())
                key = (algorithm, wanted, made.num_steps, made.collective.num_chunks, first)
                if made.symmetries and key not in seen:
                    seen.add(key)
                    yield f"{algorithm}, {wanted} on {system}", made


def refused(name, nodes):
    """Where claims of an algorithm are refused, with the notes of the verdict."""
    found = []
    for where, made in claiming(name, nodes):
        report = check_data(made)
        assert not report.violations, where
        found += [f"{where}: {note}" for note in report.notes if "claim refused" in note]
    return found


@pytest.fixture(autouse=True)
def symmetry_at_every_size(monkeypatch):
    """Also of few chunks."""
    monkeypatch.setattr(data_module, "SYMMETRY_FROM", 0)


@pytest.mark.parametrize("name", ["two_sided_ring", "sipco", "ramp", "circulant_rings"])
def test_no_claim_is_refused_on_few_nodes(name):
    """On 16 nodes, algorithms of four kinds."""
    assert refused(name, 16) == []


@pytest.mark.deep
@pytest.mark.parametrize("name", ALGORITHMS.names())
@pytest.mark.parametrize("nodes", NODES)
def test_no_claim_is_refused(name, nodes):
    """At 256 nodes, and at numbers with other factors."""
    assert refused(name, nodes) == []
