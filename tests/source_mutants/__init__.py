"""Mutants of the source: which small changes of `verify`, `circuits`, `fabrics`, `simulate` and `traces` does no test notice?"""
