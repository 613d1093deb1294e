"""Answers to the exercises of notebook 00 that its checks do not declare."""

RIGHT = r"""
    0.1 | ["and", "A"]
    0.1 | ("Seven.", "(a)")
    0.1 | ("forty-two", "a")
    0.2 | ([True] * 6, [False, False, True, True, True, True], 'all')
"""
WRONG = r"""
    0.1 | 14 | two things
    0.1 | ("narrow", "a") | and “street” 0.22. So the ribbon
    0.1 | ("busy", "a") | fits no street
    0.1 | ("hungry", "a") | 0.40 or less
    0.1 | ("[UNK]", "a") | what we tried
    0.1 | ("", "a") | one word
    0.1 | (right[0], "b") | your own word
    0.1 | (right[0], "c") | falls with “narrow”
    0.1 | (right[0], 3) | title's letter
    0.2 | ([1, 2, 3, 4, 5, 6], right[1], right[2]) | counted from 0
    0.2 | (right[0], [False, False, True], right[2]) | 6 booleans
    0.2 | ([0, 1, 2, 2, 3, 4, 5], *right[1:]) | appears twice
    0.2 | right[:2] | three lists
"""
