"""The metadata of the cluster: image, records and changes."""
