"""Running of pipelines: their tables, their flows as Spark queries, their views."""
