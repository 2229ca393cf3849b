"""Fabrics by name: how they are registered, sized, and found by the number of their nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from opticcl import fabrics
from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale, nearest_sizes, register_fabric
from opticcl.fabrics.ideal import Ideal
from opticcl.registry import Registry


def test_a_class_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its parameters; the class knows its name and its algorithm."""
    monkeypatch.setattr(fabrics, "FABRICS", Registry("fabric"))

    @register_fabric("alone", algorithm="ring")
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Alone(Ideal):
        """An ideal switch."""

    made = fabric("alone:nodes=3")
    assert type(made) is Alone
    assert (made.num_nodes, made.name, made.algorithm) == (3, "alone", "ring")
    assert register_fabric("other")(type("Other", (Alone,), {})).algorithm == ""
    assert (Alone.registered_name, Alone.algorithm, Ideal.registered_name) == ("alone", "ring", "ideal")


@pytest.mark.parametrize("spelled", ["waveguide_sharing", "Waveguide-Sharing"])
def test_a_parameter_of_former_days_is_refused(spelled: str) -> None:
    """In words that say what to write, however it is spelled."""
    words = rf"^lightpath: {spelled}=yes is no longer a parameter; write switch_unit=wavelength .* or switch_unit=waveg"
    with pytest.raises(FabricError, match=words):
        fabric("lightpath", **{spelled: "yes"})


def test_a_fabric_has_as_many_nodes_as_wanted() -> None:
    """One or more; a shape behind the name has to have that number, and the rate is the paper's if none is given."""
    assert fabric_at_scale("ideal", 1).num_nodes == 1
    for number in (0, -3):
        with pytest.raises(FabricError, match=rf"^ideal: {number} nodes; must be at least 1$"):
            fabric_at_scale("ideal", number)
    assert fabric_at_scale("torus:shape=2x4", 8) == fabric("torus:shape=2x4")
    with pytest.raises(FabricError, match=r"^torus:shape=2x4: has 8 nodes, not 9; leave its shape or the number out$"):
        fabric_at_scale("torus:shape=2x4", 9)
    published = fabric("ideal:nodes=4").node_rate_bits_per_s
    assert fabric_at_scale("ideal", 4).node_rate_bits_per_s == published != 100e9
    assert fabric_at_scale("ideal", 4, "100 Gb/s").node_rate_bits_per_s == 100e9


@pytest.mark.parametrize("reach", [1, 2, 5])
def test_the_nearest_sizes_are_named(reach: int) -> None:
    """Where only a and b fit, the wanted one among them or not, and numbers below 1 that are no sizes."""
    for wanted in range(1, 8):
        for a in range(-3, 14):
            for b in range(a, 14):
                near = [n for n in range(1, 20) if n in (a, b) and 0 < abs(n - wanted) <= reach]
                nearest = [n for n in near if n < wanted][-1:] + [n for n in near if n > wanted][:1]
                expected = " or ".join(map(str, nearest))
                expected = f"nearest: {expected}" if expected else "no size near it fits"
                assert nearest_sizes(wanted, lambda n, both=(a, b): n in both, reach) == expected


def test_so_many_sizes_are_tried() -> None:
    """4096 in each direction."""

    def only(size: int) -> Callable[[int], bool]:
        return lambda n: n == size

    for wanted, step in ((5000, -1), (1, 1)):
        assert nearest_sizes(wanted, only(wanted + 4096 * step)) == f"nearest: {wanted + 4096 * step}"
        assert nearest_sizes(wanted, only(wanted + 4097 * step)) == "no size near it fits"
