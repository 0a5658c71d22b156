"""
The export: everything that is held about one customer, in one file that they can read and check.

`writing` makes it from the trail's sealed events and what the stores answer, `page` is what a
person reads first, `verify` checks it, here and, since it travels inside, anywhere there is Python.
"""
