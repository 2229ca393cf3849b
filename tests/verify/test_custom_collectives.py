"""The verifier on custom collectives: several ranks may hold the same data at the start."""

import numpy as np
import pytest

from opticcl.collective import custom_collective
from opticcl.errors import ParameterError
from opticcl.ir import Op, Schedule, Transfers
from opticcl.verify.data.contributions import check_data


def judged(before, after, *steps, reduces=False):
    """Rules that are broken by rows (src, dst, chunk, op) of each step."""
    made = [Transfers.of(*np.array([(s, d, c, 1, op) for s, d, c, op in rows]).T) for rows in steps]
    own = custom_collective("mine", np.array(before, bool), np.array(after, bool), reduces)
    schedule = Schedule("hand", own, len(made), made.__getitem__)
    report = check_data(schedule, num_chunks=None, seed=0, progress=lambda *_: None)
    return {v.rule for v in report.violations}, report.violations


def test_either_holder_may_send():
    """Two ranks hold the same chunk; a third receives it from either of them."""
    for holder in (0, 1):
        assert not judged([[1, 1, 0]], [[1, 1, 1]], [(holder, 2, 0, Op.COPY)])[0]


def test_a_copy_is_missing():
    """No rank sends."""
    rules, violations = judged([[1, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 1, 0]], [(0, 1, 1, Op.COPY)])
    assert rules == {"contribution_missing"}
    assert "rank 0 x0" in violations[0].found


def test_a_copy_must_not_be_added_to_another():
    """The sum of what both holders send is twice the chunk."""
    rules, violations = judged([[1, 1, 0]], [[0, 0, 1]], [(0, 2, 0, Op.REDUCE), (1, 2, 0, Op.REDUCE)])
    assert rules == {"contribution_doubled"}
    assert "x2" in violations[0].found


def test_sums_still_want_every_part():
    """With reduces, each holder has a part of its own."""
    before, after = [[1, 1, 0]], [[0, 0, 1]]
    assert judged(before, after, [(0, 2, 0, Op.REDUCE)], reduces=True)[0] == {"contribution_missing"}
    both = [(0, 2, 0, Op.REDUCE), (1, 2, 0, Op.REDUCE)]
    assert not judged(before, after, both, reduces=True)[0]


def test_what_is_no_collective():
    """A registered name, and a chunk that no rank holds."""
    with pytest.raises(ParameterError, match="registered"):
        custom_collective("All-Reduce", np.ones((1, 2), bool), np.ones((1, 2), bool), True)
    with pytest.raises(ParameterError, match="held"):
        custom_collective("mine", np.zeros((1, 2), bool), np.ones((1, 2), bool), False)
