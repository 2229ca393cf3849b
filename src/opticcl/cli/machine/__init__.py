"""Describe a machine: its light budget, price and power, optical elements, control messages and dynamic traffic."""
