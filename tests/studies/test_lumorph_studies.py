"""The files of studies/: figures of the papers, as design spaces."""

from dataclasses import replace
from pathlib import Path

import pytest

from opticcl.errors import ParameterError
from opticcl.studies.space.design import read_design
from opticcl.studies.space.question import answer_of
from opticcl.studies.space.runner import read_rows, run_space

FILES = sorted((Path(__file__).parents[2] / "studies").glob("*.toml"))

SMALL = {
    "parameter.seed": (0, 1),
    "parameter.waveguides": (1, 10),
    "parameter.laser_rate": (50e9, 100e9),
    "size": (10_000, 1_000_000),
    "algorithm": ("lumorph:radix=2", "lumorph:radix=4", "ring"),
}
"""Values that are kept of the axes that a file has."""


def small(space):
    """The study on 16 GPUs, with few values of each axis."""
    axes = {
        axis: tuple(one for one in SMALL.get(axis, values) if one in values) or values
        for axis, values in space.axes.items()
    }
    return replace(space, axes=axes | {"nodes": (16,)})


def lines(space, folder, **options):
    """Rows of the lines of a study that runs here."""
    run_space(space, folder)
    return answer_of(space, read_rows(folder), "lines", {**space.answers["lines"], **options}).rows


def found(rows, y, **wanted):
    """The value of the one row with these values."""
    (row,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row[y]


@pytest.fixture
def study(tmp_path):
    """Function: a file of that name, small, and the rows of its lines."""

    def of(name, **options):
        space = small(read_design(next(file for file in FILES if file.stem.endswith(name))))
        return lines(space, tmp_path / name, **options)

    return of


def test_every_file_is_a_study_with_lines():
    """Its first lines are the command that runs it."""
    assert len(FILES) == 7
    for file in FILES:
        assert {"lines"} <= set(read_design(file).answers)
        assert f"#     opticcl study run studies/{file.name}\n" in file.read_text("utf-8")


def test_scale_and_rate_of_ramp(tmp_path):
    """RAMP 4.2: 64 x^2 nodes of b x 400 Gb/s each, one machine for each number of nodes."""
    rows = lines(read_design(next(file for file in FILES if file.stem == "ramp-figure-7")), tmp_path)
    assert len(rows) == 3 * 5
    for row in rows:
        x = (row["num_nodes"] // 64) ** 0.5
        assert row["node_rate_bits_per_s"] == row["transceivers_per_group"] * x * 400e9
        assert row["node_rate_bits_per_s"] == row["most_node_rate_bits_per_s"]


def test_circuits_that_share_an_edge(study):
    """Random routes never share an edge less than those of least overlap; what exceeds the waveguides has none."""
    rows = study("5-left")
    for radix in (2, 4):
        at = {"requested_algorithm": f"lumorph:radix={radix}"}
        assert found(rows, "overlap", **at, routing="least_overlap") <= found(rows, "overlap", **at, routing="random")
    assert all(row["overlap"] <= row["most_overlap"] for row in rows)
    few = [row for row in study("5-right") if row["waveguides"] == 1]
    assert all(row["without_waveguide"] > 0 for row in few)


def test_few_waveguides_cause_rounds(study, tmp_path):
    """Not fewer than the bound of the routes, in the table beside them."""
    rows = study("6")
    assert all(row["circuit_rounds"] >= 4 for row in rows)
    assert all(row["least_rounds"] <= row["circuit_rounds"] for row in read_rows(tmp_path / "6"))


def test_rounds_by_what_a_switch_moves(tmp_path):
    """64 GPUs on few waveguides: single wavelengths need the fewest rounds, whole waveguides at least as many as circuits."""
    space = read_design(FILES[2])
    units = ("wavelength", "waveguide")
    axes = {**space.axes, "nodes": (64,), "parameter.waveguides": (4,), "parameter.switch_unit": units}
    run_space(replace(space, axes=axes), tmp_path / "units")
    rows = read_rows(tmp_path / "units")
    one, three = ([row for row in rows if row["parameter_switch_unit"] == unit] for unit in units)
    assert len(one) == len(three) == 6
    for finer, coarser in zip(one, three, strict=True):
        assert finer["circuit_rounds"] == coarser["circuit_rounds"]
        assert finer["rounds"] <= finer["circuit_rounds"] <= coarser["rounds"]
    assert any(row["rounds"] < row["circuit_rounds"] for row in one)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"y": "total_s"}, "does not measure 'total_s'"),
        ({"x": "parameter.routing"}, "is an axis of names"),
        ({"mean": "watts"}, "'watts' is not an axis"),
        ({"between": ("torus",)}, "'torus' is not a fabric of the study"),
    ],
)
def test_lines_that_a_study_does_not_have(options, reason):
    """Refused with what it has."""
    space = read_design(FILES[2])
    with pytest.raises(ParameterError, match=reason):
        answer_of(space, [], "lines", {**space.answers["lines"], **options})


