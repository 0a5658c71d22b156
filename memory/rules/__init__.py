"""Rules: deterministic decisions where the layer stands anyway, each with what it was made on."""
