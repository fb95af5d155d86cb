"""The C form of the kernels, for CPUs. Imported only where `kernels.backend` is asked for it."""
