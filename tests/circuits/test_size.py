"""Steps whose circuits would not fit into memory."""

import pytest

from opticcl.circuits import _size, lower
from opticcl.circuits._size import decline_too_many
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.schedule import generate


@pytest.mark.parametrize("specification", ["ocs:nodes=9", "ramp:groups=3,racks=1,wavelengths=3"])
def test_a_step_of_too_many_circuits_is_declined_for_its_bytes(monkeypatch, specification):
    """Before any circuit is made, with the step and the bytes; what fits is carried."""
    where, wanted = fabric(specification), Request("all_to_all")
    lower(where, generate("mesh", wanted, where)).rounds(0)
    monkeypatch.setattr(_size, "MOST_BYTES", 1000)
    declined = r"the circuits of the 72 transfers of step 0 take \S+ KB, at most 1 KB are supported"
    with pytest.raises(UnsupportedError, match=declined):
        lower(where, generate("mesh", wanted, where))


def test_what_just_fits_is_accepted(monkeypatch):
    """A ring of six nodes sends six transfers a step."""
    where = fabric("terarack:nodes=6")
    ring = generate("ring", "all_gather", where)
    monkeypatch.setattr("opticcl.circuits._size.MOST_BYTES", 600)
    decline_too_many(where, ring, 100)
    with pytest.raises(UnsupportedError, match=r"6 transfers of step 0 take 606 B, at most 600 B are supported"):
        decline_too_many(where, ring, 101)
