"""Hierarchical ring: the paper's steps, sums of every grouping, short last groups."""

from __future__ import annotations

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.execute import execute
from opticcl.fabrics import fabric
from opticcl.ir import Fabric
from opticcl.schedule import generate
from opticcl.verify import verify


def assert_right(where: Fabric, algorithm: str) -> None:
    """The verifier accepts it, and it adds integers as NumPy does."""
    made = generate(algorithm, "all_reduce", where)
    verdict = verify(lower(where, made))
    assert verdict.ok, f"{algorithm} on {where.name} with {where.num_nodes}: {verdict}"
    data = np.random.default_rng(where.num_nodes).integers(-99, 99, (where.num_nodes, 4, 3))
    for result in execute(made, data):
        assert result is not None
        assert np.array_equal(result, data.sum(axis=0))


@pytest.mark.parametrize(
    ("group_size", "wavelengths", "steps"),
    [
        ("group_size=5", 64, 417),
        ("group_size=5", 4, 424),
        ("group_size=32", 64, 125),
        ("distribution=broadcast", 4, 125),
    ],
)
def test_steps_of_the_paper(group_size: str, wavelengths: int, steps: int) -> None:
    """Table 1: 417 steps in groups of 5; 424 where 5 exceeds the wavelengths; far fewer in groups of 32."""
    where = fabric("terarack", wavelengths=wavelengths)
    made = generate(f"hierarchical_ring:{group_size}", "all_reduce", where)
    assert made.num_steps == steps
    assert sum(map(len, made.step_classes())) == steps


@pytest.mark.parametrize(("nodes", "size"), [(20, 5), (64, 8), (12, 4)])
def test_formulas_of_the_paper(nodes: int, size: int) -> None:
    """2 (m^2 + N) / m - 3 and 2 (2 m^2 + N) / m - 6, where m divides N."""
    where = fabric("terarack", nodes=nodes)
    broadcast, pipeline = (
        generate(f"hierarchical_ring:group_size={size},distribution={distribution}", "all_reduce", where)
        for distribution in ("broadcast", "pipeline")
    )
    assert broadcast.num_steps == 2 * (size**2 + nodes) // size - 3
    assert pipeline.num_steps == 2 * (2 * size**2 + nodes) // size - 6


@pytest.mark.parametrize("distribution", ["broadcast", "pipeline"])
@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 7, 8, 12, 13])
def test_every_grouping_is_right(nodes: int, distribution: str) -> None:
    """All group sizes, with last groups of every length."""
    where = fabric("ideal", nodes=nodes)
    for size in range(1, nodes + 1):
        assert_right(where, f"hierarchical_ring:group_size={size},distribution={distribution}")


def test_payload_of_the_paper() -> None:
    """Pieces are d/m in the groups, the short last group of 4 included, d/G among leaders and d at the end."""
    made = generate("hierarchical_ring:group_size=5", "all_reduce", fabric("terarack", wavelengths=64))
    chunks = made.collective.num_chunks
    sizes = [int(made.step(i).size_chunks().max()) for i in (0, 7, 8, 415, 416)]
    assert [chunks // size for size in sizes] == [5, 5, 205, 205, 1]
    assert len(made.step(0)) == 1024  # every node sends
