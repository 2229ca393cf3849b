"""Trees that share the links of any network, of which no schedule of the same collective is faster in throughput.

    graph       vertices that compute, switches, arcs of whole capacity
    optimum     the least time of an all-gather or a broadcast, a fraction, and the cut that proves it
    splitting   switches replaced by links over paths
    packing     spanning trees within the capacities
    symmetry    translations of a network: automorphisms, each checked on every link
    translation one tree whose translations serve all roots
    translated_paths  such trees with their paths

Source: Edmonds 1973 for trees that share capacity; Bang-Jensen, Frank and Jackson 1995 where some vertices only forward;
Zhao et al. 2024 (ForestColl) for collectives.
"""
