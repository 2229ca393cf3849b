"""`opticcl simulate`: the plan that it names, the files that it writes and reads, and what it refuses."""

import json

import polars
import pytest

TREE = ["--fabric", "fat_tree:nodes=16,radix=8", "--size", "1MB"]


def test_the_answer_names_its_plan(answer):
    """Fabric, algorithm, collective, nodes, size, engine and mode; bandwidths and the bottleneck."""
    found, code = answer("simulate", *TREE, "-c", "all-to-all", "-a", "mesh", "--engine", "flow")
    assert code == 0
    assert found["fabric"].startswith("fat_tree:nodes=16,radix=8")
    plan = {key: found[key] for key in ("algorithm", "collective", "num_nodes", "size_bytes", "engine", "mode")}
    assert plan == {
        "algorithm": "mesh", "collective": "all_to_all", "num_nodes": 16, "size_bytes": 1_000_000, "engine": "flow",
        "mode": "barrier",
    }  # fmt: skip
    assert found["algorithm_bytes_per_s"] == pytest.approx(1e6 / found["total_s"])
    assert found["bus_bytes_per_s"] == pytest.approx(found["algorithm_bytes_per_s"] * 15 / 16)
    assert found["bottleneck"].startswith("link node 0 (leaf 0) -> leaf 0")
    assert found["bottleneck_bytes"] == pytest.approx(1e6 * 15 / 16)
    assert 0 < found["bottleneck_utilisation"] <= 1
    assert "critical_path" not in found
    again, _ = answer(
        "simulate", "--fabric", found["fabric"], "-c", "all_to_all", "-a", "mesh", "-s", "1MB", "--engine", "flow"
    )
    assert again == found


