"""Features x_v of nodes: from columns, text and degrees, fitted on training nodes only."""
