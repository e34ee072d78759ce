# The machine needs make, git, a C compiler, Node >= 20 and Rust (Cargo.toml's rust-version).
# .make/setup installs everything else, into .tools if possible.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

tools := $(CURDIR)/.tools
machine := $(PATH):$(HOME)/.cargo/bin
# .tools/rust exists only if the machine's own Rust cannot build for WebAssembly.
export PATH := $(tools)/rust/bin:$(tools)/bin:$(machine)
# The scripts look for build results here, so the caller's CARGO_TARGET_DIR must not apply.
export CARGO_TARGET_DIR := $(CURDIR)/target
# Most tests spend their time waiting, so more of them run in parallel than there are cores.
export RUST_TEST_THREADS ?= 6
# Clippy and rustfmt come from the machine's own Rust.
lint := PATH="$(tools)/bin:$(machine)"
wasm := --target wasm32-unknown-unknown

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target what; do printf '  make %-12s %s\n' "$$target" "$$what"; done

.PHONY: setup
setup:
	@.make/setup rust wasm-target frontend

.PHONY: run
run: setup ## Install what is missing, build for development, and start with demo data
	@.make/build debug
	@exec target/debug/heliograph serve --demo

.PHONY: build
build: setup ## Build in release (target/release/heliograph, target/site)
	@.make/build release

.PHONY: site
site: setup ## Build the files that browsers load (target/site)
	@.make/build browser only

.PHONY: package
package: build ## Build a Debian package (target/package/heliograph_*.deb)
	@.make/package target/release/heliograph

.PHONY: test-package
test-package: package ## Install, upgrade and remove the package in a fresh Debian (root, mmdebstrap)
	@.make/package-test target/package/heliograph_*.deb

.PHONY: image
image: package ## Build an OCI image of the package (target/image; root, mmdebstrap, umoci)
	@.make/image target/package/heliograph_*.deb

.PHONY: test-image
test-image: image ## Run the image, and a second container with the data of the first
	@.make/image-test "target/image:$$(umoci list --layout target/image)"

.PHONY: dev
dev: setup ## Start with demo data; rebuild and reload on every change
	@.make/setup wasm-bindgen cargo-leptos
	@exec cargo leptos watch -- serve --demo

.PHONY: test
test: test-rust test-browser ## Install what is missing and run every test

.PHONY: test-rust
test-rust: setup ## Run the Rust tests, and check that the rules compile for the browser
	@.make/setup peers clients postgres proxies prometheus
	@.make/postgres run cargo test $$(.make/tested) --lib --bins --tests
	@cargo check $(wasm) -p domain

.PHONY: test-browser
test-browser: setup ## Run the browser tests against the build that the Rust tests use
	@.make/setup browsers interpreters end2end verifiers node-peers
	@.make/build debug
	@cd end2end && npm test

.PHONY: tour
tour: setup ## Take the pictures of docs/TOUR.md again
	@.make/setup browsers end2end
	@.make/build debug
	@mkdir -p docs/tour && cd end2end && \
	  TOUR_PICTURES=1 npx playwright test --project=with-javascript tour

# CITUS_SOURCE names the source of a Citus release, an archive or its folder.
.PHONY: test-citus
test-citus: setup ## Run the tests on Citus, built from CITUS_SOURCE
	@.make/setup citus
	@.make/citus run .make/citus-tests

.PHONY: soak
soak: build ## Run the long versions of the tests, one after the other
	@.make/setup postgres browsers interpreters end2end verifiers node-peers schemathesis
	@.make/soak

# FUZZ_SECONDS is the time of each target. FUZZ_TARGET names only one of them.
.PHONY: fuzz
fuzz: setup ## Fuzz every parser for ten minutes (FUZZ_SECONDS, FUZZ_TARGET)
	@.make/fuzz "$${FUZZ_SECONDS:-600}" $${FUZZ_TARGET:-}

.PHONY: bench
bench: build ## Compare the release build with Kannel (50 minutes)
	@.make/setup kannel postgres
	@[ -z "$${CITUS_SOURCE:-}" ] || .make/setup citus
	@cargo bench -p server --bench sends

.PHONY: check
check: ## Check format, lints, licences, advisories and the structure
	@.make/setup rust wasm-target cargo-deny
	@$(lint) .make/setup lints
	@$(lint) cargo fmt --all --check
	@.make/structure
	@.make/docs
	@cargo metadata --locked --format-version 1 >/dev/null
	@cargo deny --log-level error check licenses bans sources
	@.make/advisories
	@$(lint) cargo clippy --locked --all-targets -p server -p service -p store -p smpp -p domain \
	  -p smpp34-peer -p frontend-bindings -p fuzz -- -D warnings
	@$(lint) cargo clippy --locked -p frontend -p app --features app/hydrate,app/split -- -D warnings

.PHONY: sbom
sbom: ## List all dependencies of the program as CycloneDX (target/*.cdx.json)
	@.make/setup rust cargo-cyclonedx
	@.make/sbom

.PHONY: fmt
fmt: ## Format the Rust sources
	@$(lint) cargo fmt --all

.PHONY: clean
clean: ## Remove what was built (the tools stay)
	@rm -rf target end2end/test-results end2end/playwright-report
