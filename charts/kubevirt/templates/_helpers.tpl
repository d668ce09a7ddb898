{{- /* Named helpers: what needs more than a line in a template. Values that a schema can judge are
       judged by values.schema.json before any of this runs; what is left is refused here. */}}

{{- /* Refuses what the schema cannot see; renders nothing. */}}
{{- define "cozy-kubevirt.checkValues" -}}
{{- include "cozy-kubevirt.checkFeatureGates" . -}}
{{- include "cozy-kubevirt.checkHostDevices" . -}}
{{- end }}

{{- /* A gate in both lists is accepted when the CR is created and refused by KubeVirt at its next change.
       The chart's own lists are the two blocks in templates/kubevirt-cr.yaml. */}}
{{- define "cozy-kubevirt.checkFeatureGates" -}}
{{- $own := include "cozy-kubevirt.featureGates" . | fromYamlArray }}
{{- $ownDisabled := include "cozy-kubevirt.disabledFeatureGates" . | fromYamlArray }}
{{- $extra := .Values.extraFeatureGates }}
{{- range $i, $gate := $extra }}
{{- if has $gate $own }}
{{- fail (printf "extraFeatureGates[%d]: %q is enabled by the chart itself (templates/kubevirt-cr.yaml, featureGates); remove it from extraFeatureGates" $i $gate) }}
{{- end }}
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

{{- /* "true" while the cluster cannot serve image volumes (Kubernetes below 1.35) and nobody asked for them. */}}
{{- define "cozy-kubevirt.disablesImageVolume" -}}
{{- if and (semverCompare "<1.35-0" .Capabilities.KubeVersion.Version) (not (has "ImageVolume" .Values.extraFeatureGates)) -}}
true
{{- end }}
{{- end }}

