"""Read the options of a program."""

import argparse


class StoreOnce(argparse.Action):
    """Store the value of an option, and refuse a second one, of which argparse would silently use the last."""

    given = False

    def __call__(self, parser, namespace, values, option_string=None):
        """Store the value."""
        if self.given and option_string:
            parser.error(f"{option_string} is given twice: give it once")
        self.given = True
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """A parser, also of sub-commands, that takes each option once."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.register("action", None, StoreOnce)
