"""The rules of data contracts: conditions on values, and changes made to them."""
