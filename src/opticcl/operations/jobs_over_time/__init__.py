"""Jobs that arrive at one machine over time, wait, run and leave.

arrivals      lists of jobs (CSV) and seeded Poisson arrivals, with jobs.toml
simulation    the queue, the placement by a policy, the plans, and the judge's verdict at every change
"""
