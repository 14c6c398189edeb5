"""What every node knows of the cluster, and how a record changes it."""
