"""What a customer's own agent reads: the originals of pseudonyms, in answers of stores."""
