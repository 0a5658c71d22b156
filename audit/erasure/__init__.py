"""The erasure of one customer from stores, vault and trail, and its report."""
