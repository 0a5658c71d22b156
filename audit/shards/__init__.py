"""Several logs in place of one, by tenants, and a signed checkpoint over all of them."""
