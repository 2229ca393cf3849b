"""Recorded faults of servers, replayed on a job.

fault_trace     reader of fault events, and the health of every server over time, with replay.toml
availability    jobs that healthy hosts can form, from any cubes or with fixed cabling
replay          a job with spares during the faults: by new plans, by restarts, by the better of both
"""
