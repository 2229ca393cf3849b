"""Mutants of the source: which small changes of `verify`, `circuits`, `fabrics` and `simulate` does no test notice?"""
