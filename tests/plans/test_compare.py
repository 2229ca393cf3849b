"""Comparisons at the public face: scale, node rate, what is left out, and how the rows print."""

import re

import polars
import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, ParameterError, UnitError
from opticcl.plans.compare import compare_plans
from opticcl.plans.machines import ExcludedFabric, build_fabrics
from opticcl.plans.rows import MOST_PRINTED, Rows
from opticcl.plans.sentences import caveats, headline

TWO = ["ideal", "torus"]


def test_every_fabric_has_the_nodes_and_the_rate():
    """Texts are scaled; a fabric keeps its shape."""
    rows = opticcl.compare(
        [*TWO, opticcl.fabric("ideal", nodes=8)],
        "all_reduce",
        "1 MB",
        nodes=8,
        equal="rate=800Gb/s",
        assumptions="published",
    )
    assert rows["num_nodes"].to_list() == [8] * 3
    assert rows["node_rate_bits_per_s"].to_list() == pytest.approx([8e11] * 3)
    assert isinstance(rows, polars.DataFrame)


def test_a_fabric_without_such_a_shape_is_left_out_with_its_reason():
    """Below the table; if none has it, that is an error."""
    rows = opticcl.compare(["oddl", "ideal"], "all_reduce", "1 MB", nodes=12, assumptions="published")
    assert rows["fabric"].to_list() == ["ideal"]
    answer, note = rows.notes
    assert answer.startswith("At 800 Gb/s a node, ideal by ")
    assert note.startswith("left out: oddl: 12 nodes")
    assert str(rows).splitlines()[-1] == note
    with pytest.raises(FabricError, match="oddl: 12 nodes"):
        opticcl.compare("oddl", "all_reduce", "1 MB", nodes=12, assumptions="published")
    with pytest.raises(FabricError, match="has 8 nodes, not 16"):
        opticcl.compare(opticcl.fabric("ideal", nodes=8), "all_reduce", "1 MB", nodes=16, assumptions="published")


@pytest.mark.parametrize(
    ("given", "error", "begins"),
    [
        ({"nodes": 0}, ParameterError, "compare: nodes: 0 nodes"),
        ({"nodes": 1.5}, ParameterError, "compare: nodes: 1.5"),
        ({"nodes": "8"}, ParameterError, "compare: nodes: '8'"),
        ({"equal": "rate=0Gb/s", "nodes": 4}, ParameterError, "--equal: 'rate=0Gb/s' is not positive"),
        ({"equal": "rate=fast", "nodes": 4}, UnitError, "--equal: 'fast'"),
        ({"equal": "rate=1Gb/s", "as_built": True, "nodes": 4}, ParameterError, "--as-built: --equal is given too"),
    ],
)
def test_wrong_numbers_are_refused_with_their_name(given, error, begins):
    """One line."""
    with pytest.raises(error) as caught:
        opticcl.compare("ideal", "all_reduce", "1 MB", **given, assumptions="published")
    assert str(caught.value).startswith(begins)


def test_rows_print_quantities_with_units(monkeypatch):
    """No raw floats; as many columns as the terminal has, the others named; a notebook gets a table too."""
    rows = opticcl.compare(TWO, "all_reduce", "1 MB", nodes=4, assumptions="published", as_built=True)
    for width in (80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = str(rows).splitlines()
        assert max(map(len, lines[:-1])) <= width
        assert lines[-1].startswith("As built, ")
        assert lines[0].split()[:4] == ["fabric", "algorithm", "total_s", "verified"]
        assert " us " in lines[1]
        assert "400 Gb/s" in str(rows)
        assert not re.search(r"(?<![=\d])\d+\.\d{5,}", str(rows))
    assert repr(rows) == str(rows)
    page = rows._repr_html_()
    assert page.count("<tr>") == 3
    assert "400 Gb/s" in page


def test_rows_stay_a_data_frame():
    """Selecting and filtering as usual; parts of it print themselves as it does."""
    rows = opticcl.compare(TWO, "all_reduce", "1 MB", nodes=4, assumptions="published")
    assert rows.select("fabric").shape == (2, 1)
    assert rows.filter(polars.col("fabric") == "ideal").height == 1
    assert "us" in str(rows.head(1))
    many = Rows({"fabric": ["a"] * (MOST_PRINTED + 5), "total_s": [1e-6] * (MOST_PRINTED + 5)})
    assert str(many).splitlines()[-1] == "... 5 more rows"
    assert str(Rows({"a<b": ["<x>"]})._repr_html_()).count("&lt;") == 2


def test_the_record_is_what_the_command_line_prints(answer):
    """Rows, what is left out, and notes."""
    found = compare_plans([opticcl.fabric("ideal", nodes=4)], "all_reduce", [1000], assumptions="published")
    printed, _ = answer("compare", "-f", "ideal:nodes=4", "-s", "1KB", "--assumptions", "published", "--as-built")
    about = {"assumptions": assumptions("published").record(), "flips": [], "decided": [], "equal": None}
    said = {"headline": headline(found), "caveats": list(caveats(found))}
    rest = {"rows": found.rows(), "left_out": [], "notes": [], "not_tried": {}}
    assert found.record() == {**rest, **about}
    assert printed == {**said, **rest, **about}


def test_an_excluded_fabric_names_itself_once():
    """In front of its reason, unless that begins with the name."""
    assert str(ExcludedFabric("oddl", "oddl: 12 nodes")) == "left out: oddl: 12 nodes"
    assert str(ExcludedFabric("oddl:shape=3", "no light")) == "left out: oddl:shape=3: no light"
    assert ExcludedFabric("a", "b").record() == {"fabric": "a", "reason": "b"}


def test_fabrics_are_built_at_scale():
    """One or several; a shape that the text itself gives is an error, not an exclusion."""
    assert opticcl.fabric("ideal", 7).num_nodes == 7
    built, excluded = build_fabrics(["ideal", "oddl"], 12)
    assert [(name, fabric.num_nodes) for name, fabric in built] == [("ideal", 12)]
    assert [one.fabric for one in excluded] == ["oddl"]
    with pytest.raises(FabricError):
        build_fabrics(["ideal", "ramp:groups=3,racks=4,wavelengths=6"])
