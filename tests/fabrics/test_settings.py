"""Devices and their settings: what the circuits of a verified round need never conflicts."""

import numpy as np
import pytest

import opticcl
from opticcl.errors import UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.ir import Circuits

SPECIFICATIONS = [
    "ramp:groups=3,racks=2,wavelengths=6", "ramp:groups=2,racks=2,wavelengths=4,transceivers_per_group=2",
    "ramp:groups=4,racks=2,wavelengths=8,subnet=route_switch", "ramp:groups=2,racks=2,wavelengths=4,slot=0s",
    "sipac:radix=3,levels=2",
    "terarack:nodes=9,wavelengths=4", "terarack:nodes=8,rings=2,striping=yes", "terarack_torus:shape=3x4",
    "terarack_torus:shape=3x4,wrap=no", "sip_ring:nodes=8,wavelengths=4", "oddl:shape=4x2", "oddl:shape=8,wavelengths=6",
    "ocs:nodes=6,planes=4", "lightpath:shape=3x3",
    "lightpath:shape=4x4,waveguides=2,routing=random", "lightpath:shape=3x3,dead_tiles=4",
]  # fmt: skip
ALGORITHMS = ("ring", "mesh", "halving_doubling", "tree", "wrht", "ramp", "sipco", "lumorph", "bruck")


def plans(specification):
    """Verified plans of several algorithms and collectives."""
    made = fabric(specification)
    for collective in ("all_reduce", "all_to_all", "broadcast"):
        for algorithm in ALGORITHMS:
            try:
                yield opticcl.compile(made, collective, "1 MB", algorithm=algorithm).circuits
            except UnsupportedError:
                continue


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_a_device_has_one_setting_in_a_round(specification):
    """Of a pool, as many settings as it has members; indices lie below the count."""
    found = 0
    for plan in plans(specification):
        for steps in plan.schedule.step_classes():
            for circuits in plan.rounds(steps.start):
                devices = {device.kind: device for device in plan.fabric.devices}
                for use in plan.fabric.settings(circuits):
                    device = devices[use.kind]
                    assert len(use.index) == len(use.setting)
                    assert use.index.min(initial=0) >= 0
                    assert use.index.max(initial=0) < device.count
                    pairs = np.unique(np.stack([use.index, use.setting]), axis=1)
                    assert np.bincount(pairs[0]).max(initial=0) <= device.pool, use.kind
                    found += len(use.index)
    assert found or specification.startswith("sipac")


@pytest.mark.parametrize(
    ("subnet", "further"),
    [("broadcast", {}), ("route_broadcast", {"filter": (124, 3)}), ("route_switch", {"crossbar": None})],
)
def test_ramp_sets_laser_gates_and_what_its_subnet_has(subnet, further):
    """From node 16 of group 2 to node 31 of group 3 by port 0: numbers of the devices, and what they are set to."""
    made = fabric(f"ramp:groups=4,racks=2,wavelengths=4,subnet={subnet}")  # 8 nodes a group, 4 ports a node
    gates = np.array([[31 // 8, 16 // 8]])
    circuits = Circuits.of(np.arange(1), np.array([16]), np.array([31]), 0, 3, 1, gates)
    found = {use.kind: (use.index.tolist()[0], use.setting.tolist()[0]) for use in made.settings(circuits)}
    if subnet == "route_switch":
        *_, output = made.usage(circuits)
        further = {"crossbar": (output.index.tolist()[0], 31 // 4 % 2)}
    assert found == {"laser": (64, 3), "tx_gate": (64 * 4 + 3, 1), "rx_gate": (124, 2), **further}


def test_terarack_counts_every_ring_on_the_path():
    """From node 1 to node 4 clockwise: rings of nodes 2 and 3 pass, that of node 4 drops, one wavelength."""
    made = fabric("terarack:nodes=9,wavelengths=4")
    plan = opticcl.compile(made, "send_recv", "1 MB").circuits
    (circuits,) = plan.rounds(0)
    row = circuits.take(circuits.src == 3)
    modulator, ring = made.settings(row)
    hops = int(row.num_hops()[0])
    assert len(modulator.index) == 1
    assert ring.setting.tolist() == [0] * (hops - 1) + [1]
    assert (ring.index // (2 * 4))[-1] == row.dst[0]


def test_lightpath_remembers_the_side_by_which_light_comes_in():
    """East, then south: the first switch is set to the laser, the second to light that went east."""
    made = fabric("lightpath:shape=2x2")
    plan = opticcl.compile(made, "all_to_all", "1 MB", algorithm="mesh").circuits
    (circuits, *_) = plan.rounds(0)
    row = circuits.take((circuits.src == 0) & (circuits.dst == 3))
    mzi, to_tile = made.settings(row)
    per_hop = len(mzi.index) // 2
    assert sorted(set(mzi.setting.tolist())) == [0, 4]
    assert per_hop == row.wavelength_n.sum()
    assert set(to_tile.setting.tolist()) == {2}


def test_oddl_sets_its_switches_once_a_job():
    """Over all rounds of a verified plan an input sends a wavelength to one output."""
    made = fabric("oddl:shape=4x4")
    assert [device.once_per_job for device in made.devices] == [False, False, True]
    plan = opticcl.compile(made, "all_reduce", "1 MB", algorithm="halving_doubling").circuits
    pairs = [
        np.stack([use.index, use.setting])
        for i in range(plan.schedule.num_steps)
        for circuits in plan.rounds(i)
        for use in made.settings(circuits)
        if use.kind == "wss"
    ]
    unique = np.unique(np.concatenate(pairs, axis=1), axis=1)
    assert np.bincount(unique[0]).max() == 1


@pytest.mark.parametrize("name", FABRICS.names())
def test_devices_have_names_and_times(name):
    """Kinds are unique; packet networks and passive switches have none; a job has those of its machine."""
    made = fabric_at_scale(name, 16)
    kinds = [device.kind for device in made.devices]
    assert len(set(kinds)) == len(kinds)
    assert bool(kinds) == (made.light_path is not None and name not in ("sipac", "topoopt"))
    assert job(made, range(4)).devices == made.devices
