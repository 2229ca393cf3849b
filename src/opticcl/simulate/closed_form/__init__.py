"""Closed form: the rounds of a plan one after the other, each as long as its slowest part."""
