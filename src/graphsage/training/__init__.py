"""Learning the parameters (section 3.2): objectives, the loop, checkpoints."""
