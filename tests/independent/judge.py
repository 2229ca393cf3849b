"""A judge of plan files that shares nothing with the library: data by exact integers, light by brute force.

python -m tests.independent.judge plan.json plan.csv
"""

import sys
from pathlib import Path
from typing import NamedTuple

from tests.independent.data import data_fault
from tests.independent.light import light_fault
from tests.independent.plan_rows import MalformedError, NotJudgedError, read_plan


class Answer(NamedTuple):
    """The verdict on a file, right, wrong or not_judged, and the reason."""

    verdict: str
    reason: str = ""


def judge(path: Path) -> Answer:
    """The verdict on a plan file that ends in .json or .csv."""
    try:
        plan = read_plan(path)
        reason = data_fault(plan) or light_fault(plan)
    except MalformedError as error:
        return Answer("wrong", str(error))
    except NotJudgedError as error:
        return Answer("not_judged", str(error))
    return Answer("wrong", reason) if reason else Answer("right")


def main(paths: list[str]) -> int:
    """Print the verdict on each file; 1 where one is not right."""
    answers = [judge(Path(path)) for path in paths]
    for path, answer in zip(paths, answers, strict=True):
        print(f"{path}: {': '.join(filter(None, answer))}")
    return int(any(answer.verdict != "right" for answer in answers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
