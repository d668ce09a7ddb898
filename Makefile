# Everything that a maintainer or CI runs; `make help` lists it. Needs Go, make and git, and builds the rest.
MAKEFLAGS += --no-print-directory
SHELL := bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# One setting for all, so that what the modules share is compiled once, and no C compiler plays a part.
export CGO_ENABLED := 0

# What a caller sets is text, on the command line and in the environment: make would run a $(shell …) in it. Those of the
# environment that make itself reads are named here; the others it passes on untouched.
FROM_CALLER := $(foreach v,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(v)))),$(v)))
FROM_CALLER += $(foreach v,CHART HELM HELM_UNITTEST KUBE_VERSION KUBEBUILDER_ASSETS,$(if $(filter environment,$(firstword $(origin $(v)))),$(v)))
$(foreach v,$(filter-out MAKE%,$(FROM_CALLER)),$(eval export override $(v) := $$(value $(v))))

CHART ?= charts/kubevirt
NAMESPACE ?= cozy-kubevirt
# Named, because Helm's own default differs between Helm releases.
KUBE_VERSION ?= $(firstword $(file <internal/chart/kube-versions))
HELM ?= $(CURDIR)/bin/helm
HELM_UNITTEST ?= $(CURDIR)/bin/helm-unittest
# Built unless the caller names others; and called by their names, since a path may hold what makes two prerequisites of it.
BUILT_HELM := $(if $(subst x$(CURDIR)/bin/helm,,x$(HELM)),,bin/helm)
BUILT_HELM_UNITTEST := $(if $(subst x$(CURDIR)/bin/helm-unittest,,x$(HELM_UNITTEST)),,bin/helm-unittest)
BASE ?= origin/main
CR_FILE ?= $(CHART)/templates/kubevirt-cr.yaml
# What a caller sets reaches the commands through the environment, so that it may hold what a shell would interpret.
export CHART NAMESPACE KUBE_VERSION HELM HELM_UNITTEST BASE CR_FILE VALUES NODE DUMP REGISTRY VERSION SIGN_KEY SIGN_KEYRING
export URL MERGE OLD NEW OUTPUT ALLOW_DIRTY KUBEVIRT_VERSION RUN MANY PACKAGE FUZZ_FLAGS FUZZ_COUNT DEST FORCE

# What is built from a folder of hack/ in the root module.
OWN := update mutate mutatego fuzzvalues package push vendor diff index krew-manifest
# Where KUBEBUILDER_ASSETS names a folder with these two, they are not built.
CONTROL_PLANE := $(if $(KUBEBUILDER_ASSETS),,bin/etcd bin/kube-apiserver)
# What a whole cluster is made of: Kubernetes, and KubeVirt's control plane at the release that we ship and the one before.
KUBERNETES := kube-apiserver kube-controller-manager kube-scheduler kubectl
KUBEVIRT := $(shell sed -n 's|^\tkubevirt.io/kubevirt ||p' tests/kubevirt/go.mod)
KUBEVIRT_BEFORE := $(shell sed -n 's|^\tkubevirt.io/kubevirt ||p' tests/kubevirt/go.v1.8.mod)
CLUSTER := bin/etcd bin/launcher $(KUBERNETES:%=bin/%) $(KUBEVIRT:%=bin/kubevirt-%/controlplane) $(KUBEVIRT_BEFORE:%=bin/kubevirt-%/controlplane)

##@ Use
.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: template
template: $(BUILT_HELM) ## render the chart [VALUES=file…] [NAMESPACE=cozy-kubevirt] [KUBE_VERSION=1.34.2]
	@hack/template.sh

.PHONY: diff
diff: bin/diff ## what the tree renders differently from a commit [BASE=origin/main]
	@bin/diff -base "$$BASE"

.PHONY: impact
impact: bin/impact $(BUILT_HELM) ## what a change of the KubeVirt CR does to a running cluster [BASE=origin/main VALUES=file…] or OLD=cr.yaml NEW=cr.yaml [OUTPUT=text|json|markdown]
	@bin/impact -base "$$BASE" -values "$$VALUES" -old "$$OLD" -new "$$NEW" -o "$${OUTPUT:-text}" -chart "$$CHART"

.PHONY: images
images: $(BUILT_HELM) ## the images that the package makes a cluster pull, for mirrors
	@hack/template.sh | go -C tests/kubevirt run ./cmd/images

.PHONY: package
package: bin/package ## bundle the chart into _out/ [VERSION=x.y.z] [SIGN_KEY=name SIGN_KEYRING=file] [ALLOW_DIRTY=1]
	@hack/package.sh

