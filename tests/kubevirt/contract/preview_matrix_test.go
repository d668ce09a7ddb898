// What kubectl drain-preview says of a drain, compared with the eviction webhook over the whole matrix.
package contract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/virt-api/webhooks/validating-webhook/admitters"

	preview "cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// holds are the parts of the webhook's messages by which the preview's holds are known.
var holds = map[preview.Hold]string{
	preview.NotMigratable: notMigratable,
	preview.Evacuating:    inProgress,
	preview.TargetPod:     "Eviction request for target Pod",
	preview.Marked:        triggered,
	preview.HotplugPod:    "cannot evict hotplug pod",
}

func TestPreviewAgreesWithTheEvictionWebhookInEverySituation(t *testing.T) {
	for _, j := range append(askAll(t), askAboutBareVMIs(t)...) {
		vmi := j.after.DeepCopy()
		if !j.marked {
			vmi.Status.EvacuationNodeName = ""
		}
		predicted := previewed(previewPlatform(t, j.cluster), vmi, j.situation)
		switch {
		case predicted.Allowed() != j.allowed:
			t.Errorf("the preview says allowed: %t, KubeVirt %t: %s", predicted.Allowed(), j.allowed, j.situation)
		case predicted.Marks() != j.patched:
			t.Errorf("the preview says marked: %t, KubeVirt %t: %s", predicted.Marks(), j.patched, j.situation)
		case !predicted.Allowed() && !strings.HasPrefix(j.message, holds[predicted.Hold]) && predicted.Hold != preview.NotMigratable:
			t.Errorf("the preview says %q, KubeVirt %q: %s", predicted.Hold, j.message, j.situation)
		case predicted.Hold == preview.NotMigratable && !strings.Contains(j.message, notMigratable):
			t.Errorf("the preview says %q, KubeVirt %q: %s", predicted.Hold, j.message, j.situation)
		}
		count("previewed evictions", 1)
	}
}

// askAboutBareVMIs asks about VMIs that carry no strategy: KubeVirt has created none since it stamps them.
func askAboutBareVMIs(t *testing.T) []judged {
	var all []judged
	for _, cluster := range strategies {
		config := clusterConfig(t, withStrategy(rendered(t), cluster))
		for s := range situationsOf(cluster, unset, afterTheSwitch) {
			all = append(all, judged{s, ask(t, config, newVMI(unset), s), -1})
		}
	}
	return all
}

// A launcher whose VMI is gone is none of the matrix: no asker meets one unless something has gone wrong.
func TestPreviewAgreesWithTheEvictionWebhookOnALauncherWithoutAVMI(t *testing.T) {
	vmi := newVMI(ifPossible)
	launcher := podsOf(vmi, source)[0]
	admitter := admitters.NewPodEvictionAdmitter(clusterConfig(t, rendered(t)), podReader{pods: []*k8sv1.Pod{launcher}},
		vmiWriter{vmis: &oneVMI{vmi: vmi, gone: true}})
	response := admitter.Admit(t.Context(), &admissionv1.AdmissionReview{
		Request: &admissionv1.AdmissionRequest{Namespace: launcher.Namespace, Name: launcher.Name},
	})
	assert.Equal(t, response.Allowed, preview.Evict(previewPlatform(t, ifPossible), nil, launcher).Allowed())
	assert.EqualValues(t, 429, response.Result.Code)
}

// previewPlatform is what the preview makes of the rendered CR with another strategy.
func previewPlatform(t testing.TB, cluster v1.EvictionStrategy) preview.Platform {
	return preview.NewPlatform(withStrategy(rendered(t), cluster))
}

func previewed(platform preview.Platform, vmi *v1.VirtualMachineInstance, s situation) preview.Answer {
	pods := podsOf(vmi, s.pod)
	switch {
	case len(pods) == 1:
		return preview.Evict(platform, vmi, pods[0])
	case s.pod == hotplugOfAGoneVMI:
		vmi = nil
	}
	return preview.EvictHotplug(pods[1], vmi)
}

// The fate that the preview shows follows from the webhook's answer alone.
func TestPreviewOfADrainIsWhatTheWebhooksAnswerComesTo(t *testing.T) {
	for _, j := range askAll(t) {
		if j.pod != source || j.asker != drain || j.dryRun != "" {
			continue
		}
		vmi := j.after.DeepCopy()
		if !j.marked {
			vmi.Status.EvacuationNodeName = ""
		}
		vm := newVM(v1.RunStrategyAlways)
		if j.own != unset {
			vm.Spec.Template.Spec.EvictionStrategy = &j.own
		}
		predicted := preview.Drain(previewPlatform(t, j.cluster), preview.Situation{VMI: vmi, VM: vm, Launcher: podsOf(vmi, source)[0]})

		fate, end, cause := preview.Migrates, preview.Ends, preview.NoCause
		switch {
		case j.allowed:
			fate = preview.Restarts
		case strings.Contains(j.message, notMigratable):
			fate, end, cause = preview.Blocks, preview.Waits, preview.ByStrategy
		case carries(j.situation) == external:
			fate, end, cause = preview.OwnerDecides, preview.Waits, preview.ByOwner
		}
		assert.Equal(t, fate, predicted.Outcome, j.situation)
		assert.Equal(t, end, predicted.End, j.situation)
		assert.Equal(t, cause, predicted.Cause, j.situation)

		source := preview.Defaulted
		if j.own != unset {
			source = preview.Own
		}
		assert.Equal(t, source, preview.SourceOf(preview.Situation{VMI: vmi, VM: vm}), j.situation)
		count("previewed drains", 1)
	}
}

func TestPreviewReadsTheCRAsKubeVirtDoes(t *testing.T) {
	three, four, key, all := uint32(3), uint32(4), "example.org/drain", withStrategy(rendered(t), external)
	all.Spec.Configuration.MigrationConfiguration = &v1.MigrationConfiguration{ParallelMigrationsPerCluster: &three, ParallelOutboundMigrationsPerNode: &four, NodeDrainTaintKey: &key}
	for name, cr := range map[string]*v1.KubeVirt{"the chart's": rendered(t), "one that says nothing": {}, "one that says everything": all} {
		platform, config := preview.NewPlatform(cr), clusterConfig(t, cr).GetConfig()
		assert.Equal(t, *config.EvictionStrategy, platform.Strategy, name)
		assert.EqualValues(t, *config.MigrationConfiguration.ParallelMigrationsPerCluster, platform.Migrations, name)
		assert.EqualValues(t, *config.MigrationConfiguration.ParallelOutboundMigrationsPerNode, platform.Outbound, name)
		assert.Equal(t, *config.MigrationConfiguration.NodeDrainTaintKey, platform.DrainTaint, name)
	}
}
