"""`opticcl jobs --arrivals` as a user types it, and `--place` by a policy."""

import json

import pytest

SMALL = ("-f", "oddl:shape=4x4", "--arrivals", "poisson:load=0.9,count=5", "-s", "1MB")


def test_policies_side_by_side(answer, opticcl, tmp_path):
    """Rows, totals, notes and assumptions; every change verified; picture, table of jobs, record."""
    policies = [word for name in ("first", "best", "buddy", "any", "exact") for word in ("--policy", name)]
    files = [tmp_path / name for name in ("j.svg", "j.csv", "j.json")]
    found, code = answer("jobs", *SMALL, *policies)
    assert code == 0
    assert found.keys() == {"ok", "rows", "totals", "notes", "assumptions"}
    assert [row["policy"] for row in found["rows"]] == ["first", "best", "buddy", "any", "exact"]
    assert found["totals"] == {"policies": 5, "jobs": 5, "violations": 0, "disturbed": 0}
    assert all(row["changes"] == 10 and len(row["jobs"]) == 5 for row in found["rows"])
    assert all(0 < row["utilisation"] <= 1 and 0 <= row["fragmentation"] < 1 for row in found["rows"])
    done = opticcl("jobs", *SMALL, *policies[:4], *(word for path in files for word in ("-o", path)))
    assert done.returncode == 0
    assert "verified: all running jobs together at 20 arrivals and departures" in done.stdout
    assert files[0].read_text("utf-8").startswith("<svg")
    assert len(files[1].read_text("utf-8").splitlines()) == 11
    assert len(json.loads(files[2].read_text("utf-8"))["rows"]) == 2


@pytest.mark.parametrize("columns", ["80", "160"])
def test_tables_fit(opticcl, monkeypatch, columns):
    """No line of the table is wider than the terminal."""
    monkeypatch.setenv("COLUMNS", columns)
    done = opticcl("jobs", *SMALL)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_scattered_nodes_where_no_block_is_free(opticcl):
    """5 of the 6 free tiles are no block: the refusal names the largest, and the policy any places them."""
    place = ("jobs", "-f", "lightpath:shape=4x4", "--place", "4", "--place", "6", "--place", "5")
    refused = opticcl(*place)
    assert refused.returncode == 2
    assert "the largest free block has 4; place at most 4 nodes" in refused.stderr
    assert "--policy any" in refused.stderr
    done = opticcl(*place, "--policy", "any")
    assert done.returncode == 0
    assert "3 jobs" in done.stdout
    assert "isolated" in done.stdout


def test_rings_where_the_fastest_plans_leave_no_way(opticcl):
    """Jobs that lie within each other on a ring of fibres: the fastest take all wavelengths, rings of one leave room."""
    place = [word for nodes in (2, 3, 3) for word in ("--place", str(nodes))]
    found = json.loads(
        opticcl("jobs", "-f", "terarack:nodes=8,wavelengths=4", *place, "--policy", "any", "--json").stdout
    )
    assert {job["algorithm"] for job in found["jobs"]} == {"ring"}
    assert found["ok"]
