"""Machines that do not exist: each text is refused in one line that names the field and what to try."""

import re
import tomllib
from pathlib import Path

import pytest

from opticcl.errors import OpticclError
from opticcl.fabrics import fabric

ROWS = tomllib.loads(Path(__file__).with_name("refused.toml").read_text("utf-8"))["refused"]


@pytest.mark.parametrize(("text", "said"), ROWS)
def test_a_machine_that_does_not_exist_is_refused(text, said):
    """When it is made, or at the latest when its failed parts are asked for."""
    with pytest.raises(OpticclError) as caught:
        _ = fabric(text).conditions
    (line,) = str(caught.value).splitlines()
    assert re.search(said, line)
