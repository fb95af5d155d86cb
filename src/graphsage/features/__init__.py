"""What a node is described by: text, degree and numbers, turned into x_v and fitted on training nodes only."""
