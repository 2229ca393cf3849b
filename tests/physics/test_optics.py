"""Values of elements: presets, the user's own, what is missing, and what no element can have."""

import numpy as np
import pytest

from opticcl.data import load
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.physics.light import Element, LightPath
from opticcl.physics.optics import GEOMETRY, LITERAL, PRESETS, chain_of, optics, presets_of

SHEETS = ("lightpath", "oddl", "ramp", "sipac", "terarack")


@pytest.mark.parametrize("sheet", SHEETS)
def test_every_value_says_where_it_comes_from(sheet):
    """Each entry has a unit and a source; what a preset adds to the paper says that it is assumed or fitted."""
    values = optics(sheet).values
    assert {value.unit for value in values.values()} <= {"dB", "dBm", "dB/km", "dB/cm", "km", "cm"}
    assert all(value.source for value in values.values())
    for preset in presets_of(sheet)[1:]:
        for name, value in optics(sheet, preset).values.items():
            if value != values[name]:
                words = ("fitted", "assumed") if preset == "fitted" else ("assumed", "the middle")
                assert value.source.startswith(words), (name, preset)
    assert not any(
        "fitted" in value.source
        for preset in presets_of(sheet)
        if preset != "fitted"
        for value in optics(sheet, preset).values.values()
    )


@pytest.mark.parametrize("sheet", SHEETS)
def test_no_value_is_negative_where_it_cannot_be(sheet):
    """Also not on file: losses, gains, noise figures, lengths and penalties."""
    for preset in presets_of(sheet):
        for name, value in optics(sheet, preset).values.items():
            if name.rpartition(".")[2] in ("loss", "gain", "noise", "length", "penalty") and value.value is not None:
                assert value.value >= 0, (name, preset)


def test_presets_are_laid_over_each_other():
    """What fitted leaves out is typical's, what that leaves out the paper's."""
    fitted, typical = optics("ramp", "fitted"), optics("ramp", "typical")
    assert fitted.get("soa_gate.output") == 18.0
    assert fitted.get("modulator.loss") == typical.get("modulator.loss") == 6.0
    assert optics("ramp").get("modulator.loss") is None
    assert fitted.get("sensitivity") == optics("ramp").get("sensitivity") == -15.0
    assert load("optics/ramp.toml")[PRESETS] == {"fitted": "typical"}


def test_the_users_values_win_and_keep_their_units():
    """Texts with units, metres for kilometres, milliwatts for dBm, numbers as they are."""
    given = {"fibre.length": "50 m", "fibre.loss": "0.3dB/km", "launch": 7, "sensitivity": "-12.5 dBm"}
    found = optics("oddl", LITERAL, given)
    assert found.get("fibre.length") == pytest.approx(0.05)
    assert (found.get("fibre.loss"), found.get("launch"), found.get("sensitivity")) == (0.3, 7.0, -12.5)
    assert found.loss_db("fibre") == pytest.approx(0.015)
    assert found.values["launch"].source == "given"
    powers = [optics("oddl", LITERAL, {"launch": text}).get("launch") for text in ("100mW", "1 W", "0.5 mW")]
    assert powers == pytest.approx([20, 30, -3.0103])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"wss8.loss": -1}, "negative"),
        ({"wss8.gain": "3dB"}, "wss8 is passive and has no gain; what amplifies here: edfa"),
        ({"wss9.loss": 1}, "did you mean 'wss8.loss'"),
        ({"nothing": 1}, "known: edfa.gain"),
        ({"launch": "4.5 dB"}, "is not in dBm; write launch=1dBm"),
        ({"launch": "0 mW"}, "is not in dBm; write launch=1dBm"),
        ({"fibre.loss": "0.3dB"}, "is not in dB/km"),
        ({"launch": "much"}, "is no number"),
        ({"launch": "1e999"}, "is no number"),
        ({"launch": True}, "is no number"),
        ({"launch": None}, "is no number"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(settings, says):
    """Each text names the file and the value."""
    with pytest.raises(ParameterError, match=says) as refused:
        optics("oddl", LITERAL, settings)
    assert str(refused.value).startswith("oddl: ")
    assert "\n" not in str(refused.value)


def test_unknown_files_and_presets_are_refused():
    """With those that there are."""
    with pytest.raises(UnknownNameError, match="known: literal, amplified, typical"):
        optics("oddl", "fitted")
    with pytest.raises(UnknownNameError, match=r"data/optics/torus\.toml"):
        optics("torus")


def path_of(*elements, sheet="oddl"):
    """A path of one piece of each element."""
    ones = np.ones((1, len(elements)))
    return LightPath(sheet, elements, lambda circuits: ones, ones, ("it",), ones[0])


def test_missing_values_are_named_with_a_way_out():
    """All of them in one line, and which preset has them."""
    with pytest.raises(ParameterError, match=r"no wss16\.loss; set them, as in --set wss16\.loss=1dB.*typical"):
        chain_of(path_of(Element("fibre"), Element("wss16")), optics("oddl"))


def test_what_no_light_passes_needs_no_value():
    """An element that stands in none of the paths."""
    path = path_of(Element("fibre"), Element("wss16"))
    chain = chain_of(path, optics("oddl"), np.array([True, False]))
    assert chain.loss_db.tolist() == [0.1, 0.0]


def test_a_passive_element_does_not_amplify():
    """Even if its file says so: the hardware decides."""
    with pytest.raises(ParameterError, match="edfa is passive"):
        chain_of(path_of(Element("edfa")), optics("oddl", "amplified"))


def test_geometry_is_no_value_of_an_element():
    """It shapes paths and cannot be set."""
    assert GEOMETRY in load("optics/ramp.toml")
    assert not any(name.startswith(GEOMETRY) for name in optics("ramp").values)
