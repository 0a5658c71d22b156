"""
The vault: what pseudonyms stand for, encrypted by customer, for those who may see it again.

`vault` takes and gives, `file` keeps, and `revealing` puts both behind the chokepoint.
"""
