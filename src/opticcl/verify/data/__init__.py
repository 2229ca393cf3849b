"""Data: does every rank end with every contribution exactly once?"""
