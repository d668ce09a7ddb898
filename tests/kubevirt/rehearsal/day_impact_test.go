package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
	"cozy-kubevirt/tests/kubevirt/internal/client"
	v1 "kubevirt.io/api/core/v1"
)

// This file holds what make impact says of a change of the CR against what KubeVirt's own operator then does: which objects it
// applies, whose pods restart, what becomes of VMs that run, and how an eviction is answered.

// edit is a change of the CR, as a merge patch, after the one before it.
type edit struct {
	name, patch string
	refused     bool
}

var edits = []edit{
	{name: "nothing", patch: `{}`},
	{name: "the eviction strategy", patch: `{"spec": {"configuration": {"evictionStrategy": "LiveMigrate"}}}`},
	{name: "a gate on", patch: `{"spec": {"configuration": {"developerConfiguration": {"featureGates": ["HotplugVolumes", "CPUManager", "HostDevices", "VGPULiveMigration"]}}}}`},
	{name: "a gate off", patch: `{"spec": {"configuration": {"developerConfiguration": {"featureGates": ["HotplugVolumes", "HostDevices", "VGPULiveMigration"]}}}}`},
	{name: "migrations", patch: `{"spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": 9}}}}`},
	{name: "the updater's pace", patch: `{"spec": {"workloadUpdateStrategy": {"batchEvictionSize": 3}}}`},
	{name: "update methods", patch: `{"spec": {"workloadUpdateStrategy": {"workloadUpdateMethods": ["LiveMigrate"]}}}`},
	{name: "virt-handler's memory", patch: `{"spec": {"customizeComponents": {"patches": [{"resourceType": "DaemonSet", "resourceName": "virt-handler", "type": "strategic",
		"patch": "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"virt-handler\",\"resources\":{\"limits\":{\"memory\":\"3Gi\"}}}]}}}}"}]}}}`},
	{name: "VMs per node", patch: `{"spec": {"configuration": {"virtualMachineInstancesPerNode": 200}}}`},
	{name: "virt-api's replicas", patch: `{"spec": {"infra": {"replicas": 1}}}`},
	{name: "instance types", patch: `{"spec": {"configuration": {"commonInstancetypesDeployment": {"enabled": true}}}}`},
	{name: "a patch that is no JSON", patch: `{"spec": {"customizeComponents": {"patches": [{"resourceType": "DaemonSet", "resourceName": "virt-handler", "type": "strategic", "patch": "{{"}]}}}`, refused: true},
	{name: "the uninstall strategy removed", patch: `{"spec": {"uninstallStrategy": null}}`},
}

// foretold is what make impact says, as far as it is compared.
type foretold struct {
	Refused []string `json:"refused"`
	Objects []struct {
		Name     string `json:"name"`
		What     string `json:"what"`
		Restarts bool   `json:"restarts"`
	} `json:"objects"`
	Outdated bool `json:"vmisOutdated"`
	Answers  []struct {
		Who  string `json:"who"`
		Asks string `json:"asks"`
		Was  string `json:"was"`
		Is   string `json:"is"`
	} `json:"answers"`
	text string
}

func TestImpactComesTrue(t *testing.T) {
	d := startDayAt(t, kubeVirtVersion())
	latest := []machine{migratable("web"), onLocalDisk("db")} // one that can migrate and one that can't
	d.create(latest...)
	proved := &strings.Builder{}
	for i, edit := range edits {
		d.step(edit.name, func() {
			now, err := d.cluster.KubeVirt(d.Context())
			require.NoError(d, err)
			says := d.impact(now, mergePatched(d, now, edit.patch))
			answers := d.answers(latest)
			d.comesAsForetold(says, func() {
				err := editCR(d.Context(), d.cluster, edit.patch)
				require.Equal(d, edit.refused, err != nil, "%v", err)
				require.Equal(d, edit.refused, len(says.Refused) > 0, "make impact: %v, the API server: %v", says.Refused, err)
			})
			d.answersAreForetold(says, answers, d.answers(latest), "runs already")
			latest = []machine{migratable(fmt.Sprintf("web-%d", i)), onLocalDisk(fmt.Sprintf("db-%d", i))}
			d.create(latest...)
			d.answersAreForetold(says, answers, d.answers(latest), "created from now on")
			fmt.Fprintf(proved, "## %s\n\n```text\n%s```\n\n", edit.name, says.text)
		})
	}
	require.NoError(t, os.WriteFile(filepath.Join(out(), "impact.md"), []byte(proved.String()), 0o644))
	d.verdict = fmt.Sprintf("what make impact says of %d changes of the CR comes true: what the operator applies, whose pods restart, "+
		"what VMs that run and new ones are answered", len(edits))
}

