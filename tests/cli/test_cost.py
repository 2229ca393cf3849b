"""The verb `cost` as a user types it."""

import pytest

OWN = ("--set", "wss.usd=300", "--set", "fibre.usd=1", "--set", "fibre.w=0")


def test_one_fabric_gives_its_bill(opticcl):
    """A line a part, and the whole."""
    done = opticcl("machine", "cost", "-f", "oddl:shape=4x4")
    assert done.returncode == 0
    assert "tunable transceiver" in done.stdout
    assert "oddl, 16 nodes of" in done.stdout
    assert "assumed" in done.stdout


def test_its_energy_stands_below_the_bill(opticcl):
    """With the algorithm that was taken."""
    done = opticcl("machine", "cost", "-f", "oddl:shape=2x2", "-c", "all_reduce", "-s", "1MB")
    assert done.returncode == 0
    assert "all_reduce of 1MB by " in done.stdout


def test_what_is_left_out_is_told_beside_a_single_bill_too(opticcl, answer):
    """Three fabrics were asked for: one has no bill, one no machine of that size."""
    asked = ("machine", "cost", "-f", "ideal", "-f", "oddl", "-f", "torus", "-n", "12")
    done = opticcl(*asked)
    assert done.returncode == 0
    assert "left out: ideal has no bill" in done.stdout
    assert "left out: oddl: 12 nodes are not a power of two" in done.stdout
    found, _ = answer(*asked)
    assert [row["fabric"] for row in found["rows"]] == ["torus"]
    assert [one["fabric"] for one in found["left_out"]] == ["oddl", "ideal"]


def test_a_collective_that_a_fabric_declines_leaves_the_table_standing(opticcl, answer):
    """A torus of circuits joins no two nodes of different rows and columns; the other rows have their energy."""
    asked = (
        "machine",
        "cost",
        "-f",
        "terarack_torus:shape=2x3",
        "-f",
        "sip_ring:nodes=6",
        "-c",
        "send_recv",
        "-s",
        "1MB",
    )
    done = opticcl(*asked)
    assert done.returncode == 0
    assert "no energy: terarack_torus: no algorithm does send_recv" in done.stdout
    rows = answer(*asked)[0]["rows"]
    found = {row["fabric"]: row for row in rows}
    assert "no algorithm does send_recv" in found["terarack_torus"]["declined"]
    assert "energy_j" not in found["terarack_torus"]
    assert found["sip_ring"]["energy_j"][0] > 0
    assert "declined" not in found["sip_ring"]


def test_own_prices_are_told_as_such(opticcl, answer):
    """A part whose price and power are both given is not assumed any more."""
    lines = [line.split() for line in opticcl("machine", "cost", "-f", "oddl:shape=2x2", *OWN).stdout.splitlines()]
    assert ["fibre", "16", "16", "$", "0%", "0", "W", "given"] in lines
    assert next(line for line in lines if line[:1] == ["wss*"])[-2:] == ["given,", "assumed"]
    row = answer("machine", "cost", "-f", "oddl:shape=2x2", *OWN)[0]["rows"][0]
    assert "fibre" not in row["assumed"]
    assert "wss" in row["assumed"]


def test_two_machines_of_one_system_keep_their_own_times(opticcl, answer):
    """Rows are told by what the user wrote; energies are power times the time on that very machine."""
    both = ("-f", "oddl:shape=2x2", "-f", "oddl:shape=4x4", "-f", "oddl:shape=4x4")
    rows = answer("machine", "cost", *both, "-c", "all_reduce", "-s", "1MB")[0]["rows"]
    assert [row["num_nodes"] for row in rows] == [4, 16]
    for row in rows:
        alone, _ = answer("machine", "cost", "-f", row["specification"], "-c", "all_reduce", "-s", "1MB")
        assert row["total_s"] == alone["rows"][0]["total_s"]
        assert row["energy_j"] == pytest.approx([watts * row["total_s"] for watts in row["w"]])
    assert rows[0]["total_s"] != rows[1]["total_s"]
    table = opticcl("machine", "cost", *both).stdout
    assert "oddl:shape=2x2*" in table
    assert "nodes each" not in table


def test_several_fabrics_are_compared_with_the_energy_of_a_collective(answer):
    """Cheapest for each Gb/s first, and as JSON the same numbers."""
    found, code = answer("machine", "cost", "-f", "torus", "-f", "oddl", "-n", "16", "-c", "all_reduce", "-s", "1MB")
    assert code == 0
    assert [row["fabric"] for row in found["rows"]] == ["torus", "oddl"]
    for row in found["rows"]:
        assert row["energy_j"][0] == pytest.approx(row["w"][0] * row["total_s"])


def test_the_picture_is_written_whole_or_not_at_all(opticcl, tmp_path):
    """Price and energy against scale, as .svg or .png."""
    picture = tmp_path / "cost.svg"
    done = opticcl("machine", "cost", "-f", "oddl", "-n", "16", "-o", picture)
    assert done.returncode == 0
    assert picture.read_text().startswith("<svg")
    assert str(picture) in done.stdout
    done = opticcl("machine", "cost", "-f", "oddl", "-n", "16", "-o", tmp_path / "cost.pdf")
    assert done.returncode == 2
    assert "must end in .svg, .png or .json" in done.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["cost.svg"]
