"""The pages' modules in node, without a browser."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from views.scripts import names_of

NEEDED = (20, 19)  # from here on, node knows a module by its imports and exports
RUN = """import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8"));
const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : Number.isNaN(value) ? "NaN" : value);
process.stdout.write(JSON.stringify(RESULT, plain));"""


def run(result: str, given, *modules: Path):
    """Return the value of a JavaScript expression of `given` and the names that modules export; skip without node."""
    node = shutil.which("node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout if node else "v0.0"
    if tuple(map(int, version[1:].split(".")[:2])) < NEEDED:
        pytest.skip(f"node is {version.strip()}: install Node.js {'.'.join(map(str, NEEDED))} or newer")
    imports = "".join(
        f"import {{ {', '.join(names_of(path, 'export '))} }} from {json.dumps(path.resolve().as_uri())};\n"
        for path in modules
    )
    command = [node, "--input-type=module", "--eval", imports + RUN.replace("RESULT", result)]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace('"NaN"', "NaN"))
