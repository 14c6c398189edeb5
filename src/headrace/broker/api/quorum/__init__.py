"""The APIs of the metadata quorum."""