.PHONY: push
push: bin/package bin/push ## bundle the chart and push it to REGISTRY=oci://host/path [VERSION=x.y.z]
	@hack/package.sh push

.PHONY: index
index: bin/index ## write the index.yaml of a plain HTTP repository for the archives of _out/ [URL=https://…] [MERGE=index.yaml]
	@bin/index -url "$$URL" -merge "$$MERGE"

RELEASE := bin/goreleaser bin/cyclonedx-gomod bin/package bin/index bin/krew-manifest
INSTALL := bin/krew bin/validate-krew-manifest bin/kubectl bin/push bin/vendor bin/launcher bin/kubectl-drain_preview bin/gotestsum
.PHONY: release
release: $(RELEASE) ## make all that a release of this commit publishes, into _out/release: VERSION=x.y.z
	@hack/release.sh "$$VERSION" _out/release

.PHONY: release-dry-run
release-dry-run: $(RELEASE) $(INSTALL) $(BUILT_HELM) $(CONTROL_PLANE) ## make it twice, compare, and install it as users do [VERSION=x.y.z]
	@hack/release_dry_run.sh

.PHONY: vendor
vendor: bin/vendor ## write the package as a folder of a platform's repository: DEST=path [FORCE=1]
	@bin/vendor -chart "$$CHART" "-force=$${FORCE:-0}" -- "$$DEST"

.PHONY: preview
preview: bin/kubectl-drain_preview ## what a drain and an upgrade will do to each VM [NODE=name] [KUBECONFIG=path] [DUMP=file]
	@bin/kubectl-drain_preview $${DUMP:+--filename "$$DUMP"} $${NODE:+-- "$$NODE"}

##@ Check
TEST := tools lint unit update-check update-test render hack-test mutate fuzz-values preview-test verify
PROVE := prove-tools contract rehearsal e2e-test workers flux helms release-dry-run update-fuzz mutate-go

# Each of them keeps the machine busy by itself.
.NOTPARALLEL:
.PHONY: test
test: ## the chart, make update, the tools, the preview: minutes
	@hack/steps.sh $(TEST)

.PHONY: prove
prove: ## what KubeVirt's, Kubernetes' and Cluster API's own code says
	@hack/steps.sh $(PROVE)

.PHONY: unit
unit: $(BUILT_HELM_UNITTEST) ## the unit suites, the inner loop
	@hack/unit.sh "$$CHART"

.PHONY: lint
lint: $(BUILT_HELM) ## helm lint --strict over every values set
	@hack/lint.sh

.PHONY: render
render: $(BUILT_HELM) bin/gotestsum ## what the chart renders, against goldens and real types
	@hack/gotest.sh $@ . ./tests/render

.PHONY: update-test
update-test: bin/update bin/gotestsum ## make update restores the CR whole or refuses, and says why
	@hack/gotest.sh $@ . ./hack/update
	@hack/update/idempotency_test.sh

.PHONY: update-fuzz
update-fuzz: ## make update, against 50,000 edits that Go's fuzzer thinks of [FUZZ_COUNT=50000]
	@hack/fuzz.sh ./hack/update FuzzEditsOfTheTemplateAreRestoredRefusedOrLeftAlone

.PHONY: hack-test
hack-test: $(BUILT_HELM_UNITTEST) bin/gotestsum bin/vendor ## the tools of hack/ and what the modules share do what they say
	@hack/gotest.sh internal internal ./chart ./sandbox
	@hack/gotest.sh $@ . $(filter-out %/update,$(shell go list ./hack/...))

.PHONY: preview-test
preview-test: bin/gotestsum ## what kubectl drain-preview prints, from dumps of every situation
	@hack/gotest.sh $@ cmd/kubectl-drain_preview ./...

.PHONY: mutate
mutate: bin/mutate ## prove that the unit suites notice every change of the chart [CHART=path]
	@bin/mutate -- "$$CHART"

.PHONY: mutate-go
mutate-go: bin/mutatego ## prove that the tests of the Go code that decides notice every fault [PACKAGE="folder…"]
	@bin/mutatego $$PACKAGE

.PHONY: fuzz-values
fuzz-values: bin/fuzzvalues ## every value is refused with its path or rendered unchanged [FUZZ_FLAGS="-seed 7 -n 22000"]
	@set -f; bin/fuzzvalues $$FUZZ_FLAGS charts/kubevirt

.PHONY: verify
verify: bin/helm-docs ## generated files, go.mod files and formatting are as they should be
	@hack/verify.sh

.PHONY: contract
contract: $(BUILT_HELM) bin/gotestsum ## KubeVirt's own code, v1.9.0 and v1.8.4, judges the rendered CR [VALUES=file]
	@hack/contract.sh
	@hack/gotest.sh images tests/kubevirt ./cmd/images ./cmd/impact

