"""docs/faults.md has what its command computes."""

import pytest
from tests.faults import MACHINES, ONE_PORT, PAGE, page, single_points


@pytest.mark.deep
def test_the_page_is_up_to_date():
    """All tables."""
    assert PAGE.read_text("utf-8") == page(), "write it again: python -m tests.faults"


@pytest.mark.parametrize("spec", [ONE_PORT[3], pytest.param(ONE_PORT[1], marks=pytest.mark.deep), MACHINES[2]])
def test_single_points_of_failure_of_the_page(spec):
    """Some machines of the last table."""
    assert f"| `{spec}` | {single_points(spec)} |" in PAGE.read_text("utf-8")
