"""All-to-all along all dimensions at the same time."""

import pytest
from tests.schedule.oracle import check

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify

CASES = [
    ("oddl:shape=3x5", ""),
    ("oddl:shape=4x6", ":radices=2x2x3x2"),
    ("oddl:shape=4x6,wavelengths=6", ":radices=2x2x3x2,rings=false"),
    ("oddl:shape=2x3x4", ""),
    ("oddl:shape=3x3,wavelengths=2", ":rings=false"),
    ("torus:shape=3x4", ""),
]


@pytest.mark.parametrize(("name", "given"), CASES)
def test_right_at_every_rank(name, given):
    """Odd, even and unequal sides, rings and direct levels."""
    check(f"rotated_exchange{given}", "all_to_all", fabric(name))


@pytest.mark.parametrize(
    ("shape", "levels"), [("4x4", ((4,), (4,))), ("9x9", ((3, 3), (3, 3))), ("8x8x8", ((4, 2), (4, 2), (4, 2)))]
)
def test_time(shape, levels):
    """k (L - 1) + 1 settings, k sum (b - 1) steps, and sum (b - 1) / 2 messages at the rate of floor(w / L) wavelengths."""
    where = fabric(f"oddl:shape={shape},wavelengths=5")
    written = "x".join(str(b) for side in levels for b in side)
    plan = compile(where, "all_to_all", 10**7, algorithm=f"rotated_exchange:radices={written}")
    timeline = plan.simulate(assumptions=assumptions("common"))
    k, one = len(levels), levels[0]
    assert (timeline.reconfiguration_s > 0).sum() == k * (len(one) - 1) + 1
    assert plan.schedule.num_steps == k * sum(b - 1 for b in one)
    rate = 5 // len(one) * where.rate_bits_per_s
    assert timeline.transfer_s.sum() == pytest.approx(8e7 * sum(b - 1 for b in one) / 2 / rate, rel=1e-9)


def test_time_of_direct_levels():
    """A change for each partner but none twice, (1 - 1/b) of the message on one wavelength of several."""
    where = fabric("oddl:shape=5x5,wavelengths=8")
    plan = compile(where, "all_to_all", 10**7, algorithm="rotated_exchange:rings=false")
    due = 8e7 * (1 - 1 / 5) / (2 * where.rate_bits_per_s)
    assert plan.simulate(assumptions="common").transfer_s.sum() == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(("name", "given"), [("oddl", ":radices=8x4x8x4"), ("oddl:shape=64x64", "")])
@pytest.mark.deep
def test_largest_scale(name, given):
    """1,024 and 4,096 nodes: every chunk and all light."""
    where = fabric(name)
    verdict = verify(lower(where, generate(f"rotated_exchange{given}", "all_to_all", where)))
    assert verdict.ok
    assert verdict.exhaustive
