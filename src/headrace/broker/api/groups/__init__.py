"""The APIs of groups and their coordinators."""
