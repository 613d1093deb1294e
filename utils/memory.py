"""Refuse what would not fit into memory, where it can be foreseen: a machine out of memory kills the kernel."""

from pathlib import Path

import psutil

# Where Linux tells a container's limit (cgroups, version 2 and 1)
LIMITS = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]


def check_memory(needed: int, what: str, remedy: str) -> None:
    """MemoryError, naming what it is for, both sizes and the remedy, if so many bytes are more than there are."""
    free = free_memory()
    if needed > free:
        raise MemoryError(
            f"{what} needs about {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free: {remedy}"
        )


def free_memory() -> int:
    """Bytes that this process can still get: what the machine has free, or what a container's limit leaves."""
    texts = [path.read_text("ascii").strip() for path in LIMITS if path.is_file()]
    left = [int(text) - own_memory() for text in texts if text.isdecimal()]  # "max" is no limit
    return min([psutil.virtual_memory().available, *left])


def own_memory() -> int:
    """Bytes that this process holds."""
    return psutil.Process().memory_info().rss
