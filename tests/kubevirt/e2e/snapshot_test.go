package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

// This file is how a test sees that the cluster is as it was.

// snapshot is the version of every object in the cluster but those that change by themselves.
func snapshot(t *testing.T) map[string]string {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	require.NoError(t, err)
	config.QPS, config.Burst = 2000, 4000
	client, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	served, err := cluster.Kube.Discovery().ServerPreferredResources()
	require.NoError(t, err)
	resources, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, served))
	require.NoError(t, err)
	require.NotEmpty(t, resources)
	versions := map[string]string{}
	for resource := range resources {
		if resource.Resource == "events" || resource.Resource == "leases" {
			continue
		}
		list, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, resource)
		for _, object := range list.Items {
			versions[fmt.Sprintf("%s %s/%s", resource.GroupResource(), object.Namespace, object.Name)] =
				fmt.Sprintf("uid %s, version %s", object.UID, object.ResourceVersion)
		}
	}
	require.Contains(t, versions, "virtualmachines.kubevirt.io default/"+migratable)
	return versions
}

// changes lists what is in one snapshot and not in the other.
func changes(before, after map[string]string) (found []string) {
	for object, version := range before {
		if after[object] != version {
			found = append(found, fmt.Sprintf("%s: %s before, %q after", object, version, after[object]))
		}
	}
	for object := range after {
		if _, was := before[object]; !was {
			found = append(found, object+": new")
		}
	}
	slices.Sort(found)
	return found
}
