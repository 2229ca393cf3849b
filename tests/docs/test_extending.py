"""docs/extending/plugins.md: its table of the members of Fabric."""

import re
from collections import Counter

from tests.docs.pages import ROOT

from opticcl.ir import Fabric, FabricNumbers

TEXT = (ROOT / "docs/extending/plugins.md").read_text("utf-8")
ROWS = {
    need: re.findall(r"`(\w+)`", members)
    for need, members in re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", TEXT.partition("## Members of Fabric")[2], re.MULTILINE
    )
}


def test_every_member_stands_in_one_row():
    """Those of the class, and no others."""
    listed = Counter(name for members in ROWS.values() for name in members)
    public = {name for name in dir(Fabric) if not name.startswith("_")}
    nodes = {"nodes"}  # a parameter, in a remark
    assert set(listed) - nodes == public
    assert {name for name, count in listed.items() if count > 1} == set()


def test_required_members_are_those_without_a_default():
    """And the row of numbers has the fields of the record."""
    assert set(ROWS["required"]) == Fabric.__abstractmethods__
    (numbers,) = (members for need, members in ROWS.items() if need.startswith("fields of `numbers`"))
    assert numbers == list(FabricNumbers.__dataclass_fields__)
