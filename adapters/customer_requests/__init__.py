"""
A customer's requests, carried out through a scope: export and erasure.

The command line and the demo both use these. They print nothing but an erasure's table.
"""
