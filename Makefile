# Everything that a maintainer or CI runs; `make help` lists it. Needs Go, make and git, and builds the rest.
MAKEFLAGS += --no-print-directory
SHELL := bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# One setting for all, so that what the modules share is compiled once, and no C compiler plays a part.
export CGO_ENABLED := 0

CHART ?= charts/kubevirt
NAMESPACE ?= cozy-kubevirt
# Named, because Helm's own default differs between Helm releases.
KUBE_VERSION ?= 1.34.2

HELM ?= $(CURDIR)/bin/helm
HELM_UNITTEST ?= $(CURDIR)/bin/helm-unittest
export HELM HELM_UNITTEST

# Where KUBEBUILDER_ASSETS names a folder with these two, they are not built.
CONTROL_PLANE := $(if $(KUBEBUILDER_ASSETS),,bin/etcd bin/kube-apiserver)

STEP := hack/step
# Empty by itself, so that a target run by hand shows all that it says; `make test` shows a line.
QUIETLY =
test: QUIETLY = $(STEP) $@
# Where the Go tests leave their results, one junit-*.xml a target.
test: export JUNIT_DIR := $(CURDIR)/_out

##@ Use
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: template
template: $(HELM) ## render the chart [VALUES=file…] [NAMESPACE=cozy-kubevirt] [KUBE_VERSION=1.34.2]
	@$(HELM) template kubevirt $(CHART) --namespace $(NAMESPACE) --kube-version $(KUBE_VERSION) $(VALUES:%=--values %)

BASE ?= origin/main

.PHONY: diff
diff: bin/diff ## what the tree renders differently from a commit [BASE=origin/main]
	@bin/diff -base "$(BASE)"

.PHONY: images
images: $(HELM) ## the images that the package makes a cluster pull, for mirrors
	@$(MAKE) template | go -C tests/kubevirt run ./images

.PHONY: package
package: bin/package ## bundle the chart into _out/ [VERSION=x.y.z] [SIGN_KEY=name SIGN_KEYRING=file] [ALLOW_DIRTY=1]
	@$(BUNDLE)

.PHONY: push
push: bin/package bin/push ## bundle the chart and push it to REGISTRY=oci://host/path [VERSION=x.y.z]
	@archive=$$($(BUNDLE)) && bin/push -archive "$$archive" -registry "$(REGISTRY)"

BUNDLE = bin/package -chart $(CHART) $(VERSION:%=-version %) $(SIGN_KEY:%=-sign-key %) $(SIGN_KEYRING:%=-keyring %) $(if $(ALLOW_DIRTY),-allow-dirty)

.PHONY: preview
preview: bin/kubectl-drain_preview ## what a drain and an upgrade will do to each VM [NODE=name] [KUBECONFIG=path] [DUMP=file]
	@bin/kubectl-drain_preview $(DUMP:%=--filename '%') $(NODE)

##@ Check
CHECKS := lint unit update-check update-test render hack-test mutate fuzz-values helms flux preview-test contract rehearsal e2e-test workers verify

# Each of them keeps the machine busy by itself.
.NOTPARALLEL:
.PHONY: test
test: bin/gotestsum $(CHECKS) ## everything that CI runs
	@echo "steps: $(words $(CHECKS)) passed, 0 failed"

.PHONY: unit
unit: $(HELM_UNITTEST) ## the unit suites, the inner loop
	@$(STEP) $@ hack/unit.sh $(CHART)

.PHONY: lint
lint: $(HELM) ## helm lint --strict over every values set
	@$(STEP) $@ hack/lint.sh

.PHONY: render
render: $(HELM) ## what the chart renders, against goldens and real types
	@$(STEP) $@ hack/gotest $@ . ./tests/render

.PHONY: update-test
update-test: bin/update ## make update restores the CR whole or refuses, and says why
	@$(STEP) $@ hack/gotest $@ . ./hack/update
	@$(STEP) "$@ by hand" hack/update_idempotency_test.sh
	@$(STEP) "$@ fuzzed" hack/fuzz.sh ./hack/update FuzzEditsOfTheTemplateAreRestoredRefusedOrLeftAlone

.PHONY: preview-test
preview-test: ## what kubectl drain-preview prints, from dumps of every situation
	@$(STEP) $@ hack/gotest $@ cmd/kubectl-drain_preview ./...

.PHONY: contract
contract: $(HELM) ## KubeVirt's own code, v1.9.0 and v1.8.4, judges the rendered CR [VALUES=file]
	@$(QUIETLY) hack/contract.sh $(abspath $(VALUES))
	@$(STEP) "images, sandbox" hack/gotest images tests/kubevirt ./images ./internal/sandbox

.PHONY: rehearsal
rehearsal: $(HELM) $(CONTROL_PLANE) bin/kubectl bin/registry bin/package bin/push bin/kubectl-drain_preview ## drains and upgrades on a real control plane [RUN=name of scenarios] [MANY=50,100,200]
	@MANY='$(MANY)' $(QUIETLY) hack/rehearsal.sh '$(RUN)'

.PHONY: rehearsal-up
rehearsal-up: $(HELM) $(CONTROL_PLANE) ## keep the rehearsal's cluster up, with a VM of every kind, until ^C
	@cd tests/kubevirt/rehearsal && go test -count=1 -timeout 0 -tags up -run '^TestStaysUp$$' 

.PHONY: e2e
e2e: bin/chainsaw ## ask a live cluster whether it would let a VM go: KUBECONFIG=path [VM=ns/name] [STORAGE_CLASS=…] [REQUIRE_BRANCHES=…]
	@tests/e2e/run.sh bin/chainsaw

