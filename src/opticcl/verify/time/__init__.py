"""Time: is a programme right, does what depends wait, and do jobs keep apart?"""
