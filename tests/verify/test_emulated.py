"""The second judge of light on plans: clean ones arrive, wrong ones are refused by rule, with device and circuits."""

from dataclasses import replace

import numpy as np
import pytest
from tests.matrix import OPTICAL, compiled, pairs, requests

import opticcl
from opticcl.collective import COLLECTIVES, collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.ir.netlist import Netlist
from opticcl.optics.plan_light import PlanLight
from opticcl.verify import verify
from opticcl.verify.light.emulated import emulate


def plans(name, sizes, collectives):
    """Every plan of the conformance matrix on a fabric."""
    for size in sizes:
        for one, algorithm in pairs():
            if one == name:
                for wanted in collectives:
                    for request in requests(wanted, size):
                        plan = compiled(name, algorithm, size, request)
                        if not isinstance(plan, str):
                            yield f"{algorithm} {request} at {size}", plan


@pytest.mark.parametrize("name", OPTICAL)
def test_light_of_every_algorithm_arrives(name):
    """All-to-all at 16 nodes."""
    found = 0
    for where, plan in plans(name, (16,), ("all_to_all",)):
        assert not emulate(plan).violations, where
        found += 1
    assert found > 4


@pytest.mark.deep
@pytest.mark.parametrize("name", OPTICAL)
def test_light_of_every_plan_arrives(name):
    """Every collective, root and algorithm."""
    for where, plan in plans(name, (16, 27, 32, 64), COLLECTIVES):
        assert not emulate(plan).violations, where


@pytest.mark.parametrize(
    "specification",
    [
        "ramp:groups=2,racks=2,wavelengths=4,transceivers_per_group=2",
        "ramp:groups=4,racks=2,wavelengths=4,subnet=route_broadcast",
        "ramp:groups=4,racks=2,wavelengths=4,subnet=route_broadcast,receiver=none",
        "ramp:groups=2,racks=2,wavelengths=4,receiver=tunable", "ramp:groups=4,racks=2,wavelengths=4,receiver=none",
        "ramp:groups=4,racks=2,wavelengths=4,subnet=route_switch", "oddl:shape=64", "lightpath:shape=4x4,dead_tiles=5",
        "sipac:radices=3x4,channels=retuned", "terarack:nodes=9,rings=2,wavelengths=4",
        "terarack_torus:shape=3x4,wavelengths=4", "terarack_torus:shape=3x3,wavelengths=4,wrap=false",
    ],
)  # fmt: skip
def test_light_of_variants_arrives(specification):
    """With their own algorithms."""
    verdict = opticcl.compile(specification, "all_reduce", "1 MB").verify(emulate=True)
    assert verdict.ok
    assert "emulated: " in verdict.notes[-1]


def test_a_job_on_some_nodes():
    """Circuits join nodes of the machine, transfers ranks of the job."""
    plan = opticcl.compile("lightpath:shape=4x4,lasers=4", "all_reduce", "1 MB", nodes=[3, 7, 11, 15])
    assert plan.verify(emulate=True).ok


# --- wrong plans -----------------------------------------------------------------------------------------------------------


def by_hand(specification, rounds, chunks=None):
    """A plan of one round a step: (src, dst, port, wavelength, path) of each circuit."""
    made = fabric(specification)
    steps, light = [], []
    for rows in rounds:
        src, dst, port, lo = np.array([row[:4] for row in rows]).T
        paths = [row[4] for row in rows]
        ends = np.cumsum([0, *map(len, paths)])
        light.append(Circuits.of(np.arange(len(rows)), src, dst, port, lo, 1, (np.concatenate(paths), ends)))
        steps.append(Transfers.of(src, dst, np.arange(len(rows)) if chunks is None else chunks, 1, Op.COPY))
    wanted = collective("all_gather", made.num_nodes, made.num_nodes)
    schedule = Schedule("by hand", wanted, len(steps), lambda i: steps[i])
    return CircuitPlan(made, schedule, lambda i: (light[i],))


RING = "terarack:nodes=6,wavelengths=2"


