"""The rules of data contracts at work: conditions that values meet, and changes made to them."""
