"""opticcl plan: tables, JSON, picture, plan files, and one line for bad input."""

import json


def test_tables_fit_the_terminal(opticcl, monkeypatch):
    """80 and 160 columns."""
    for width in (80, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        done = opticcl("plan", "-f", "ocs:nodes=6", "-c", "all_to_all", "-s", "1MB")
        assert max(map(len, done.stdout.splitlines())) <= width
        for word in ("times the bound", "dominates", "holds", "regret", "message up to", "reconfiguration up to"):
            assert word in " ".join(done.stdout.split())


def test_json_picture_and_plan_file(opticcl, tmp_path):
    """One value; the plan file is verified, and is a start of the next plan."""
    plan, picture = tmp_path / "plan.parquet", tmp_path / "plan.svg"
    asked = ("plan", "-f", "ocs:nodes=4", "-c", "all_gather", "-s", "10KB", "--json")
    found = json.loads(opticcl(*asked, "-o", plan, "-o", picture).stdout)
    assert found["gap"] >= 1
    assert found["algorithm"].startswith("digit_shifts")
    assert {"segments", "regrets", "break_even_sizes", "break_even_changes", "bound_by", "dominates"} <= found.keys()
    assert picture.read_text().startswith("<svg")
    assert opticcl("verify", plan).returncode == 0
    again = json.loads(opticcl(*asked, "--start", plan).stdout)
    assert again["total_s"] <= found["total_s"] - 9e-6
    assert opticcl("plan", "-f", "oddl:shape=2x2", "-s", "10KB", "-o", tmp_path / "oddl.svg").returncode == 0


def test_streams(opticcl, answer):
    """Pieces that are forwarded, on a RAMP; other questions of a plan are refused beside it."""
    asked = [
        "plan",
        "-f",
        "ramp:groups=3,racks=2,wavelengths=6",
        "-c",
        "broadcast",
        "-s",
        "50KB",
        "--streamed",
        "--assumptions",
        "published",
    ]
    found, code = answer(*asked)
    assert code == 0
    assert found["algorithm"] == "ramp:stages=18"
    assert "device engine" in found["notes"][0]
    done = opticcl(*asked, "--overlap")
    assert done.returncode == 2
    assert "--streamed plans a whole fabric" in done.stderr
