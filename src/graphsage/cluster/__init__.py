"""The same jobs on several processes and machines."""