// comesAsForetold changes the CR, and waits until the operator has applied what make impact named, and the pods of those parts
// of KubeVirt are new; no other may be, and every VM stays as it is.
func (d *day) comesAsForetold(says foretold, change func()) {
	d.Helper()
	before, objects, pods := d.vmis(), d.operatorsObjects(), d.controlPlanePods()
	change()
	require.NoError(d, d.cluster.Deployed(d.Context(), kubeVirtVersion()))
	wantedObjects, wantedRestarts := map[string]string{}, map[string]bool{}
	for _, object := range says.Objects {
		wantedObjects[object.Name] = object.What
		if object.Restarts {
			wantedRestarts[strings.Fields(object.Name)[1]] = true
		}
	}
	d.eventually("what the operator applies is what make impact names", func() string {
		return cmp.Diff(wantedObjects, changedObjects(objects, d.operatorsObjects()))
	})
	d.eventually("the pods that restart are those that make impact names", func() string {
		return cmp.Diff(wantedRestarts, restartedComponents(pods, d.controlPlanePods()))
	})
	assert.False(d, says.Outdated, "no launcher's image changes")
	stay := map[string]fate{}
	for name := range before {
		stay[name] = before.fate(before, name)
	}
	d.become(before, stay)
}

// impact asks make impact's command about a change of the CR.
func (d *day) impact(was, is *v1.KubeVirt) foretold {
	d.Helper()
	var texts [][]byte
	for _, kubeVirt := range []*v1.KubeVirt{was, is} {
		kubeVirt = kubeVirt.DeepCopy()
		kubeVirt.APIVersion, kubeVirt.Kind = v1.GroupVersion.String(), "KubeVirt"
		text, err := yaml.Marshal(kubeVirt)
		require.NoError(d, err)
		texts = append(texts, text)
	}
	folder := d.TempDir()
	files := []string{filepath.Join(folder, "old.yaml"), filepath.Join(folder, "new.yaml")}
	require.NoError(d, errors.Join(os.WriteFile(files[0], texts[0], 0o600), os.WriteFile(files[1], texts[1], 0o600)))
	binary, err := filepath.Abs(bin("impact"))
	require.NoError(d, err)
	saved := filepath.Join(folder, "impact.json")
	command := exec.CommandContext(d.Context(), binary, "-old", files[0], "-new", files[1], "-save", saved)
	command.Dir = root
	said, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) == 0 {
		err = nil // its exit status is part of the answer
	}
	require.NoError(d, err, "%s", said)
	text, err := os.ReadFile(saved)
	require.NoError(d, err)
	var says []foretold
	require.NoError(d, json.Unmarshal(text, &says))
	require.Len(d, says, 1)
	says[0].text = string(said)
	return says[0]
}

// operatorsObjects are the objects that virt-operator manages, by kind and name as make impact names them; their value is all
// of them that it applies.
func (d *day) operatorsObjects() map[string]string {
	d.Helper()
	served, err := d.kube.Discovery().ServerPreferredResources()
	if !discovery.IsGroupDiscoveryFailedError(err) { // of virt-template's API, whose server is not among those that run here
		require.NoError(d, err)
	}
	dynamics, err := dynamic.NewForConfig(d.cluster.Config)
	require.NoError(d, err)
	found := map[string]string{}
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, served) {
		for _, resource := range group.APIResources {
			// Budgets follow the number of nodes, and the secrets' content is certificates: make impact leaves both out.
			if resource.Kind == "PodDisruptionBudget" || resource.Kind == "EndpointSlice" || resource.Kind == "Endpoints" ||
				resource.Kind == "ControllerRevision" || resource.Kind == "Pod" || resource.Kind == "ReplicaSet" {
				continue
			}
			gv, err := schema.ParseGroupVersion(group.GroupVersion)
			require.NoError(d, err)
			list, err := dynamics.Resource(gv.WithResource(resource.Name)).List(d.Context(), metav1.ListOptions{LabelSelector: v1.ManagedByLabel + " in (" +
				v1.ManagedByLabelOperatorValue + ", " + v1.ManagedByLabelOperatorOldValue + ")"})
			require.NoError(d, err, resource.Name)
			for _, object := range list.Items {
				name := object.GetName()
				if resource.Kind == "Job" || strings.HasPrefix(name, "kubevirt-install-strategy-") {
					continue // by which the operator works out what to apply, anew for another deployment id
				}
				if resource.Namespaced && resource.Kind != "Deployment" && resource.Kind != "DaemonSet" {
					name = object.GetNamespace() + "/" + name
				}
				found[resource.Kind+" "+name] = appliedPart(object)
			}
		}
	}
	require.Contains(d, found, "DaemonSet virt-handler")
	return found
}

