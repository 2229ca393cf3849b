"""What the job of `torch_job.py` sends, for the job and for the test that reads its traces."""

ROWS = [[1, 2, 3, 4], [4, 3, 2, 1], [2, 2, 2, 2], [5, 0, 1, 1]]
"""Rows that each rank of the MoE layer sends to each other."""

HIDDEN = 16
"""Numbers in a row."""
