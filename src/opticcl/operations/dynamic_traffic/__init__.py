"""Dynamic traffic on RAMP: flows that no plan knows, granted slot by slot.

demand        how much each node sends to each other, and the largest admissible load
flows         flow sizes and gaps between arrivals, with traffic.toml
schedulers    native and rack: words of free cells; the protocol of all schedulers
cyclic        a fixed cycle of permutations, direct or by two hops
reference     an integer programme, for small machines
judged        every epoch of a run judged by `verify`
beside        cells that the rounds of a plan occupy
simulation    arrivals, grants and counts of a run
statistics    delays, confidence intervals, stability
"""
