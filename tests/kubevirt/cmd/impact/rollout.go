// What virt-operator changes in its own deployment: KubeVirt's install strategy, generated and customized for both CRs.
package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-operator/resource/apply"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/placement"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"

	"cozy-kubevirt/tests/kubevirt/internal/operator"
)

// deployment is what virt-operator applies for a CR.
type deployment struct {
	id, launcher string
	objects      map[string]runtime.Object // by kind and name
	findings     []string                  // patches that do nothing, or harm
}

// object is one that appears, goes or changes.
type object struct {
	Name     string   `json:"name"`
	What     string   `json:"what"` // appears, goes, changes
	Restarts bool     `json:"restarts"`
	Pace     string   `json:"pace,omitempty"`
	Changes  []change `json:"changes,omitempty"`
}

func deploy(kv *v1.KubeVirt) (*deployment, error) {
	version, err := operator.PinnedVersion()
	if err != nil {
		return nil, err
	}
	config, err := operator.Config(kv, operator.Registry, version)
	if err != nil {
		return nil, err
	}
	strategy, err := operator.Strategy(kv, config)
	if err != nil {
		return nil, err
	}
	customizer, err := apply.NewCustomizer(kv.Spec.CustomizeComponents)
	if err != nil {
		return nil, err
	}
	d := &deployment{id: config.GetDeploymentID(), objects: map[string]runtime.Object{}}
	if err := customizer.Apply(strategy); err != nil {
		return nil, fmt.Errorf("virt-operator cannot apply spec.customizeComponents: %w", err)
	}
	for _, o := range applied(kv, strategy) {
		finish(kv, config, o)
		d.objects[nameOf(o)] = o
	}
	d.launcher = launcherImage(d.objects["Deployment "+components.VirtControllerName])
	d.findings = patchFindings(kv, d.objects)
	return d, nil
}

// applied is what the operator applies of what it generates: the synchronization controller only with its gate, instance
// types only where they are deployed (pkg/virt-operator/resource/apply/reconcile.go:547, 616).
func applied(kv *v1.KubeVirt, s *install.Strategy) []runtime.Object {
	var all []runtime.Object
	add := func(list any) {
		for v, i := reflect.ValueOf(list), 0; i < v.Len(); i++ {
			all = append(all, v.Index(i).Interface().(runtime.Object))
		}
	}
	for _, list := range []any{
		operator.Deployments(kv, s), s.DaemonSets(), s.Services(), s.ServiceAccounts(), s.ClusterRoles(), s.ClusterRoleBindings(),
		s.Roles(), s.RoleBindings(), s.ValidatingWebhookConfigurations(), s.MutatingWebhookConfigurations(), s.APIServices(),
		s.CertificateSecrets(), s.SCCs(), s.ServiceMonitors(), s.PrometheusRules(), s.ConfigMaps(), s.CRDs(), s.Routes(),
		s.ValidatingAdmissionPolicies(), s.ValidatingAdmissionPolicyBindings(),
	} {
		add(list)
	}
	if types := kv.Spec.Configuration.CommonInstancetypesDeployment; types == nil || types.Enabled == nil || *types.Enabled {
		add(s.Instancetypes())
		add(s.Preferences())
	}
	return all
}

func nameOf(o runtime.Object) string {
	kind := reflect.TypeOf(o).Elem().Name()
	m := o.(metav1.Object)
	name := m.GetName()
	if m.GetNamespace() != "" && kind != "Deployment" && kind != "DaemonSet" {
		name = m.GetNamespace() + "/" + name
	}
	return kind + " " + name
}