{{- /* disabledFeatureGates less what the chart disables itself, as a YAML list: a gate is named once. */}}
{{- define "cozy-kubevirt.otherDisabledFeatureGates" -}}
{{- $own := include "cozy-kubevirt.disabledFeatureGates" . | fromYamlArray }}
{{- range .Values.disabledFeatureGates }}
{{- if not (has . $own) }}
- {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* KubeVirt keys PCI devices by the lower-case selector and mediated devices by the name with "_" for
       blanks, and the last record wins; of two USB records with one selector the first takes every device
       (pkg/virt-handler/device-manager/device_controller.go:265,282 and usb_device.go:575). */}}
{{- define "cozy-kubevirt.checkHostDevices" -}}
{{- with .Values.permittedHostDevices }}
{{- $seen := dict }}
{{- range $i, $device := .pciHostDevices }}
{{- include "cozy-kubevirt.refuseDuplicate" (list $seen (lower .pciVendorSelector) (printf "permittedHostDevices.pciHostDevices[%d].pciVendorSelector" $i)) }}
{{- end }}
{{- $seen = dict }}
{{- range $i, $device := .mediatedDevices }}
{{- include "cozy-kubevirt.refuseDuplicate" (list $seen (replace " " "_" .mdevNameSelector) (printf "permittedHostDevices.mediatedDevices[%d].mdevNameSelector" $i)) }}
{{- end }}
{{- $seen = dict }}
{{- range $i, $device := .usb }}
{{- range $j, $selector := .selectors }}
{{- include "cozy-kubevirt.refuseDuplicate" (list $seen (lower (printf "%s:%s" .vendor .product)) (printf "permittedHostDevices.usb[%d].selectors[%d]" $i $j)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Arguments: the selectors seen so far (written to), this selector, this selector's path. */}}
{{- define "cozy-kubevirt.refuseDuplicate" -}}
{{- $seen := index . 0 }}
{{- $selector := index . 1 }}
{{- $path := index . 2 }}
{{- with get $seen $selector }}
{{- fail (printf "%s: %q selects the same device as %s, and KubeVirt would heed only one of them; remove one" $path $selector .) }}
{{- end }}
{{- $_ := set $seen $selector $path }}
{{- end }}

{{- /* The devices, indented for their place in the CR; empty if there are none. Field by field, so that a null
       is left out. */}}
{{- define "cozy-kubevirt.permittedHostDevices" -}}
{{- with .Values.permittedHostDevices }}
{{- with .pciHostDevices }}
      pciHostDevices:
      {{- range . }}
      - pciVendorSelector: {{ .pciVendorSelector }}
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
{{- with .nodeMediatedDeviceTypes }}
      nodeMediatedDeviceTypes:
      {{- range . }}
      - nodeSelector: {{ toJson .nodeSelector }}
        {{- with .mediatedDeviceTypes }}
        mediatedDeviceTypes: {{ toJson . }}
        {{- end }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cozy-kubevirt.monitorNamespace" -}}
{{- .Values.monitorNamespace | default "tenant-root" }}
{{- end }}

{{- /* The strategic merge patch of the virt-handler DaemonSet, in JSON: the package's resources, overlaid
       by every quantity that is set in virtHandler.resources. */}}
{{- define "cozy-kubevirt.virtHandlerPatch" -}}
{{- $resources := dict "requests" (dict "cpu" "100m" "memory" "128Mi") "limits" (dict "memory" "2Gi") }}
{{- range $kind, $quantities := (.Values.virtHandler).resources }}
{{- range $name, $quantity := $quantities }}
{{- with $quantity }}
{{- $_ := set (index $resources $kind) $name (kindIs "string" . | ternary . (int64 . | toString)) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $limit := $resources.limits }}
{{- $request := index $resources.requests $name }}
{{- if gt (include "cozy-kubevirt.quantity" $request | float64) (include "cozy-kubevirt.quantity" $limit | float64) }}
{{- fail (printf "virtHandler.resources.requests.%s: %q is more than virtHandler.resources.limits.%s, %q, and Kubernetes would refuse the DaemonSet; lower the request or raise the limit" $name $request $name $limit) }}
{{- end }}
{{- end }}
{{- $container := dict "name" "virt-handler" "resources" $resources }}
{{- dict "spec" (dict "template" (dict "spec" (dict "containers" (list $container)))) | toJson }}
{{- end }}

{{- /* A Kubernetes quantity as a number. */}}
{{- define "cozy-kubevirt.quantity" -}}
{{- $number := regexFind "^[0-9.]+([eE][-+]?[0-9]+)?" . }}
{{- $unit := trimPrefix $number . }}
{{- $divisors := dict "n" 1e9 "u" 1e6 "m" 1e3 }}
{{- $factors := dict "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 0x1p10 "Mi" 0x1p20 "Gi" 0x1p30 "Ti" 0x1p40 "Pi" 0x1p50 "Ei" 0x1p60 }}
{{- divf (mulf $number (get $factors $unit | default 1)) (get $divisors $unit | default 1) }}
{{- end }}

{{- /* How the export proxy is exposed: "Ingress", "TLSRoute" or, when it is not, nothing. */}}
{{- define "cozy-kubevirt.exportProxyRoute" -}}
{{- $cluster := .Values._cluster }}{{/* get takes a null only out of a variable */}}
{{- $services := get $cluster "expose-services" | nospace | splitList "," }}
{{- if has "vm-exportproxy" $services }}
{{- eq (get $cluster "gateway-enabled" | toString | lower) "true" | ternary "TLSRoute" "Ingress" }}
{{- end }}
{{- end }}

{{- define "cozy-kubevirt.exportProxyHost" -}}
{{- with get .Values._cluster "root-host" -}}
vm-exportproxy.{{ . }}
{{- else }}
{{- fail "_cluster.root-host: not set, but _cluster.expose-services lists vm-exportproxy, which is exposed at vm-exportproxy.<root-host>; set it, or remove vm-exportproxy from the list" }}
{{- end }}
{{- end }}

{{- /* The ingress class, and with the gateway on the namespace that the Gateway stands in. */}}
{{- define "cozy-kubevirt.exposeIngress" -}}
{{- get .Values._cluster "expose-ingress" | default "tenant-root" }}
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
