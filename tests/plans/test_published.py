"""Cases of published planners: Harvest's schedules of links, SWOT's matrices."""

import json

import pytest

from opticcl.errors import PlanFileError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.plans.plan import Plan
from opticcl.plans.published import as_ocs, carried, cases, links_of, plan_published, solved

MACHINE = "ocs:nodes=64,rate=800Gb/s,reconfiguration=10us,endpoint_latency=10ns,hop_delay=10us"
SHIFTS = [1, 2, 4, 8, 16, 32, 32, 16, 8, 4, 2, 1]


def harvest(path, shifts, n, capacity=1):
    """A file whose steps have links of one shift."""
    steps = [{"step": i + 1, "topology": [[x, (x + s) % n, capacity] for x in range(n)]} for i, s in enumerate(shifts)]
    path.write_text(json.dumps({"alpha_r": 0.0, "collective": "all-reduce-rd-nd", "steps": steps}))
    return path


def test_a_schedule_of_harvest(tmp_path):
    """64 nodes, 16 KiB, a hop of 10 us: the cost that their file of this case states is 220,442.86 ns."""
    where = fabric(MACHINE)
    path = harvest(tmp_path / "case.json", SHIFTS, 64)
    (plan,) = carried(where, "all_reduce", links_of(path, where))
    made = Plan(plan, 16384)
    assert made.verify().ok
    found = made.simulate(assumptions="published", compute="none", initial="warm")
    assert found.total_s == pytest.approx(220_442.86e-9, rel=1e-5)
    assert found.reconfiguration_s.sum() == pytest.approx(100e-6)
    planned = plan_published(where, "all_reduce", 16384, path, assumptions="published")
    assert planned.plan.algorithm.startswith("digit_shifts")
    assert planned.bound_s <= planned.total_s


def test_links_over_several_hops(tmp_path):
    """Rings of shift 1 and of shift 2 carry shifts by 1, 2 and 4 over up to four links."""
    where = fabric("ocs:nodes=8,planes=2")
    path = harvest(tmp_path / "held.json", [1, 1, 2, 2, 1, 1], 8, capacity=2)
    for plan in carried(where, "all_reduce", links_of(path, where)):
        assert Plan(plan, 8000).verify().ok
    assert carried(where, "all_reduce", links_of(path, where))


def test_a_wrong_link_is_refused_by_the_judge(tmp_path):
    """Circuits on links that stand elsewhere share ports."""
    where = fabric("ocs:nodes=8")
    (plan,) = carried(where, "all_reduce", links_of(harvest(tmp_path / "a.json", [1, 2, 4, 4, 2, 1], 8), where))
    (circuits,) = plan.rounds(1)
    circuits.hops[:] = 0
    assert not Plan(plan, 8000).verify().ok


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "`steps` is not a list"),
        ('{"steps": [{"topology": 3}]}', "step 1: `topology` is not a list"),
        ('{"steps": [{"topology": [[0, 1]]}]}', "is not [from, to, capacity]"),
        ('{"steps": [{"topology": [[0, 1, true]]}]}', "is not [from, to, capacity]"),
        ('{"steps": [{"topology": [[0, 9, 1]]}]}', "nodes are 0 to 7"),
        ('{"steps": [{"topology": [[0, 1, 3]]}]}', "3 links lead from node 0, its ports are planes=2"),
        ('{"steps": [{"topology": [[0, 1, 1], [2, 1, 2]]}]}', "3 links lead to node 1"),
        ('{"steps": [{"topology": [[0, 1, 1], [0, 2, 1]]}]}', "nodes with links to several others"),
    ],
)
def test_bad_links(tmp_path, text, said):
    """One line with the step, the value and the rule."""
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(PlanFileError) as error:
        links_of(path, fabric("ocs:nodes=8,planes=2"))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_links_that_no_algorithm_uses(tmp_path):
    """Another number of steps; another fabric."""
    where = fabric("ocs:nodes=8")
    with pytest.raises(UnsupportedError, match="no algorithm does all_reduce in 5 steps"):
        carried(where, "all_reduce", links_of(harvest(tmp_path / "b.json", [1, 2, 4, 2, 1], 8), where))
    with pytest.raises(UnsupportedError, match="--import is for a whole ocs"):
        as_ocs(fabric("torus:shape=4x4"))
    with pytest.raises(PlanFileError, match="cannot be read"):
        links_of(tmp_path / "absent.json", where)


MATRIX = """
message_sizes_mib = [8.0, 32.0]
algorithms = ["ar_having-doubling", "a2a_pairwise", "a2a_bruck"]
[topology]
k = 2
p = 8
B = 50
T_reconf = 0.2
T_lat = 0.02
"""


def test_a_matrix_of_swot(tmp_path):
    """Eight nodes and two switches: 0.86 ms for 8 MB, where SWOT's rule charges 0.87, and 1.34 ms for 32 MB."""
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX)
    found = {(case.algorithm, case.size_bytes): solved(case) for case in cases(path)}
    assert len(found) == 6
    assert found["halving_doubling", 8_000_000].seconds == pytest.approx(0.86e-3)
    assert found["halving_doubling", 32_000_000].seconds == pytest.approx(1.34e-3)
    assert all(one.proven and one.bound_s <= one.seconds * (1 + 1e-9) for one in found.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("k = 2", "k = 0"), "k=0"),
        (("p = 8", "p = 8.5"), "p=8.5"),
        (("B = 50", "B = -1"), "give at least one switch and a rate"),
        (("T_lat = 0.02", ""), "T_lat is missing"),
        (("a2a_bruck", "a2a_magic"), "'a2a_magic' is not one of"),
        (("[8.0, 32.0]", "[0.0]"), "message_sizes_mib=0"),
        (("[8.0, 32.0]", "[]"), "message_sizes_mib is missing"),
        (("T_reconf = 0.2", f"T_reconf = {[0.1] * 2000}"), "cases; 1 to 4,096"),
        (("k = 2", "k ="), "no TOML"),
    ],
)
def test_bad_matrices(tmp_path, change, said):
    """One line with the key and the value."""
    path = tmp_path / "bad.toml"
    path.write_text(MATRIX.replace(*change))
    with pytest.raises(PlanFileError) as error:
        cases(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
