"""Algorithm 2, lines 1-7, and the draws of the unsupervised objective: neighbors, minibatches, walks, negatives."""
