// Every combination of what can decide an eviction, put to KubeVirt's own admitter under the CR that the chart
// renders. The VMIs are created through KubeVirt's own mutator, so they carry what real ones carry.
package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	k8sv1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-api/webhooks/mutating-webhook/mutators"
	"kubevirt.io/kubevirt/pkg/virt-api/webhooks/validating-webhook/admitters"
	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
)

// The dimensions. A situation is one combination; "" stands for unset, absent or no.
var (
	strategies  = []v1.EvictionStrategy{unset, none, migrate, ifPossible, external}
	migratables = []k8sv1.ConditionStatus{"", k8sv1.ConditionFalse, k8sv1.ConditionTrue}
	creations   = []string{beforeTheSwitch, afterTheSwitch}
	dryRuns     = []string{"", dryRunOfTheRequest, dryRunOfTheEviction}
	askers      = []string{drain, descheduler, updater}
	pods        = []string{source, target, completed, hotplug, hotplugOfADoneLauncher, hotplugOfAGoneVMI}
)

const (
	beforeTheSwitch = "created before the switch"
	afterTheSwitch  = "created after the switch"

	dryRunOfTheRequest  = "dry run by the request"
	dryRunOfTheEviction = "dry run by the eviction's options"

	drain       = "kubectl drain"
	descheduler = "the descheduler"
	updater     = "the workload updater"

	source                 = "launcher"
	target                 = "migration target"
	completed              = "completed launcher"
	hotplug                = "hotplug pod"
	hotplugOfADoneLauncher = "hotplug pod of a completed launcher"
	hotplugOfAGoneVMI      = "hotplug pod of a VMI that is gone"
)

type situation struct {
	cluster, own v1.EvictionStrategy
	migratable   k8sv1.ConditionStatus
	created      string
	marked       bool
	dryRun       string
	asker        string
	pod          string
}

func (s situation) canMigrate() bool { return s.migratable == k8sv1.ConditionTrue }

func (s situation) String() string {
	return fmt.Sprintf("cluster %q, VM's own %q, LiveMigratable %q, %s, marked already: %t, %q, asked by %s, %s",
		s.cluster, s.own, s.migratable, s.created, s.marked, s.dryRun, s.asker, s.pod)
}

// verdict is what a promise says about the answer; answer is what KubeVirt said and did.
type verdict struct {
	allowed bool
	marks   bool   // unless it is a dry run (P8)
	message string // a part that others rely on
}

type answer struct {
	allowed bool
	code    int32
	message string
	patched bool // something was to be written to the VMI, be it as a dry run
	after   *v1.VirtualMachineInstance
}

const (
	vmiName = "vm"
	here    = "node-a"
	there   = "node-b"

	// Texts that others read: operators (P1), kubectl drain's output (P3), the descheduler (P11).
	notMigratable = "is not live-migratable"
	triggered     = `Eviction triggered evacuation of VMI "` + chart.Namespace + "/" + vmiName + `"`
	inProgress    = "Evacuation in progress: " + triggered
	// Texts that nobody reads.
	aboutTheHotplugPod = ""
	aboutTheTarget     = ""
)

var (
	allowed = verdict{allowed: true}
	marked  = verdict{marks: true, message: triggered}
)

func denied(message string) verdict { return verdict{message: message} }

// expected applies the rules: the verdict, and the row that gave it.
func expected(s situation) (int, verdict) {
	for i, rule := range rules {
		if rule.when(s) {
			return i, rule.then
		}
	}
	return -1, verdict{}
}

