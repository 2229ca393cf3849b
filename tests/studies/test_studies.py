"""Every study runs small, is deterministic, and agrees with the notes."""

from __future__ import annotations

import pytest

from opticcl.cli.study import NAMES
from opticcl.errors import OpticclError, ParameterError, UnknownNameError
from opticcl.studies import STUDIES, Study, run_study
from opticcl.studies.beyond import PAPERS
from opticcl.studies.reconfiguration_delay import break_even_s

SMALL = {
    "overlap": "overlap:largest=16,draws=2",
    "waveguides": "waveguides:nodes=16,most=8,draws=2",
    "reconfigurations": "reconfigurations:nodes=16",
    "run_time": "run_time:nodes=16",
    "reconfiguration_delay": "reconfiguration_delay:nodes=16",
    "laser_rate": "laser_rate:nodes=16",
    "transfers": "transfers:nodes=12,lasers=3",
    "beyond": "beyond:system=oddl,nodes=16",
}


@pytest.fixture
def job(tmp_path):
    """A log of two layers and three all-reduces."""
    file = tmp_path / "job.log"
    lines = ["AR;1000;0,1,2,3", "AR;500;4,5,6,7", "L2L;8;3;0;0;1", "AR;200;2,3", "L2L;8;3;1;1;0", "L2L;16;3;0;1;2"]
    file.write_text("\n".join(lines) + "\n")
    return file


def small(name: str, job) -> str:
    """A study of that name that takes no time."""
    return SMALL.get(name) or f"co_scheduling:workload={job}"


def found(study: Study, **wanted: object) -> dict:
    """The one row with these values."""
    (row,) = [row for row in study.rows if all(row[key] == value for key, value in wanted.items())]
    return row


@pytest.mark.parametrize("name", STUDIES.names())
def test_rows_have_the_same_keys_and_are_deterministic(name: str, job) -> None:
    """The same keys in every row, those of the chart among them, and the same values again."""
    one, same = run_study(small(name, job)), run_study(small(name, job))
    chart = one.chart
    assert one == same
    assert len({tuple(row) for row in one.rows}) == 1
    assert {chart.x, chart.y, *chart.lines} <= set(one.rows[0])
    assert one.name.startswith(name)
    assert STUDIES.get(name).__doc__


def test_progress_is_reported() -> None:
    """At least once per study."""
    reported: list[str] = []
    run_study(SMALL["transfers"], lambda what, done, total: reported.append(what))
    assert set(reported) == {"schedule"}


def test_the_command_line_lists_the_registered_studies() -> None:
    """Modules of shared code in the package are not among them."""
    assert NAMES.split(", ") == list(STUDIES.names())


def test_overlap_of_figure_5() -> None:
    """16 x 16 squares, LUMORPH-4: 28 to 30 by chance, 16 at least and at best (notes, section 5)."""
    study = run_study("overlap:largest=256,numbering=squares,draws=5")
    least = found(study, gpus=256, algorithm="LUMORPH-4", routes="least overlap")
    assert least["overlap"] == least["at_least"] == 16
    assert 26 <= found(study, gpus=256, algorithm="LUMORPH-4", routes="random")["overlap"] <= 31
    assert all(row["at_least"] <= row["overlap"] <= row["worst"] for row in study.rows)


def test_reconfigurations_of_figure_6() -> None:
    """Random places, W = 10, 20, 40: LUMORPH-4 16, 8, 8 with least overlap, and more by chance (notes, section 5)."""
    study = run_study("reconfigurations")
    for waveguides, due in ((10, 16), (20, 8), (40, 8)):
        row = found(study, waveguides=waveguides, algorithm="LUMORPH-4", routes="least overlap")
        assert row["reconfigurations"] == row["at_least"] == due
    by_chance = {w: found(study, waveguides=w, algorithm="LUMORPH-4", routes="random") for w in (20, 40)}
    assert [by_chance[w]["reconfigurations"] for w in (20, 40)] == [16, 8]
    assert all(row["changes"] <= row["reconfigurations"] for row in study.rows)
    assert all(row["at_least"] <= row["reconfigurations"] for row in study.rows)


def test_reconfigurations_by_what_a_switch_moves() -> None:
    """64 GPUs on few waveguides: single wavelengths need the fewest rounds, whole waveguides at least as many as circuits."""
    rounds = {}
    for reading in ("circuits", "wavelength", "waveguide"):
        study = run_study(f"reconfigurations:nodes=64,reading={reading}")
        assert all(row["at_least"] <= row["reconfigurations"] for row in study.rows)
        rounds[reading] = [row["reconfigurations"] for row in study.rows]
    pairs = list(zip(rounds["wavelength"], rounds["circuits"], rounds["waveguide"], strict=True))
    assert all(one <= two <= three for one, two, three in pairs)
    assert rounds["wavelength"] != rounds["circuits"]


def test_run_times_of_the_notes() -> None:
    """256 GPUs, 10 KB, 1 MB and 1 GB, to the printed digits (notes, section 2)."""
    study = run_study("run_time")
    due = {"LUMORPH-2": (70.5, 77.0, 6711.0), "LUMORPH-4": (35.3, 42.3, 7118.5), "D&C": (35.5, 61.9, 26702)}
    due |= {"ring on a switch": (357.1, 363.6, 6997.6), "tree on a switch": (11.7, 64.5, 53345)}
    for name, times in due.items():
        for size, time_us in zip((10_000, 1_000_000, 10**9), times, strict=True):
            row = found(study, algorithm=name, size_bytes=size)
            assert row["time_s"] * 1e6 == pytest.approx(time_us, rel=4e-3)


