"""How the models of names are learned, and what they find: `make train-names`."""
