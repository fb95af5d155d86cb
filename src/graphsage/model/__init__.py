"""The model: aggregators, the layer they sit in, the encoder (Algorithms 1 and 2) and the heads on top."""
