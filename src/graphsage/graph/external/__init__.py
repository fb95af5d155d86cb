"""Graphs larger than memory: files read and written in pieces, never held whole."""
