"""Fabrics of plugins: resource kinds without a rule, and circuits without an assignment."""

import pytest
from tests.altered import altered

import opticcl
from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.ir import Resource
from opticcl.ir.fabric import RESOURCE_KINDS
from opticcl.schedule import generate
from opticcl.verify.light.circuit_rows import RULE_OF_KIND


def test_the_judge_has_a_rule_for_every_kind():
    """Every kind has a rule but links, on which packets queue and do not collide."""
    assert set(RESOURCE_KINDS) - {"link"} == set(RULE_OF_KIND)


def test_other_kinds_are_refused_where_they_are_made():
    """The message lists the kinds; an exclusive link has no rule either."""
    with pytest.raises(FabricError, match=r"kind='transmitter' .*known: laser, .*tx_port.*, link$"):
        Resource("transmitter", 4)
    with pytest.raises(FabricError, match="shared=True"):
        Resource("link", 4)
    assert Resource("link", 4, shared=True).count == 4


def test_a_fabric_without_a_rule_is_told_what_it_lacks():
    """Neither a route nor a circuit rule: the message says what to write, and where."""
    star = altered(opticcl.fabric("ideal:nodes=4"), name="star", is_packet_switched=False)
    with pytest.raises(
        FabricError, match=r'star: nothing says .*@register_rule\("star"\).*circuits/star\.py.* `route`'
    ):
        lower(star, generate("ring", "all_reduce", star))
