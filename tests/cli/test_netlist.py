"""`opticcl machine netlist`: tables, records and pictures, and machines without light."""

import json
import re

import pytest

from opticcl.fabrics import fabric
from opticcl.report.netlist import MOST_DRAWN, NetlistReport

SMALL = "terarack:nodes=5,wavelengths=3"
LARGE = "ramp:groups=4,racks=4,wavelengths=8"


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("specification", [SMALL, LARGE, "oddl:shape=64", "sipac", "lightpath"])
def test_the_table_fits(opticcl, monkeypatch, specification, columns):
    """No line is wider than the terminal; group, kind, count and source are always shown, the rest is named."""
    monkeypatch.setenv("COLUMNS", str(columns))
    done = opticcl("machine", "netlist", "-f", specification)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= columns
    netlist = fabric(specification).netlist()
    for group in netlist.groups:
        assert re.search(rf"^{group.name} +{group.kind} +{group.count:,} ", done.stdout, re.MULTILINE), group.name
    for source in {group.source for group in netlist.groups if group.source}:
        assert source in done.stdout.replace("\n", " ")


def test_the_record_has_every_group(answer):
    """Counts, states and losses as the netlist has them; the same in a file."""
    found, code = answer("machine", "netlist", "-f", "sipac:radix=3,levels=2,wavelengths=6")
    assert (code, found["fabric"], found["nodes"], found["wavelengths"]) == (0, "sipac", 9, 6)
    groups = {group["name"]: group for group in found["groups"]}
    assert sum(group["count"] for group in found["groups"]) == found["elements"]
    rings = groups["ring0"]
    assert (rings["count"], rings["loss"], rings["moved_loss"]) == (27, {"ring_pass": 1}, {"ring_drop": 1})
    assert (rings["part"], rings["state"], rings["devices"]) == ("mrr_switch", "", 0)
    assert groups["modulator"]["state"] == "signal of each wavelength"
    assert groups["photodiode"]["count"] == 9 * 2 * 6


def test_a_machine_of_any_size_has_counts(answer):
    """RAMP in full, of which no light is followed."""
    found, code = answer("machine", "netlist", "-f", "ramp", "-n", "65536")
    assert code == 0
    assert {group["name"]: group["count"] for group in found["groups"]}["tx_gate"] == 65_536 * 32 * 32


@pytest.mark.parametrize(("specification", "each"), [(SMALL, True), (LARGE, False)])
def test_pictures_and_files(opticcl, tmp_path, specification, each):
    """Up to 200 elements one by one, else the groups; every group has its name and count in the picture."""
    picture, record = tmp_path / "n.svg", tmp_path / "n.json"
    done = opticcl("machine", "netlist", "-f", specification, "-o", picture, "-o", record)
    assert done.returncode == 0
    assert f"picture: {picture}" in done.stdout
    netlist = fabric(specification).netlist()
    assert (netlist.num_elements <= MOST_DRAWN) == each
    text = picture.read_text()
    for group in netlist.groups:
        assert f"{group.kind}, {group.count:,}" in text
    assert f"{netlist.num_elements:,} optical element" in text
    assert text.count("<path") > (netlist.num_elements if each else len(netlist.groups))
    assert json.loads(record.read_text())["elements"] == netlist.num_elements


@pytest.mark.parametrize(
    ("specification", "text"),
    [
        (
            "torus",
            "torus: no light from end to end; netlists have lightpath, ocs, oddl, ramp, sipac, terarack, terarack_torus",
        ),
        ("sip_ring:nodes=4", "sip_ring: no netlist of its elements; netlists have"),
    ],
)
def test_machines_without_one(opticcl, specification, text):
    """Exit code 2 and one line."""
    done = opticcl("machine", "netlist", "-f", specification)
    assert (done.returncode, done.stdout) == (2, "")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_modules_of_five_stages_are_counted(opticcl, answer):
    """A group a stage; light is refused before any work."""
    found, code = answer("machine", "netlist", "-f", "oddl:shape=2048")
    modules = [
        (group["count"], group["inputs"], group["outputs"]) for group in found["groups"] if group["kind"] == "wss"
    ]
    assert code == 0
    assert modules == [(64, 32, 64), (128, 32, 64), (4096, 2, 2), (128, 64, 32), (64, 64, 32)]
    done = opticcl("verify", "-f", "oddl:shape=2048", "-a", "ring", "--emulate")
    assert done.returncode == 2
    assert "5 stages; light is followed through up to 3, try sides of at most 1024" in done.stderr


def test_places_have_names():
    """In the record, the first element of each group."""
    made = fabric("ramp:groups=2,racks=2,wavelengths=2,subnet=route_switch")
    first = {group["name"]: group["first"] for group in NetlistReport(made, made.netlist()).record()["groups"]}
    assert first["tx_gate"] == "node 0 port 0 group 0"
    assert first["crossbar"] == "crossbar group 0 rack 0 -> group 0 (port 0, outputs to devices 0) to rack 0"
