"""Pictures of a comparison."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from opticcl.fabrics import FABRICS, fabric
from opticcl.plans.compare import compare_plans
from opticcl.plans.names import labels
from opticcl.report.comparison_pictures import breakdown_picture, size_picture
from opticcl.report.kit.colours import fabric_colours, wavelength_colours
from opticcl.report.kit.line_ends import apart
from opticcl.units import format_seconds


@pytest.fixture(scope="module")
def pictures(comparison):
    """Both pictures of the comparison."""
    return [breakdown_picture(comparison), size_picture(comparison)]


def test_pictures_are_whole_and_need_nothing_else(pictures):
    """Well-formed, titled, no address but the name spaces, every reference inside, every id once and prefixed."""
    for svg, name in zip(pictures, ("breakdown", "by-size"), strict=True):
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert root.find("{http://www.w3.org/2000/svg}title").text
        assert set(re.findall(r'https?://[^"\s]+', svg)) == {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
        ids = re.findall(r'\sid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert all(i.startswith(name) for i in ids)
        assert set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(ids)
        assert "<style" not in svg


def test_pictures_name_every_plan_and_time(comparison, pictures):
    """Text stays text: each plan's name in both, each time in the bars."""
    texts = ["".join(ElementTree.fromstring(svg).itertext()) for svg in pictures]
    for name, entry in zip(labels(comparison), comparison.entries, strict=True):
        assert all(name in text for text in texts)
        assert format_seconds(entry.total_s) in texts[0]


def test_the_users_settings_neither_change_the_picture_nor_are_changed(comparison, pictures):
    """The same bytes whatever the user has set, and their settings stand afterwards."""
    with mpl.rc_context({"font.size": 31.0, "axes.facecolor": "red", "svg.fonttype": "path"}):
        again = [breakdown_picture(comparison), size_picture(comparison)]
        assert mpl.rcParams["font.size"] == 31.0
    assert again == pictures


def test_plans_that_take_no_time_can_be_drawn():
    """A single node has nothing to do; its pictures say so and do not fail."""
    alone = compare_plans([fabric("ideal:nodes=1")], "all_reduce", [1000], assumptions="published")
    ElementTree.fromstring(breakdown_picture(alone))
    assert "every plan takes 0 s" in size_picture(alone)


def test_colours_are_fixed_for_systems_and_different_for_all():
    """A fabric keeps its colour whatever is beside it; no two of a comparison have the same one."""
    few, many = fabric_colours(["ramp", "ideal"]), fabric_colours([*FABRICS.names(), "ramp:x=2", "ramp:x=3"])
    assert few == {name: many[name] for name in few}
    assert len(set(many.values())) == len(many)
    assert fabric_colours(["mine"]) == fabric_colours(["mine", "mine"])
    assert len(set(wavelength_colours(range(64)).values())) == 64


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_overlap(seed):
    """Places are apart by the gap, keep their order, and stay within the picture."""
    wanted = np.random.default_rng(seed).uniform(0, 100, 12)
    places = apart(wanted, 8, 100)
    order = np.argsort(wanted)
    assert np.diff(places[order]).min() >= 8 - 1e-9
    assert places.min() >= 0
    assert places.max() <= 100


def test_matplotlib_waits_until_something_is_drawn():
    """Importing the page and the pictures does not import it."""
    program = "import sys; import opticcl.report.comparison_page, opticcl.report.light; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
