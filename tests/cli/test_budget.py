"""The verb `budget`, and `verify --budget`, as a user types them."""

import pytest


def test_light_that_closes(opticcl):
    """A row an element, the running power, the margin, and what it limits."""
    done = opticcl("machine", "budget", "-f", "oddl:shape=8x8x8")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["wss8", "1", "6.80", "dB", "-2.40", "dBm", "paper"] in lines
    assert done.stdout.startswith("Enough light arrives on oddl, with a margin of 8.10 dB")
    assert "64 ports (3 x wss8): margin -5.5 dB" in done.stdout


def test_light_that_does_not_close_is_a_no(opticcl, answer):
    """Exit code 1, and the same in JSON."""
    found, code = answer("machine", "budget", "-f", "oddl")
    assert code == 1
    assert found["closes"] is False
    assert found["margin_db"] == pytest.approx(-10.1)
    assert [e["element"] for e in found["elements"]] == ["fibre", "wss32"]
    assert found["limits"]["margin_8_ports_db"] == pytest.approx(8.1)
    assert "10.10 dB is missing" in opticcl("machine", "budget", "-f", "oddl").stdout


@pytest.mark.parametrize("fabric", ["ramp", "sipac", "terarack", "lightpath", "topoopt", "sip_ring", "terarack_torus"])
def test_where_the_paper_prints_too_little_typical_is_taken_and_told(opticcl, answer, fabric):
    """Without `--optics` every optical fabric has a budget, the same as with `--optics typical`; the reason stands above."""
    asked = ("machine", "budget", "-f", fabric, "-n", "16")
    done = opticcl(*asked)
    assert done.returncode in (0, 1), done.stderr
    said = " ".join(done.stdout.split())
    assert "values: preset typical, some of them assumed" in said
    assert "preset literal has no launch" in said
    assert answer(*asked) == answer(*asked, "--optics", "typical")


def test_the_paper_comes_first_where_it_is_complete(answer):
    """Also where the user adds what it lacks."""
    assert answer("machine", "budget", "-f", "oddl:shape=8")[0]["preset"] == "literal"
    asked = ("machine", "budget", "-f", "oddl:shape=16")
    assert answer(*asked)[0]["preset"] == "typical"
    assert answer(*asked, "--set", "wss16.loss=14dB")[0]["preset"] == "literal"


def test_values_can_be_set(opticcl):
    """A better switch closes; assumed values are marked."""
    assert (
        opticcl("machine", "budget", "-f", "oddl", "--set", "wss32.loss=14dB", "--set", "fibre.length=50m").returncode
        == 0
    )
    done = opticcl("machine", "budget", "-f", "terarack", "-n", "16", "--optics", "typical", "--path", "typical")
    assert "interface*" in done.stdout
    assert "* assumed, the paper does not print it" in done.stdout


def test_the_worst_path_of_an_algorithm(answer):
    """Measured on its circuits."""
    found, code = answer(
        "machine", "budget", "-f", "terarack", "-n", "16", "--optics", "typical", "--algorithm", "ring"
    )
    assert code == 0
    assert "ring" in found["path"]
    assert [e["count"] for e in found["elements"]] == [1, 1]


def test_the_picture_is_written_whole_or_not_at_all(opticcl, tmp_path):
    """A waterfall as .svg or .png."""
    for name, begins in (("w.svg", b"<svg"), ("w.png", b"\x89PNG")):
        done = opticcl("machine", "budget", "-f", "ramp", "--optics", "fitted", "-o", tmp_path / name)
        assert done.returncode == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert "soa gate" in (tmp_path / "w.svg").read_text()
    done = opticcl("machine", "budget", "-f", "ramp", "--optics", "fitted", "-o", tmp_path / "w.pdf")
    assert done.returncode == 2
    assert sorted(f.name for f in tmp_path.iterdir()) == ["w.png", "w.svg"]


def test_verify_tells_how_much_light_is_left(opticcl):
    """Of a plan that is right, too: nobody else says that its light was followed."""
    done = opticcl("verify", "-f", "oddl:shape=4x2", "-a", "halving_doubling", "--budget", "literal")
    assert done.returncode == 0
    assert "light: least margin 8.1 dB" in done.stdout


def test_verify_asks_for_the_light_too(answer):
    """Refused by its rule, and accepted with another value."""
    oddl = ["verify", "-f", "oddl:shape=16x2", "-a", "halving_doubling", "--budget"]
    found, code = answer(*oddl, "literal", "--set", "wss16.loss=20dB")
    assert code == 1
    assert {v["rule"] for v in found["violations"]} == {"light_does_not_close"}
    assert answer(*oddl, "typical")[1] == 0
