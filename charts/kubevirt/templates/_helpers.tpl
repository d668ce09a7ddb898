{{- /* Named helpers: what needs more than a line in a template. Values that a schema can judge are
       judged by values.schema.json before any of this runs; what is left is refused here. */}}

{{- /* Refuses what the schema cannot see; renders nothing. */}}
{{- define "cozy-kubevirt.checkValues" -}}
{{- include "cozy-kubevirt.checkParent" . -}}
{{- include "cozy-kubevirt.checkOperator" . -}}
{{- include "cozy-kubevirt.checkFeatureGates" . -}}
{{- include "cozy-kubevirt.checkHostDevices" . -}}
{{- include "cozy-kubevirt.checkMediatedDeviceTypes" . -}}
{{- include "cozy-kubevirt.checkMigrations" . -}}
{{- end }}

{{- /* The platform gives its values to releases, and Helm hands a subchart only what stands under its name. */}}
{{- define "cozy-kubevirt.checkParent" -}}
{{- if not (or .Chart.IsRoot (compact (values (.Values._cluster | default dict)))) }}
{{- fail (printf "_cluster: not set, and %s is a subchart here, which the platform's values do not reach: the export proxy would not be exposed, and nobody told; install it as a release of its own, or set %s._cluster.expose-services in the parent's values (\"none\" exposes nothing)" .Chart.Name .Chart.Name) }}
{{- end }}
{{- end }}

