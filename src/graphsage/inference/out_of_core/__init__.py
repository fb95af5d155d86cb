"""Whole-graph inference in bounded memory: a file for each block of nodes and layer, restarted where it stopped."""
