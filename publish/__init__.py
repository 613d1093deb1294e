"""Publish the series: pages, slides, copies for students, and what they need."""

from utils.support.characters import replace_unprintable

replace_unprintable()  # all of these programs print names of files and people
