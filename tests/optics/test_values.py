"""Values of elements: presets, the user's own, what is missing, and what no element can have."""

import numpy as np
import pytest

from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError
from opticcl.fabrics import light_table
from opticcl.ir.light import LITERAL, Element, LightPath
from opticcl.optics.values import chain_of, optics

SHEETS = ("lightpath", "oddl", "ramp", "sipac", "terarack")


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_value_says_where_it_comes_from(sheet):
    """Each entry has a unit and a source; what a preset adds to the paper says that it is assumed or fitted."""
    values = optics(light_table(sheet)).values
    assert {value.unit for value in values.values()} <= {"dB", "dBm", "dB/km", "dB/cm", "km", "cm"}
    assert all(value.source for value in values.values())
    for preset in light_table(sheet).presets[1:]:
        for name, value in optics(light_table(sheet), preset).values.items():
            if value != values[name]:
                words = ("fitted", "assumed") if preset == "fitted" else ("assumed", "the middle")
                assert value.source.startswith(words), (name, preset)
    assert not any(
        "fitted" in value.source
        for preset in light_table(sheet).presets
        if preset != "fitted"
        for value in optics(light_table(sheet), preset).values.values()
    )


@pytest.mark.parametrize("sheet", SHEETS)
def test_no_value_is_negative_where_it_cannot_be(sheet):
    """Also not on file: losses, gains, noise figures, lengths and penalties."""
    for preset in light_table(sheet).presets:
        for name, value in optics(light_table(sheet), preset).values.items():
            if name.rpartition(".")[2] in ("loss", "gain", "noise", "length", "penalty") and value.value is not None:
                assert value.value >= 0, (name, preset)


def test_presets_are_laid_over_each_other():
    """What fitted leaves out is typical's, what that leaves out the paper's."""
    fitted, typical = optics(light_table("ramp"), "fitted"), optics(light_table("ramp"), "typical")
    assert fitted.get("soa_gate.output") == 18.0
    assert fitted.get("modulator.loss") == typical.get("modulator.loss") == 6.0
    assert optics(light_table("ramp")).get("modulator.loss") is None
    assert fitted.get("sensitivity") == optics(light_table("ramp")).get("sensitivity") == -15.0
    assert light_table("ramp").layers == {"fitted": "typical"}


def test_the_users_values_win_and_keep_their_units():
    """Texts with units, metres for kilometres, milliwatts for dBm, numbers as they are."""
    given = {"fibre.length": "50 m", "fibre.loss": "0.3dB/km", "launch": 7, "sensitivity": "-12.5 dBm"}
    found = optics(light_table("oddl"), LITERAL, given)
    assert found.get("fibre.length") == pytest.approx(0.05)
    assert (found.get("fibre.loss"), found.get("launch"), found.get("sensitivity")) == (0.3, 7.0, -12.5)
    assert found.loss_db("fibre") == pytest.approx(0.015)
    assert found.values["launch"].source == "given"
    powers = [
        optics(light_table("oddl"), LITERAL, {"launch": text}).get("launch") for text in ("100mW", "1 W", "0.5 mW")
    ]
    assert powers == pytest.approx([20, 30, -3.0103])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"wss8.loss": -1}, "negative"),
        ({"wss8.gain": "3dB"}, "wss8 is passive and has no gain; amplifiers here: edfa"),
        ({"wss9.loss": 1}, "did you mean 'wss8.loss'"),
        ({"nothing": 1}, "known: edfa.gain"),
        ({"launch": "4.5 dB"}, "is not in dBm; write launch=1dBm"),
        ({"launch": "0 mW"}, "is not in dBm; write launch=1dBm"),
        ({"fibre.loss": "0.3dB"}, "is not in dB/km"),
        ({"launch": "much"}, "is not a number"),
        ({"launch": "1e999"}, "is not a number"),
        ({"launch": True}, "is not a number"),
        ({"launch": None}, "is not a number"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(settings, says):
    """Each text names the file and the value."""
    with pytest.raises(ParameterError, match=says) as refused:
        optics(light_table("oddl"), LITERAL, settings)
    assert str(refused.value).startswith("oddl: ")
    assert "\n" not in str(refused.value)


def test_unknown_files_and_presets_are_refused():
    """With those that there are."""
    with pytest.raises(UnknownNameError, match="known: literal, amplified, typical"):
        optics(light_table("oddl"), "fitted")
    with pytest.raises(UnsupportedError, match="torus: no light path"):
        light_table("torus")


def path_of(*elements, sheet="oddl"):
    """A path of one piece of each element."""
    ones = np.ones((1, len(elements)))
    return LightPath(light_table(sheet), elements, lambda circuits: ones, ones, ("it",), ones[0])


def test_missing_values_are_named_with_a_way_out():
    """All of them in one line, and which preset has them."""
    with pytest.raises(ParameterError, match=r"no wss16\.loss; set them, as in --set wss16\.loss=1dB.*typical"):
        chain_of(path_of(Element("fibre"), Element("wss16")), optics(light_table("oddl")))


def test_what_no_light_passes_needs_no_value():
    """An element that stands in none of the paths."""
    path = path_of(Element("fibre"), Element("wss16"))
    chain = chain_of(path, optics(light_table("oddl")), np.array([True, False]))
    assert chain.loss_db.tolist() == [0.1, 0.0]


def test_a_passive_element_does_not_amplify():
    """Even if its file says so: the hardware decides."""
    with pytest.raises(ParameterError, match="edfa is passive"):
        chain_of(path_of(Element("edfa")), optics(light_table("oddl"), "amplified"))


def test_geometry_is_no_value_of_an_element():
    """It shapes paths and cannot be set."""
    assert light_table("ramp").geometry["star_ports"] == 1024
    assert not any(name.startswith("geometry") for name in optics(light_table("ramp")).values)
