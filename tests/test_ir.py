"""The types: what can be compared is compared."""

from opticcl.fabric import fabric, fabric_at_scale, job


def test_fabrics_of_the_same_parameters_are_equal():
    """However they were written; other parameters, other ranks and other things are not."""
    torus = fabric("torus:shape=4x4")
    assert torus == fabric("torus", shape=(4, 4))
    assert torus != fabric("torus:shape=4x4,rate=1Tb/s")
    assert torus != fabric("torus:shape=2x8")
    assert torus != fabric_at_scale("bcube", 16)
    assert torus != "torus"
    assert len({torus, fabric("torus:shape=4x4"), fabric("torus:shape=2x8")}) == 2


def test_jobs_are_equal_if_their_ranks_are():
    """The same nodes in the same order."""
    torus = fabric("torus:shape=4x4")
    assert job(torus, [0, 1]) == job(torus, range(2))
    assert job(torus, [0, 1]) != job(torus, [1, 0])
    assert torus != job(torus, range(16))