@pytest.mark.parametrize(
    ("specification", "rows", "rule", "words"),
    [
        (RING, [(0, 2, 0, 1, [0, 1]), (1, 2, 0, 1, [1])], "setting_clash",
         ["photodiode:9 (node 2 port 0 wavelength 1)", "0 -> 2 and 1 -> 2"]),
        (RING, [(0, 1, 0, 1, [0]), (0, 2, 0, 1, [0, 1])], "setting_clash",
         ["transmitter:0 (node 0 port 0, wavelength 1)", "0 -> 1 and 0 -> 2"]),
        (RING, [(0, 2, 0, 1, [0, 1]), (5, 1, 0, 1, [5, 0])], "setting_clash",
         ["drop:2 (node 1 port 0, wavelength 1)", "state 0 for 0 -> 2", "state 1 for 5 -> 1"]),
        (RING, [(0, 2, 0, 1, [0, 1]), (1, 3, 0, 1, [1, 2])], "setting_clash",
         ["drop:4 (node 2 port 0, wavelength 1)", "state 1 for 0 -> 2", "state 0 for 1 -> 3"]),
        (RING, [(0, 3, 0, 1, [0, 1, 2]), (1, 5, 0, 1, [1, 2, 3, 4])], "light_wrong",
         ["photodiode of node 3 port 0 wavelength 1", "the light of 0 -> 3 wavelength 1 alone", "found light of 1 -> 5"]),
        ("sipac:radix=3,levels=1,wavelengths=3", [(0, 1, 0, 2, [0])], "light_stray",
         ["photodiode of node 2 port 0 wavelength 2", "light of 0 -> 1"]),
        ("sipac:radix=3,levels=1,wavelengths=3", [(0, 1, 0, 2, [0])], "light_wrong",
         ["the light of 0 -> 1 wavelength 2 alone", "found light of a laser without data"]),
        ("ramp:groups=2,racks=2,wavelengths=2", [(0, 4, 0, 1, [1, 0])], "light_missing",
         ["photodiode of node 4 port 0", "the light of 0 -> 4 wavelength 1 alone", "found darkness"]),
        ("ramp:groups=2,racks=2,wavelengths=2", [(0, 4, 0, 0, [1, 0]), (2, 6, 0, 0, [1, 0])], "light_collided",
         ["photodiode of node 4 port 0", "the light of 0 -> 4 wavelength 0 alone", "0 -> 4, 2 -> 6"]),
        ("lightpath:shape=2x2,waveguides=1,lasers=2", [(0, 3, 0, 0, [0, 6, 13, 11, 0, 6])], "light_circulating",
         ["lightpath", "light that ends", "light that comes back to where it was"]),
        ("lightpath:shape=1x4,waveguides=1,lasers=2", [(0, 2, 0, 0, [0, 4]), (1, 3, 0, 0, [4, 8])], "setting_clash",
         ["tile:2 (tile (row=0, column=2))", "0 -> 2", "1 -> 3"]),
        ("oddl:shape=4", [(0, 1, 0, 0, [0]), (2, 1, 0, 1, [0])], "setting_clash",
         ["receiver:1 (node 1 NIC 0)", "state 0 for 0 -> 1", "state 2 for 2 -> 1"]),
    ],
)  # fmt: skip
def test_a_refusal_names_device_and_circuits(specification, rows, rule, words):
    """Each rule on the hardware that can break it."""
    found = emulate(by_hand(specification, [rows])).violations
    texts = [str(violation) for violation in found if violation.rule == rule]
    assert any(all(word in text for word in words) for text in texts), list(map(str, found))


def test_a_device_that_is_set_once_a_job():
    """ODDL: the circuits of two rounds that need one input in two states, both named."""
    plan = by_hand("oddl:shape=4", [[(0, 1, 0, 0, [0])], [(0, 2, 0, 0, [0])]])
    found = emulate(plan).violations
    clash = next(violation for violation in found if violation.rule == "setting_clash")
    assert "wss0:0 (dimension 0 switch 0)" in clash.where
    assert (clash.expected, clash.found) == ("state 1 for 0 -> 1", "state 2 for 0 -> 2")