.PHONY: e2e-test
e2e-test: $(HELM) $(CONTROL_PLANE) bin/chainsaw bin/kubectl bin/shfmt ## that suite, against right answers and every wrong one
	@$(STEP) $@ hack/gotest $@ tests/kubevirt -timeout 10m ./e2e

.PHONY: workers
workers: $(CONTROL_PLANE) ## what Cluster API's own controllers do with a marked worker
	@$(STEP) $@ hack/gotest $@ tests/workers .

.PHONY: helms
helms: $(HELM) bin/helm-oldest bin/helm4 ## every Helm renders the same bytes, for every Kubernetes that KubeVirt supports
	@$(STEP) $@ hack/gotest $@ . ./tests/helms

.PHONY: flux
flux: $(HELM) ## the Flux example, against Flux's own API
	@$(STEP) $@ hack/gotest $@ tests/flux .

.PHONY: hack-test
hack-test: bin/registry ## the tools of hack/ do what they say
	@$(STEP) $@ hack/gotest $@ . $(filter-out %/update,$(shell go list ./hack/...))

.PHONY: mutate
mutate: bin/mutate ## prove that the unit suites notice every change of the chart [CHART=path]
	@$(QUIETLY) bin/mutate $(CHART)

.PHONY: fuzz-values
fuzz-values: bin/fuzzvalues ## every value is refused with its path or rendered unchanged [FUZZ_FLAGS="-seed 7 -n 22000"]
	@$(QUIETLY) bin/fuzzvalues $(FUZZ_FLAGS) charts/kubevirt

.PHONY: verify
verify: bin/helm-docs ## generated files, go.mod files and formatting are up to date
	@$(STEP) $@ hack/verify.sh

.PHONY: bench
bench: $(HELM) ## how long rendering takes, make update beside a chain of sed, and a preview of 10,000 VMs
	go test -run '^$$' -bench . ./tests/render
	go test -run '^$$' -bench . -benchtime 100x ./hack/update
	go -C cmd/kubectl-drain_preview test -run '^$$' -bench . -benchtime 5x ./internal/command

##@ Maintain
CR_FILE ?= $(CHART)/templates/kubevirt-cr.yaml
# Through the environment, so that the path may hold what the shell would interpret.
export CR_FILE

.PHONY: update
update: bin/update ## re-apply the parameterization to a hand-merged CR [CR_FILE=path]
	@bin/update "$$CR_FILE"

.PHONY: update-check
update-check: bin/update ## say what update would do, exit 1 if anything [CR_FILE=path]
	@bin/update -check "$$CR_FILE"

.PHONY: bump
bump: ## move the pinned KubeVirt everywhere it stands: KUBEVIRT_VERSION=vX.Y.Z
	@go run ./hack/bump $(KUBEVIRT_VERSION)

.PHONY: docs
docs: bin/helm-docs ## write what is generated: the chart's README, its list of changes
	@bin/helm-docs --log-level warning --chart-search-root $(CHART)
	@go run ./hack/changes

.PHONY: tools
tools: bin/helm bin/helm-unittest bin/helm-docs bin/update ## build bin/

# What is built from the module that pins it: binary, folder of its go.mod, package, flags.
# kube-apiserver and kubectl take their version from the linker, and without one pass for v0.0.0.
STAMP = -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$$$(go -C hack/kube-apiserver list -m -f '{{.Version}}' k8s.io/kubernetes)"
define tool
bin/$(1): $(2)/go.mod $(2)/go.sum
	@$(STEP) "build $(1)" go -C $(2) build $(4) -o $(CURDIR)/bin/$(1) $(3) >&2 && touch $$@
endef
$(eval $(call tool,helm,.,helm.sh/helm/v3/cmd/helm))
$(eval $(call tool,helm-unittest,.,github.com/helm-unittest/helm-unittest/cmd/helm-unittest))
$(eval $(call tool,helm-docs,hack/helm-docs,github.com/norwoodj/helm-docs/cmd/helm-docs))
$(eval $(call tool,gotestsum,hack/gotestsum,gotest.tools/gotestsum))
$(eval $(call tool,etcd,hack/etcd,go.etcd.io/etcd/server/v3))
$(eval $(call tool,kube-apiserver,hack/kube-apiserver,k8s.io/kubernetes/cmd/kube-apiserver,$(STAMP)))
$(eval $(call tool,kubectl,hack/kube-apiserver,k8s.io/kubernetes/cmd/kubectl,$(STAMP)))
$(eval $(call tool,shfmt,hack/shfmt,mvdan.cc/sh/v3/cmd/shfmt))
$(eval $(call tool,helm-oldest,hack/helm-oldest,helm.sh/helm/v3/cmd/helm))
$(eval $(call tool,helm4,hack/helm4,helm.sh/helm/v4/cmd/helm))
$(eval $(call tool,registry,hack/registry,github.com/distribution/distribution/v3/cmd/registry))
# Not by the macro: it needs a patch (see the script).
bin/chainsaw: hack/chainsaw/build.sh $(wildcard hack/chainsaw/go.* hack/chainsaw/_patch/*)
	@$(STEP) "build chainsaw" hack/chainsaw/build.sh $@ >&2 && touch $@
$(CURDIR)/bin/%: bin/% ;

# What is built from a folder of hack/ in the root module.
OWN := update mutate fuzzvalues package push diff
$(OWN:%=bin/%): bin/%: go.mod go.sum $(filter-out %_test.go,$(wildcard hack/*/*.go hack/internal/*/*.go))
	@$(STEP) "build $*" go build -o $@ ./hack/$* >&2 && touch $@

bin/kubectl-drain_preview: $(shell find cmd/kubectl-drain_preview -name 'go.*' -o -name '*.go' ! -name '*_test.go')
	@$(STEP) "build drain-preview" go -C cmd/kubectl-drain_preview build -o $(CURDIR)/$@ . >&2 && touch $@
