"""Graphs of other libraries, one file each, and the way back. None of those libraries is needed to import this."""
