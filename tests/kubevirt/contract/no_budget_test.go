// P9: KubeVirt keeps no PodDisruptionBudget for a VMI, so its webhook is the only guard, and it guards while it is down.
package contract

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-controller/watch/drain/disruptionbudget"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

// pkg/virt-controller/watch/drain/disruptionbudget/disruptionbudget.go:353-406.
func TestP09_TheDisruptionBudgetControllerOnlyTakesAway(t *testing.T) {
	config := clusterConfig(t, rendered(t))
	for _, own := range strategies {
		vmi := create(t, config, newVMI(own))
		leftover := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
			Namespace: vmi.Namespace, Name: "kubevirt-disruption-budget-old",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vmi, v1.VirtualMachineInstanceGroupVersionKind)},
		}}
		c := newClient()
		require.NoError(t, c.k8s.Tracker().Add(leftover))
		vmis, budgets := newInformer(), newInformer()
		controller, err := disruptionbudget.NewDisruptionBudgetController(vmis, budgets, newInformer(), newInformer(), &record.FakeRecorder{}, c)
		require.NoError(t, err)
		budgets.add(t, leftover)
		vmis.add(t, vmi)
		require.True(t, controller.Execute())
		controller.Queue.ShutDown()

		var verbs []string
		for _, action := range c.k8s.Actions() {
			verbs = append(verbs, action.GetVerb()+" "+action.GetResource().Resource)
		}
		assert.Equal(t, []string{"delete poddisruptionbudgets"}, verbs,
			"P9 is broken: a drain of a VM with strategy %q now depends on a PodDisruptionBudget too", own)
	}
}

// No other component creates one for a VMI: what writes one is virt-operator's, for KubeVirt's own
// Deployments (pkg/virt-operator/resource/apply/apps.go:459).
func TestP09_NothingInKubeVirtCreatesABudgetForAVMI(t *testing.T) {
	pkg := filepath.Join(modules.Dir(t, modules.KubeVirt), "pkg")
	uses, writes := 0, []string{}
	require.NoError(t, filepath.WalkDir(pkg, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, filepath.Join("pkg", "virt-operator")) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("PodDisruptionBudgets(")) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.SelectorExpr); is && calls(call.X, "PodDisruptionBudgets") {
				uses++
				if slices.Contains([]string{"Create", "Update", "Patch", "Apply"}, call.Sel.Name) {
					writes = append(writes, path+": "+call.Sel.Name)
				}
			}
			return true
		})
		return nil
	}))
	assert.NotZero(t, uses, "the search finds the disruption budget controller's own call")
	assert.Empty(t, writes, "P9 is broken: KubeVirt writes PodDisruptionBudgets again")
}

func calls(x ast.Expr, name string) bool {
	call, is := x.(*ast.CallExpr)
	if !is {
		return false
	}
	selector, is := call.Fun.(*ast.SelectorExpr)
	return is && selector.Sel.Name == name
}

// pkg/virt-operator/resource/generate/components/webhooks.go:319,338-375.
func TestP09_TheEvictionWebhookGuardsWhileItIsDown(t *testing.T) {
	for _, webhook := range evictionWebhooks(t) {
		require.NotNil(t, webhook.FailurePolicy)
		assert.Equal(t, admissionregistrationv1.Fail, *webhook.FailurePolicy,
			"P9 is broken: while virt-api is down, a drain deletes VMs that could have migrated (%s)", webhook.Name)
	}
}

func TestP08_TheEvictionWebhookIsAskedOnADryRunToo(t *testing.T) {
	for _, webhook := range evictionWebhooks(t) {
		require.NotNil(t, webhook.SideEffects)
		assert.Equal(t, admissionregistrationv1.SideEffectClassNoneOnDryRun, *webhook.SideEffects,
			"P8 is broken: the API server does not let a dry run through a webhook with side effects (%s)", webhook.Name)
	}
}

// evictionWebhooks are the two entries that catch evictions: of launchers and of hotplug pods.
func evictionWebhooks(t *testing.T) []admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var found []admissionregistrationv1.ValidatingWebhook
	for _, webhook := range components.NewVirtAPIValidatingWebhookConfiguration(chart.Namespace).Webhooks {
		for _, rule := range webhook.Rules {
			for _, resource := range rule.Resources {
				if resource == "pods/eviction" {
					found = append(found, webhook)
				}
			}
		}
	}
	require.Len(t, found, 2, "P9 is broken: evictions of launchers and of hotplug pods both go through virt-api")
	return found
}
