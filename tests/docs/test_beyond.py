"""docs/beyond.md has what its command computes."""

import pytest
from tests.beyond import PAGE, page


@pytest.mark.deep
def test_the_page_is_up_to_date():
    """All tables."""
    assert PAGE.read_text("utf-8") == page(), "write it anew: python -m tests.beyond"
