package main

// What the package adds to upstream's KubeVirt CR, as data: the blocks that `make update` restores, the
// policy that it insists on, and the lines that it names when it cannot find its way.

import "strings"

// A place says where a block stands, seen from the key it is anchored to.
type place int

const (
	endOfFile  place = iota
	firstKey         // on the line after the anchor's, above comments and the keys of its mapping
	aboveItems       // on the line after the anchor's, above comments and the items of its list
	belowItems       // after the last line of the last item of the anchor's list
	after            // after the last line of the anchor's value
	before           // on the line before the anchor's, above the comment block that stands there
)

// A block is one directive and its end: the least that can be lost. It is there only if all of its lines are, at
// its place, once. A directive around lines that are not ours is two blocks, its beginning and its end, and such
// an end, which looks like any other, is known by its place alone.
type block struct {
	name   string
	place  place
	anchor string // the path of a key; none at the end of the file
	text   string // whole lines

	// owns is the path that nothing but this block may fill, if there is one: a key, or an item in brackets.
	owns string
	// upstream are the values that upstream has at owns, which the block replaces where they stand. Such a
	// block may then stand anywhere under its parent; the place is where it goes when the key is lost too.
	upstream []string
}

// The order is that of the file, and decides between blocks at one place.
var blocks = []block{{
	name:     "namespace",
	place:    after,
	anchor:   "metadata.name",
	owns:     "metadata.namespace",
	upstream: []string{"kubevirt"},
	text: `
  namespace: {{ .Release.Namespace | quote }}`,
}, {
	name:   "cpuAllocationRatio",
	place:  firstKey,
	anchor: "spec.configuration.developerConfiguration",
	owns:   "spec.configuration.developerConfiguration.cpuAllocationRatio",
	text: `
      {{- with int64 .Values.cpuAllocationRatio }}
      cpuAllocationRatio: {{ . }}
      {{- end }}`,
}, {
	// The gates themselves are upstream's business and ours: plain items between this block and its end.
	name:   "featureGates-begin",
	place:  aboveItems,
	anchor: "spec.configuration.developerConfiguration.featureGates",
	text: `
      {{- block "cozy-kubevirt.featureGates" . }}`,
}, {
	name:   "featureGates-end",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.featureGates",
	text: `
      {{- end }}`,
}, {
	name:   "extraFeatureGates",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.featureGates",
	text: `
      {{- range include "cozy-kubevirt.otherGates" (list . "cozy-kubevirt.featureGates" .Values.extraFeatureGates) | fromYamlArray }}
      - {{ . | quote }}
      {{- end }}`,
}, {
	name:   "disabledFeatureGates-begin",
	place:  aboveItems,
	anchor: "spec.configuration.developerConfiguration.disabledFeatureGates",
	text: `
      {{- block "cozy-kubevirt.disabledFeatureGates" . }}`,
}, {
	name:   "ExternalNetResourceInjection",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.disabledFeatureGates",
	owns:   "spec.configuration.developerConfiguration.disabledFeatureGates[ExternalNetResourceInjection]",
	text: `
      {{- if not (has "ExternalNetResourceInjection" .Values.extraFeatureGates) }}
      {{- /* On by default, virt-controller leaves the devices of a VM's network attachments to an injector of another
             project (pkg/virt-controller/services/template.go:428), and the platform has none. */}}
      - ExternalNetResourceInjection
      {{- end }}`,
}, {
	name:   "ImageVolume",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.disabledFeatureGates",
	owns:   "spec.configuration.developerConfiguration.disabledFeatureGates[ImageVolume]",
	text: `
      {{- if include "cozy-kubevirt.disablesImageVolume" . }}
      - ImageVolume
      {{- end }}`,
}, {
	name:   "disabledFeatureGates-end",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.disabledFeatureGates",
	text: `
      {{- end }}`,
}, {
	name:   "more-disabledFeatureGates",
	place:  belowItems,
	anchor: "spec.configuration.developerConfiguration.disabledFeatureGates",
	text: `
      {{- range include "cozy-kubevirt.otherGates" (list . "cozy-kubevirt.disabledFeatureGates" .Values.disabledFeatureGates) | fromYamlArray }}
      - {{ . | quote }}
      {{- end }}`,
}, {
	name:   "permittedHostDevices",
	place:  before,
	anchor: "spec.configuration.evictionStrategy",
	owns:   "spec.configuration.permittedHostDevices",
	text: `
    {{- with include "cozy-kubevirt.permittedHostDevices" . }}
    permittedHostDevices: {{- . }}
    {{- end }}`,
}, {
	name:   "mediatedDevicesConfiguration",
	place:  before,
	anchor: "spec.configuration.evictionStrategy",
	owns:   "spec.configuration.mediatedDevicesConfiguration",
	text: `
    {{- with include "cozy-kubevirt.mediatedDevicesConfiguration" . }}
    mediatedDevicesConfiguration: {{- . }}
    {{- end }}`,
}, {
	name:   "migrations",
	place:  before,
	anchor: "spec.configuration.evictionStrategy",
	owns:   "spec.configuration.migrations",
	text: `
    {{- with include "cozy-kubevirt.migrations" . }}
    migrations: {{- . }}
    {{- end }}`,
}, {
	name:   "vmStateStorageClass",
	place:  before,
	anchor: "spec.configuration.evictionStrategy",
	owns:   "spec.configuration.vmStateStorageClass",
	text: `
    {{- with .Values.vmStateStorageClass }}
    vmStateStorageClass: {{ . | quote }}
    {{- end }}`,
}, {
	name:     "customizeComponents",
	place:    after,
	anchor:   "spec.configuration",
	owns:     "spec.customizeComponents",
	upstream: []string{"{}", ""},
	text: `
  customizeComponents:
    patches:
    {{- /* The operator owns the DaemonSet, so this patch is the only way to its resources. In silence KubeVirt
           ignores a patch whose resource it does not find, and adds a container that it does not know. */}}
    - resourceType: DaemonSet
      resourceName: virt-handler
      type: strategic
      patch: '{{ include "cozy-kubevirt.virtHandlerPatch" . }}'`,
}, {
	name:   "monitorNamespace",
	place:  before,
	anchor: "spec.uninstallStrategy",
	owns:   "spec.monitorNamespace",
	text: `
  monitorNamespace: {{ include "cozy-kubevirt.monitorNamespace" . | quote }}`,
}, {
	// Its -}} also trims the file's last line end, which Helm 4 would render and Helm 3 would not.
	name:  "checkValues",
	place: endOfFile,
	text: `
{{- include "cozy-kubevirt.checkValues" . -}}`,
}}

