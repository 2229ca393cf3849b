"""Comparisons at the public face: scale, node rate, what is left out, and how the rows print."""

import re
from html import escape

import polars
import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, ParameterError, UnitError
from opticcl.plans.compare import compare_plans
from opticcl.plans.compared import Compared
from opticcl.plans.machines import ExcludedFabric, build_fabrics
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
    assert isinstance(rows, Compared)
    frame = rows.frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame["num_nodes"].to_list() == [8] * 3
    assert frame["node_rate_bits_per_s"].to_list() == pytest.approx([8e11] * 3)


def test_a_fabric_without_such_a_shape_is_left_out_with_its_reason():
    """Below the table; if none has it, that is an error."""
    rows = opticcl.compare(["oddl", "ideal"], "all_reduce", "1 MB", nodes=12, assumptions="published")
    assert rows.frame()["fabric"].to_list() == ["ideal"]
    assert rows.headline.startswith("At 800 Gb/s a node, ideal by ")
    assert rows.caveats[-1].startswith("left out: oddl: 12 nodes")
    assert str(rows).splitlines()[-1] == rows.caveats[-1]
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


def test_a_print_opens_with_the_answer_and_has_quantities_with_units():
    """No raw floats; what a reader must know stands below; a notebook gets the same as a table."""
    found = opticcl.compare([*TWO, "oddl"], "all_reduce", "1 MB", nodes=4, assumptions="published", as_built=True)
    first, head, *rest = str(found).splitlines()
    assert first == found.headline == headline(found)
    assert head.split() == ["rank", "fabric", "algorithm", "total_s", "node_rate_bits_per_s", *head.split()[5:]]
    assert [line.split()[1] for line in rest[: len(found.entries)]] == [entry.fabric.name for entry in found.entries]
    assert " us " in rest[0]
    assert "400 Gb/s" in str(found)
    assert not re.search(r"(?<![=\d])\d+\.\d{5,}", str(found))
    assert tuple(rest[len(found.entries) :]) == found.caveats == (*caveats(found), *map(str, found.left_out))
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.entries)
    assert all(escape(line) in page for line in (found.headline, *found.caveats))


def test_the_frame_has_the_rows_of_the_record():
    """One row a plan, in order, with every value."""
    found = opticcl.compare(TWO, "all_reduce", "1 MB", nodes=4, assumptions="published", algorithm="all")
    frame = found.frame()
    assert len(found.entries) == frame.height > 4
    assert frame["total_s"].to_list() == [entry.total_s for entry in found.entries]
    assert frame.columns == [*found.rows()[0]]
    assert frame.filter(polars.col("fabric") == "ideal").height == sum(e.fabric.name == "ideal" for e in found.entries)


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
