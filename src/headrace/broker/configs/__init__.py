"""Configs at run time: their layers, what they come to for each topic, and who may change them."""
