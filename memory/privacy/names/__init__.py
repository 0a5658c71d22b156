"""Names of people: a conditional random field over the words that may be part of one."""
