"""Experiments that write what they found into `results/`: every number in the README has a command behind it."""
