"""Analysis of a pipeline before it runs: the graph, the columns, the problems."""
