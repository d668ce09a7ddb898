// Package core stands in for KubeVirt's virt-template API, which does not resolve everywhere: just the names that
// KubeVirt's packages need to compile. The chart disables virt-template, and no test depends on what stands here.
package core

const (
	GroupName            = "template.kubevirt.io"
	SingularResourceName = "virtualmachinetemplate"
	PluralResourceName   = "virtualmachinetemplates"
)