.PHONY: rehearsal
rehearsal: $(BUILT_HELM) $(CLUSTER) bin/gotestsum bin/package bin/push bin/kubectl-drain_preview bin/impact ## drains and upgrades on a real control plane [RUN=name of scenarios] [MANY=50,100,200]
	@hack/rehearsal.sh

.PHONY: rehearsal-up
rehearsal-up: $(BUILT_HELM) $(CLUSTER) bin/kubectl-drain_preview ## keep a whole cluster up, with a VM of every kind, until ^C [KUBEVIRT_VERSION=v1.8.4]
	@cd tests/kubevirt/rehearsal && go test -vet=off -count=1 -timeout 0 -tags up -run '^TestStaysUp$$'

.PHONY: e2e
e2e: bin/chainsaw bin/kubectl-drain_preview ## ask a live cluster whether it would let a VM go: KUBECONFIG=path [VM=ns/name] [STORAGE_CLASS=…] [REQUIRE_BRANCHES=…]
	@tests/e2e/run.sh bin/chainsaw bin/kubectl-drain_preview

.PHONY: e2e-test
e2e-test: $(BUILT_HELM) $(CONTROL_PLANE) bin/gotestsum bin/chainsaw bin/kubectl bin/kubectl-drain_preview bin/shfmt ## that suite, against right answers and every wrong one
	@hack/gotest.sh $@ tests/kubevirt -timeout 10m ./e2e

.PHONY: workers
workers: $(CONTROL_PLANE) bin/gotestsum ## what Cluster API's own controllers do with a marked worker
	@hack/gotest.sh $@ tests/workers .

.PHONY: helms
helms: $(BUILT_HELM) $(BUILT_HELM_UNITTEST) bin/gotestsum bin/helm-oldest bin/helm4 ## every Helm renders the same bytes, for every Kubernetes that KubeVirt supports
	@hack/gotest.sh $@ . ./tests/helms

.PHONY: flux
flux: $(BUILT_HELM) bin/gotestsum ## the Flux example, against Flux's own API
	@hack/gotest.sh $@ . ./tests/flux

.PHONY: golangci-lint
golangci-lint: bin/golangci-lint ## golangci-lint over every module; takes minutes to build, so the workflow runs it and make test does not
	@hack/each_module.sh "$$PWD/bin/golangci-lint" run --config "$$PWD/.golangci.yaml" ./...

.PHONY: govulncheck
govulncheck: bin/govulncheck ## known holes in what we ship and in our tools; asks the vulnerability database
	@bin/govulncheck ./hack/... && bin/govulncheck -C cmd/kubectl-drain_preview ./...

.PHONY: shellcheck
shellcheck: ## shellcheck over every script; apt-get install shellcheck
	@git ls-files -z '*.sh' .ci/run | xargs -0 shellcheck --external-sources --source-path=SCRIPTDIR

.PHONY: bench
bench: $(BUILT_HELM) ## how long rendering takes, make update beside a chain of sed, and a preview of 10,000 VMs
	go test -run '^$$' -bench . ./tests/render
	go test -run '^$$' -bench . -benchtime 100x ./hack/update
	go -C cmd/kubectl-drain_preview test -run '^$$' -bench . -benchtime 5x ./internal/command

##@ Maintain
.PHONY: update
update: bin/update ## re-apply the parameterization to a hand-merged CR [CR_FILE=path]
	@bin/update -- "$$CR_FILE"

.PHONY: update-check
update-check: bin/update ## say what update would do, exit 1 if anything [CR_FILE=path]
	@bin/update -check -- "$$CR_FILE"

.PHONY: bump
bump: ## move the pinned KubeVirt everywhere it stands: KUBEVIRT_VERSION=vX.Y.Z
	@go run ./hack/bump "$$KUBEVIRT_VERSION"

.PHONY: docs
docs: bin/helm-docs ## write what is generated: the chart's README, its changes and breaking changes, the preview's manual
	@bin/helm-docs --log-level warning --chart-search-root "$$CHART"
	@go run ./hack/changes
	@go -C cmd/kubectl-drain_preview run ./internal/manual "$$PWD/docs/manual"

.PHONY: tools
tools: bin/helm bin/helm-unittest bin/helm-docs bin/gotestsum bin/shfmt $(OWN:%=bin/%) bin/kubectl-drain_preview ## build what make test needs into bin/
	@echo "$(words $^) programs"

.PHONY: prove-tools
prove-tools: $(CLUSTER) bin/chainsaw bin/helm4 bin/helm-oldest $(RELEASE) $(INSTALL) ## build what make prove needs besides
	@echo "$(words $^) programs"

