"""The APIs about the cluster itself: its nodes, features and disks."""
