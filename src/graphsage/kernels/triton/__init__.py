"""The Triton form of the kernels, for GPUs. Imported only where `kernels.backend` finds Triton."""
