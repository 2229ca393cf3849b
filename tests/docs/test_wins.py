"""docs/wins.md has what its command computes."""

import pytest
from tests.wins import NODES, PAGE, by_fabric, page, wins, wins_of

from opticcl.collective import COLLECTIVES


def test_winners_of_a_fabric():
    """The table of one fabric on 16 nodes."""
    found = [win for collective in COLLECTIVES for win in wins_of("sipac", NODES[0], collective)]
    rows = [line for line in by_fabric(found) if line.startswith(f"| {NODES[0]} |")]
    assert len(rows) == len(COLLECTIVES)
    section = PAGE.read_text("utf-8").partition("## sipac\n")[2].partition("## ")[0]
    assert [row for row in rows if row not in section] == [], "write it anew: make pages"


@pytest.mark.deep
def test_the_page_is_up_to_date():
    """All fabrics."""
    assert PAGE.read_text("utf-8") == page(wins()), "write it anew: make pages"