// appliedPart is what virt-operator applies of an object, without what it notes on it and what follows from certificates.
func appliedPart(object unstructured.Unstructured) string {
	content := object.DeepCopy().Object
	annotations := object.GetAnnotations()
	for _, note := range []string{
		v1.KubeVirtGenerationAnnotation, v1.KubeVirtCustomizeComponentAnnotationHash, v1.InstallStrategyIdentifierAnnotation,
		"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
	} {
		delete(annotations, note)
	}
	content["metadata"] = map[string]any{"labels": object.GetLabels(), "annotations": annotations}
	delete(content, "status")
	if kind := object.GetKind(); kind == "Secret" || kind == "ConfigMap" {
		delete(content, "data")
	}
	text, err := json.Marshal(withoutBundles(content))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func withoutBundles(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, below := range value {
			if key != "caBundle" {
				kept[key] = withoutBundles(below)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, below := range value {
			kept[i] = withoutBundles(below)
		}
		return kept
	}
	return value
}

func changedObjects(before, after map[string]string) map[string]string {
	found := map[string]string{}
	for name, was := range before {
		if is, there := after[name]; !there {
			found[name] = "goes"
		} else if is != was {
			found[name] = "changes"
		}
	}
	for name := range after {
		if _, was := before[name]; !was {
			found[name] = "appears"
		}
	}
	return found
}

// controlPlanePods are KubeVirt's own pods that run, and of which part of it each is.
func (d *day) controlPlanePods() map[string]string {
	d.Helper()
	pods, err := d.kube.CoreV1().Pods(client.Namespace).List(d.Context(), metav1.ListOptions{LabelSelector: v1.AppLabel})
	require.NoError(d, err)
	found := map[string]string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && !verdict.Ended(&pod) {
			found[string(pod.UID)] = pod.Labels[v1.AppLabel]
		}
	}
	return found
}

// restartedComponents are the parts of KubeVirt that have new pods; true says that none of the old is left.
func restartedComponents(before, after map[string]string) map[string]bool {
	found := map[string]bool{}
	for uid, component := range after {
		if _, was := before[uid]; !was {
			found[component] = true
		}
	}
	for uid, component := range after {
		if _, was := before[uid]; was && found[component] {
			found[component] = false
		}
	}
	return found
}

// answers are what KubeVirt answers to the evictions of some VMs' launchers, in make impact's words.
func (d *day) answers(vms []machine) []string {
	d.Helper()
	var found []string
	all := d.vmis()
	for _, vm := range vms {
		launcher := d.launcher(all[vm.name])
		err := d.kube.PolicyV1().Evictions(d.namespace).Evict(d.Context(), &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: launcher.Name, Namespace: d.namespace},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		answer := "is refused"
		switch {
		case err == nil:
			answer = "is let go"
		case !apierrors.IsTooManyRequests(err):
			require.NoError(d, err)
		case strings.Contains(err.Error(), "triggered evacuation"):
			answer = "is marked for evacuation"
		}
		found = append(found, answer)
	}
	return found
}

// answersAreForetold compares the answers before and after of a VM that can migrate and of one that can't.
func (d *day) answersAreForetold(says foretold, before, after []string, which string) {
	d.Helper()
	for i, who := range []string{"can migrate", "can't migrate"} {
		was, is := before[i], before[i] // unless it says otherwise
		for _, flip := range says.Answers {
			if flip.Who == who+", "+which && flip.Asks == "an eviction" {
				was, is = flip.Was, flip.Is
			}
		}
		assert.Equal(d, was, before[i], "%s, %s, before", who, which)
		assert.Equal(d, is, after[i], "%s, %s, after", who, which)
	}
}

func mergePatched(d *day, kubeVirt *v1.KubeVirt, patch string) *v1.KubeVirt {
	text, err := json.Marshal(kubeVirt)
	require.NoError(d, err)
	text, err = jsonpatch.MergePatch(text, []byte(patch))
	require.NoError(d, err)
	patched := &v1.KubeVirt{}
	require.NoError(d, json.Unmarshal(text, patched))
	return patched
}
