"""Version 3: resources of clusters, and streams of records."""
