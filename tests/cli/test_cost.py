"""The verb `cost` as a user types it."""

import pytest
from tests.cli.command import answer, opticcl


def test_one_fabric_gives_its_bill():
    """A line a part, and the whole."""
    done = opticcl("cost", "-f", "oddl:shape=4x4")
    assert done.returncode == 0
    assert "tunable transceiver" in done.stdout
    assert "16 nodes of" in done.stdout
    assert "assumed" in done.stdout


def test_several_fabrics_are_compared_with_the_energy_of_a_collective():
    """Cheapest for each Gb/s first, and as JSON the same numbers."""
    rows, code = answer("cost", "-f", "torus", "-f", "oddl", "-n", "16", "-c", "all_reduce", "-s", "1MB")
    assert code == 0
    assert [row["fabric"] for row in rows] == ["torus", "oddl"]
    for row in rows:
        assert row["energy_j"][0] == pytest.approx(row["w"][0] * row["total_s"])


def test_the_picture_is_written_whole_or_not_at_all(tmp_path):
    """Price and energy against scale, as .svg or .png."""
    picture = tmp_path / "cost.svg"
    done = opticcl("cost", "-f", "oddl", "-n", "16", "-o", picture)
    assert done.returncode == 0
    assert picture.read_text().startswith("<svg")
    assert str(picture) in done.stdout
    done = opticcl("cost", "-f", "oddl", "-n", "16", "-o", tmp_path / "cost.pdf")
    assert done.returncode == 2
    assert ".svg or .png" in done.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["cost.svg"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-f", "rmp"], "did you mean 'ramp'"),
        ([], "how many nodes"),
        (["-f", "ideal"], "ideal has no bill"),
        (["-f", "oddl", "--set", "wss.usd"], "write --set wss.usd=300"),
        (["-f", "oddl", "--set", "wss.usd=cheap"], "'cheap' is not a number"),
        (["-f", "oddl", "--prices", "low"], "known: default"),
    ],
)
def test_wrong_input_is_refused_in_a_line(arguments, says):
    """Exit code 2, one line, no traceback."""
    done = opticcl("cost", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
