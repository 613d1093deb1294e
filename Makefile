# Anatomy of a Transformer Encoder: `make lab` to read, `make quick` after an edit, `make test` to check everything.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.installed
DEV_READY := $(VENV)/.installed-dev
ARGS ?=
NB ?=
PINS ?=
TORCH ?= $(shell grep '^torch==' requirements.txt)
BENCH ?= speed
REF ?= main
export JUPYTER_PREFER_ENV_PATH := 1
export TOKENIZERS_PARALLELISM := false

# requirements*.txt say what is asked for, constraints.txt the version of each package that comes along
INSTALL := -m pip install --disable-pip-version-check -c constraints.txt
UV := uv==0.13.9
# uv needs less than half of pip's time, and takes PyTorch's CPU build where there is no GPU. Where pip has a configuration
# of its own, such as a mirror, which uv does not read, or where uv fails, pip installs.
define install
	@if test -z "$$($(BIN)/python -m pip config list)" \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV) \
		&& $(BIN)/uv pip install --python $(BIN)/python --torch-backend auto -c constraints.txt -r $(1); \
	then :; else echo "Installing with pip, which takes some minutes."; $(BIN)/python $(INSTALL) -r $(1); fi
endef
UNPINNED = $(shell sed -E 's/(==.*|\#.*|^-.*)//' requirements.txt requirements-dev.txt)
# what a Colab runtime has before a notebook asks for more
COLAB_BRINGS := torch==2.13.0 transformers sentence-transformers matplotlib pandas scikit-learn tqdm ipykernel ipywidgets papermill pytest hypothesis

# Jupyter keeps files in the home folder; where that cannot be written, it gets one in the virtual environment.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export HOME := $(abspath $(VENV))/home
$(shell mkdir -p "$(HOME)")
endif

