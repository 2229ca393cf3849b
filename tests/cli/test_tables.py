"""Device tables on the command line."""

import json

import pytest

RAMP = ("-f", "ramp:groups=2,racks=2,wavelengths=4", "-s", "10KB", "-a", "ramp")


def test_tables_are_written_and_judged(opticcl, answer, tmp_path):
    """Exit code 0 for those of a plan, 1 for others."""
    import polars as pl

    folder = tmp_path / "tables"
    written = opticcl("compile", *RAMP, "--out", folder)
    assert written.returncode == 0, written.stderr
    assert "settings" in written.stdout
    assert (folder / "nic.bin").is_file()
    verdict, code = answer("verify", "--tables", folder)
    assert code == 0
    assert verdict["ok"]
    rows = pl.read_parquet(folder / "settings.parquet")
    rows.with_columns(pl.when(pl.col("device") == "rx_gate").then(0).otherwise("value").alias("value")).write_parquet(
        folder / "settings.parquet"
    )
    wrong = opticcl("verify", "--tables", folder)
    assert wrong.returncode == 1
    assert "light_missing: at 0 s, photodiode:" in wrong.stdout


def test_power_beside_tables(opticcl, answer, tmp_path):
    """With --budget and --set, as of the plan; without it the verdict says that it was not judged."""
    ring = ("-f", "lightpath:shape=8x8", "-s", "10KB", "-a", "ring")
    assert opticcl("compile", *ring, "--out", tmp_path / "tables").returncode == 0
    alone = opticcl("verify", "--tables", tmp_path / "tables")
    assert alone.returncode == 0
    first = f"all_reduce of 10 KB on lightpath with 64 nodes: {tmp_path / 'tables'}/"
    assert alone.stdout.startswith(f"The device tables are right.\n{first}\n")
    assert "; power not judged" in alone.stdout
    wrong, code = answer("verify", "--tables", tmp_path / "tables", "--budget", "typical")
    plan, plan_code = answer("verify", *ring, "--budget", "typical")
    assert code == plan_code == 1
    one, other = wrong["violations"][0], plan["violations"][0]
    assert [one[key] for key in ("rule", "where", "expected", "found")] == [
        other[key] for key in ("rule", "where", "expected", "found")
    ]
    assert "12.65 dB short" in one["found"]
    bright = opticcl("verify", "--tables", tmp_path / "tables", "--budget", "typical", "--set", "launch=30dBm")
    assert bright.returncode == 0
    assert "light: least margin " in bright.stdout
    refused = opticcl("verify", "--tables", tmp_path / "tables", "--set", "launch=30dBm")
    assert refused.returncode == 2
    assert "--set is for the light budget" in refused.stderr


def test_a_table_of_some_nodes_is_not_judged(opticcl, tmp_path):
    """It says why."""
    assert (
        opticcl("compile", *RAMP, "--out", tmp_path / "part", "--node", "3,7-9", "--device", "tx_gate").returncode == 0
    )
    refused = opticcl("verify", "--tables", tmp_path / "part")
    assert refused.returncode == 2
    assert "a part of the devices" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--device", "tx_gate"), "give --out DIR/ too"),
        (("--out", "{tmp}", "--node", "1"), "the folder is not empty"),
        (("--out", "{tmp}/a", "--device", "lamp"), "known: laser, tx_gate, rx_gate, modulator, photodiode"),
        (("--out", "{tmp}/a", "--node", "3-1"), "--node: '3-1' is neither a node nor a range"),
        (("--out", "{tmp}/no/a"), "there is no folder"),
        (("--out", "{tmp}/file"), "it is a file"),
    ],
)
def test_refused_tables(opticcl, tmp_path, words, message):
    """One line, exit code 2, nothing written."""
    (tmp_path / "file").write_text("mine")
    refused = opticcl("compile", *RAMP, *(word.format(tmp=tmp_path) for word in words))
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tables_are_judged_alone(opticcl, tmp_path):
    """Options of plans are refused beside them."""
    refused = opticcl("verify", "--tables", tmp_path, "-f", "ramp")
    assert refused.returncode == 2
    assert "leave --fabric out" in refused.stderr


def test_instructions_of_several_nodes(opticcl, answer):
    """Rows say which node they are of."""
    rows, _ = answer("compile", *RAMP, "--node", "1,4-5")
    assert {row["node"] for row in rows} == {1, 4, 5}
    assert all(
        row["first_slot"] * 20e-9 == pytest.approx(row["from_s"]) and row["end_s"] > row["from_s"] for row in rows
    )
    assert max(row["first_slot"] for row in rows) > 0
    assert "node" not in answer("compile", *RAMP, "--node", "3")[0][0]
    assert opticcl("compile", *RAMP, "--node", "1,4-5").returncode == 0


def test_devices_over_time(opticcl, tmp_path):
    """A picture and a trace of a node, and of the switches."""
    done = opticcl("compile", *RAMP, "--node", "3", "-o", tmp_path / "a.svg", "--trace", tmp_path / "a.json")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert "photodiode:6 node 3 port 0" in text
    assert "sends" in text
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X"]
    assert {event["cat"] for event in bars} == {"is set", "sends", "receives"}
    assert all(event["dur"] >= 0 for event in bars)
    tiles = opticcl("compile", "-f", "lightpath:shape=3x3", "-s", "1MB", "--device", "tile", "-o", tmp_path / "b.svg")
    assert tiles.returncode == 0
    assert "tile:8 tile (row=2, column=2)" in (tmp_path / "b.svg").read_text("utf-8")
    none = opticcl(
        "compile", "-f", "sipac:radix=2,levels=2,wavelengths=4", "--node", "0", "-o", tmp_path / "c.svg", "-s", "1MB"
    )
    assert none.returncode == 0
