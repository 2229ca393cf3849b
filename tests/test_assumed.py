"""The page on assumptions, and that every value has a source."""

import pytest

from opticcl.assumptions import KEYS, LATENCY_KEYS, SETS, meaning_of, set_of, values
from tests.assumed import PAGE, README, ROW, page, readme


def test_the_page_is_up_to_date():
    """`python -m tests.assumed` writes it anew."""
    assert PAGE.read_text("utf-8") == page()


def test_the_first_table_of_the_readme_is_up_to_date():
    """On common assumptions, which it says; likewise written by `python -m tests.assumed`."""
    text = README.read_text("utf-8")
    assert len(ROW.findall(text)) == 7
    assert text == readme()
    assert "`common` assumptions" in text


@pytest.mark.parametrize("one", [*values(), *values("floor")], ids=lambda one: one.key)
def test_every_value_has_a_source(one):
    """And says what it is."""
    assert one.source
    assert one.about
    assert one.value > 0


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_every_rule_and_a_source(name):
    """Sets other than `common` are laid over `published`."""
    found = set_of(name)
    assert found["source"]
    assert set(KEYS) - set(LATENCY_KEYS) - {"memory_bytes_per_s"} <= set(found)
    for key in set(KEYS) & set(found):
        assert meaning_of(key, found[key]).endswith(".")
