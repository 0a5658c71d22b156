"""Matches: the user's say in each find of personal data, and where in a call the finds were."""
