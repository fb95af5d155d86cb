"""The few operations everything else is made of: counter-based draws, neighbor sampling, gather + reduce."""
