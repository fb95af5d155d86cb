"""The HTTP service: embeds, predicts, stores and searches nodes of a live graph; and the map page."""