// finish does what the operator does to its workloads before it applies them: labels and annotations, which hold the
// deployment's id in the pods too, so that another id restarts every pod (pkg/virt-operator/resource/apply/reconcile.go:81-106,
// apps.go:61-70, 380-386). That a CR's generation counts is left out: it is an annotation of the object, not of the pods.
func finish(kv *v1.KubeVirt, config *util.KubeVirtDeploymentConfig, o runtime.Object) {
	var template *corev1.PodTemplateSpec
	switch o := o.(type) {
	case *appsv1.Deployment:
		template = &o.Spec.Template
		placement.InjectPlacementMetadata(kv.Spec.Infra, &template.Spec, placement.RequireControlPlanePreferNonWorker)
		if kv.Spec.Infra != nil && kv.Spec.Infra.Replicas != nil &&
			o.Name != components.VirtTemplateApiserverDeploymentName && o.Name != components.VirtTemplateControllerDeploymentName {
			replicas := int32(*kv.Spec.Infra.Replicas)
			o.Spec.Replicas = &replicas
		}
	case *appsv1.DaemonSet:
		template = &o.Spec.Template
		placement.InjectPlacementMetadata(kv.Spec.Workloads, &template.Spec, placement.AnyNode)
		if perNode := kv.Spec.Configuration.VirtualMachineInstancesPerNode; perNode != nil && o.Name == components.VirtHandlerName {
			command := &template.Spec.Containers[0].Command
			*command = append(*command, "--max-devices", fmt.Sprint(*perNode))
		}
	default:
		return
	}
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	for label, value := range map[string]string{
		v1.AppVersionLabel: kv.Spec.ProductVersion, v1.AppPartOfLabel: kv.Spec.ProductName,
	} {
		if value != "" && util.IsValidLabel(value) {
			template.Labels[label] = value
		}
	}
	template.Labels[v1.AppComponentLabel] = apply.GetAppComponent(kv)
	template.Annotations[v1.InstallStrategyVersionAnnotation] = config.GetKubeVirtVersion()
	template.Annotations[v1.InstallStrategyRegistryAnnotation] = config.GetImageRegistry()
	template.Annotations[v1.InstallStrategyIdentifierAnnotation] = config.GetDeploymentID()
}

// launcherImage is the one that virt-controller is told: a VMI on another is outdated
// (pkg/virt-controller/watch/workload-updater/workload-updater.go:301-318).
func launcherImage(o runtime.Object) string {
	controller, found := o.(*appsv1.Deployment)
	if !found {
		return ""
	}
	for _, container := range controller.Spec.Template.Spec.Containers {
		words := slices.Concat(container.Command, container.Args)
		if i := slices.Index(words, "--launcher-image"); i >= 0 && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// patchFindings are the patches that match nothing, which the operator ignores in silence, and those that add a container.
func patchFindings(kv *v1.KubeVirt, objects map[string]runtime.Object) []string {
	var findings []string
	for i, patch := range kv.Spec.CustomizeComponents.Patches {
		one := apply.Customizer{Patches: []v1.CustomizeComponentsPatch{patch}}
		matches := false
		for name := range objects {
			kind, object, _ := strings.Cut(name, " ")
			object = object[strings.LastIndex(object, "/")+1:]
			matches = matches || len(one.GetPatchesForResource(kind, object)) > 0
		}
		if !matches {
			findings = append(findings, fmt.Sprintf("spec.customizeComponents.patches[%d] (%s %s) matches no object, and the operator ignores it in silence", i, patch.ResourceType, patch.ResourceName))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		for _, container := range podsOf(objects[name]).Spec.Containers {
			if container.Image == "" {
				findings = append(findings, fmt.Sprintf("%s would get a container %q without an image: a patch names a container that KubeVirt does not have", name, container.Name))
			}
		}
	}
	return findings
}

func podsOf(o runtime.Object) corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Spec.Template
	case *appsv1.DaemonSet:
		return o.Spec.Template
	}
	return corev1.PodTemplateSpec{}
}

// rollout is what differs between two deployments. The annotation with the hash of all patches is on every object, and
// changes nothing but itself.
func rollout(old, new *deployment) ([]object, error) {
	names := maps.Clone(old.objects)
	maps.Copy(names, new.objects)
	var all []object
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := old.objects[name]
		after, is := new.objects[name]
		switch {
		case !was:
			all = append(all, object{Name: name, What: "appears"})
			continue
		case !is:
			all = append(all, object{Name: name, What: "goes"})
			continue
		}
		changes, err := differences(before, after)
		if err != nil {
			return nil, err
		}
		changes = slices.DeleteFunc(changes, func(c change) bool {
			return c.Path == "metadata.annotations."+v1.KubeVirtCustomizeComponentAnnotationHash
		})
		if len(changes) == 0 {
			continue
		}
		o := object{Name: name, What: "changes", Changes: changes}
		o.Restarts = slices.ContainsFunc(changes, func(c change) bool { return strings.HasPrefix(c.Path, "spec.template") })
		if o.Restarts {
			o.Pace = pace(after)
		}
		all = append(all, o)
	}
	return all, nil
}

// pace is how many pods restart at once. A DaemonSet's is the operator's own: one pod, and when it is ready 10% of the nodes
// at once (pkg/virt-operator/resource/apply/apps.go:34-35, 219-310).
func pace(o runtime.Object) string {
	d, isDeployment := o.(*appsv1.Deployment)
	if !isDeployment {
		return "on every node that it runs on: one first, then 10% of the nodes at once"
	}
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		return fmt.Sprintf("at most %s unavailable at once", r.MaxUnavailable.String())
	}
	return "at most 25% unavailable at once, which is Kubernetes' default"
}
