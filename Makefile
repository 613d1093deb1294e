# Anatomy of a Transformer Encoder: `make lab` to read, `make test` to check everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.installed
SITE_READY := $(VENV)/.installed-site
ARGS ?=
NB ?=
PINS ?=
BENCH ?= compare
export JUPYTER_PREFER_ENV_PATH := 1
export TOKENIZERS_PARALLELISM := false

UNPINNED = $(shell sed -E 's/(==.*|\#.*)//' requirements.txt)
# what a Colab runtime has before a notebook asks for more
COLAB_BRINGS := torch==2.13.0 transformers sentence-transformers matplotlib pandas scikit-learn tqdm ipykernel ipywidgets nbclient pytest

# Jupyter keeps files in the home folder; where that cannot be written, it gets one in the virtual environment.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export HOME := $(abspath $(VENV))/home
$(shell mkdir -p "$(HOME)")
endif

# CHECKPOINT=folder runs the series on another checkpoint: its asserts, since saved outputs are the default's.
NBVAL := $(if $(CHECKPOINT),--nbval-lax,--nbval)
# JupyterLab asks no server for news, updates or extensions.
OFFLINE := --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.extension_manager=readonly
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help lab test check test-unpinned audit bench colab notebooks sync site slides badges lint clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed, this is {v[0]}.{v[1]}: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements"
	@touch $@

lab: $(READY)  ## open JupyterLab on the series (ARGS="--no-browser --port 8901" without a screen)
	$(BIN)/jupyter lab $(OFFLINE) $(ALLOW_ROOT) --ServerApp.root_dir="$(CURDIR)" $(ARGS) notebooks/00_overview.ipynb

test: lint $(SITE_READY)  ## set up and run all that CI runs: style, tests, every cell of every notebook
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n 2 --dist loadfile $(NBVAL) tests notebooks $(ARGS)

check: $(READY)  ## compare every output of some notebooks with a fresh run (NB="03 04")
	$(BIN)/python -m pytest $(NBVAL) $(foreach number,$(NB),$(wildcard notebooks/$(number)*.ipynb)) $(ARGS)

test-unpinned:  ## the same on the newest versions (PINS="transformers==4.48.0" for some); asserts only
	$(PYTHON) -m venv $(VENV)-unpinned
	$(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pip install --disable-pip-version-check --upgrade $(UNPINNED) $(PINS)
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pytest -n 2 --dist loadfile \
		--nbval-lax -W default tests notebooks $(ARGS)

colab:  ## run every notebook as Colab opens it, in an environment of its own (PINS as above)
	$(PYTHON) -m venv $(VENV)-colab
	$(BIN:$(VENV)%=$(VENV)-colab%)/python -m pip install --disable-pip-version-check $(COLAB_BRINGS) $(PINS)
	COLAB=all $(BIN:$(VENV)%=$(VENV)-colab%)/python -m pytest -W default tests/test_colab.py $(ARGS)

lint: $(READY)  ## check style, and that notebooks hold the definitions of utils
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/notebooks.py sync --check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

notebooks: $(READY)  ## run and save notebooks (NB="03 04" for some)
	$(BIN)/python tools/notebooks.py execute $(NB)

sync: $(READY)  ## copy the finished definitions from utils into the notebooks
	$(BIN)/python tools/notebooks.py sync $(NB)

$(SITE_READY): requirements-site.txt $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt -r requirements-site.txt
	@touch $@

site: $(SITE_READY)  ## execute the notebooks and build the site into site/, which opens without a server
	$(BIN)/python -m tools.website

slides: $(SITE_READY)  ## make reveal.js slides of notebooks, such as site/slides/03.html (NB=03)
	$(BIN)/python -m tools.slides $(NB)

audit: $(READY)  ## ask the public database whether a pinned version has a known weakness
	$(PYTHON) -m venv $(VENV)-audit
	$(BIN:$(VENV)%=$(VENV)-audit%)/python -m pip install --disable-pip-version-check pip-audit==2.10.1
	$(BIN)/python -m pip freeze > $(VENV)-audit/installed.txt
	$(BIN:$(VENV)%=$(VENV)-audit%)/pip-audit --no-deps --disable-pip -r $(VENV)-audit/installed.txt

bench: $(READY)  ## measure speed beside the peers, for benchmarks/results.md (BENCH=classifier, search or views)
	$(BIN)/python -m benchmarks.$(BENCH) $(ARGS)

badges:  ## point badges and setup cells at the git remote of this copy
	$(PYTHON) tools/badges.py

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(VENV)-unpinned $(VENV)-colab $(VENV)-audit .pytest_cache .ruff_cache .hypothesis .coverage mutants build site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
