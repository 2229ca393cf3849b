"""What a machine is made of and what it spends: light budget, bill of materials, power."""
