"""What an algorithm states that its steps follow from: schedules of equal values have equal steps, whatever the fabric."""

from itertools import pairwise

import pytest
from tests import matrix

from opticcl.collective import Request
from opticcl.errors import AlgorithmError, FabricError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric_at_scale
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir._common import same_columns
from opticcl.schedule import ALGORITHMS, all_variants, generate

SHARED = (
    *(
        "bruck",
        "dissemination",
        "divide_and_conquer",
        "double_tree",
        "halving_doubling",
        "hierarchical_ring",
        "lumorph",
        "mesh",
    ),
    *("recursive_doubling", "ring", "torus2d", "torus_all_ports", "tree", "two_sided_ring"),
)


def schedules(nodes, collectives):
    """Of every algorithm that can be had on any fabric of so many nodes, with all variants."""
    for name in FABRICS.names():
        try:
            fabric = fabric_at_scale(name, nodes)
        except FabricError:
            continue
        for collective in collectives:
            for request in matrix.requests(collective, nodes):
                for algorithm in {*all_variants(request, fabric), *SHARED, "ring:pipeline=3", "tree:pipeline=2"}:
                    try:
                        yield fabric, generate(algorithm, request, fabric)
                    except UnsupportedError:
                        continue


@pytest.mark.parametrize(
    ("nodes", "collectives"),
    [(6, ("all_reduce", "gather")), (8, ("all_reduce", "all_to_all", "all_gather", "broadcast"))],
)
def test_equal_values_mean_equal_steps(nodes, collectives):
    """Of all fabrics; and the algorithms that run everywhere are shared."""
    of_key = {}
    for fabric, schedule in schedules(nodes, collectives):
        if schedule.step.key is not None:
            of_key.setdefault(schedule.step.key, {})[fabric.name] = schedule
    for same in of_key.values():
        for one, other in pairwise(same.values()):
            assert one.num_steps == other.num_steps
            assert one.step_classes() == other.step_classes()
            for i in range(one.num_steps):
                assert same_columns(one.step.function(i), other.step.function(i))
    if nodes == 8:
        assert {key[0] for key, same in of_key.items() if len(same) > 1} >= set(SHARED)


def test_values_that_cannot_be_compared_are_an_error_of_the_algorithm(monkeypatch):
    """A list has no fixed value."""

    def made(collective, fabric):
        step = lambda i: Transfers.of([0], [1], 0, 1, Op.COPY)  # noqa: E731
        return Schedule("tree", collective.on(2, 1), 1, step, steps_of=([1],))

    maker = ALGORITHMS.get("tree")._replace(generate=made, accepts=lambda *_: None)
    monkeypatch.setitem(ALGORITHMS._entries, "tree", maker)
    with pytest.raises(AlgorithmError, match="tree: generate raised TypeError: unhashable"):
        generate("tree", Request("broadcast"), fabric_at_scale("ideal", 2))
