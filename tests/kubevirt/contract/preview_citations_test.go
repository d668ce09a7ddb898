//go:build !kubevirt_1_8

// The preview's verdict names the lines of KubeVirt that it follows, and those lines say what it follows them for.
package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"cozy-kubevirt/tests/kubevirt/internal/chart"
	"cozy-kubevirt/tests/kubevirt/internal/modules"
)

// cited are the first lines of what is cited, by the file's name, with what stands there.
var cited = map[string]struct {
	folder string
	lines  map[string]string
}{
	"configuration.go":    {"pkg/virt-config", map[string]string{"41": "kubevirt.io/drain", "186": "EvictionStrategyNone"}},
	"virt-config.go":      {"pkg/virt-config", map[string]string{"44": "ParallelOutboundMigrationsPerNodeDefault uint32 = 2", "45": "ParallelMigrationsPerClusterDefault      uint32 = 5"}},
	"defaults.go":         {"pkg/defaults", map[string]string{"208": "setDefaultEvictionStrategy"}},
	"controller.go":       {"pkg/controller", map[string]string{"323": "func CurrentVMIPod("}},
	"migrations.go":       {"pkg/util/migrations", map[string]string{"99": "func IsBackupInProgress(", "116": "func VMIEvictionStrategy("}},
	"migration-target.go": {"pkg/virt-handler", map[string]string{"303": `EvacuationNodeName = ""`}},
	"node.go":             {"pkg/virt-controller/watch/node", map[string]string{"247": "checkVirtLauncherPodsAndUpdateVMIStatus("}},
	"replicaset.go":       {"pkg/virt-controller/watch/replicaset", map[string]string{"223": "filterFinishedVMIs("}},
	"pod-eviction-admitter.go": {"pkg/virt-api/webhooks/validating-webhook/admitters", map[string]string{
		"86": "Admit(", "100": "admitHotplugPod(", "169": "vmi.Status.NodeName != pod.Spec.NodeName"}},
	"lifecycle.go": {"pkg/virt-controller/watch/vmi", map[string]string{
		"352": "IsPodFailedOrGoingDown(", "442": "IsPodDownOrGoingDown(", "516": "vmi.IsScheduled()"}},
	"evacuation.go": {"pkg/virt-controller/watch/drain/evacuation", map[string]string{
		"326": "func getMarkedForEvictionVMIs(", "350": "PrioritySystemCritical", "412": "func hasMigratedOnEviction(", "416": "func vmisToMigrate(",
		"451": "VMIMigratableOnEviction(", "466": "VMIActivePodsCount("}},
	"migration.go": {"pkg/virt-controller/watch/migration", map[string]string{
		"86": "defaultUnschedulablePendingTimeoutSeconds = int64(60 * 5)", "749": "MigrationPending", "766": "exceeded quota",
		"889": "createMigrationPodAntiAffinityRule(", "1049": "handleMigrationBackoff(", "1354": "VMIActivePodsCount(",
		"1369": "ParallelMigrationsPerCluster", "1380": "ParallelOutboundMigrationsPerNode", "1501": "isPodPendingUnschedulable(",
		"1581": "handleVMBackup(", "1665": "handleUtilityVolumes(", "1970": "listMatchingTargetPods("}},
	"workload-updater.go": {"pkg/virt-controller/watch/workload-updater", map[string]string{
		"60": "defaultBatchDeletionIntervalSeconds = 60", "61": "defaultBatchDeletionCount = 10", "320": "isHotplugInProgress(", "366": "getUpdateData(",
		"411": "IsMigrating(", "508": "batchDeletionInterval :=", "583": "PrioritySystemCritical"}},
	"vm.go": {"pkg/virt-controller/watch/vm", map[string]string{
		"970": "syncRunStrategy(", "1039": "RunStrategyRerunOnFailure", "1088": "RunStrategyManual", "1140": "RunStrategyOnce",
		"1268": "ManualRecoveryRequired", "1605": "func syncVolumeMigration("}},
}

// others are of Kubernetes (the eviction storage) and of Cluster API's provider.
var others = []string{"eviction.go", "kubevirtcluster_types.go", "machine.go", "kubevirtmachine_controller.go"}

func TestTheLinesThatTheVerdictCitesSayWhatItFollows(t *testing.T) {
	files, err := filepath.Glob(chart.RepoFile(t, "cmd", "kubectl-drain_preview", "verdict", "*.go"))
	require.NoError(t, err)
	seen := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`([\w-]+\.go):(\d+(?:-\d+)?(?:(?:, | and )\d+(?:-\d+)?)*)`).FindAllStringSubmatch(string(raw), -1) {
			of, known := cited[match[1]]
			if !known {
				assert.Contains(t, others, match[1], "%s: say in this test what stands there", match[0])
				continue
			}
			for _, place := range regexp.MustCompile(`, | and `).Split(match[2], -1) {
				line, _, _ := strings.Cut(place, "-")
				if assert.Contains(t, of.lines, line, "%s cites %s: say in this test what stands there", filepath.Base(file), match[0]) {
					assert.Contains(t, modules.Line(t, of.folder+"/"+match[1]+":"+line), of.lines[line], "%s cites %s", filepath.Base(file), match[0])
				}
				seen++
			}
		}
	}
	assert.Greater(t, seen, 40)
}
