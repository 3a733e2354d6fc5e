# `make demo` and `make test` need Python 3.11 or newer, make, and nothing else: they set up what they need.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PEERS  := .venv-peers
MODEL  := $(VENV)/.model
REQUIREMENTS ?= ../shared/requirements.md

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-web lint format bench crash soak-families soak-docs soak-commands soak-races soak-boards soak-projects soak-chats soak-web soak-server pictures architecture fuzz fuzz-documents fuzz-journals fuzz-replies fuzz-settings peers coverage-of-requirements lock clean soak-lies soak-trust soak-restore soak-deployments soak-outages

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-26s %s\n", $$1, $$2}'

$(READY): pyproject.toml requirements.lock
	@echo "Setting up $(VENV) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ripstop needs Python 3.11 or newer; name one with PYTHON=…")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

$(MODEL): $(READY)
	@$(BIN)/ripstop model install
	@touch $@

demo: $(MODEL) ## Run the two-agent example to its end with the real local model
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: $(MODEL) ## Run every quick test that needs no server
	@$(BIN)/python -m pytest -q -n 3 --dist loadgroup -m "not long and not soak and not web"

test-long: $(MODEL) ## Run the tests that take longer: short forms of the soaks, fuzzing, many kills
	@$(BIN)/python -m pytest -q -n 3 --dist loadgroup -m "long and not soak and not web"

test-web: $(READY) ## Run the tests of the web desk in a real browser (needs chromium)
	@command -v chromium chromium-browser google-chrome > /dev/null || { \
	  echo "No browser was found. Install one, such as:  sudo apt-get install chromium fonts-inter fonts-noto-cjk"; exit 1; }
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "web and not soak" tests/web

pictures: $(READY) ## Take the pictures of the README and of every page of the web desk (needs chromium)
	@$(BIN)/python -m tests.web.pictures

architecture: $(READY) ## Draw docs/architecture.svg from the imports of the source
	@$(BIN)/python -m tests.harness.architecture

lint: $(READY) ## ruff, mypy --strict and import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## Format the code with ruff
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## Measure ripstop side by side with LangGraph, DBOS and bare SQLite
	@$(BIN)/python bench/run.py

crash: $(READY) ## Kill a working process 1,000 times and more; nothing may be lost or silently repeated
	@$(BIN)/python -m tests.harness.crash --kills 1000

soak-families: $(MODEL) ## Every test marked as a soak: families of runs killed anywhere, 2,000 hostile texts, damaged journals
	@$(BIN)/python -m pytest -q -m "soak and not web"

soak-docs: $(READY) ## 50 processes, 100,000 updates of one folder of documents, random kills
	@$(BIN)/python -m tests.harness.document_crash --processes 50 --updates 100000

soak-commands: $(READY) ## About 1,000 attacks by commands of agents, under bubblewrap and under Landlock
	@$(BIN)/python -m tests.harness.command_attacks --sandbox bubblewrap --sandbox landlock

MINUTES ?= 10
soak-races: $(READY) ## Exchange folders for links while commands run, 10 minutes under each sandbox (MINUTES=…)
	@$(BIN)/python -m tests.harness.command_race --minutes $(MINUTES) --sandbox bubblewrap --sandbox landlock

soak-lies: $(READY) ## 55 lies of agents on boards and in a delivery: none may end as a success
	@$(BIN)/python -m tests.harness.lies

soak-trust: $(READY) ## Tricks of a cloned folder: journal, token, settings, project, board; nothing is performed or adopted
	@$(BIN)/python -m tests.harness.trust_tricks

soak-restore: $(READY) ## Pay 50 times, back up in the middle, go on, restore: what may have happened is asked, nothing is paid twice
	@$(BIN)/python -m tests.harness.restore_soak --runs 50 --rounds 3

soak-boards: $(READY) ## Kill runs on boards at every fail-point and 500 times at random; the boards must be the same
	@$(BIN)/python -m tests.harness.board_crash --kills 500

soak-projects: $(READY) ## Kill deliveries at every fail-point and 500 times at random; their files must be the same
	@$(BIN)/python -m tests.harness.project_crash --kills 500

soak-deployments: $(READY) ## Stop a worker under load with SIGTERM and start a new one, 300 times; no call may be in doubt
	@$(BIN)/python -m tests.harness.deployments --deployments 300

soak-outages: $(READY) ## Take the model server away from 50 runs of five styles, and kill their workers; nothing fails or is paid twice
	@$(BIN)/python -m tests.harness.outages --runs 50

soak-chats: $(READY) ## Kill a server of bots under load, over HTTP: at every fail-point and 1,000 times at random
	@$(BIN)/python -m tests.harness.conversation_crash --kills 1000

fuzz: $(READY) ## 100,000 hostile paths, 5,000 symlink swaps, 20,000 mutated definitions
	@$(BIN)/python -m tests.harness.path_race --paths 100000 --swaps 5000
	@$(BIN)/python -m tests.harness.mutate --count 20000

fuzz-documents: $(READY) ## 15,000 mutated documents and messages
	@$(BIN)/python -m tests.harness.mutate_documents --count 15000

fuzz-replies: $(READY) ## 150,000 mutated replies of model servers
	@$(BIN)/python -m tests.harness.mutated_replies --count 150000

soak-web: $(READY) ## The web desk under load: 2,000 hostile texts, 50 idle streams, 5,000 connects, 20,000 records
	@$(BIN)/python -m pytest -q -m "web and soak" tests/web

soak-server: $(READY) ## Run against every mode of a hostile model server, and print a table
	@$(BIN)/python -m tests.harness.hostile_matrix

fuzz-settings: $(READY) ## 30,000 mutated settings files
	@$(BIN)/python -m tests.harness.mutate_settings --count 30000

fuzz-journals: $(READY) ## 5,000 damaged journals, seven commands with each
	@$(BIN)/python -m tests.harness.mutate_journals --count 5000

peers: $(READY) ## Call tools of real MCP servers from PyPI and npm (needs the network and Node)
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
	@npm install --silent --no-audit --no-fund --prefix $(PEERS)/node @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/server-filesystem@2026.8.31
	@$(BIN)/python -m tests.harness.mcp_peers --programs $(CURDIR)/$(PEERS)/bin --programs $(CURDIR)/$(PEERS)/node/node_modules/.bin

coverage-of-requirements: $(READY) ## List which requirements have a test, and which do not
	@$(BIN)/python -m pytest -q --collect-only --requirements=$(REQUIREMENTS) tests | sed -n '/= requirements =/,$$p'

lock: ## Pin every dependency with its hash (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra local --extra mcp --extra web --extra providers --group dev pyproject.toml -o requirements.lock

clean: ## Remove what `make` set up
	@rm -rf $(VENV) .venv-bench $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .ripstop
