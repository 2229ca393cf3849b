"""Light that leaks: a walk by hand through SiPAC's crosses, equation 12 on TeraRack's ring, and gates of RAMP."""

from collections import Counter

import numpy as np
import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Transfers
from opticcl.optics.emulator import Emulator
from opticcl.optics.leaks import isolation_of
from opticcl.optics.rounds import emulator_of, lanes_of, needed_settings, round_light, round_settings
from opticcl.verify.light.emulated import emulate


def walk(r, period, ring_at, i, line):
    """(output port, leaks on the way) wherever a line of input i ends, one crossing after the other.

    Args: r: ports; period: groups of lines; ring_at: whether there is a ring (i, j); i: input; line: wavelength.
    """
    ends = []

    def cross(i, j, on_output, leaks):
        if i == r:  # past the last input: the output port
            ends.append((j, leaks))
            return
        if j == r:  # the end of an input bus
            return
        if not ring_at(i, j):
            cross(i + on_output, j + (not on_output), on_output, leaks)
            return
        resonant = ring_group(i, j, r, period) == line % period
        chosen = on_output != resonant
        cross(i + chosen, j + (not chosen), chosen, leaks)
        if not leaks:
            cross(i + (not chosen), j + chosen, not chosen, 1)

    cross(i, 0, False, 0)
    return ends


def ring_group(i, j, r, period):
    """Group of lines of the ring (i, j): that of the wavelengths with which node i reaches node j."""
    return (j - i) % r if period == r else (j - i - 1) % r


@pytest.mark.parametrize(("r", "channels"), [(3, "published"), (5, "published"), (4, "retuned")])
def test_leaks_of_a_switch_are_those_of_a_walk(r, channels):
    """Every comb line of every input, through every crossing, by hand and by the emulator."""
    w = 2 * r
    made = fabric(f"sipac:radix={r},levels=1,wavelengths={w},channels={channels}")
    emulator = emulator_of(made)
    none = Circuits.of([], [], [])
    lanes = lanes_of(made, none, Transfers.of([], [], [], 1, Op.COPY))
    settings = round_settings(made, emulator.netlist, none, lanes)
    rows = emulator.light(emulator.load(settings), leaking=("ring0",))
    period = r if channels == "published" else r - 1
    expected = Counter(
        (j * w + line, leaks)
        for i in range(r)
        for line in range(w)
        for j, leaks in walk(r, period, lambda i, j: channels == "published" or i != j, i, line)
    )
    assert Counter(zip(rows.photodiode.tolist(), rows.counts[:, 0].astype(int).tolist(), strict=True)) == expected


def test_interfaces_of_a_ring_leak_as_equation_12_says():
    """TeraRack: what a circuit leaks to the nodes between is L times the share of one interface."""
    made = fabric("terarack:nodes=9,wavelengths=2")
    emulator = emulator_of(made)
    for hops in (1, 2, 4):
        circuits = Circuits.of([0], [1], [1 + hops], 0, 1, 1, [list(range(1, 1 + hops))])
        transfers = Transfers.of([1], [1 + hops], [0], 1, Op.COPY)
        lanes = lanes_of(made, circuits, transfers)
        settings = round_settings(made, emulator.netlist, circuits, lanes)
        rows = emulator.light(emulator.load(settings), leaking=("drop",))
        leaked = rows.counts[:, 0] > 0
        assert (~leaked).sum() == 1
        assert leaked.sum() * 1e-3 == pytest.approx((hops - 1) * 1e-3)


def test_a_plan_of_a_ring_has_no_crosstalk_where_it_listens():
    """A wavelength that passes a node is not received there."""
    plan = opticcl.compile("terarack:nodes=6,wavelengths=4", "all_reduce", "1 MB", algorithm="wrht")
    notes = plan.verify(emulate=True, isolation_db={"ringbank": 20.0}).notes
    assert notes[-1] == "crosstalk: nothing leaks to a photodiode that is listened to"


