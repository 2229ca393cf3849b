"""Processes of the explorer: limits of time and number, cancelled and crashed tasks, what is kept."""

import time
from pathlib import Path

import pytest
from tests.explorer.works import work

from opticcl.explorer.pool import Answer, BusyError, Limits, Pool


@pytest.fixture(autouse=True)
def tests_are_importable(monkeypatch):
    """In processes, which receive the path of this one."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def test_tasks_end_with_their_process_and_the_next_is_done():
    """Cancelled, too late, crashed, out of memory; and one that is done."""
    pool = Pool(work, Limits(workers=1, time_s=60.0))
    try:
        first = pool.ask("sleep")
        for _ in range(2000):
            if first.progress == "sleeping":
                break
            time.sleep(0.01)
        pool.cancel(first)
        assert first.ended.wait(5)
        dead, memory, done = pool.ask("die"), pool.ask("memory"), pool.ask("hello")
        assert done.ended.wait(30)
        assert [job.state for job in (first, dead, memory, done)] == ["cancelled", "crashed", "refused", "done"]
        assert memory.answer.error.startswith("opticcl: out of memory")
        assert done.answer == Answer(0, '"hello"')
        assert pool.ask("hello") is done
        assert pool.ask("die") is not dead
    finally:
        pool.close()


def test_a_task_that_takes_too_long_is_ended():
    """After its limit of time."""
    pool = Pool(work, Limits(workers=1, time_s=0.2))
    try:
        job = pool.ask("sleep")
        assert job.ended.wait(10)
        assert job.state == "late"
    finally:
        pool.close()


def test_waiting_tasks_are_limited_and_can_be_cancelled():
    """Without any process."""
    pool = Pool(work, Limits(workers=0, waiting=2))
    first, _ = pool.ask(1), pool.ask(2)
    assert pool.ask(1) is first
    with pytest.raises(BusyError, match="2 questions wait"):
        pool.ask(3)
    pool.cancel(first)
    assert first.state == "cancelled"
    assert pool.ask(3).state == "waiting"


def test_old_answers_are_forgotten():
    """By their number and their size, and one that is too large is refused."""
    pool = Pool(work, Limits(workers=0, kept=2, kept_bytes=100, answer_bytes=60))

    def ended(task, size):
        job = pool.ask(task)
        with pool._lock:
            pool._waiting.remove(job)
            pool._end(job, "done", Answer(0, "x" * size))
        return job

    jobs = [ended(i, 10) for i in range(3)]
    assert [pool.job(job.number) is None for job in jobs] == [True, False, False]
    large = [ended("a", 55), ended("b", 55)]
    assert [pool.job(job.number) is None for job in (*jobs, *large)] == [True, True, True, True, False]
    assert ended("c", 61).state == "refused"
