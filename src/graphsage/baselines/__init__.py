"""What GraphSAGE is compared with."""
