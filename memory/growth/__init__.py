"""The growth of stores: rows and bytes by store, class, purpose and status, and days to full."""
