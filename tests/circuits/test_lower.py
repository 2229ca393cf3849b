"""From a schedule to circuits: rules by name, nodes of a machine, routes of packets, copies of a plan's function of rounds."""

import pickle

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.circuits import RULES, lower, register_rule
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import Circuits, Op, Schedule, Transfers
from opticcl.schedule import generate


def steps_of(where, *steps):
    """A schedule of steps given as pairs."""
    made = [Transfers.of(*np.array(pairs).T, np.arange(len(pairs)), 1, Op.COPY) for pairs in steps]
    return Schedule("by hand", nothing_required(where.num_nodes, 12), len(made), lambda i: made[i])


def test_a_rule_is_registered_under_its_name_and_a_fabric_without_one_is_refused(monkeypatch):
    """The decorator gives the rule back; the message says what to write."""
    where = fabric("sip_ring:nodes=4")
    monkeypatch.setattr(type(where), "name", "unknown_ring")
    with pytest.raises(FabricError, match=r'rule with @register_rule\("unknown_ring"\), in circuits/unknown_ring.py'):
        lower(where, steps_of(where, [(0, 1)]))

    def rule(where, schedule):
        return lambda step, transfers: (Circuits.of([0], [0], [1], wavelength_lo=7),)

    monkeypatch.setattr(RULES, "_entries", dict(RULES._entries))
    assert register_rule("unknown_ring")(rule) is rule
    assert lower(where, steps_of(where, [(0, 1)])).rounds(0)[0].wavelength_lo.tolist() == [7]


@pytest.mark.parametrize("part", [False, True])
def test_nodes_that_no_circuit_joins_are_named(part):
    """The first such pair of the step, by the nodes of the machine."""
    machine = fabric("oddl:shape=2x3")
    where = job(machine, [5, 4, 0, 2]) if part else machine
    pairs, names = (
        ([(0, 1), (3, 0), (1, 2)], "(1, 1) and (0, 0)") if part else ([(0, 1), (1, 3), (0, 4)], "(0, 1) and (1, 0)")
    )
    with pytest.raises(UnsupportedError) as refused:
        lower(where, steps_of(where, pairs[:1], pairs))
    assert str(refused.value) == f"by hand on {where.name}: no single circuit joins nodes {names} in step 1"
    assert len(lower(where, steps_of(where, pairs[:1])).rounds(0)) == 1


def test_circuits_lead_between_the_nodes_of_the_machine():
    """Ranks 0 to 3 are nodes 3, 9, 14 and 0."""
    nodes = [3, 9, 14, 0]
    for machine in ("sip_ring:nodes=16", "torus:shape=4x4"):
        where = job(fabric(machine), nodes)
        (found,) = lower(where, steps_of(where, [(0, 1), (1, 2), (2, 3)])).rounds(0)
        assert (found.src.tolist(), found.dst.tolist()) == (nodes[:3], nodes[1:])


def test_equal_transfers_have_the_same_routes_and_others_their_own():
    """A step with another sender or another receiver has other routes; each is what the fabric says."""
    where = fabric("torus:shape=3x3")
    steps = [[(0, 1), (4, 8)], [(0, 1), (4, 8)], [(3, 1), (4, 8)], [(3, 1), (4, 7)], [(0, 1), (4, 8)]]
    plan = lower(where, steps_of(where, *steps))
    found = [plan.rounds(i) for i in range(len(steps))]
    assert found[0][0] is found[1][0]
    for pairs, (circuits,) in zip(steps, found, strict=True):
        src, dst = np.array(pairs).T
        hops, offsets = where.route(src, dst)
        assert (circuits.src.tolist(), circuits.dst.tolist()) == (src.tolist(), dst.tolist())
        assert (circuits.hops.tolist(), circuits.hop_offsets.tolist()) == (hops.tolist(), offsets.tolist())
        assert circuits.transfer.tolist() == [0, 1]


@pytest.mark.parametrize("machine", ["sip_ring:nodes=6", "torus:shape=2x3"])
def test_a_copy_of_the_function_of_rounds_gives_the_same_circuits(machine):
    """It keeps the fabric and the schedule."""
    where = fabric(machine)
    rounds = lower(where, generate("ring", "all_reduce", where)).rounds
    rounds = getattr(rounds, "rounds", rounds)
    copy = pickle.loads(pickle.dumps(rounds))
    assert (copy.fabric, copy.schedule) == (rounds.fabric, rounds.schedule)
    (mine,), (its,) = rounds(0), copy(0)
    assert (mine.src.tolist(), mine.dst.tolist(), mine.hops.tolist()) == (
        its.src.tolist(),
        its.dst.tolist(),
        its.hops.tolist(),
    )


def test_a_step_of_too_many_circuits_is_declined_for_its_bytes():
    """Before any circuit is made, with the step and the bytes."""
    where = fabric("ocs:nodes=4096")
    with pytest.raises(
        UnsupportedError, match=r"16,773,120 transfers of step 0 take \S+ GB, at most \S+ GB are supported"
    ):
        lower(where, generate("mesh", "all_to_all", where))
