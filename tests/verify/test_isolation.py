"""Jobs on one machine: the sum of maxima is the condition of every pairing of rounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.verify.timing import Bench

import opticcl
from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.fabrics import fabric, job
from opticcl.ir import CircuitPlan, Circuits, Fabric, Resource, Schedule, Transfers, Usage
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.time.isolation import verify_together


def plan_on(machine: Fabric | str, nodes: list[int], algorithm: str = "ring") -> CircuitPlan:
    """An all-reduce of a job on these nodes."""
    where = job(fabric(machine) if isinstance(machine, str) else machine, nodes)
    return lower(where, generate(algorithm, "all_reduce", where))


def brute_force(plans: list[CircuitPlan]) -> bool:
    """Whether no pairing of rounds, one of each job, exceeds a capacity; counted one by one."""
    machine = plans[0].fabric
    of_job = [[c for i in range(p.schedule.num_steps) for c in p.rounds(i)] for p in plans]
    counted = []
    for rounds in of_job:
        each = []
        for circuits in rounds:
            counts: dict[tuple[str, int, int], int] = {}
            for usage in machine.usage(circuits):
                owner = range(len(usage.index)) if usage.circuit is None else usage.circuit.tolist()
                for index, row in zip(usage.index.tolist(), owner, strict=True):
                    lo, n, step = (
                        int(circuits.wavelength_lo[row]),
                        int(circuits.wavelength_n[row]),
                        circuits.wavelength_step,
                    )
                    wavelengths = range(lo, lo + n * step, step) if usage.resource.per_wavelength else (0,)
                    for w in wavelengths:
                        key = (usage.resource.kind, index, w)
                        counts[key] = counts.get(key, 0) + 1
            each.append(counts)
        counted.append(each)
    capacity = {r.kind: r.capacity for r in machine.resources}
    return all(
        sum(counts.get(key, 0) for counts in together) <= capacity[key[0]]
        for together in product(*counted)
        for key in set().union(*together)
    )


@examples(40)
@given(st.permutations(range(12)), st.integers(1, 3), st.integers(2, 5), st.integers(2, 5), st.booleans())
def test_the_sum_of_maxima_is_every_pairing(order, waveguides, first, second, lumorph):
    """Two jobs anywhere on a small wafer: the same verdict as counting all pairings of their rounds."""
    machine = fabric("lightpath", shape=(3, 4), waveguides=waveguides, lasers=2)
    algorithms = ("mesh" if lumorph else "ring", "ring")
    parts = (list(order[:first]), list(order[first : first + second]))
    plans = [plan_on(machine, nodes, a) for nodes, a in zip(parts, algorithms, strict=True)]
    assert all(verify(p).ok for p in plans)
    assert verify_together(plans).ok == brute_force(plans)


@pytest.mark.parametrize(
    ("machine", "first", "second"),
    [
        ("oddl:shape=4x4", [0, 1, 4, 5], [2, 3, 6, 7]),
        ("ramp:groups=2,racks=2,wavelengths=4", [0, 4, 8, 12], [1, 5, 9, 13]),
        ("ramp:groups=2,racks=2,wavelengths=4", [0, 1, 2, 3], [8, 9, 10, 11]),
        ("lightpath:shape=4x4,waveguides=1", [0, 1, 4, 5], [2, 3, 6, 7]),
        ("sipac:radix=4,levels=2", [0, 2, 8, 10], [1, 3, 9, 11]),
    ],
)
def test_two_jobs_verify_together(machine, first, second):
    """On disjoint parts; the same nodes for both are refused on every fabric."""
    algorithm = "halving_doubling"
    plans = [plan_on(machine, nodes, algorithm) for nodes in (first, second)]
    found = verify_together(plans)
    assert found.ok
    assert found.circuits == sum(verify(p).circuits for p in plans) > 0
    again = verify_together([plans[0], plan_on(machine, first, algorithm)], ["bert", "vgg"])
    assert not again.ok
    assert {v.rule for v in again.violations} == {"shared_between_jobs"}
    assert "bert and vgg" in str(again)


@pytest.mark.parametrize(
    ("machine", "first", "second", "algorithm", "kind"),
    [
        ("oddl:shape=4x4", [0, 1, 4, 5], [5, 6, 9, 10], "halving_doubling", "node"),
        ("ramp:groups=2,racks=2,wavelengths=4", [0, 1, 2, 3], [4, 5, 6, 7], "mesh", "subnet"),
        ("lightpath:shape=1x4,waveguides=1,lasers=1", [0, 3], [1, 2], "ring", "waveguide"),
        ("terarack:nodes=8,wavelengths=1", [0, 2, 4, 6], [1, 3, 5, 7], "ring", "fibre"),
    ],
)
def test_overlapping_jobs_are_refused(machine, first, second, algorithm, kind):
    """A shared node; two racks on one star coupler and wavelength; a shared waveguide and a shared fibre."""
    plans = [plan_on(machine, nodes, algorithm) for nodes in (first, second)]
    assert all(verify(p).ok for p in plans)
    found = verify_together(plans)
    assert not found.ok
    assert all(v.rule == "shared_between_jobs" for v in found.violations)
    assert any(v.where.startswith(kind) for v in found.violations)
    assert "at the end" not in str(found)


def test_capacity_is_shared_out():
    """Three jobs across one edge of two waveguides: two fit, the third does not."""
    machine = "lightpath:shape=3x2,waveguides=2,lasers=1"
    across = [plan_on(machine, [0, 1], "ring")]
    machine_of_one_row = fabric("lightpath:shape=1x6,waveguides=2,lasers=1")
    plans = [plan_on(machine_of_one_row, nodes, "ring") for nodes in ([0, 5], [1, 4], [2, 3])]
    assert verify_together(across).ok
    assert verify_together(plans[:2]).ok
    found = verify_together(plans)
    assert [v.where.split()[0] for v in found.violations] == ["waveguide"]
    assert "at most 2 circuit(s) of all jobs" in str(found)


def test_packets_may_share_links_but_no_node():
    """On a packet fabric shared links cost time and break no rule."""
    plans = [plan_on("torus:shape=2x4", nodes) for nodes in ([0, 2, 4, 6], [1, 3, 5, 7])]
    assert verify_together(plans).ok
    assert not verify_together([plans[0], plan_on("torus:shape=2x4", [6, 7])]).ok


def test_different_machines_are_refused():
    """Plans of different machines, and an empty list of plans, are refused."""
    with pytest.raises(FabricError, match="not the same machine"):
        verify_together([plan_on("oddl:shape=4", [0, 1]), plan_on("oddl:shape=8", [2, 3])])
    with pytest.raises(FabricError, match="at least one plan"):
        verify_together([])


def test_one_node_alone_disturbs_nobody():
    """A job without circuits."""
    plans = [plan_on("oddl:shape=4", [0]), plan_on("oddl:shape=4", [1, 2])]
    assert verify_together(plans).ok
    assert opticcl.compile("oddl:shape=4", "all_reduce", 1, nodes=[3]).verify().ok


def test_a_setting_belongs_to_one_job():
    """A switch port that two jobs set is refused even for the same setting: the arbiter frees it with the first job."""
    machine = fabric("oddl:shape=4")
    plan = plan_on(machine, [0, 1], "ring")
    found = verify_together([plan, plan])
    assert "switch_port" in " ".join(v.where for v in found.violations)
    assert np.all([v.rule == "shared_between_jobs" for v in found.violations])


def test_what_is_set_once_belongs_to_one_job_whatever_its_capacity():
    """Two circuits fit; two settings do not."""

    class Pairs(Bench):
        resources = (Resource("switch_port", 1, capacity=2, per_wavelength=False, once_per_job=True),)

        def usage(self, circuits):
            """All circuits pass the one port."""
            yield Usage(self.resources[0], np.zeros(len(circuits), np.int64))

    plans = [by_hand([[(src, dst, 0, 1, 0)]]) for src, dst in ((0, 1), (2, 3))]
    plans = [CircuitPlan(Pairs(), plan.schedule, plan.rounds) for plan in plans]
    assert [v.where for v in verify_together(plans).violations if not v.where.startswith("node")] == ["switch_port 0"]


def test_a_node_of_two_jobs_is_a_violation_of_no_round():
    """With both jobs by name, how many nodes they share, and sizes of all plans together."""
    plans = [plan_on("lightpath:shape=2x4", nodes) for nodes in ([0, 1, 2, 3], [2, 3, 4, 5], [6, 7])]
    verdict = verify_together(plans, ["a", "b", "c"])
    (found,) = [v for v in verdict.violations if v.where.startswith("node")]
    assert (found.step, found.round, found.expected, found.found, found.count) == (0, -1, "one job", "a and b", 2)
    each = [verify(plan) for plan in plans]
    assert verdict.transfers == sum(one.transfers for one in each)
    assert verdict.circuits == sum(one.circuits for one in each)


SHARE = 2**30
"""Of a waveguide."""


class Rack(Bench):
    """Four nodes: fibres by wavelength, shares of a waveguide, a switch that is set once a job, lasers that split, a link."""

    num_wavelengths = 6
    resources = (
        Resource("fibre", 2),
        Resource("waveguide", 1, capacity=4 * SHARE, per_wavelength=False),
        Resource("switch_port", 4, per_wavelength=False, once_per_job=True),
        Resource("laser", 4, per_wavelength=False, splits=True),
        Resource("link", 1, shared=True),
    )

    def usage(self, circuits):
        """Of the switch only what starts at nodes 0 and 2."""
        fibre, waveguide, switch, laser, link = self.resources
        src, dst = circuits.src.astype(np.int64), circuits.dst.astype(np.int64)
        yield Usage(fibre, src % 2)
        yield Usage(waveguide, np.zeros(len(src), np.int64), amount=np.full(len(src), SHARE))
        yield Usage(waveguide, np.zeros(len(src), np.int64), amount=dst % 3 * SHARE)
        even = np.flatnonzero(src % 2 == 0)
        if len(even):
            yield Usage(switch, src[even], even)
        yield Usage(laser, src)
        yield Usage(link, np.zeros(len(src), np.int64))


def by_hand(*steps):
    """A plan of steps that each happen twice; a step is rounds of (src, dst, first wavelength, wavelengths, chunk)."""
    rows = [[row for of in step for row in of] for step in steps]
    transfers = [Transfers.of(*np.array([(r[0], r[1], r[4], 1, 0) for r in step]).T) for step in rows]

    def rounds(i):
        made, first = [], 0
        for of in steps[i // 2]:
            src, dst, lo, n, _ = np.array(of).T
            transfer = first + np.arange(len(of))
            made.append(Circuits.of(transfer, src, dst, wavelength_lo=lo, wavelength_n=n, wavelength_step=2))
            first += len(of)
        return tuple(made)

    twice = tuple(range(2 * i, 2 * i + 2) for i in range(len(steps)))
    wanted = opticcl.collective.collective("barrier", 4, 8)
    schedule = Schedule("by hand", wanted, 2 * len(steps), lambda i: transfers[i // 2], twice)
    return CircuitPlan(Rack(), schedule, rounds)


def test_a_violation_names_both_jobs_and_the_first_round():
    """Of each kind of resource the first; a signal of several receivers counts once, a link never."""
    a = by_hand([[(2, 1, 0, 2, 0), (2, 0, 0, 2, 0)]], [[(1, 2, 1, 1, 0)]])
    b = by_hand([[(3, 0, 4, 1, 0)]], [[(3, 0, 4, 1, 0)], [(0, 3, 2, 1, 0)]])
    c = by_hand([[(2, 3, 2, 1, 1)]])
    verdict = verify_together([a, b, c], ["a", "b", "c"])
    found = [(v.where, v.step, v.round, v.expected, v.found, v.count) for v in verdict.violations]
    one, shares = "at most 1 circuit(s) of all jobs", "at most 4.29497e+09 circuit(s) of all jobs"
    assert found == [
        ("node 0", 0, -1, "one job", "a and b", 4), ("node 0", 0, -1, "one job", "b and c", 4),
        ("fibre 0 wavelength 2", 2, 1, one, "2 up to a and 1 of b in one round", 1),
        ("waveguide 0", 0, 0, shares, f"{4 * SHARE} up to b and {SHARE} of c in one round", 1),
        ("switch_port 2", 0, 0, "the setting of one job", "settings of a and c", 1),
        ("laser 2", 0, 0, one, "1 up to a and 1 of c in one round", 1),
    ]  # fmt: skip
    assert (verdict.transfers, verdict.circuits, verdict.chunks) == (2 * (3 + 3 + 1), 2 * (3 + 3 + 1), 0)


def test_rounds_that_take_nothing_of_a_kind():
    """The first that does is named: no port of a switch is set for what starts at node 1."""
    a, b = by_hand([[(2, 3, 0, 1, 0)]]), by_hand([[(1, 0, 1, 1, 0)], [(2, 1, 4, 1, 1)]])
    found = [(v.where, v.step, v.round) for v in verify_together([a, b]).violations if "switch" in v.where]
    assert found == [("switch_port 2", 0, 1)]


def test_the_first_difference_of_two_machines_is_named():
    """The name too, where all parameters are the same."""

    class Other(Rack):
        name = "other"

    a = by_hand([[(1, 2, 0, 1, 0)]])
    for machine, words in (
        (Other(), "name=bench and name=other are not the same machine"),
        (Rack(rate=1e9), "rate=8000000000.0 and rate=1000000000.0 are not the same machine"),
    ):
        with pytest.raises(FabricError, match=words):
            verify_together([a, CircuitPlan(machine, a.schedule, a.rounds)])


def test_what_has_one_setting_belongs_to_one_job():
    """On any wavelengths: the instance, both jobs and the first round that uses it are named."""

    class Whole(Bench):
        num_wavelengths = 6
        resources = (Resource("fibre", 4, one_setting=True),)

        def usage(self, circuits):
            yield Usage(self.resources[0], circuits.src.astype(np.int64), setting=circuits.dst.astype(np.int64))

    a, b = by_hand([[(1, 2, 0, 1, 0)]]), by_hand([[(0, 3, 1, 1, 0)]])
    c = by_hand([[(2, 3, 0, 1, 0)]], [[(3, 0, 4, 1, 0)], [(1, 0, 2, 1, 0)], [(1, 0, 4, 1, 0)]])
    plans = [CircuitPlan(Whole(), plan.schedule, plan.rounds) for plan in (a, b, c)]
    assert [v.where for v in verify_together(plans[:2]).violations] == ["node 0"]
    last = verify_together(plans, ["a", "b", "c"]).violations[-1]
    assert (last.where, last.step, last.round, last.expected, last.found, last.count) == (
        "fibre 1", 2, 1, "the setting of one job", "settings of a and c", 1
    )  # fmt: skip
    assert verify_together([plans[0], plans[0]]).violations[-1].where == "fibre 1 wavelength 0"


def test_a_violation_names_the_two_jobs_that_meet():
    """Of three jobs the first is apart from the others."""
    plans = [plan_on("oddl:shape=4x4", nodes) for nodes in ([0, 1, 4, 5], [2, 3, 6, 7], [2, 3, 6, 7])]
    found = [v.found for v in verify_together(plans, ["first", "second", "third"]).violations]
    assert found
    assert not any("first" in text for text in found)
    assert any("second" in text and "third" in text for text in found)
