"""What stores hold about one person: records, the providers of a scope, and what runs them."""
