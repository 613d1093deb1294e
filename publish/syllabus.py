"""Write the weeks of docs/SYLLABUS.md from the notebooks and the plan of COURSE.md; `make rehearse` calls it."""

import re

import exercises
from exercises import framework
from publish import teaching
from publish.notebooks import ROOT
from publish.teaching import COURSE_PAGE, EXERCISE, Plan, plain_heading, read, stated_minutes, units

PAGE = ROOT / "docs" / "SYLLABUS.md"
WEEKS = "## Week by week\n"
HOME = re.compile(r"^- \*\*At home\.\*\* (.*)$", re.MULTILINE)
GOALS = re.compile(r"be able to\W*\n\n((?:- .*\n?)+)")
SOURCES = re.compile(r"\*\*Sources\*\*\n\n((?:- .*\n?)+)")


def the_list(number: str, pattern: re.Pattern) -> list[str]:
    """Return the items of a list in a notebook; ValueError unless it has one such list."""
    found = [match[1] for cell in read(number).cells if (match := pattern.search(cell.source))]
    if len(found) != 1:
        raise ValueError(f"{pattern.pattern!r} fits {len(found)} cells of notebook {number}, in place of one")
    return [line.removeprefix("- ").rstrip(";.") for line in found[0].splitlines()]


def week(plan: Plan, at_home: list[str]) -> tuple[str, int, int]:
    """Return the paragraph of a unit, its minutes of exercises at home, and its points."""
    stated = stated_minutes(plan)
    minutes = sum(stated[name] for name in at_home)
    points = sum(find_points(name) for name in stated if name in plan.exercises or name in at_home)
    goals = [goal for number in plan.notebooks for goal in the_list(number, GOALS)]
    sources = [re.match(r"\[.*?\]\(.*?\)", line)[0] for n in plan.notebooks for line in the_list(n, SOURCES)[:2]]
    title = plain_heading(plan.title).replace(" · ", ": ", 1)
    return (
        f"**{title}.** You will be able to {'; '.join(goals)}. *Read* {'; '.join(dict.fromkeys(sources))}. "
        f"*At home:* {', '.join(at_home)} ({minutes} minutes). *Points:* {points}.",
        minutes,
        points,
    )


def find_points(number: str) -> int:
    """Return the points of an exercise."""
    exercises.find_check(number)  # loads them
    return framework.POINTS[number]


def weeks() -> str:
    """Return a paragraph for each unit of COURSE.md, and the sums."""
    at_home = HOME.findall(COURSE_PAGE.read_text("utf-8"))
    rows = [week(plan, EXERCISE.findall(home)) for plan, home in zip(units(), at_home, strict=True)]
    in_class, outside = 1.5 * len(rows), round(sum(minutes for _, minutes, _ in rows) / 30) / 2
    points = sum(points for *_, points in rows)
    total = (
        f"In all: {in_class:g} hours in class, {outside:g} for exercises at home, {points} points with optional ones."
    )
    return "\n\n".join([*(text for text, _, _ in rows), total])


def update_syllabus(text: str) -> str:
    """Return the syllabus with its weeks written again."""
    before, _, rest = text.partition(WEEKS)
    return f"{before}{WEEKS}\n{weeks()}\n{rest[rest.index(chr(10) + '## ') :]}"


def main() -> None:
    """Update the plans, and write the weeks again."""
    teaching.main()
    PAGE.write_text(update_syllabus(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