# What is built from the module that pins it: binary, folder of its go.mod, package, flags. hack/tools/ holds the modules
# of those that can't share the root's versions.
define tool
bin/$(1): $(2)/go.mod $(2)/go.sum
	@go -C $(2) build $(4) -ldflags "-s -w" -o "$$$$PWD/$$@" $(3) && touch $$@
endef
$(eval $(call tool,helm,.,helm.sh/helm/v3/cmd/helm))
$(eval $(call tool,helm-unittest,.,github.com/helm-unittest/helm-unittest/cmd/helm-unittest))
$(eval $(call tool,helm4,.,helm.sh/helm/v4/cmd/helm))
$(eval $(call tool,helm-docs,.,github.com/norwoodj/helm-docs/cmd/helm-docs))
$(eval $(call tool,gotestsum,.,gotest.tools/gotestsum))
$(eval $(call tool,shfmt,.,mvdan.cc/sh/v3/cmd/shfmt))
$(eval $(call tool,etcd,hack/tools/kubernetes,go.etcd.io/etcd/server/v3))
$(eval $(call tool,helm-oldest,hack/tools/kubernetes,helm.sh/helm/v3/cmd/helm))
$(eval $(call tool,chainsaw,hack/tools/chainsaw,github.com/kyverno/chainsaw))
$(eval $(call tool,golangci-lint,hack/tools/golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call tool,govulncheck,hack/tools/golangci-lint,golang.org/x/vuln/cmd/govulncheck))
$(eval $(call tool,goreleaser,hack/tools/release,github.com/goreleaser/goreleaser/v2))
$(eval $(call tool,krew,hack/tools/release,sigs.k8s.io/krew/cmd/krew))
$(eval $(call tool,validate-krew-manifest,hack/tools/release,sigs.k8s.io/krew/cmd/validate-krew-manifest))
# It writes its own checksum into what it makes, so it has to be the same wherever it is built.
$(eval $(call tool,cyclonedx-gomod,hack/tools/release,github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,-trimpath -buildvcs=false))

# Kubernetes in one binary by four names. It takes its version from the linker, and without one passes for v0.0.0.
bin/kubernetes: $(wildcard hack/tools/kubernetes/*)
	@go -C hack/tools/kubernetes build -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$(go -C hack/tools/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes)" -o "$$PWD/$@" . && touch $@
$(KUBERNETES:%=bin/%): bin/kubernetes
	@ln -sf kubernetes $@

# KubeVirt's control plane: version, go.mod. virt-exportproxy is a program of its own.
define kubevirt
bin/kubevirt-$(1)/controlplane: tests/kubevirt/$(2) $(wildcard tests/kubevirt/cmd/controlplane/*)
	@mkdir -p $$(@D)
	@go -C tests/kubevirt build -modfile=$(2) -ldflags "-s -w -X kubevirt.io/client-go/version.gitVersion=$(1)" -o "$$$$PWD/$$(@D)/" ./cmd/controlplane kubevirt.io/kubevirt/cmd/virt-exportproxy
	@for name in virt-operator virt-api virt-controller operator-manifest; do ln -sf controlplane $$(@D)/$$$$name; done
	@touch $$@
endef
$(eval $(call kubevirt,$(KUBEVIRT),go.mod))
$(eval $(call kubevirt,$(KUBEVIRT_BEFORE),go.v1.8.mod))
bin/launcher: tests/kubevirt/cmd/launcher/main.go
	@[ "$$(uname)" = Linux ] || { echo "the rehearsal runs on Linux only: its pods are processes in namespaces of their own" >&2; exit 1; }
	@go -C tests/kubevirt build -ldflags "-s -w" -o "$$PWD/$@" ./cmd/launcher && touch $@

$(OWN:%=bin/%): bin/%: go.mod go.sum $(filter-out %_test.go,$(wildcard hack/*/*.go hack/internal/*/*.go internal/*/*.go))
	@go build -o $@ ./hack/$* && touch $@

bin/mutatego: hack/mutatego/equivalent.yaml

bin/impact: $(shell find tests/kubevirt/cmd/impact tests/kubevirt/internal cmd/kubectl-drain_preview internal tests/kubevirt/go.* -name 'go.*' -o -name '*.go' ! -name '*_test.go')
	@go -C tests/kubevirt build -o "$$PWD/$@" ./cmd/impact && touch $@

bin/kubectl-drain_preview: $(shell find cmd/kubectl-drain_preview -name 'go.*' -o -name '*.go' ! -name '*_test.go')
	@go -C cmd/kubectl-drain_preview build -o "$$PWD/$@" . && touch $@
