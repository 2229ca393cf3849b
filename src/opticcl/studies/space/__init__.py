"""Studies of a whole design space: a file of axes, points in several processes, a ledger that survives, a table of results.

design.py    the file: axes, what is measured, constraints; points and machines
measure.py   the values of the points of one machine
ledger.py    what is known of every point, in SQLite
runner.py    points that are not finished, in several processes; an estimate of their time
answers.py   who is fastest, what is worth its price, which assumption decides, where two fabrics break even
"""

from __future__ import annotations