// A constant is a decision of the package that a hand-merge must not undo.
type constant struct {
	path  string
	value []string // one, or for a list its items in order
	list  bool
	tag   string // YAML's type of the value
}

var constants = []constant{
	{path: "spec.configuration.evictionStrategy", value: []string{"LiveMigrateIfPossible"}, tag: "!!str"},
	{path: "spec.workloadUpdateStrategy.batchEvictionInterval", value: []string{"1m"}, tag: "!!str"},
	{path: "spec.workloadUpdateStrategy.batchEvictionSize", value: []string{"10"}, tag: "!!int"},
	{path: "spec.workloadUpdateStrategy.workloadUpdateMethods", value: []string{"LiveMigrate", "Evict"}, list: true, tag: "!!str"},
}

// otherAnchors are the values, as shipped, of the anchors that are neither constants nor parents of more keys.
var otherAnchors = map[string]string{
	"metadata.name":          "kubevirt",
	"spec.uninstallStrategy": "BlockUninstallIfWorkloadsExist",
}

// shippedLines returns the lines that the package ships for a path, to be named when they are lost.
func shippedLines(path string) []string {
	indent := strings.Repeat("  ", strings.Count(path, "."))
	key := indent + path[strings.LastIndex(path, ".")+1:] + ":"
	if value, ok := otherAnchors[path]; ok {
		return []string{key + " " + value}
	}
	for _, c := range constants {
		if c.path != path {
			continue
		}
		if !c.list {
			return []string{key + " " + c.value[0]}
		}
		lines := []string{key}
		for _, item := range c.value {
			lines = append(lines, indent+"- "+item)
		}
		return lines
	}
	return []string{key}
}

// lines are the block's lines; the text begins with a line break only to be readable above.
func (b *block) lines() []string { return strings.Split(b.text[1:], "\n") }

// indent is the column, from 0, of the keys or items that the block stands among.
func (b *block) indent() int {
	first := b.lines()[0]
	return len(first) - len(strings.TrimLeft(first, " "))
}

// placeholder is upstream's line for a block that replaces one.
func (b *block) placeholder() string {
	key := b.owns[strings.LastIndex(b.owns, ".")+1:]
	return strings.Repeat(" ", b.indent()) + key + ": " + b.upstream[0]
}

// directiveEnd is the line that ends any directive.
const directiveEnd = "{{- end }}"

// isEnd reports whether the block is nothing but the end of a directive.
func (b *block) isEnd() bool { return strings.TrimSpace(b.text) == directiveEnd }

// String names the block in messages.
func (b *block) String() string { return "block " + b.name }
