package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

// registry is where a release's images come from.
const registry = "quay.io/kubevirt"

// printManifest prints the operator's objects, one JSON document a line: what KubeVirt's own kubevirt-operator.yaml holds,
// made by the same functions. Usage: operator-manifest NAMESPACE VERSION.
func printManifest() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: operator-manifest NAMESPACE VERSION")
		os.Exit(1)
	}
	namespace, version := os.Args[1], os.Args[2]
	crd, err := components.NewKubeVirtCrd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	objects := []any{
		&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"kubevirt.io": ""}},
		},
		crd,
		components.NewKubeVirtPriorityClassCR(),
	}
	objects = append(objects, rbac.GetAllOperator(namespace)...)
	objects = append(objects, components.NewOperatorDeployment(namespace, registry, "", version, "2", version,
		"", "", "", "", "", "", "", "", "", "", "", "", "", "", corev1.PullIfNotPresent))
	print := json.NewEncoder(os.Stdout)
	for _, object := range objects {
		if err := print.Encode(object); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
