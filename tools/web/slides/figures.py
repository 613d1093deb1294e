"""Run in a kernel before a notebook: figures on less paper, so that their letters are larger on a slide."""

from matplotlib.figure import Figure

PAPER = 7, 3.2  # inches; where a slide shows them 1,240 pixels wide or 550 high, letters of 10 points have 24
LEAST = 0.7  # of a figure's own size; on less its letters would meet


def on_less_paper(make):
    """A figure's initializer that leaves it at most `PAPER`, in its own proportions."""

    def init(figure, *arguments, **options):
        make(figure, *arguments, **options)
        size = figure.get_size_inches()
        figure.set_size_inches(size * max(LEAST, min(1, *(PAPER / size))))

    return init


Figure.__init__ = on_less_paper(Figure.__init__)
