"""The one table of colours, letters and width for all pictures, light and dark.

`plots.set_style` registers them with matplotlib (`color="ours"`, `cmap="weights"`); views, figures, explorer, site
and slides use them as CSS variables from `css` and `fill_in`; a test (tests/publish/test_colours.py) checks the
drawings in notebooks/images and exercises against this table.

Roles that appear in one picture differ in hue, in lightness when printed in grey, and for readers who cannot tell red
from green (the same test). A form, a sign or a label repeats what a colour means.
"""

FACE = '"DejaVu Sans", Verdana, sans-serif'  # matplotlib's default, and its twin where it is not installed
MONOSPACE = '"DejaVu Sans Mono", Menlo, monospace'
TITLE, LETTERS, SMALL = 16, 14, 13  # pixels: a title, text, and numbers, notes and what was drawn
WIDTH = 860  # pixels of every picture, and of a page's text

# on white and on a dark ground: each is legible as text
LIGHT = {
    "blue": "#1c64b4",
    "orange": "#b85306",
    "purple": "#5a1570",
    "ochre": "#8f6c00",
    "green": "#00593e",
    "grey": "#919191",
    "mark": "#d00000",  # the selected or wrong item
    "paper": "#ffffff",
    "card": "#ffffff",
    "wash": "#f5f8fb",
    "ink": "#1b1b1b",
    "soft": "#595959",
    "line": "#c9c9c9",
    "faint": "#ececec",
}
DARK = {
    "blue": "#5799ef",
    "orange": "#ffa866",
    "purple": "#f3a8ee",
    "ochre": "#f6df80",
    "green": "#3fc296",
    "grey": "#808080",
    "mark": "#ff6b6b",
    "paper": "#14171c",
    "card": "#1a1e25",
    "wash": "#1a1f27",
    "ink": "#e6e6e6",
    "soft": "#b0b0b0",
    "line": "#555555",
    "faint": "#2c2c2c",
}

# the meaning of each hue, in every picture
ROLES = {
    "query": "purple",
    "key": "blue",
    "value": "ochre",
    "average": "green",
    "above": "blue",  # zero
    "below": "orange",
    "ours": "blue",
    "other": "orange",
    "third": "grey",
}

# pale backgrounds in drawings and tables, one per hue
TINTS = {
    "blue": "#dbe9f6",
    "orange": "#f8dfc8",
    "purple": "#ead9ef",
    "ochre": "#fde9b8",
    "green": "#d9ead3",
    "grey": "#eeeeee",
}

# from the background to the strongest: attention weights, other shares and values above zero use `above`
SCALES = {
    "light": {
        "above": ("#ffffff", "#d3e4f5", "#9cc5e8", "#5698d6", "#1c64b4", "#0a2f66"),
        "below": ("#ffffff", "#fde3c8", "#f9bd86", "#e88a3c", "#b85306", "#6e2c00"),
    },
    "dark": {
        "above": ("#14171c", "#1d3a5f", "#245c9c", "#3f86d2", "#82b8f0", "#d2e6fb"),
        "below": ("#14171c", "#52341a", "#8c501c", "#cc7428", "#f2a65c", "#fcdeb8"),
    },
}

# heads of a layer, or layers, in order; after the last they repeat with dashes
HEADS = {
    "light": (
        *("#1c64b4", "#b85306", "#2e8b3d", "#b3202c", "#8257c2", "#7a4a32"),
        *("#d14a94", "#6b6b6b", "#8f8a00", "#1594a8", "#5a1570", "#00593e"),
    ),
    "dark": (
        *("#5799ef", "#ffa866", "#5cc46c", "#f0616c", "#b49af0", "#b98a70"),
        *("#f08cc4", "#a8a8a8", "#d6d04a", "#4fd3e6", "#ecd2f7", "#2f9c78"),
    ),
}


def css(dark: str | None = ":root.dark") -> str:
    """Return the table as CSS variables, such as `--query` and `--scale-above`; `dark` selects a dark page's root."""
    fixed = {name: f"var(--{hue})" for name, hue in ROLES.items()}
    sizes = {"title": TITLE, "letters": LETTERS, "small": SMALL, "width": WIDTH}
    fixed |= {"face": FACE, "monospace": MONOSPACE} | {name: f"{pixels}px" for name, pixels in sizes.items()}
    light = f":root {{ {variables('light')} {declared(fixed)} }}\n"
    return light + (f"{dark} {{ {variables('dark')} }}\n" if dark else "")


def fill_in(sheet: str) -> str:
    """Return a style sheet with the table before it, and the dark theme in place of each `--dark-theme;`."""
    return css(dark=None) + sheet.replace("--dark-theme;", variables("dark"))


def variables(theme: str) -> str:
    """Return the colours of a theme, "light" or "dark", as CSS declarations."""
    scales = {f"scale-{name}": " ".join(stops) for name, stops in SCALES[theme].items()}
    lists = scales | {"heads": " ".join(HEADS[theme])}
    # the colour of an attention weight of 1 behind text, which must stay legible
    weight = SCALES[theme]["above"][3 if theme == "light" else 2]
    return declared((LIGHT if theme == "light" else DARK) | lists | {"weight": weight})


def declared(values: dict[str, str]) -> str:
    """Return variables as CSS declarations."""
    return " ".join(f"--{name}: {value};" for name, value in values.items())