def test_both_judges_refuse_and_say_so():
    """The violations of both are in one verdict; where circuits do not exist no light is followed."""
    verdict = verify(by_hand(RING, [[(0, 2, 0, 1, [0, 1]), (1, 2, 0, 1, [1])]]), emulate=True)
    assert {"wavelength_clash", "setting_clash"} <= {violation.rule for violation in verdict.violations}
    verdict = verify(by_hand(RING, [[(0, 2, 0, 1, [3])]]), emulate=True)
    assert "emulated: no light, since circuits do not exist" in verdict.notes


def test_light_that_no_one_can_follow():
    """Packets, and machines that are too large, before any work."""
    with pytest.raises(UnsupportedError, match="torus: no light from end to end"):
        opticcl.compile("torus:shape=2x2", "all_reduce", "1 MB").verify(emulate=True)
    with pytest.raises(ParameterError, match="nearest: 1024 nodes"):
        emulate(replace(by_hand(RING, [[(0, 1, 0, 0, [0])]]), fabric=fabric("ramp")))


# --- wrong machines ----------------------------------------------------------------------------------------------------------


MACHINES = {
    "terarack:nodes=6,wavelengths=2": ("wrht", "ring"),
    "sipac:radix=4,levels=1,wavelengths=4": ("sipco", "mesh"),
    "oddl:shape=4x2,wavelengths=3": ("by_dimension", "ring"),
    "ramp:groups=2,racks=2,wavelengths=2": ("mesh",),
    "lightpath:shape=2x3,lasers=2,waveguides=1": ("mesh",),
}
"""Machine -> algorithms of all-to-all whose light is followed on it."""
WITHOUT_DATA = {"comb", "laser"}
"""Groups behind which links carry light that is equal for all, so that it does not matter which is which."""


def with_links_swapped(netlist, random):
    """The netlist with the targets of two of its links exchanged, both between the same groups."""
    bundles = list(netlist.bundles())
    links = np.array([len(bundle.inputs) * (bundle.source not in WITHOUT_DATA) for bundle in bundles])
    which = int(random.choice(len(bundles), p=links / links.sum()))
    inputs = np.array(bundles[which].inputs)
    one, other = random.choice(len(inputs), 2, replace=False)
    inputs[[one, other]] = inputs[[other, one]]
    bundles[which] = bundles[which]._replace(inputs=inputs)
    return Netlist(netlist.name, netlist.groups, netlist.num_wavelengths, lambda: bundles, netlist.transmitter)


def num_noticed(specification, monkeypatch, count):
    """Machines with two links swapped on which some light of some plan does not arrive."""
    made = fabric(specification)
    found = [opticcl.compile(made, "all_to_all", "1 MB", algorithm=name).circuits for name in MACHINES[specification]]
    random, noticed = np.random.default_rng(0), 0
    for _ in range(count):
        wrong = with_links_swapped(made.netlist(), random)
        monkeypatch.setattr(type(made), "netlist", lambda self, wrong=wrong: wrong)
        noticed += any(emulate(plan).violations for plan in found)
        monkeypatch.undo()
    return noticed


@pytest.mark.parametrize("specification", MACHINES)
def test_swapped_links_are_noticed(specification, monkeypatch):
    """Of forty, 38 at least; the others are equivalent, or carry no data of these plans."""
    assert num_noticed(specification, monkeypatch, 40) >= 38


def test_a_change_is_seen_in_every_round():
    """A laser that is dark, and a ring that always drops."""
    plan = opticcl.compile(RING, "all_to_all", "1 MB", algorithm="ring").circuits
    assert all(r.violations for r in PlanLight(plan, ["transmitter:0=-1"]).rounds(0, plan.schedule.step(0)))
    assert not any(r.violations for r in PlanLight(plan).rounds(0, plan.schedule.step(0)))
