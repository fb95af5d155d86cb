"""The C form of the kernels, for CPUs."""
