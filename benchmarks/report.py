"""Parts of every report: machine, versions and Markdown tables."""

import importlib.metadata
import os
import platform
from pathlib import Path

import torch


def processor() -> str:
    """Return the processor's name, its number of cores and the system."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, {platform.system()}"


def device_name() -> str:
    """Return the processor's name with torch's number of threads."""
    return f"{processor()}, {torch.get_num_threads()} threads"


def versions(packages: tuple[str, ...]) -> str:
    """Return the versions of Python and some packages in one line."""
    found = [f"{package} {importlib.metadata.version(package)}" for package in packages]
    return ", ".join([f"Python {platform.python_version()}", *found])


def markdown(rows: list[list[str]]) -> str:
    """Return a Markdown table; the first row holds the headings."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
