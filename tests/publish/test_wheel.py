"""The wheel that a release carries: small, and whole in a Python that has nothing of the series."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from publish.badges import Address
from tests.repository import bare_python, build_wheel, project

PACKAGES = ("utils", "utils.support", "views", "exercises", "exercises.diagnosis", "exercises.grading")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), "--no-index", "--no-build-isolation")


def test_wheel_has_the_name_of_its_address(wheel):
    tag = f"v{project()['project']['version']}"
    installed = Address("ada/encoder", tag).installed()
    assert installed == (f"https://github.com/ada/encoder/releases/download/{tag}/", wheel.name)


def test_wheel_is_small_and_holds_packages_and_licences_only(wheel):
    assert wheel.stat().st_size < 4e6
    names, about = zipfile.ZipFile(wheel).namelist(), f"{wheel.name.partition('-py3')[0]}.dist-info"
    assert {name.split("/")[0] for name in names} == {"utils", "views", "exercises", about}
    assert [name for name in names if "licenses" in name] == [f"{about}/licenses/LICENSE"]


def test_wheel_brings_its_packages_and_the_command_line(wheel, tmp_path):
    python = bare_python(tmp_path / "venv")
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", wheel]
    subprocess.run(install, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    (tmp_path / "utils.py").write_text("my_own = 1", "utf-8")
    (tmp_path / "own.py").write_text("import views", "utf-8")
    for hidden in (["own.py"], ["-m", "exercises", "grade"]):
        refused = subprocess.run([python, *hidden], check=False, **options).stderr
        assert f"ImportError: {tmp_path / 'utils.py'} hides the package utils of this series" in refused
    program = (
        f"import runpy, {', '.join(PACKAGES)}; print(utils.__file__); runpy.run_module('views', run_name='__main__')"
    )
    command = [python, "-P", "-c", program, "I called Ian.", "--save", "page.html"]  # -P as the error advises
    assert str(tmp_path / "venv") in subprocess.run(command, check=True, **options).stdout
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
