"""The programme of the light as a file: what every transmitter, receiver and switch does in every round.

`docs/programme.md` describes the columns. A file is written step by step, whole or not at all, and read step by step, so a
programme of sixteen million circuits needs little memory. What is read is judged like any other plan.
"""

from __future__ import annotations

from opticcl.programme.instructions import instructions_of_node
from opticcl.programme.read import Programme, read_programme
from opticcl.programme.write import write_programme

__all__ = ["Programme", "instructions_of_node", "read_programme", "write_programme"]
