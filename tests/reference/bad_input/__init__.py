"""Inputs that readers may use, by entrance, with their outcome: a correct result, or a clear error.

A row is what is given, the call that receives it in the folder of a tiny checkpoint, and for an error its type, some of
its words and its remedy: a call that does in the same folder what the message advises, and raises nothing. A call
without an error returns whether the result is correct.
"""


def each(*calls):
    """Do one after another, such as the several things that a message offers."""
    return lambda folder: all(call(folder) is not False for call in calls)
