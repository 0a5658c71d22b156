"""Words that stand beside names of people and are none of them."""

from __future__ import annotations

from .word_lists import read_words, split_words

TITLES = frozenset(read_words("person_titles"))
ORGANIZATION_WORDS = frozenset(read_words("organization_words"))
FUNCTION_WORDS = frozenset(read_words("function_words"))
SUFFIXES = split_words("jr sr ii iii iv md phd dds dvm esq mba cpa rn")
INTERJECTIONS = split_words("""
    hi hello hey dear thanks thank cheers ciao welcome bye goodbye ok okay yes yeah yea yep yup no
    nah wow oh ah aw aww oops ouch haha hah gosh woah whoa gotcha congrats congratulations sorry
    please well and but so cool great nice awesome agreed exactly absolutely definitely totally sure
    true sounds gonna woohoo yay go
""")
"""Words before a name that are none of it, and begin sentences."""
