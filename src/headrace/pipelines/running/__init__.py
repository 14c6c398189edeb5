"""What runs a pipeline: its tables made, its flows as Spark queries, its views refreshed."""