def test_break_even_delays_of_the_notes() -> None:
    """21.6 us for LUMORPH-2; 43.7 us for LUMORPH-4 with whole lasers at 4 MB (43.9 us if shared out, notes section 0)."""
    study = run_study("reconfiguration_delay")
    delays = break_even_s([dict(row) for row in study.rows])
    assert delays["LUMORPH-2"] == pytest.approx(21.6e-6, rel=1e-2)
    assert delays["LUMORPH-4"] == pytest.approx(43.7e-6, rel=1e-2)
    faster = found(study, algorithm="LUMORPH-2", delay_s=3.7e-6)["time_s"]
    assert found(study, algorithm="ring on a switch", delay_s=3.7e-6)["time_s"] / faster == pytest.approx(
        3.96, rel=5e-3
    )


def test_faster_lasers_take_less_time() -> None:
    """Down to alpha: twice the rate halves what the rate decides."""
    study = run_study("laser_rate:nodes=16,radix=2")
    slow, fast = (found(study, buffer="1 GB", laser_bits_per_s=rate)["time_s"] for rate in (100e9, 200e9))
    fixed = 8 * 4.4e-6
    assert (slow - fixed) / (fast - fixed) == pytest.approx(2)


def test_waveguides_that_are_enough() -> None:
    """None are missing from the overlap on."""
    study = run_study("waveguides:nodes=64,most=20,draws=3")
    for row in study.rows:
        if row["routes"] == "least overlap" and row["algorithm"] == "LUMORPH-4":
            assert row["without_waveguide"] == max(0, 8 - row["waveguides"])


def test_transfers_break_the_rule_only_as_printed() -> None:
    """More than 16 lasers asked of a sender; corrected and coloured never."""
    study = run_study("transfers")
    for row in study.rows:
        if row["algorithm"] != "greedy, as printed":
            assert row["lasers_asked"] <= 16
            assert row["rounds"] >= row["at_least"]
        if row["algorithm"] == "edge colouring":
            assert row["rounds"] == row["at_least"]
    assert max(row["lasers_asked"] for row in study.rows if row["algorithm"] == "greedy, as printed") > 16


def test_co_scheduling_saves_rounds(job) -> None:
    """All-reduces beside layers and beside each other; times add up."""
    study = run_study(f"co_scheduling:workload={job}")
    parts = {name: [r for r in study.rows if r["order"] == name] for name in ("one after the other", "concurrently")}
    rounds = {name: sum(r["rounds"] for r in rows) for name, rows in parts.items()}
    assert rounds["concurrently"] < rounds["one after the other"]
    for rows in parts.values():
        assert rows[-1]["done"] == 5
        assert rows[-1]["until_s"] == pytest.approx(sum(r["time_s"] for r in rows))
    assert parts["concurrently"][-1]["until_s"] < parts["one after the other"][-1]["until_s"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("overlaps", "did you mean 'overlap'"),
        ("overlap:most=5", "unknown parameter 'most'"),
        ("overlap:largest=100", "power of two"),
        ("overlap:largest=4096", "4 to 1024"),
        ("overlap:draws=0", "draws=0"),
        ("overlap:numbering=hilbert", "row, squares, random"),
        ("waveguides:most=0", "most=0"),
        ("reconfigurations:nodes=2", "power of two"),
        ("reconfiguration_delay:size=-1", "negative"),
        ("transfers:lasers=0", "lasers=0"),
        ("transfers:seed=-1", "seed=-1"),
        ("overlap:seed=-1", "seed=-1"),
        ("reconfigurations:seed=-1", "seed=-1"),
        ("laser_rate:radix=1", "radix=1"),
        ("co_scheduling", "workload is missing"),
        ("co_scheduling:workload=nowhere.log", "nowhere.log"),
    ],
)
def test_bad_studies_are_refused_in_one_line(text: str, hint: str) -> None:
    """The message names the field and what to try."""
    with pytest.raises(OpticclError, match=hint) as error:
        run_study(text)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, (ParameterError, UnknownNameError)) or "nowhere" in text or "=" in text


@pytest.mark.parametrize(
    ("system", "nodes"), [("lightpath", 16), ("oddl", 32), ("ramp", 54), ("sipac", 16), ("terarack", 8)]
)
def test_never_slower_than_the_paper(system: str, nodes: int) -> None:
    """At no size, for no collective that the paper has, and never below the bound."""
    for collective in (
        name for name in PAPERS[system] if name != "source" and (system, name) != ("oddl", "all_to_all")
    ):
        for row in run_study(f"beyond:system={system},nodes={nodes},collective={collective}").rows:
            assert row["bound_s"] <= row["fastest_s"] <= row["paper_s"], row
            assert row["fastest_common_s"] <= row["paper_common_s"], row


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("beyond:system=torus", "system=torus is not one of lightpath, oddl, ramp, sipac, terarack"),
        ("beyond:system=sipac,collective=gather", "the paper of sipac has no gather; try all_reduce, broadcast"),
        ("beyond:system=oddl,nodes=32,collective=all_to_all", "no algorithm of the paper does all_to_all on 32 nodes"),
        ("beyond:system=oddl,nodes=9", "no power of two up to 32768; nearest: 8 or 16"),
    ],
)
def test_comparisons_that_no_paper_has(text: str, reason: str) -> None:
    """Refused with what exists."""
    with pytest.raises(OpticclError, match=reason):
        run_study(text)
