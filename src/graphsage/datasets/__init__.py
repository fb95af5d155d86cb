"""Loaders and builders, one file a format or a data set, and `open_data` that finds the right one."""
