"""The interface of version 3: resources of clusters, and records as a stream."""
