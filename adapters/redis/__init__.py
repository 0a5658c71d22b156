"""Redis, by the indexes of redisvl."""
