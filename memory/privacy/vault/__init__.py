"""
The vault: what pseudonyms stand for, encrypted with a key of each customer's own.

`vault` queues and writes, `vault_file` is the file, `guarded_vault` puts both behind a guard.
"""
