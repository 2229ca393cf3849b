"""One small comparison for all tests of the reports."""

import re

import pytest

from opticcl.fabrics import fabric
from opticcl.plans.compare import compare_plans
from opticcl.plans.comparison import Comparison


@pytest.fixture(scope="package")
def comparison() -> Comparison:
    """Two systems with 54 nodes each, every algorithm that they can carry, and some that they cannot."""
    made = [fabric("ramp:groups=3,racks=3,wavelengths=6"), fabric("ideal:nodes=54")]
    return compare_plans(made, "all_reduce", [1_000_000], algorithm="all", assumptions="published")


@pytest.fixture(scope="package")
def widths():
    """Counts the cells of the tables of a page: of each, those of the head and then of each row."""

    def count(text):
        tables = re.findall(r"<table[^>]*>(.*?)</table>", text, re.DOTALL)
        return [[len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr>(.*?)</tr>", t)] for t in tables]

    return count
