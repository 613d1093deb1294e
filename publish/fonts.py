"""Fonts of the book for characters that a reader's device may lack, from npm, cut to the characters that it shows."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import matplotlib
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from explorer.npm import Package, fetch, read_member

TTF = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
DEJAVU, DEJAVU_LICENCE = TTF / "DejaVuSans.ttf", TTF / "LICENSE_DEJAVU"  # has signs that other fonts lack
REGULAR = "-400-normal.woff"  # how the files of one weight end; each has a part of the characters
# A character comes from the first font that has it; the last has nearly all. The SIL Open Font License covers them.
PACKAGES = (
    Package(
        "@fontsource/noto-sans-thai",
        "5.3.0",
        "ngqUyvDukkZUHypQbUJvUdAeYa2aYZsyeDTsdqMudf7GK2F2TK19OZ5kbo+37qsBtkNpmAMhEObQnWnzPqzKUw==",
    ),
    Package(
        "@fontsource/noto-sans-devanagari",
        "5.3.0",
        "7khYmipS/5KAUUmrO1DKir8yL8XI00d0+ZE9BqbS8XF1jzObv6CpPOk3UeYxF+Pvi8bx9bBvprBCOcbx/eQWTQ==",
    ),
    Package(
        "@fontsource/noto-emoji",
        "5.3.2",
        "N9CSzXJB04AVWYvFbuBgL2Dq964Zo91th/uOu/QLSuWBYuL9FWXGcEo6ZNwc/IJ7vmpm8KHaIKD7jF8pYm4taw==",
    ),
    Package(
        "@fontsource/klee-one",
        "5.3.0",
        "1mnMRQO70AnTCHaWy5ovYKjbvszpOp7//bMDZ+PnjBMmar5YRcbskVzM4u+Syd8CMWw353R3BvsrsKQrwVRnEw==",
    ),
    Package(
        "@fontsource/do-hyeon",
        "5.3.0",
        "j3h+Y2OIhTW8Bj+WwZ6g2vFG+2vy2kBN3G93N8FEx1vE1EZkg0+wZvjSjvrPsGt70TLUcr8fflIyRJgqDnEryg==",
    ),
    Package(
        "@fontsource/unifontex",
        "5.2.6",
        "y6PXONOAfsIx0v/7QevQrx+SFW6B2OBR7VZYel7ek/y8M89zfQBKOLyV8X9KmtAkS1q9JS9MFDkq78vcv1CwtQ==",
    ),
)
JOINED = {*range(0x0900, 0x0E80)}  # scripts of India and Thailand, whose signs are put together as a font's tables say
LAYOUT = {"GDEF", "GPOS", "GSUB"}  # tables for these scripts
TABLES = {"GlyphOrder", "OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "name", "post"}
TABLES |= {"cvt ", "fpgm", "gasp", "prep"}  # hints


class Fonts(NamedTuple):
    """Files of fonts by the names of their families, their licences, and the characters that none of them has."""

    files: dict[str, Path]
    licences: str
    missing: set[str]

    def rules(self) -> str:
        """Return the style sheet's rules that load the files."""
        return "".join(
            f'@font-face {{ font-family: "{name}"; src: url("{path.name}"); }}\n' for name, path in self.files.items()
        )

    def families(self) -> str:
        """Return the names of the families as a style sheet lists them."""
        return ", ".join(f'"{name}"' for name in self.files)


def make_fonts(characters: Iterable[str], folder: Path, cache: Path, packages: Iterable[Package] = PACKAGES) -> Fonts:
    """Write fonts with these characters into a folder: DejaVu Sans whole, and those of npm's packages cut.

    Without npm, the characters that DejaVu Sans lacks are missing, and the reason is printed.
    """
    files, licences = {"Signs": folder / DEJAVU.name}, [DEJAVU_LICENCE.read_text("utf-8")]
    files["Signs"].write_bytes(DEJAVU.read_bytes())
    missing, owners = {ord(sign) for sign in characters} - TTFont(DEJAVU).getBestCmap().keys(), []
    for package in packages:
        if not missing:
            break
        try:
            archive = fetch(package, cache)
        except OSError as error:
            print(f"The book lacks a font: {error}.")
            continue
        for font in fonts_of(archive):
            if found := missing & font.getBestCmap().keys():
                name = f"Signs{len(files)}"
                files[name] = cut(font, found, folder / f"{name}.ttf".lower())
                missing -= found
                owners += [f"{font['name'].getDebugName(1)}: {font['name'].getDebugName(0)}"]
                licence = read_member(archive, "LICENSE").decode().partition("\n\n")[2]
    if owners:
        licences += ["\n".join(dict.fromkeys(owners)), licence]
    return Fonts(files, "\n\n".join(licences), set(map(chr, missing)))


def fonts_of(archive: Path) -> Iterable[TTFont]:
    """Yield the regular fonts of a package."""
    with tarfile.open(archive) as members:
        for member in members:
            if member.name.endswith(REGULAR):
                yield TTFont(io.BytesIO(members.extractfile(member).read()))


def cut(font: TTFont, characters: set[int], path: Path) -> Path:
    """Write a font with only these characters, and its own names and licence, to a file, and return its path."""
    for table in {*font.keys()} - TABLES - (LAYOUT if characters & JOINED else set()):
        del font[table]
    subsetter = Subsetter(Options(layout_features=["*"], name_IDs=["*"], name_languages=["*"]))
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = None  # uncompressed, as every reading device takes it
    font.save(path)
    return path