{{- /* An older operator reads this CR otherwise: v1.8.4 turns a Beta gate on only where it is listed, so exports and
       disk expansion would go off. A render without a cluster sees no operator. The version is the environment
       variable of KubeVirt's own manifest, else the image's tag; what is not a version says nothing. */}}
{{- define "cozy-kubevirt.checkOperator" -}}
{{- $operator := lookup "apps/v1" "Deployment" .Release.Namespace "virt-operator" | default dict }}
{{- range dig "spec" "template" "spec" "containers" list $operator }}
{{- if eq .name "virt-operator" }}
{{- $version := regexFind ":[^:/@]+(@|$)" (.image | default "") | trimPrefix ":" | trimSuffix "@" }}
{{- range .env }}
{{- if eq .name "KUBEVIRT_VERSION" }}
{{- $version = .value | default $version }}
{{- end }}
{{- end }}
{{- if regexMatch "^v?[0-9]+\\.[0-9]+\\.[0-9]+([-+_].*)?$" $version }}
{{- if semverCompare (printf "<%s-0" $.Chart.AppVersion) (regexFind "[0-9]+\\.[0-9]+\\.[0-9]+" $version) }}
{{- fail (printf "the operator in namespace %s is KubeVirt %s, and this package needs %s or newer: under an older one it switches VM exports and disk expansion off; upgrade the operator first, then this package" $.Release.Namespace $version $.Chart.AppVersion) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A gate in both lists is accepted when the CR is created and refused by KubeVirt at its next change
       (pkg/virt-operator/webhooks/kubevirt-update-admitter.go:508-531). The chart's own lists are the two blocks in
       templates/kubevirt-cr.yaml. */}}
{{- define "cozy-kubevirt.checkFeatureGates" -}}
{{- $own := include "cozy-kubevirt.featureGates" . | fromYamlArray }}
{{- $ownDisabled := include "cozy-kubevirt.disabledFeatureGates" . | fromYamlArray }}
{{- $extra := .Values.extraFeatureGates }}
{{- range $i, $gate := $extra }}
{{- if has $gate $ownDisabled }}
{{- fail (printf "extraFeatureGates[%d]: %q is disabled by the chart itself (templates/kubevirt-cr.yaml, disabledFeatureGates), because nothing on the platform uses what it deploys; remove it from extraFeatureGates" $i $gate) }}
{{- end }}
{{- end }}
{{- range $i, $gate := .Values.disabledFeatureGates }}
{{- if has $gate $own }}
{{- fail (printf "disabledFeatureGates[%d]: %q is enabled by the chart itself (templates/kubevirt-cr.yaml, featureGates), because the platform needs it; remove it from disabledFeatureGates" $i $gate) }}
{{- end }}
{{- range $j, $enabled := $extra }}
{{- if eq $gate $enabled }}
{{- fail (printf "disabledFeatureGates[%d]: %q is enabled by extraFeatureGates[%d] too, and KubeVirt refuses a gate in both lists; keep one of the two" $i $gate $j) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Arguments: the root, the name of the chart's own list, the values' list. What the values ask for beside the
       chart's own, as a YAML list, in order: a gate is named once. */}}
{{- define "cozy-kubevirt.otherGates" -}}
{{- $own := include (index . 1) (index . 0) | fromYamlArray }}
{{- range index . 2 | default list | uniq }}
{{- if not (has . $own) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* "true" while the cluster cannot serve image volumes (Kubernetes below 1.35) and nobody asked for them. */}}
{{- define "cozy-kubevirt.disablesImageVolume" -}}
{{- if and (semverCompare "<1.35-0" .Capabilities.KubeVersion.Version) (not (has "ImageVolume" .Values.extraFeatureGates)) -}}
true
{{- end }}
{{- end }}

{{- /* What KubeVirt would drop without a word. It reads the selector of a record only where it serves the device
       itself, and keeps one resource name a selector: the last for PCI and mediated devices, the first for USB
       (pkg/virt-handler/device-manager/device_controller.go:264-266,281-284 and usb_device.go:575-597). */}}
{{- define "cozy-kubevirt.checkHostDevices" -}}
{{- with .Values.permittedHostDevices }}
{{- $seen := dict }}
{{- range $i, $device := .pciHostDevices }}
{{- if not .externalResourceProvider }}
{{- $record := printf "permittedHostDevices.pciHostDevices[%d]" $i }}
{{- $path := printf "%s.pciVendorSelector" $record }}
{{- if not (regexMatch "^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}$" .pciVendorSelector) }}
{{- fail (printf "%s: %q is not a vendor and device id in hex, VVVV:DDDD, so KubeVirt would find no device; write the id, or set %s.externalResourceProvider where another device plugin serves the device" $path .pciVendorSelector $record) }}
{{- end }}
{{- include "cozy-kubevirt.refuseOtherName" (list $seen (lower .pciVendorSelector) .resourceName $path) }}
{{- end }}
{{- end }}
{{- $seen = dict }}
{{- range $i, $device := .mediatedDevices }}
{{- if not .externalResourceProvider }}
{{- include "cozy-kubevirt.refuseOtherName" (list $seen (replace " " "_" .mdevNameSelector) .resourceName (printf "permittedHostDevices.mediatedDevices[%d].mdevNameSelector" $i)) }}
{{- end }}
{{- end }}
{{- include "cozy-kubevirt.checkUSB" .usb }}
{{- end }}
{{- end }}

{{- /* Arguments: the resource names seen so far by selector (written to), this selector, its resource name, its path. */}}
{{- define "cozy-kubevirt.refuseOtherName" -}}
{{- $seen := index . 0 }}
{{- $selector := index . 1 }}
{{- $name := index . 2 }}
{{- $path := index . 3 }}
{{- with get $seen $selector }}
{{- if ne .name $name }}
{{- fail (printf "%s: %q is served as %q, and by %s as %q, and KubeVirt would heed only one of them; remove one" $path $selector $name .path .name) }}
{{- end }}
{{- end }}
{{- $_ := set $seen $selector (dict "name" $name "path" $path) }}
{{- end }}

{{- /* A record takes devices as long as it finds one for each of its selectors, so a later record that needs all of
       them too gets none; and a selector that stands twice in a record finds one device twice (usb_device.go:506-528). */}}
{{- define "cozy-kubevirt.checkUSB" -}}
{{- $served := list }}
{{- range $i, $device := . }}
{{- $record := printf "permittedHostDevices.usb[%d]" $i }}
{{- $path := printf "%s.selectors" $record }}
{{- $selectors := list }}
{{- if not (or .selectors .externalResourceProvider) }}
{{- fail (printf "%s: not set, and KubeVirt would look for devices without an end (usb_device.go:589); name the devices, or set %s.externalResourceProvider where another device plugin serves them" $path $record) }}
{{- end }}
{{- range $j, $selector := .selectors }}
{{- $id := printf "%s:%s" (regexFind "[1-9a-f].*|0$" (lower .vendor)) (regexFind "[1-9a-f].*|0$" (lower .product)) }}
{{- if and (has $id $selectors) (not $device.externalResourceProvider) }}
{{- fail (printf "%s[%d]: \"%s:%s\" stands twice in this record, and KubeVirt would give a VM one device for both; remove one" $path $j .vendor .product) }}
{{- end }}
{{- $selectors = append $selectors $id }}
{{- end }}
{{- if and $selectors (not .externalResourceProvider) }}
{{- range $earlier := $served }}
{{- $left := $earlier.selectors }}
{{- range $selectors }}
{{- $left = without $left . }}
{{- end }}
{{- $same := and (eq $earlier.name $device.resourceName) (eq (len $selectors) (len $earlier.selectors)) }}
{{- if not (or $left $same) }}
{{- fail (printf "%s: %s takes every device that this record needs, so KubeVirt would find none for %q; remove one of the two" $path $earlier.path $device.resourceName) }}
{{- end }}
{{- end }}
{{- $served = append $served (dict "name" .resourceName "selectors" $selectors "path" $path) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* KubeVirt reads the deprecated spelling only where the other is empty (pkg/virt-config/virt-config.go:362-384). */}}
{{- define "cozy-kubevirt.checkMediatedDeviceTypes" -}}
{{- with .Values.mediatedDevicesConfiguration }}
{{- include "cozy-kubevirt.refuseUnread" (list . "mediatedDevicesConfiguration") }}
{{- range $i, $node := .nodeMediatedDeviceTypes }}
{{- include "cozy-kubevirt.refuseUnread" (list . (printf "mediatedDevicesConfiguration.nodeMediatedDeviceTypes[%d]" $i)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Arguments: what may hold both spellings, its path. */}}
{{- define "cozy-kubevirt.refuseUnread" -}}
{{- $path := index . 1 }}
{{- with index . 0 }}
{{- $read := .mediatedDeviceTypes }}
{{- range $i, $type := .mediatedDevicesTypes }}
{{- if and $read (not (has $type $read)) }}
{{- fail (printf "%s.mediatedDevicesTypes[%d]: %q would not be read, since %s.mediatedDeviceTypes is set too; move it there" $path $i $type $path) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* KubeVirt heeds maxDowntimeMs only under the gate, and refuses to change it without
       (pkg/virt-operator/webhooks/kubevirt-update-admitter.go:579-591). */}}
{{- define "cozy-kubevirt.checkMigrations" -}}
{{- if and (.Values.migrations).maxDowntimeMs (not (has "MigrationStallDetection" .Values.extraFeatureGates)) }}
{{- fail "migrations.maxDowntimeMs: KubeVirt heeds it only with the feature gate MigrationStallDetection, and refuses to change it without; add the gate to extraFeatureGates, or remove the value" }}
{{- end }}
{{- end }}

{{- /* How live migrations run, indented for their place in the CR; empty if nothing is set. A 0 and a false are set. */}}
{{- define "cozy-kubevirt.migrations" -}}
{{- range $field, $value := .Values.migrations }}
{{- if kindIs "string" $value }}
{{- with $value }}
      {{ $field }}: {{ . | quote }}
{{- end }}
{{- else if kindIs "bool" $value }}
      {{ $field }}: {{ $value }}
{{- else if not (kindIs "invalid" $value) }}
      {{ $field }}: {{ int64 $value }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The devices, indented for their place in the CR; empty if there are none. Field by field, so that a null
       is left out. */}}
{{- define "cozy-kubevirt.permittedHostDevices" -}}
{{- with .Values.permittedHostDevices }}
{{- with .pciHostDevices }}
      pciHostDevices:
      {{- range . }}
      - pciVendorSelector: {{ .pciVendorSelector | quote }}
        resourceName: {{ .resourceName }}
        {{- include "cozy-kubevirt.externalResourceProvider" . }}
      {{- end }}
{{- end }}
{{- with .mediatedDevices }}
      mediatedDevices:
      {{- range . }}
      - mdevNameSelector: {{ .mdevNameSelector | quote }}
        resourceName: {{ .resourceName }}
        {{- include "cozy-kubevirt.externalResourceProvider" . }}
      {{- end }}
{{- end }}
{{- with .usb }}
      usb:
      {{- range . }}
      - resourceName: {{ .resourceName }}
        {{- include "cozy-kubevirt.externalResourceProvider" . }}
        {{- with .selectors }}
        selectors:
        {{- range . }}
        - vendor: {{ .vendor | quote }}
          product: {{ .product | quote }}
        {{- end }}
        {{- end }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cozy-kubevirt.externalResourceProvider" -}}
{{- if kindIs "bool" .externalResourceProvider }}
        externalResourceProvider: {{ .externalResourceProvider }}
{{- end }}
{{- end }}

{{- /* The configuration, indented for its place in the CR; empty if nothing in it is set. */}}
{{- define "cozy-kubevirt.mediatedDevicesConfiguration" -}}
{{- with .Values.mediatedDevicesConfiguration }}
{{- if kindIs "bool" .enabled }}
      enabled: {{ .enabled }}
{{- end }}
{{- with .mediatedDeviceTypes }}
      mediatedDeviceTypes: {{ toJson . }}
{{- end }}
{{- with .mediatedDevicesTypes }}
      mediatedDevicesTypes: {{ toJson . }}
{{- end }}
{{- with .nodeMediatedDeviceTypes }}
      nodeMediatedDeviceTypes:
      {{- range . }}
      - nodeSelector: {{ toJson .nodeSelector }}
        {{- with .mediatedDeviceTypes }}
        mediatedDeviceTypes: {{ toJson . }}
        {{- end }}
        {{- with .mediatedDevicesTypes }}
        mediatedDevicesTypes: {{ toJson . }}
        {{- end }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cozy-kubevirt.monitorNamespace" -}}
{{- .Values.monitorNamespace | default "tenant-root" }}
{{- end }}

{{- /* The strategic merge patch of the virt-handler DaemonSet, in JSON: what the package changes, overlaid by every
       quantity that is set in virtHandler.resources. What it leaves out stays as KubeVirt has it, so a limit must
       also hold KubeVirt's own memory request, 325Mi (pkg/virt-operator/resource/generate/components/daemonsets.go:375). */}}
{{- define "cozy-kubevirt.virtHandlerPatch" -}}
{{- $resources := dict "requests" (dict "cpu" "100m") "limits" (dict "memory" "2Gi") }}
{{- range $kind, $quantities := (.Values.virtHandler).resources }}
{{- range $name, $quantity := $quantities }}
{{- with $quantity }}
{{- $_ := set (index $resources $kind) $name (kindIs "string" . | ternary . (int64 . | toString)) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $limit := $resources.limits }}
{{- $request := get $resources.requests $name | default "325Mi" }}
{{- if gt (include "cozy-kubevirt.quantity" $request) (include "cozy-kubevirt.quantity" $limit) }}
{{- $whose := hasKey $resources.requests $name | ternary "" " (KubeVirt's own, since none is set)" }}
{{- fail (printf "virtHandler.resources.requests.%s: %q%s is more than virtHandler.resources.limits.%s, %q, and Kubernetes would refuse the DaemonSet; lower the request or raise the limit" $name $request $whose $name $limit) }}
{{- end }}
{{- end }}
{{- $container := dict "name" "virt-handler" "resources" $resources }}
{{- dict "spec" (dict "template" (dict "spec" (dict "containers" (list $container)))) | toJson }}
{{- end }}

{{- /* A Kubernetes quantity as text that sorts as it does: its nanos in full, their count before them. To the digit, since
       a float would take two quantities beyond 2^53 for one; rounded up to a nano and, with a binary suffix, cut at 2^63-1,
       as Kubernetes does (k8s.io/apimachinery v0.34.2 pkg/api/resource/quantity.go:374-385). */}}
{{- define "cozy-kubevirt.quantity" -}}
{{- $number := regexFind "^[0-9.]+" . }}
{{- $suffix := trimPrefix $number . }}
{{- $tens := dict "n" -9 "u" -6 "m" -3 "k" 3 "M" 6 "G" 9 "T" 12 "P" 15 "E" 18 }}
{{- $binary := dict "Ki" 1 "Mi" 2 "Gi" 3 "Ti" 4 "Pi" 5 "Ei" 6 }}
{{- $digits := replace "." "" $number }}
{{- range until (get $binary $suffix | default 0) }}
{{- $digits = include "cozy-kubevirt.multiply" (list $digits 1024 0) }}
{{- end }}
{{- $exponent := get $tens $suffix | default (regexFind "[-+]?[0-9]{1,2}$" $suffix | atoi) }}
{{- $fraction := regexFind "\\..*" $number | trimPrefix "." }}
{{- /* What is below a nano: 99 digits of an exponent, and 31 of a fraction. */}}
{{- $digits = repeat (sub (add $exponent 139) (len $fraction) | int) "0" | printf "%0130d%s%s" 0 $digits }}
{{- $below := regexFind ".{130}$" $digits }}
{{- $whole := trimSuffix $below $digits | regexFind "[1-9].*" }}
{{- $nanos := include "cozy-kubevirt.multiply" (list $whole 1 (regexMatch "[1-9]" $below | ternary 1 0)) | regexFind "[1-9].*" }}
{{- $sortable := printf "%03d%s" (len $nanos) $nanos }}
{{- $most := "0289223372036854775807000000000" }}
{{- and (hasKey $binary $suffix) (gt $sortable $most) | ternary $most $sortable }}
{{- end }}

{{- /* Arguments: digits, a factor, what to add. A product of any length, by groups of 15 digits. */}}
{{- define "cozy-kubevirt.multiply" -}}
{{- $factor := index . 1 }}
{{- $carry := index . 2 }}
{{- $product := "" }}
{{- $digits := printf "%s%s" (repeat (sub 30 (mod (len (index . 0)) 15) | int) "0") (index . 0) }}
{{- range regexFindAll ".{15}" $digits -1 | reverse }}
{{- $sum := add (mul (atoi .) $factor) $carry }}
{{- $product = printf "%015d%s" (mod $sum 1000000000000000) $product }}
{{- $carry = div $sum 1000000000000000 }}
{{- end }}
{{- $product }}
{{- end }}

{{- /* How the export proxy is exposed: "Ingress", "TLSRoute" or, when it is not, nothing. Of _cluster, which is the
       platform's, only the keys are checked that are used, and only once they are. */}}
{{- define "cozy-kubevirt.exportProxyRoute" -}}
{{- $exposed := false }}
{{- range include "cozy-kubevirt.cluster" (list . "expose-services" "names joined by commas" "") | splitList "," }}
{{- $exposed = or $exposed (eq (trim .) "vm-exportproxy") }}
{{- end }}
{{- if $exposed }}
{{- $cluster := .Values._cluster }}{{/* get takes a null only out of a variable */}}
{{- $gateway := get $cluster "gateway-enabled" }}
{{- if not (or (kindIs "invalid" $gateway) (kindIs "bool" $gateway) (and (kindIs "string" $gateway) (regexMatch "^(?i:true|false)?$" $gateway))) }}
{{- fail (printf "_cluster.gateway-enabled: got %s, want \"true\" or \"false\", by which the export proxy is exposed; correct it" (toJson $gateway)) }}
{{- end }}
{{- eq (toString $gateway | lower) "true" | ternary "TLSRoute" "Ingress" }}
{{- end }}
{{- end }}

{{- /* Arguments: the root, a key of _cluster, what it must be in words, and a pattern for what is set ("": any).
       Renders the value, or nothing where it is not set. */}}
{{- define "cozy-kubevirt.cluster" -}}
{{- $cluster := (index . 0).Values._cluster }}
{{- $key := index . 1 }}
{{- $value := get $cluster $key }}
{{- if not (or (kindIs "invalid" $value) (and (kindIs "string" $value) (regexMatch (index . 3) $value))) }}
{{- fail (printf "_cluster.%s: got %s, want a string, %s; quote or correct it" $key (toJson $value) (index . 2)) }}
{{- end }}
{{- $value | default "" }}
{{- end }}

{{- define "cozy-kubevirt.exportProxyHost" -}}
{{- with include "cozy-kubevirt.cluster" (list . "root-host" "a domain of at most 238 characters, in lower case" "^(?:(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\\.)*[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)?$") -}}
{{- if gt (len .) 238 }}
{{- fail (printf "_cluster.root-host: %d characters, want at most 238, so that vm-exportproxy.<root-host> is a host name" (len .)) }}
{{- end -}}
vm-exportproxy.{{ . }}
{{- else }}
{{- fail "_cluster.root-host: not set, but _cluster.expose-services lists vm-exportproxy, which is exposed at vm-exportproxy.<root-host>; set it, or remove vm-exportproxy from the list" }}
{{- end }}
{{- end }}

{{- /* The ingress class, and with the gateway on the namespace that the Gateway stands in. */}}
{{- define "cozy-kubevirt.exposeIngress" -}}
{{- include "cozy-kubevirt.cluster" (list . "expose-ingress" "the name of an ingress class and namespace" "^(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)?$") | default "tenant-root" }}
{{- end }}

{{- /* The newest TLSRoute that the cluster serves. Without a cluster Helm knows of none: v1, which Gateway
       API 1.6 serves. Asked by kind, since older releases serve other kinds under v1. */}}
{{- define "cozy-kubevirt.tlsRouteAPIVersion" -}}
{{- $served := "v1" }}
{{- range list "v1alpha2" "v1alpha3" "v1" }}
{{- if $.Capabilities.APIVersions.Has (printf "gateway.networking.k8s.io/%s/TLSRoute" .) }}
{{- $served = . }}
{{- end }}
{{- end -}}
gateway.networking.k8s.io/{{ $served }}
{{- end }}
