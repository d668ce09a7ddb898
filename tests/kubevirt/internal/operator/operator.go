// Package operator generates what virt-operator would apply for a KubeVirt resource, by its own code.
package operator

import (
	"errors"
	"runtime/debug"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/install"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

// Registry is where KubeVirt's own release comes from: registry and folder.
const Registry = "quay.io/kubevirt"

// PinnedVersion is the version of KubeVirt that this program is built from.
func PinnedVersion() (string, error) {
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == "kubevirt.io/kubevirt" {
				return module.Version, nil
			}
		}
	}
	return "", errors.New("the binary does not say which kubevirt.io/kubevirt it holds; build it with go build, from its module")
}

// Image is the operator's own image.
func Image(registry, version string) string { return registry + "/virt-operator:" + version }

// Config is what an operator of that registry and version would deploy for the resource, with the deployment's id.
func Config(kv *v1.KubeVirt, registry, version string) (*util.KubeVirtDeploymentConfig, error) {
	environment := &util.EnvVarManagerMock{}
	for name, value := range map[string]string{
		util.VirtOperatorImageEnvName: Image(registry, version),
		util.KubeVirtVersionEnvName:   version,
	} {
		if err := environment.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	config := util.GetTargetConfigFromKVWithEnvVarManager(kv, environment)
	if kv.Spec.SynchronizationPort == "" {
		// KubeVirt stores the port that is not set as "", and logs an error that this is no number.
		delete(config.AdditionalProperties, util.AdditionalPropertiesSynchronizationPort)
	}
	return config, nil
}

// Strategy is every object of the deployment, as generated: not yet customized.
func Strategy(kv *v1.KubeVirt, config *util.KubeVirtDeploymentConfig) (*install.Strategy, error) {
	return install.GenerateCurrentInstallStrategy(config, kv.Spec.MonitorNamespace, kv.Namespace)
}

// Deployments leaves out the one that the operator generates and then does not apply: the synchronization
// controller, unless its gate is on (pkg/virt-operator/resource/apply/reconcile.go:616).
func Deployments(kv *v1.KubeVirt, strategy *install.Strategy) []*appsv1.Deployment {
	all := slices.Clone(strategy.Deployments())
	if featuregate.IsEnabled(featuregate.DecentralizedLiveMigration, kv.Spec.Configuration.DeveloperConfiguration) {
		return all
	}
	unused := strategy.SynchronizationControllerDeployments()
	return slices.DeleteFunc(all, func(d *appsv1.Deployment) bool { return slices.Contains(unused, d) })
}
