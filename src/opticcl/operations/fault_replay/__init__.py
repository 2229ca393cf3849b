"""Recorded faults of servers, replayed on a job.

fault_trace     reader of fault events, and the health of every server over time, with replay.toml
replay          a job with spares during the faults: by new plans, by restarts, by the better of both
"""
