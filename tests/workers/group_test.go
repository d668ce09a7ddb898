package workers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	kubevirtv1 "kubevirt.io/api/core/v1"
	provider "sigs.k8s.io/cluster-api-provider-kubevirt/api/v1alpha1"
	clusterv1 "sigs.k8s.io/cluster-api/api/v1beta1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file sets up a tenant's node group as the platform does, in a namespace of its own, and says what became of it.

// group is a node group of a tenant's cluster. Namespace, Cluster and MachineSet bear one name.
type group struct {
	*testing.T
	name string
}

// workload is what the test says about the VMs of a group.
type workload struct {
	strategy   kubevirtv1.EvictionStrategy
	canMigrate corev1.ConditionStatus // "" while KubeVirt does not know yet
}

// The workers of a tenant's cluster, as the platform makes them.
var (
	fixed   = workload{kubevirtv1.EvictionStrategyExternal, corev1.ConditionFalse}
	movable = workload{kubevirtv1.EvictionStrategyExternal, corev1.ConditionTrue}
)

// newGroup returns a group whose workers are all up.
func newGroup(t *testing.T, size int32, w workload) *group {
	t.Helper()
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "group-"}}
	g := &group{T: t}
	g.create(namespace)
	g.name = namespace.Name
	t.Cleanup(g.tell)

	meta := metav1.ObjectMeta{Namespace: g.name, Name: g.name}
	// Cluster API tries to reach a new tenant at once, and then only half a minute later.
	g.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.name, Name: g.name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: g.name},
		},
		Data: map[string][]byte{"value": kubeconfig(g.T, infra.config)},
	})
	g.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "bootstrap"},
		Data:       map[string][]byte{"value": []byte("of no matter here")},
	})
	kamaji := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"externalManagedControlPlane": true}}}
	kamaji.SetGroupVersionKind(controlPlane)
	kamaji.SetNamespace(g.name)
	kamaji.SetName(g.name)
	g.create(kamaji)
	tenant := &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "localhost", Port: 6443},
		ControlPlaneRef: &corev1.ObjectReference{
			APIVersion: controlPlane.GroupVersion().String(), Kind: controlPlane.Kind, Namespace: g.name, Name: g.name,
		},
		InfrastructureRef: &corev1.ObjectReference{
			APIVersion: provider.GroupVersion.String(), Kind: "KubevirtCluster", Namespace: g.name, Name: g.name,
		},
	}}
	g.create(tenant)
	tenant.Status.InfrastructureReady = true
	tenant.Status.ControlPlaneReady = true
	conditions.MarkTrue(tenant, clusterv1.InfrastructureReadyCondition)
	conditions.MarkTrue(tenant, clusterv1.ControlPlaneInitializedCondition)
	g.check(infra.Status().Update(g.Context(), tenant))
	// As it is managed by somebody else, the provider keeps no SSH keys for its nodes.
	managed := *meta.DeepCopy()
	managed.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "kamaji"}
	g.create(&provider.KubevirtCluster{ObjectMeta: managed})

	template := &kubevirtv1.VirtualMachineInstanceTemplateSpec{
		Spec: kubevirtv1.VirtualMachineInstanceSpec{EvictionStrategy: &w.strategy},
	}
	if w.canMigrate != "" {
		template.ObjectMeta.Annotations = map[string]string{canMigrate: string(w.canMigrate)}
	}
	var machines provider.KubevirtMachineTemplate
	machines.ObjectMeta = meta
	machines.Spec.Template.Spec.BootstrapCheckSpec.CheckStrategy = "none"
	machines.Spec.Template.Spec.VirtualMachineTemplate.Spec = kubevirtv1.VirtualMachineSpec{
		RunStrategy: ptr.To(kubevirtv1.RunStrategyAlways), Template: template,
	}
	g.create(&machines)
	g.create(&clusterv1.MachineSet{ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{
		ClusterName: g.name, Replicas: &size, Selector: g.selector(), DeletePolicy: string(clusterv1.OldestMachineSetDeletePolicy),
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: g.selector().MatchLabels},
			Spec: clusterv1.MachineSpec{
				ClusterName: g.name,
				Bootstrap:   clusterv1.Bootstrap{DataSecretName: ptr.To("bootstrap")},
				InfrastructureRef: corev1.ObjectReference{
					APIVersion: provider.GroupVersion.String(), Kind: "KubevirtMachineTemplate", Namespace: g.name, Name: g.name,
				},
			},
		},
	}})
	g.until("all workers are up", func() bool { return g.workersUp() == int(size) })
	return g
}

func (g *group) selector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{
		clusterv1.ClusterNameLabel: g.name, clusterv1.MachineSetNameLabel: g.name,
	}}
}

// checkHealth gives the group a MachineHealthCheck, as every node group of the platform has one.
func (g *group) checkHealth(maxUnhealthy string) {
	g.Helper()
	limit := intstr.Parse(maxUnhealthy)
	g.create(&clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: g.name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: g.name, Selector: g.selector(), MaxUnhealthy: &limit,
			NodeStartupTimeout: &metav1.Duration{Duration: 10 * time.Minute},
		},
	})
	g.until("the health of the group is known", func() bool { return g.health().Status.ObservedGeneration > 0 })
}