def test_crosstalk_falls_with_the_isolation():
    """Tenfold with every 10 dB, and all groups add up."""
    plan = opticcl.compile("sipac:radix=4,levels=1,wavelengths=4", "all_to_all", "1 MB", algorithm="mesh").circuits
    emulator = emulator_of(plan.fabric)
    (circuits, *_), transfers = plan.rounds(0), plan.schedule.step(0)

    def found(**isolation_db):
        names = isolation_of(emulator.netlist, isolation_db)
        return round_light(plan.fabric, emulator, circuits, transfers, isolation_db=names).crosstalk

    low, high = found(ring0=20.0), found(ring0=30.0)
    assert low.ratio.max() > 0
    assert np.allclose(low.ratio, 10 * high.ratio)
    assert np.allclose(low.ratio, low.leaks / 100)
    both = found(ring0=20.0, demux=20.0)
    assert np.allclose(both.ratio - low.ratio, found(demux=20.0).ratio)
    assert (both.leaks > low.leaks).all()


def test_shut_gates_of_ramp_leak():
    """Of the x gates of a receiver one is open; the light that the others let through is that of the other groups."""
    plan = opticcl.compile("ramp:groups=3,racks=3,wavelengths=3", "all_reduce", "1 MB", algorithm="ramp").circuits
    report = emulate(plan, isolation_db={"rx_gate": 30.0})
    assert not report.violations
    assert "crosstalk: " in report.notes[-1]
    assert "dB below the signal at worst" in report.notes[-1]
    assert "node" in report.notes[-1]


def test_a_switch_that_moves_a_waveguide_leaks():
    """LIGHTPATH, switch_unit=waveguide: an MZI leaks to photodiodes; no light comes to inputs that no select chooses."""
    plan = opticcl.compile("lightpath:shape=2x3,lasers=2,waveguides=2,switch_unit=waveguide", "all_to_all", "1 MB")
    assert (
        "22.0 dB below the signal at worst, 2 leaks" in plan.verify(emulate=True, isolation_db={"mzi": 25.0}).notes[-1]
    )
    assert "nothing leaks" in plan.verify(emulate=True, isolation_db={"select": 25.0}).notes[-1]


def test_isolation_of_what_does_not_leak():
    """A name that is unknown, a group that chooses nothing, a value below 0."""
    netlist = fabric("sipac:radix=3,levels=2,wavelengths=3").netlist()
    with pytest.raises(
        ParameterError, match="no elements 'splitter' that leak; known: cross, demux, demux0, demux1, ring0"
    ):
        isolation_of(netlist, {"splitter": 20.0})
    with pytest.raises(ParameterError, match=r"cross=-1 dB; 0 or more, try cross=30dB"):
        isolation_of(netlist, {"cross": -1.0})
    assert isolation_of(netlist, {"cross": 20.0, "ring1": 25.0}) == {"ring0": 20.0, "ring1": 25.0}


def test_the_first_pass_is_as_before():
    """Light that does not leak arrives where it does without the second pass, on every system."""
    for specification in (
        "ramp:groups=2,racks=2,wavelengths=2",
        "oddl:shape=4",
        "lightpath:shape=2x2,lasers=2,waveguides=1",
    ):
        plan = opticcl.compile(specification, "all_to_all", "1 MB").circuits
        emulator = Emulator(plan.fabric.netlist())
        circuits, transfers = plan.rounds(0)[0], plan.schedule.step(0)
        lanes = lanes_of(plan.fabric, circuits, transfers)
        states = [round_settings(plan.fabric, emulator.netlist, circuits, lanes)]
        states.append(needed_settings(plan.fabric, emulator.netlist, circuits, True))
        loaded = emulator.load(type(states[0]).joined(states))
        names = tuple(isolation_of(emulator.netlist, {"gate": 20.0} if "ramp" in specification else {"wss": 20.0}))
        straight, both = emulator.light(loaded), emulator.light(loaded, leaking=names)
        kept = ~both.counts.any(axis=1)
        columns = [
            sorted(
                zip(
                    rows.photodiode[mine].tolist(),
                    rows.wavelength[mine].tolist(),
                    rows.signal[mine].tolist(),
                    strict=True,
                )
            )
            for rows, mine in ((straight, slice(None)), (both, kept))
        ]
        assert columns[0] == columns[1]
        assert (~kept).any()
