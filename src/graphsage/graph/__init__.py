"""The graph: an immutable CSR with features, labels and ids; how it is built, split, capped and kept on disk."""