// change applies a merge patch.
func (g *group) change(object client.Object, patch string) {
	g.Helper()
	g.check(infra.Patch(g.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// mark marks a worker's VMI as KubeVirt's eviction webhook does, with the name of the infra node that it runs on
// (kubevirt v1.9.0, pkg/virt-api/webhooks/validating-webhook/admitters/pod-eviction-admitter.go:177-186).
func (g *group) mark(worker string) {
	g.Helper()
	patch := fmt.Sprintf(`[{"op":"add","path":"/status/evacuationNodeName","value":%q}]`, g.vmi(worker).Status.NodeName)
	vmi := &kubevirtv1.VirtualMachineInstance{ObjectMeta: g.called(worker)}
	g.check(infra.Patch(g.Context(), vmi, client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// looked waits until the provider has looked at a worker twice more, from beginning to end. Once is not enough: on its
// first look at a mark, what it knows of the failure is overwritten by the answer to its own patch of the annotation
// (pkg/kubevirt/machine.go:511-517), and only the next writes it down.
func (g *group) looked(worker string) {
	g.Helper()
	key := types.NamespacedName{Namespace: g.name, Name: worker}
	seen := infra.looks.at(key)
	g.until("the provider looks at "+worker, func() bool { return infra.looks.at(key) > seen+2 })
}

// workers are the names of the group's Machines. KubevirtMachine, VM, VMI and the tenant's node bear the same.
func (g *group) workers() (names []string) {
	for _, machine := range g.machines() {
		names = append(names, machine.Name)
	}
	return names
}

// workersUp counts the Machines that have their node and whose VMI the provider has seen ready.
func (g *group) workersUp() (count int) {
	for _, machine := range g.machines() {
		if machine.Status.NodeRef != nil && machine.DeletionTimestamp == nil && g.kubevirtMachine(machine.Name).Status.Ready {
			count++
		}
	}
	return count
}

func (g *group) machines() []clusterv1.Machine {
	g.Helper()
	var list clusterv1.MachineList
	g.check(infra.List(g.Context(), &list, client.InNamespace(g.name)))
	return list.Items
}

// The objects of a worker; one that does not exist is empty.

func (g *group) machine(name string) (machine clusterv1.Machine) {
	g.Helper()
	g.get(name, &machine)
	return machine
}

func (g *group) kubevirtMachine(name string) (machine provider.KubevirtMachine) {
	g.Helper()
	g.get(name, &machine)
	return machine
}

func (g *group) vm(name string) (vm kubevirtv1.VirtualMachine) {
	g.Helper()
	g.get(name, &vm)
	return vm
}

func (g *group) vmi(name string) (vmi kubevirtv1.VirtualMachineInstance) {
	g.Helper()
	g.get(name, &vmi)
	return vmi
}

func (g *group) health() (health clusterv1.MachineHealthCheck) {
	g.Helper()
	g.get(g.name, &health)
	return health
}

func (g *group) node(name string) (node corev1.Node) {
	g.Helper()
	g.check(client.IgnoreNotFound(infra.Get(g.Context(), client.ObjectKey{Name: name}, &node)))
	return node
}

func (g *group) called(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.name, Name: name}
}

func (g *group) get(name string, object client.Object) {
	g.Helper()
	g.check(client.IgnoreNotFound(infra.Get(g.Context(), client.ObjectKey{Namespace: g.name, Name: name}, object)))
}

func (g *group) create(object client.Object) {
	g.Helper()
	g.check(infra.Create(g.Context(), object))
}

func (g *group) check(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

// until waits for a condition.
func (g *group) until(what string, holds func() bool) {
	g.Helper()
	deadline := time.After(40 * time.Second)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			g.Fatalf("it never came to pass that %s", what)
		case <-tick.C:
		}
	}
}

// tell prints what has become of the group, if the test has failed.
func (g *group) tell() {
	if !g.Failed() {
		return
	}
	ctx := context.Background() // the test's is over
	var machines clusterv1.MachineList
	_ = infra.List(ctx, &machines, client.InNamespace(g.name))
	for _, m := range machines.Items {
		g.Logf("Machine %s: deleted %t, failure %q, conditions %s", m.Name, m.DeletionTimestamp != nil,
			ptr.Deref(m.Status.FailureMessage, ""), brief(m.Status.Conditions))
	}
	var providers provider.KubevirtMachineList
	_ = infra.List(ctx, &providers, client.InNamespace(g.name))
	for _, m := range providers.Items {
		g.Logf("KubevirtMachine %s: ready %t, failure %q, conditions %s", m.Name, m.Status.Ready,
			ptr.Deref(m.Status.FailureMessage, ""), brief(m.Status.Conditions))
	}
	var vmis kubevirtv1.VirtualMachineInstanceList
	_ = infra.List(ctx, &vmis, client.InNamespace(g.name))
	for _, v := range vmis.Items {
		g.Logf("VMI %s: %s, evacuate %q", v.Name, v.Status.Phase, v.Status.EvacuationNodeName)
	}
	var health clusterv1.MachineHealthCheckList
	_ = infra.List(ctx, &health, client.InNamespace(g.name))
	for _, h := range health.Items {
		g.Logf("MachineHealthCheck: %d of %d healthy, conditions %s", h.Status.CurrentHealthy, h.Status.ExpectedMachines, brief(h.Status.Conditions))
	}
}

func brief(all clusterv1.Conditions) string {
	var said []string
	for _, c := range all {
		said = append(said, strings.TrimSpace(fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)))
	}
	return strings.Join(said, ", ")
}

// gone is whether an object that was there is there no more.
func gone(ctx context.Context, object client.Object) bool {
	err := infra.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	return apierrors.IsNotFound(err)
}

// kubeconfig is an administrator's.
func kubeconfig(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"tenant": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"admin": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"tenant": {Cluster: "tenant", AuthInfo: "admin"}},
		CurrentContext: "tenant",
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
