"""Tables of the lake in Spark: as a stream that follows their commits, and as a DataFrame."""