# CHECKPOINT=folder runs the series on another checkpoint: its asserts, since saved outputs are the default's.
# A folder is meant from here, but a kernel starts in notebooks/.
ifneq ($(wildcard $(CHECKPOINT)/config.json),)
override CHECKPOINT := $(abspath $(CHECKPOINT))
export CHECKPOINT
endif
NBVAL := $(if $(CHECKPOINT),--nbval-lax,--nbval -p tests.notebooks.pictures)
# Kernels of `make test` are forks of one process that has imported everything, where the system can; all others start cold.
KERNELS := -p tests.kernels.plugin
# once a minute how far it is, and in the end where its time went
TELLS := -p tests.progress --durations=15 --durations-min=5
# The notebook that trains takes longest: one process starts with it, and the others do the rest meanwhile.
LONGEST := $(wildcard notebooks/08_*.ipynb)
SERIES := $(LONGEST) $(filter-out $(LONGEST),$(sort $(wildcard notebooks/*.ipynb notebooks/solutions/*.ipynb)))
EVERYTHING := --no-loadscope-reorder $(SERIES) tests --ignore=tests/slow
# each of its tests runs the whole series, in as many processes as there are cores
ALL_CORES := tests/slow/test_instruction_sets.py
PROCESSES := 2
PYTEST = -m pytest -n $(PROCESSES) --dist loadfile
# Processes share the cores: a second thread in each would wait for the others'.
ONE_THREAD := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}
# The notebooks that NB names, solutions included, or all of them.
named = $(or $(wildcard notebooks/$(1)*.ipynb notebooks/solutions/$(1)*.ipynb),$(error no notebook begins with "$(1)"))
CHOSEN = $(if $(NB),$(foreach name,$(NB),$(call named,$(name))),$(SERIES))
# JupyterLab asks no server for news, updates or extensions.
OFFLINE := --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.extension_manager=readonly
ALLOW_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# PyTorch has packages for these, as pyproject.toml says. In words that any Python reads, before anything is installed.
CHECK_PYTHON = @$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 15) and \
	"Python 3.11 to 3.14 is needed, and this is %d.%d: add PYTHON=python3.13 to the command, or another that you have" % v)'

# A reader's own parts run in their notebooks, and never in what is checked, measured or published.
ifneq ($(MAKECMDGOALS),lab)
export MINE := off
endif

.DEFAULT_GOAL := help
.PHONY: help cpu-torch lab clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements.txt constraints.txt pyproject.toml
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(call install,requirements.txt)
	$(BIN)/jupyter labextension disable "@jupyterlab/apputils-extension:announcements"
	@touch $@

cpu-torch:  ## before the first `make lab` on Linux: PyTorch's CPU build, which is gigabytes smaller
	$(CHECK_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check $(UV)
	$(BIN)/uv pip install --python $(VENV) --torch-backend cpu $(TORCH)

lab: $(READY)  ## open JupyterLab on the series (ARGS="--no-browser --port 8901" without a screen)
	$(BIN)/jupyter lab $(OFFLINE) $(ALLOW_ROOT) --ServerApp.root_dir="$(CURDIR)" $(ARGS) notebooks/00_overview.ipynb

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(VENV)-unpinned $(VENV)-colab $(VENV)-audit $(VENV)-lock .pytest_cache .ruff_cache .hypothesis .coverage build site *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Below: for those who change the series, or teach with it. The copy for students ends here.
.PHONY: lock quick test test-all compare notebooks sync lint bench site slides book pictures rehearse student badges audit colab test-unpinned

lock:  ## after a change of requirements: write constraints.txt anew (ARGS=--upgrade for the newest versions of all others)
	$(PYTHON) -m venv $(VENV)-lock
	$(BIN:$(VENV)%=$(VENV)-lock%)/python -m pip install --disable-pip-version-check $(UV)
	$(BIN:$(VENV)%=$(VENV)-lock%)/uv pip compile --universal --python-version 3.11 --no-annotate \
		--custom-compile-command "make lock" --no-emit-package anatomy-of-a-transformer-encoder \
		requirements-dev.txt --output-file constraints.txt $(ARGS)

$(DEV_READY): requirements-dev.txt $(READY)
	$(call install,requirements-dev.txt)
	@touch $@

quick: lint  ## style and the short tests, of utils and of the exercises: for every edit
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -p no:nbval -p no:nbmake -m "not long" tests/reference tests/exercises $(ARGS)

# On two cores: while one process waits for a browser or a program, two others work.
test test-unpinned: PROCESSES := 3
test: lint  ## all that CI runs on a push: style, tests, every output of every notebook
	$(ONE_THREAD) $(BIN)/python $(PYTEST) $(NBVAL) $(KERNELS) $(TELLS) $(EVERYTHING) $(ARGS)

test-all: KERNELS :=
test-all: test  ## the same, and tests/slow: other instruction sets, checkpoints, circumstances, Colab, interrupted programs
	$(ONE_THREAD) $(BIN)/python $(PYTEST) tests/slow --ignore=$(ALL_CORES) $(ARGS)
	$(BIN)/python -m pytest $(ALL_CORES) $(ARGS)

compare: $(DEV_READY)  ## compare every output of some notebooks with a fresh run (NB="03 04")
	$(BIN)/python -m pytest $(NBVAL) $(CHOSEN) $(ARGS)

notebooks: $(DEV_READY)  ## run and save notebooks (NB="03 04" for some)
	$(BIN)/python -m publish.notebooks execute $(NB)

sync: $(DEV_READY)  ## copy the finished definitions from utils into the notebooks
	$(BIN)/python -m publish.notebooks sync $(NB)

lint: $(DEV_READY)  ## check style, and that notebooks hold the definitions of utils
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m publish.notebooks sync --check
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

bench: $(DEV_READY)  ## measure speed beside the peers, for benchmarks/results.md (BENCH=classifier, search, views or explorer)
	$(BIN)/python -m benchmarks.$(BENCH) $(ARGS)

site: $(DEV_READY)  ## execute the notebooks and build the site into site/ (opens without a server; explorer.html wants one, and npm)
	$(BIN)/python -m publish.website

slides: $(DEV_READY)  ## make reveal.js slides of notebooks, such as site/slides/03.html (NB=03; ARGS=--seminar for ten of them, ARGS=--session=1 for a session in one deck)
	$(BIN)/python -m publish.slides $(NB) $(ARGS)

book: $(DEV_READY)  ## write an EPUB and a PDF of the notebooks as they are saved into site/book (needs Chromium)
	$(BIN)/python -m publish.book $(NB)

pictures: $(DEV_READY)  ## after a change of views: draw the numbered pictures of notebook 07 and the film of README anew
	$(BIN)/python -m publish.annotate
	$(BIN)/python -m publish.film

rehearse: $(DEV_READY)  ## write cells and minutes of the plans in docs/TEACHING.md and COURSE.md anew, and hold them against the clock
	$(BIN)/python -m publish.teaching

student: $(DEV_READY)  ## write a copy without solutions into student/, to hand out (ARGS=FOLDER for another place)
	$(BIN)/python -m publish.student $(ARGS)

badges:  ## point badges and set-up cells at the git remote of this copy (REF=branch or tag, main if none is given)
	$(PYTHON) publish/badges.py --ref "$(REF)" $(ARGS)

audit: $(DEV_READY)  ## ask the public database whether a pinned version has a known weakness
	$(PYTHON) -m venv $(VENV)-audit
	$(BIN:$(VENV)%=$(VENV)-audit%)/python -m pip install --disable-pip-version-check pip-audit==2.10.1
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+.*//' > $(VENV)-audit/installed.txt
	$(BIN:$(VENV)%=$(VENV)-audit%)/pip-audit --no-deps --disable-pip -r $(VENV)-audit/installed.txt

colab:  ## run every notebook as Colab opens it, in an environment of its own (PINS as below)
	$(PYTHON) -m venv $(VENV)-colab
	$(BIN:$(VENV)%=$(VENV)-colab%)/python -m pip install --disable-pip-version-check $(COLAB_BRINGS) $(PINS)
	COLAB=all $(BIN:$(VENV)%=$(VENV)-colab%)/python -m pytest -W default tests/slow/test_colab.py $(ARGS)

test-unpinned:  ## `make test` on the newest versions (PINS="transformers==4.48.0" for some); asserts only
	$(PYTHON) -m venv $(VENV)-unpinned
	$(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pip install --disable-pip-version-check --upgrade $(UNPINNED) $(PINS)
	$(BIN:$(VENV)%=$(VENV)-unpinned%)/python -m pip install --disable-pip-version-check --no-deps -e .
	$(ONE_THREAD) $(BIN:$(VENV)%=$(VENV)-unpinned%)/python $(PYTEST) --nbval-lax -W default $(EVERYTHING) $(ARGS)
