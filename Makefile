# Everything that a maintainer or CI runs; `make help` lists it. Needs Go, make and git, and builds the rest.
MAKEFLAGS += --no-print-directory
SHELL := bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CHART := charts/kubevirt
NAMESPACE ?= cozy-kubevirt
# Named, because Helm's own default differs between Helm releases.
KUBE_VERSION ?= 1.34.2

HELM ?= $(CURDIR)/bin/helm
HELM_UNITTEST ?= $(CURDIR)/bin/helm-unittest
export HELM HELM_UNITTEST

STEP := hack/step

##@ Use
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: template
template: $(HELM) ## render the chart [VALUES=file…] [NAMESPACE=cozy-kubevirt] [KUBE_VERSION=1.34.2]
	@$(HELM) template kubevirt $(CHART) --namespace $(NAMESPACE) --kube-version $(KUBE_VERSION) $(VALUES:%=--values %)

.PHONY: package
package: $(HELM) ## bundle the chart into _out/ [VERSION=x.y.z]
	@$(HELM) package $(CHART) --destination _out $(VERSION:%=--version %)

##@ Check
CHECKS := lint unit render verify

.PHONY: test
test: $(CHECKS) ## everything that CI runs
	@echo "steps: $(words $(CHECKS)) passed, 0 failed"

.PHONY: unit
unit: $(HELM_UNITTEST) ## the unit suites, the inner loop
	@$(STEP) $@ hack/unit.sh $(CHART)

.PHONY: lint
lint: $(HELM) ## helm lint --strict over every values set
	@$(STEP) $@ hack/lint.sh

.PHONY: render
render: $(HELM) ## what the chart renders, against goldens and real types
	@$(STEP) $@ go test -count=1 ./tests/render

.PHONY: verify
verify: bin/helm-docs ## generated files, go.mod files and formatting are up to date
	@$(STEP) $@ hack/verify.sh

.PHONY: bench
bench: $(HELM) ## how long rendering takes
	go test -run '^$$' -bench . ./tests/render

##@ Maintain
.PHONY: docs
docs: bin/helm-docs ## write the chart's README from its values
	@bin/helm-docs --log-level warning --chart-search-root $(CHART)

.PHONY: tools
tools: bin/helm bin/helm-unittest bin/helm-docs ## build bin/

# What is built from the module that pins it: binary, folder of its go.mod, package.
define tool
bin/$(1): $(2)/go.mod $(2)/go.sum
	@$(STEP) "build $(1)" go -C $(2) build -o $(CURDIR)/bin/$(1) $(3) >&2 && touch $$@
endef
$(eval $(call tool,helm,.,helm.sh/helm/v3/cmd/helm))
$(eval $(call tool,helm-unittest,.,github.com/helm-unittest/helm-unittest/cmd/helm-unittest))
$(eval $(call tool,helm-docs,hack/helm-docs,github.com/norwoodj/helm-docs/cmd/helm-docs))
$(CURDIR)/bin/%: bin/% ;
