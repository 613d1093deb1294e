"""The whole series under other instruction sets, numbers of threads and locales: every output is the saved one.

What is printed may not depend on the processor. Each run has a cache of compiled code of its own: what was compiled for
one instruction set gives wrong products under another.
"""

import os
import platform
import subprocess
import sys

import pytest
import torch

from tests.helpers import ROOT, has_locale

SERIES = [path for pattern in ("*.ipynb", "*/*.ipynb") for path in sorted((ROOT / "notebooks").glob(pattern))]
# torch's name, whether this processor has it, oneDNN's name, MKL's, threads, locale
CIRCUMSTANCES = {
    "default": (True, "SSE41", "COMPATIBLE", 1, "C.UTF-8"),
    "avx2": (torch.cpu._is_avx2_supported(), "AVX2", "AVX2", 2, "fr_FR.UTF-8"),
    "avx512": (torch.cpu._is_avx512_supported(), "AVX512_CORE", "AVX512", 2, "C.UTF-8"),
}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs an x86 processor")
@pytest.mark.parametrize("capability", CIRCUMSTANCES)
def test_every_output_is_the_saved_one(capability, tmp_path):
    has_it, onednn, mkl, threads, locale = CIRCUMSTANCES[capability]
    if not has_it:
        pytest.skip(f"this processor has no {capability}")
    if locale.startswith("fr_FR") and not has_locale("fr_FR.utf8"):
        pytest.skip("needs a French locale: apt install locales-all")
    settings = {
        "ATEN_CPU_CAPABILITY": capability,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "MKL_CBWR": mkl,
        "OMP_NUM_THREADS": str(threads),
        "LC_ALL": locale,
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path),
    }
    environment = {name: value for name, value in os.environ.items() if name != "CHECKPOINT"} | settings
    asked = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    used = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True)
    assert used.stdout.strip().lower() == capability
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--nbval", *map(str, SERIES)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
