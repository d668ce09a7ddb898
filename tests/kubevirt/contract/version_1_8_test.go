//go:build kubevirt_1_8

// Where KubeVirt v1.8 and v1.9 differ for these tests: the platform that is upgraded to this package runs v1.8. Built
// with go.v1.8.mod; version_1_9_test.go is the other side.
package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	virtconfig "kubevirt.io/kubevirt/pkg/virt-config"
	"kubevirt.io/kubevirt/pkg/virt-config/featuregate"
	virthandler "kubevirt.io/kubevirt/pkg/virt-handler"
)

const goldenGates = "feature-gates-v1.8.txt"

// registeredGates are those that v1.9 knows: v1.8 has no way to list its own.
func registeredGates(t testing.TB) []featuregate.FeatureGate {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "feature-gates.txt"))
	require.NoError(t, err)
	var gates []featuregate.FeatureGate
	for line := range strings.Lines(string(raw)) {
		name, _, _ := strings.Cut(line, ":")
		if gate := featuregate.FeatureGateInfo(name); gate != nil {
			gates = append(gates, *gate)
		} else {
			gates = append(gates, featuregate.FeatureGate{Name: name, State: "not in v1.8"})
		}
	}
	return gates
}

const (
	hasVGPUMigration       = false // the gate comes with v1.9
	betaIsOnByItself       = false // a Beta gate is off until it is listed, so image volumes are off on any Kubernetes
	hasMigrationPriorities = false // the gate MigrationPriorityQueue is off, so an evacuation waits for a backup
)

// idleGates are listed by the chart for v1.9: Template is Alpha here, so off by itself.
var idleGates = []string{"Template", "VGPULiveMigration", "MigrationStallDetection"}

// newFields are in the values and not yet in v1.8's CRD.
var newFields = []string{"migrations.maxDowntimeMs"}

func vGPUsMigrate(*virtconfig.ClusterConfig) bool { return false }

func virtTemplateIsDeployed(config *virtconfig.ClusterConfig) bool { return config.TemplateEnabled() }

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
		noNetConf{}, noNetStat{}, virthandler.NewCBTHandler(p.client, newInformer()))
	require.NoError(t, err)
	return handler
}

// The CR lists no gate that v1.9 has on anyway. v1.8 needs two of them listed, so the operator is upgraded first.
func TestUnderV18TheCRWouldSwitchOffExportsAndDiskExpansion(t *testing.T) {
	config := clusterConfig(t, rendered(t))
	if config.VMExportEnabled() || config.ExpandDisksEnabled() {
		t.Error("docs/eviction.md says that the operator has to be upgraded before this package; it need not be")
	}
}
