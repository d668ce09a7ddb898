//go:build !kubevirt_1_8

// Where KubeVirt v1.9, the version that the chart is for, and v1.8 differ for these tests; version_1_8_test.go is the
// other side.
package contract

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
	virthandler "kubevirt.io/kubevirt/pkg/virt-handler"
)

const goldenGates = "feature-gates.txt"

// registeredGates is KubeVirt's whole registry.
func registeredGates(testing.TB) []featuregate.FeatureGate {
	return slices.Collect(maps.Values(featuregate.GetRegisteredFeatureGates()))
}

const (
	hasVGPUMigration       = true
	betaIsOnByItself       = true
	hasMigrationPriorities = true
)

// idleGates are listed by the chart for another version than this one.
var idleGates []string

// newFields are in the values and not yet in this release's CRD.
var newFields []string

func vGPUsMigrate(config *virtconfig.ClusterConfig) bool { return config.VGPULiveMigrationEnabled() }

func virtTemplateIsDeployed(config *virtconfig.ClusterConfig) bool {
	return config.VirtTemplateDeploymentEnabled()
}

type handlerParts struct {
	client        *client
	config        *virtconfig.ClusterConfig
	vmis, domains *informer
	node, dir     string
	recorder      record.EventRecorder
}

func newVirtHandler(t testing.TB, p handlerParts) *virthandler.VirtualMachineController {
	t.Helper()
	handler, err := virthandler.NewVirtualMachineController(p.recorder, p.client, newInformer().GetStore(), p.node, p.dir, p.dir,
		noLauncher{}, p.vmis, p.vmis.GetStore(), p.domains, 10, p.config, noIsolation{}, noMigrations{}, noDownwards{}, nil, "",
		noNetConf{}, noNetStat{}, virthandler.NewCBTHandler(p.client, newInformer()), nil, nil)
	require.NoError(t, err)
	return handler
}