def test_files_of_links_traces_and_pictures(opticcl, tmp_path):
    """All at once, asynchronously, with the critical path in words; what is not asked for is not written."""
    files = [tmp_path / name for name in ("links.parquet", "trace.json", "load.svg")]
    options = [
        word for option, file in zip(("--links", "--trace", "--out"), files, strict=True) for word in (option, file)
    ]
    done = opticcl("simulate", *TREE, "-a", "ring", "--engine", "packet:mode=asynchronous", *options)
    assert done.returncode == 0, done.stderr
    assert "critical path, 30 transfers" in done.stdout
    assert "bus bandwidth" in done.stdout
    assert "bottleneck: link node 0 (leaf 0) -> leaf 0, one of " in done.stdout
    rows = polars.read_parquet(files[0])
    assert rows["bytes"].sum() > 0
    assert rows["largest_queue_bytes"].max() > 0
    assert json.loads(files[1].read_text())["otherData"]["mode"] == "asynchronous"
    assert files[2].read_text().startswith("<svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["links.parquet", "load.svg", "trace.json"]


@pytest.mark.parametrize("engine", ["flow", "packet:mode=asynchronous"])
def test_a_trace_begins_when_the_circuits_are_set(opticcl, tmp_path, engine):
    """A ring of TeraRack: no transfer is drawn before its first circuit is set, 25 us."""
    ring = ("-f", "terarack:nodes=8", "-c", "broadcast", "-a", "ring", "-s", "1KB")
    done = opticcl("simulate", *ring, "--engine", engine, "--trace", tmp_path / "t.json")
    assert done.returncode == 0, done.stderr
    drawn = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    starts_us = [event["ts"] for event in drawn if event.get("name", "").split(" -> ")[0].isdecimal()]
    assert len(starts_us) >= 7
    assert min(starts_us) == pytest.approx(25, abs=1e-3)


def test_the_closed_form_tells_bytes(answer, tmp_path):
    """It sees no transfers, and knows what links carry."""
    found, code = answer("simulate", *TREE, "-a", "ring", "--links", tmp_path / "links.json")
    assert code == 0
    rows = json.loads((tmp_path / "links.json").read_text())
    busiest = max(rows, key=lambda row: row["bytes"])
    assert busiest["bytes"] == pytest.approx(2 * 15 / 16 * 1e6) == found["bottleneck_bytes"]


@pytest.mark.parametrize("verb", ["simulate", "verify", "execute"])
def test_a_plan_file_is_a_plan(opticcl, answer, verb, tmp_path):
    """What was compiled and written is read again; options that it has of its own are refused beside it."""
    plan_file = tmp_path / "plan.csv"
    made = opticcl("compile", "-f", "sipac:radix=2,levels=2", "-c", "all_reduce", "-s", "4KB", "--out", plan_file)
    assert made.returncode == 0, made.stderr
    found, code = answer(verb, plan_file)
    assert code == 0
    if verb == "simulate":
        same, _ = answer(verb, "-f", "sipac:radix=2,levels=2", "-c", "all_reduce", "-s", "4KB")
        assert found["total_s"] == same["total_s"]
        assert found["size_bytes"] == 4000
        assert found["fabric"] == same["fabric"]
    for option, value in (
        ("--size", "1GB"),
        ("--root", "1"),
        ("--job", "0-1"),
        ("--nodes", "4"),
        ("--algorithm", "ring"),
    ):
        if (verb, option) == ("execute", "--size"):  # arrays may be of any size
            continue
        refused = opticcl(verb, plan_file, option, value)
        assert refused.returncode == 2
        assert option in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
    both = opticcl(verb, plan_file, "--fabric", "ideal:nodes=4")
    neither = opticcl(verb)
    assert both.returncode == neither.returncode == 2
    assert "--fabric is part of" in both.stderr
    assert "give either a plan file or --fabric" in neither.stderr


def test_a_wrong_plan_file_has_no_time(opticcl, tmp_path):
    """A file whose transfers do not do what it claims is refused with the verdict; no time is told."""
    plan_file = tmp_path / "plan.csv"
    opticcl("compile", "-f", "ideal:nodes=3", "-c", "all_gather", "-a", "ring", "-s", "3KB", "--out", plan_file)
    *lines, _ = plan_file.read_text().splitlines()
    plan_file.write_text("\n".join(lines) + "\n")
    done = opticcl("simulate", plan_file)
    assert done.returncode == 1
    assert "refused" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--links", "links.txt"], ["--links", ".parquet"]),
        (["--trace", "trace.csv", "--engine", "flow"], ["--trace", ".json"]),
        (["--trace", "trace.json"], ["--trace", "closed_form", "--engine flow"]),
        (["--out", "load.pdf"], ["--out", ".svg"]),
        (["--out", "absent/load.svg"], ["no folder", "absent"]),
        (["--engine", "flow:cell_bytes=4KB"], ["cell_bytes", "packet"]),
        (["--engine", "closed_form:mode=asynchronous"], ["mode", "flow and packet"]),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_line(opticcl, monkeypatch, options, words, tmp_path):
    """Before anything is played, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    done = opticcl("simulate", *TREE, *options)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words)
    assert not list(tmp_path.iterdir())


def test_compare_names_bottlenecks(opticcl, answer):
    """In the rows, and in the table where it is asked for."""
    arguments = ["compare", "-f", "superpod:nodes=16", "-f", "sipac:radix=4,levels=2", "-c", "all_to_all", "-s", "1MB"]
    arguments.append("--as-built")
    found, code = answer(*arguments, "--engine", "flow")
    rows = found["rows"]
    assert code == 0
    by_fabric = {row["fabric"]: row for row in rows}
    assert by_fabric["superpod"]["bottleneck"] == "link node 0 (server 0, rail 0) -> leaf 0"
    assert by_fabric["sipac"]["bottleneck"] == "lasers of port 0 of node 0 (x0=0, x1=0)"
    assert all(0 < row["bottleneck_utilisation"] <= 1 and row["bottleneck_bytes"] > 0 for row in rows)
    assert "rail 0) -> leaf 0, " in opticcl(*arguments, "--columns", "fabric,bottleneck").stdout