def test_times_are_linear_in_the_delay_and_the_rate(study):
    """Every round of LUMORPH-2 pays the delay: eight on 16 GPUs; twice the rate of the lasers halves what the rate decides."""
    rows = study("8a", between=("lightpath lumorph:radix=2",))
    first, last = rows[0], rows[-1]
    assert last["total_s"] - first["total_s"] == pytest.approx(
        8 * (last["reconfiguration_s"] - first["reconfiguration_s"])
    )
    slow, fast = (
        found(study("8b"), "total_s", size_bytes=1_000_000, laser_rate_bits_per_s=rate) for rate in (50e9, 100e9)
    )
    fixed = 2 * 2 * 4.4e-6
    assert (slow - fixed) / (fast - fixed) == pytest.approx(2)


@pytest.mark.deep
def test_overlap_of_figure_5(tmp_path):
    """16 x 16 squares, LUMORPH-4: 28 to 30 by chance, 16 at best (notes, section 5)."""
    rows = lines(read_design(FILES[1]), tmp_path / "5")
    at = {"requested_algorithm": "lumorph:radix=4", "waveguides": 1}
    assert found(rows, "without_waveguide", **at, routing="least_overlap") == 16 - 1
    assert 26 - 1 <= found(rows, "without_waveguide", **at, routing="random") <= 31 - 1


@pytest.mark.deep
def test_rounds_of_figure_6(tmp_path):
    """Random places, 10, 20, 40 waveguides: LUMORPH-4 16, 8, 8 with least overlap, and more by chance (notes, section 5)."""
    rows = lines(read_design(FILES[2]), tmp_path / "6")
    for routing, due in (("least_overlap", {10: 16, 20: 8, 40: 8}), ("random", {20: 16, 40: 8})):
        for waveguides, rounds in due.items():
            at = {"requested_algorithm": "lumorph:radix=4", "routing": routing, "waveguides": waveguides}
            assert found(rows, "circuit_rounds", **at) == rounds
    for row in read_rows(tmp_path / "6"):
        assert row["least_rounds"] <= row["circuit_rounds"]
        assert row["reconfigurations"] <= row["circuit_rounds"]


@pytest.mark.deep
def test_times_of_figure_7(tmp_path):
    """256 GPUs, 10 KB, 1 MB and 1 GB, to the printed digits (notes, section 2)."""
    rows = lines(read_design(FILES[3]), tmp_path / "7")
    light, switch = "lightpath ", "ideal:latency=0.7us "
    due = {f"{light}lumorph:radix=2": (70.5, 77.0, 6711.0), f"{light}lumorph:radix=4": (35.3, 42.3, 7118.5)}
    due |= {f"{light}divide_and_conquer": (35.5, 61.9, 26702)}
    due |= {f"{switch}ring": (357.1, 363.6, 6997.6), f"{switch}tree": (11.7, 64.5, 53345)}
    for name, times in due.items():
        for size, time_us in zip((10_000, 1_000_000, 10**9), times, strict=True):
            assert found(rows, "total_s", fabric=name, size_bytes=size) * 1e6 == pytest.approx(time_us, rel=4e-3)


@pytest.mark.deep
def test_break_even_delays_of_figure_8a(tmp_path):
    """21.6 us for LUMORPH-2; 43.7 us for LUMORPH-4 with whole lasers at 4 MB (43.9 us if shared out, notes section 0)."""
    space = read_design(FILES[4])
    rows = lines(space, tmp_path / "8a")
    ring = "ideal:latency=0.7us ring"
    for radix, due_s in ((2, 21.6e-6), (4, 43.7e-6)):
        options = space.answers["breakeven"] | {"between": (f"lightpath lumorph:radix={radix}", ring)}
        (one,) = answer_of(space, read_rows(tmp_path / "8a"), "breakeven", options).crossovers
        assert one.at == pytest.approx(due_s, rel=1e-2)
    at = {"reconfiguration_s": 3.7e-6}
    ratio = found(rows, "total_s", fabric=ring, **at) / found(rows, "total_s", fabric="lightpath lumorph:radix=2", **at)
    assert ratio == pytest.approx(3.96, rel=5e-3)
