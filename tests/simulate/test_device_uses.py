"""Devices and other exclusive resources of a machine, numbered as one list."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Resource, Usage
from opticcl.plans.plan import compile
from opticcl.simulate import _device_uses
from opticcl.simulate._device_uses import Devices
from opticcl.simulate._units import Units


def test_devices_are_numbered_kind_by_kind(monkeypatch):
    """From 0 on; a machine may have as many as are followed."""
    where = fabric("terarack:nodes=4,wavelengths=2")
    devices = Devices(where)
    counts = [device.count * device.pool for device in where.devices]
    assert devices.first_member.tolist() == [sum(counts[:k]) for k in range(len(counts) + 1)]
    member = np.arange(devices.num_members)
    kind, device = devices.kind_and_device(member)
    assert [(int(k), int(d)) for k, d in zip(kind, device, strict=True)] == [
        (k, d) for k, count in enumerate(counts) for d in range(count)
    ]
    monkeypatch.setattr(_device_uses, "MOST_MEMBERS", sum(counts))
    assert devices.num_members == sum(counts)
    monkeypatch.setattr(_device_uses, "MOST_MEMBERS", sum(counts) - 1)
    with pytest.raises(UnsupportedError, match=f"terarack has {sum(counts)} devices, and at most {sum(counts) - 1} "):
        _ = devices.num_members


def test_what_stands_at_the_start_is_of_this_machine():
    """Members and settings of the last circuits of a plan; none without a start; those of another machine are refused."""
    plan = compile("terarack:nodes=4,wavelengths=2", "all_gather", "1 MB", algorithm="ring")
    member, setting = Devices(plan.fabric).set_at_start(plan.configuration)
    table = plan.configuration.table
    assert member.tolist() == (Devices(plan.fabric).first_member[table.kind] + table.device).tolist()
    assert setting.tolist() == table.setting.tolist()
    assert [len(column) for column in Devices(plan.fabric).set_at_start(None)] == [0, 0]
    with pytest.raises(ParameterError, match="the start is of terarack with 4 nodes"):
        Devices(fabric("terarack:nodes=5,wavelengths=2")).set_at_start(plan.configuration)


def test_circuits_without_devices_use_none():
    """As on a machine whose light is not switched."""
    where = SimpleNamespace(devices=(), settings=lambda circuits: ())
    uses = Devices(where).uses(Circuits.of([0], [0], [1]))
    assert [len(getattr(uses, name)) for name in uses.__slots__] == [0] * len(uses.__slots__)


def test_every_second_wavelength_is_a_unit():
    """Of two fibres, behind the lasers; what all share, and what is set once for a job, has none."""
    laser, shared = Resource("laser", 3, 1, per_wavelength=False), Resource("link", 9, 1, shared=True)
    fibre, once = Resource("fibre", 2, 1), Resource("switch_port", 4, 1, once_per_job=True)
    circuits = Circuits.of([0, 1], [0, 1], [1, 2], wavelength_lo=[0, 1], wavelength_n=[3, 2], wavelength_step=2)
    usage = (
        Usage(laser, np.array([0, 2])),
        Usage(shared, np.array([4, 5])),
        Usage(fibre, np.array([1, 0])),
        Usage(once, np.array([1, 3])),
    )
    where = SimpleNamespace(resources=(laser, shared, fibre, once), num_wavelengths=5, usage=lambda circuits: usage)
    units = Units(where)
    assert units.count == 3 + 2 * 5
    owner, unit = units.occupied(circuits)
    assert owner.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert sorted(unit[:4].tolist()) == [0, 3 + 5, 3 + 7, 3 + 9]
    assert sorted(unit[4:].tolist()) == [2, 3 + 1, 3 + 3]