// brokenBy says how an answer breaks a verdict, or "".
func (v verdict) brokenBy(s situation, a answer) string {
	marks := v.marks && s.dryRun == ""
	wasMarked := a.after.Status.EvacuationNodeName != "" && !s.marked
	switch {
	case a.allowed != v.allowed:
		return fmt.Sprintf("want allowed: %t", v.allowed)
	case !a.allowed && a.code != 429:
		return "want 429, which kubectl drain retries; anything else ends it"
	case !strings.Contains(a.message, v.message):
		return fmt.Sprintf("want a message with %q", v.message)
	case wasMarked != marks:
		return fmt.Sprintf("want marked: %t", marks)
	case marks && a.after.Status.EvacuationNodeName != here:
		return fmt.Sprintf("want it marked for %s, it is for %s", here, a.after.Status.EvacuationNodeName)
	case a.patched && !v.marks:
		return "want nothing written to the VMI"
	}
	return ""
}

type judged struct {
	situation
	answer
	rule int
}

// matrix holds every combination, asked once for all tests of this package.
var matrix struct {
	sync.Once
	judged []judged
}

func askAll(t testing.TB) []judged {
	t.Helper()
	cr := rendered(t)
	matrix.Do(func() {
		before := clusterConfig(t, withStrategy(cr, migrate))
		for _, cluster := range strategies {
			now := clusterConfig(t, withStrategy(cr, cluster))
			for _, own := range strategies {
				for _, created := range creations {
					config := now
					if created == beforeTheSwitch {
						config = before
					}
					vmi := create(t, config, newVMI(own))
					for s := range situationsOf(cluster, own, created) {
						rule, _ := expected(s)
						matrix.judged = append(matrix.judged, judged{s, ask(t, now, vmi, s), rule})
					}
				}
			}
		}
		count("evictions", len(matrix.judged))
	})
	require.NotEmpty(t, matrix.judged)
	return matrix.judged
}

