"""Answers to the exercises of notebook 00 that its checks do not declare."""

RIGHT = r"""
    0.2 | ([True] * 6, [False, False, True, True, True, True], 'all')
"""
WRONG = r"""
    0.1 | 14 | a shape
    0.2 | ([1, 2, 3, 4, 5, 6], right[1], right[2]) | counted from 0
    0.2 | (right[0], [False, False, True], right[2]) | 6 booleans
    0.2 | ([0, 1, 2, 2, 3, 4, 5], *right[1:]) | appears twice
    0.2 | right[:2] | three lists
"""
