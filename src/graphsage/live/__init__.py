"""A graph that grows while it is read: immutable generations, an overlay of changes, a durable journal."""
