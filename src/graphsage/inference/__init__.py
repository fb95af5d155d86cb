"""A trained model at work: exact inference over whole graphs, sampled inference for chosen nodes, bundles on disk."""
