"""Tables of any source (files, data frames, columns in memory), read by one set of rules as Arrow batches.

Below `graph`, so that `Graph.from_pandas` and the data sets share it: `values` reads cells, `columns` reads columns,
`edges` finds the nodes of edges, `memory` reads two tables at once. Rules for users: docs/tables.md.
"""
