package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// This file is somebody who has the rights of tests/e2e/rights.yaml and no others.

// TestTheRoleForANamedVMIsEnoughInItsNamespace runs before what compares the cluster, as all that is not parallel does.
func TestTheRoleForANamedVMIsEnoughInItsNamespace(t *testing.T) {
	kubectl(t, "apply", "--filename", filepath.Join(root, "tests", "e2e", "rights.yaml"))
	kubectl(t, "create", "serviceaccount", "asker")
	kubectl(t, "create", "rolebinding", "asker", "--clusterrole=kubevirt-e2e-named-vm", "--serviceaccount=default:asker")
	run := suite(t, kubeconfigOf(t, "asker"), "VM=default/"+migratable)
	assert.True(t, run.passed, run.output)
}

// privileged is somebody who has both roles in the whole cluster.
func privileged(t *testing.T) (kubeconfig string) {
	kubectl(t, "apply", "--filename", filepath.Join(root, "tests", "e2e", "rights.yaml"))
	kubectl(t, "create", "serviceaccount", "maker")
	for _, role := range []string{"kubevirt-e2e-named-vm", "kubevirt-e2e"} {
		kubectl(t, "create", "clusterrolebinding", "maker-"+role, "--clusterrole="+role, "--serviceaccount=default:maker")
	}
	return kubeconfigOf(t, "maker")
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), fromEnv("KUBECTL", "kubectl"), append(args, "--kubeconfig", cluster.Kubeconfig)...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", args, output)
}

func kubeconfigOf(t *testing.T, account string) string {
	t.Helper()
	token, err := cluster.Kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	require.NoError(t, err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))
	return kubeconfig
}
