"""
The vault: what pseudonyms stand for, encrypted with a key of each customer's own.

`vault` queues and writes; `vault_file` is the file, `vault_tables` its rows, `vault_schema` its
form, `vault_keys` the secrets that it is read with, `sealing` the encryption; `guarded_vault` puts
all of it behind a guard.
"""
