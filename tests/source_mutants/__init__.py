"""Mutants of the source: which small changes of five packages does no test notice?"""