func situationsOf(cluster, own v1.EvictionStrategy, created string) iter.Seq[situation] {
	return func(yield func(situation) bool) {
		for _, migratable := range migratables {
			for _, marked := range []bool{false, true} {
				for _, dryRun := range dryRuns {
					for _, asker := range askers {
						for _, pod := range pods {
							if !yield(situation{cluster, own, migratable, created, marked, dryRun, asker, pod}) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// create is what virt-api's mutating webhook makes of a VMI that virt-controller creates.
func create(t testing.TB, config *virtconfig.ClusterConfig, vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstance {
	t.Helper()
	return mutate(t, config, vmi, admissionv1.Create)
}

func mutate(t testing.TB, config *virtconfig.ClusterConfig, vmi *v1.VirtualMachineInstance,
	operation admissionv1.Operation) *v1.VirtualMachineInstance {
	t.Helper()
	raw := mustMarshal(t, vmi)
	mutator := &mutators.VMIsMutator{ClusterConfig: config, VMIPresetInformer: newInformer()}
	response := mutator.Mutate(&admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		Operation: operation,
		Resource:  metav1.GroupVersionResource{Group: v1.GroupVersion.Group, Version: v1.GroupVersion.Version, Resource: "virtualmachineinstances"},
		Object:    runtime.RawExtension{Raw: raw},
		OldObject: runtime.RawExtension{Raw: raw},
	}})
	require.True(t, response.Allowed, "KubeVirt takes the VMI: %v", response.Result)
	if len(response.Patch) > 0 {
		raw = applied(t, raw, response.Patch)
	}
	result := &v1.VirtualMachineInstance{}
	require.NoError(t, json.Unmarshal(raw, result))
	return result
}

func newVMI(own v1.EvictionStrategy) *v1.VirtualMachineInstance {
	vmi := v1.NewVMI(vmiName, "uid-of-"+vmiName)
	vmi.Namespace = chart.Namespace
	vmi.Annotations = map[string]string{v1.ControllerAPILatestVersionObservedAnnotation: "v1"} // virt-controller's own
	if own != unset {
		vmi.Spec.EvictionStrategy = &own
	}
	return vmi
}

// ask puts one situation to virt-api's eviction webhook.
func ask(t testing.TB, config *virtconfig.ClusterConfig, vmi *v1.VirtualMachineInstance, s situation) answer {
	t.Helper()
	vmi = vmi.DeepCopy()
	vmi.Status.Phase = v1.Running
	vmi.Status.NodeName = here
	if s.migratable != "" {
		vmi.Status.Conditions = append(vmi.Status.Conditions,
			v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstanceIsMigratable, Status: s.migratable})
	}
	if s.marked {
		vmi.Status.EvacuationNodeName = here
	}
	return askAbout(t, config, vmi, s)
}

// askAbout is ask for a VMI whose status is already what the situation says.
func askAbout(t testing.TB, config *virtconfig.ClusterConfig, vmi *v1.VirtualMachineInstance, s situation) answer {
	t.Helper()
	pods := podsOf(vmi, s.pod)
	evicted := pods[0]
	vmis := &oneVMI{vmi: vmi, gone: s.pod == hotplugOfAGoneVMI}

	eviction, kind := evictionBy(s, evicted)
	dryRun := s.dryRun == dryRunOfTheRequest
	admitter := admitters.NewPodEvictionAdmitter(config, podReader{pods: pods}, vmiWriter{vmis: vmis})
	response := admitter.Admit(context.Background(), &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		Namespace: evicted.Namespace,
		Name:      evicted.Name,
		Kind:      kind,
		DryRun:    &dryRun,
		Object:    runtime.RawExtension{Raw: mustMarshal(t, eviction)},
	}})
	a := answer{allowed: response.Allowed, patched: vmis.patched, after: vmis.vmi}
	if response.Result != nil {
		a.code, a.message = response.Result.Code, response.Result.Message
	}
	return a
}

// podsOf is the pod to evict, and after it the launcher that owns it if it is a hotplug pod.
func podsOf(vmi *v1.VirtualMachineInstance, which string) []*k8sv1.Pod {
	launcher := &k8sv1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   vmi.Namespace,
			Name:        "virt-launcher-" + vmi.Name,
			Labels:      map[string]string{v1.AppLabel: "virt-launcher"},
			Annotations: map[string]string{v1.DomainAnnotation: vmi.Name},
		},
		Spec:   k8sv1.PodSpec{NodeName: here},
		Status: k8sv1.PodStatus{Phase: k8sv1.PodRunning},
	}
	switch which {
	case target:
		launcher.Spec.NodeName = there
	case completed, hotplugOfADoneLauncher:
		launcher.Status.Phase = k8sv1.PodSucceeded
	}
	if which == source || which == target || which == completed {
		return []*k8sv1.Pod{launcher}
	}
	volume := &k8sv1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       vmi.Namespace,
			Name:            "hp-volume-data",
			Labels:          map[string]string{v1.AppLabel: "hotplug-disk"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: launcher.Name}},
		},
		Spec:   k8sv1.PodSpec{NodeName: here},
		Status: k8sv1.PodStatus{Phase: k8sv1.PodRunning},
	}
	return []*k8sv1.Pod{volume, launcher}
}

// evictionBy is what each asker sends. The updater still uses policy/v1beta1 (pkg/virt-controller/watch/workload-updater/workload-updater.go:614).
func evictionBy(s situation, pod *k8sv1.Pod) (any, metav1.GroupVersionKind) {
	meta := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}
	options := &metav1.DeleteOptions{}
	if s.dryRun == dryRunOfTheEviction {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if s.asker == descheduler {
		meta.Annotations = map[string]string{"requested-by": "sigs.k8s.io/descheduler"}
	}
	gvk := metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}
	if s.asker == updater {
		gvk.Version = "v1beta1"
		return &policyv1beta1.Eviction{TypeMeta: typeMeta(gvk), ObjectMeta: meta, DeleteOptions: options}, gvk
	}
	return &policyv1.Eviction{TypeMeta: typeMeta(gvk), ObjectMeta: meta, DeleteOptions: options}, gvk
}

func typeMeta(gvk metav1.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gvk.Group + "/" + gvk.Version, Kind: gvk.Kind}
}
