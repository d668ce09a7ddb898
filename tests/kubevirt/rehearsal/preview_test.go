package rehearsal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
	v1 "kubevirt.io/api/core/v1"
)

// This file previews a drain or an upgrade with kubectl drain-preview, as an operator would, and holds what then happens
// against it, VM by VM.

// preview is what the command says, as far as it is compared.
type preview struct {
	Drains verdict.End `json:"drains"`
	VMs    []previewed `json:"vms"`
}

type previewed struct {
	Name    string  `json:"name"`
	Drain   outlook `json:"drain"`
	Upgrade outlook `json:"upgrade"`
}

type outlook struct {
	Outcome verdict.Outcome `json:"outcome"`
	Why     string          `json:"why"`
}

// preview asks the command about the scenario's VMs on a node, or on all of them if none is named.
func (s *scenario) preview(node ...string) preview {
	s.Helper()
	binary := filepath.Join(root, "bin", "kubectl-drain_preview")
	args := append([]string{"--kubeconfig", s.kubeconfig, "--namespace", s.namespace, "--output", "json"}, node...)
	output, err := exec.CommandContext(s.Context(), binary, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) == 0 {
		err = nil // its exit status is part of the answer
	}
	said := ""
	if exit != nil {
		said = string(exit.Stderr)
	}
	require.NoError(s, err, "%s %s: %s", binary, strings.Join(args, " "), said)
	var p preview
	require.NoError(s, json.Unmarshal(output, &p))
	return p
}

func TestPreviewComesTrue(t *testing.T) {
	s := rehearse(t)
	first := s.node("a")
	s.create(migratable("migratable"), onLocalDisk("on-local-disk"), withGPU("with-gpu"),
		onLocalDisk("rerun-on-failure").run(v1.RunStrategyRerunOnFailure), onLocalDisk("manual").run(v1.RunStrategyManual),
		onLocalDisk("budgeted"), migratable("worker").with(v1.EvictionStrategyExternal),
		onLocalDisk("holds").with(v1.EvictionStrategyLiveMigrate), migratable("lets-go").with(v1.EvictionStrategyNone))
	s.budget("budgeted")
	before := s.vmis()
	s.node("b")

	require.Len(t, s.preview(first).VMs, len(before))
	s.drain(first, holdTimeout)
	s.cordon(first, false)
	s.upgrade(nil)
	s.verdict = fmt.Sprintf("what kubectl drain-preview says of %d VMs of every kind comes true, in a drain and in an upgrade", len(before))
}

// budget makes a PodDisruptionBudget that lets none of a VM's launchers go, with the status that its controller would set:
// while it has none, kube-apiserver has each eviction retried by the client itself, ten times ten seconds.
func (s *scenario) budget(vm string) {
	one := intstr.FromInt32(1)
	budgets := s.kube.PolicyV1().PodDisruptionBudgets(s.namespace)
	budget, err := budgets.Create(s.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: vm},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{v1.DeprecatedVirtualMachineNameLabel: vm}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
	if s.whole != nil {
		return // its controller does
	}
	budget.Status.ObservedGeneration, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy = budget.Generation, 1, 1
	_, err = budgets.UpdateStatus(s.Context(), budget, metav1.UpdateOptions{})
	require.NoError(s, err)
}

// drainFates are what may become of a VM of which the preview of a drain says this. What a guest does on its shutdown, and
// an owner on its own, is not the preview's to know; what is unknown may not come up in a rehearsal.
var drainFates = map[verdict.Outcome][]fate{
	verdict.Migrates:         {migrated},
	verdict.Restarts:         {restarted},
	verdict.RestartsWithNode: {off, waits},
	verdict.StaysOffIfClean:  {off, restarted, waits}, // for a place, if it starts again and there is none
	verdict.StaysOff:         {off},
	verdict.Blocks:           {stays},
	verdict.OwnerDecides:     {stays},
	verdict.Held:             {stays},
	verdict.Nothing:          {stays, off},
}

// upgradeFates are the same for the preview of an upgrade.
var upgradeFates = map[verdict.Outcome][]fate{
	verdict.Migrates:        {migrated},
	verdict.Restarts:        {restarted},
	verdict.StaysOffIfClean: {off, restarted},
	verdict.StaysOff:        {off},
	verdict.Refused:         {stays},
	verdict.OwnerDecides:    {stays},
	verdict.Nothing:         {stays, off},
}

// drainWasAsPreviewed waits until every VM has met the fate that the preview named, and checks that the drain ended
// exactly if it said so.
func (s *scenario) drainWasAsPreviewed(p preview, before vmis, drain drained) {
	s.Helper()
	assert.Equal(s, p.Drains == verdict.Ends, drain.err == nil, "the preview says that the drain %s; it: %v", p.Drains, drain.err)
	s.comesTrue("drain", p, before, drainFates, func(vm previewed) outlook { return vm.Drain })
}

// upgradeWasAsPreviewed is the same for an upgrade.
func (s *scenario) upgradeWasAsPreviewed(p preview, before vmis) {
	s.Helper()
	s.comesTrue("upgrade", p, before, upgradeFates, func(vm previewed) outlook { return vm.Upgrade })
}

func (s *scenario) comesTrue(what string, p preview, before vmis, fates map[verdict.Outcome][]fate, said func(previewed) outlook) {
	s.Helper()
	s.eventually(fmt.Sprintf("every VM meets the fate that the preview of the %s names", what), func() string {
		after := s.vmis()
		var wrong []string
		for _, vm := range p.VMs {
			says, met := said(vm), before.fate(after, vm.Name)
			if !slices.Contains(fates[says.Outcome], met) {
				wrong = append(wrong, fmt.Sprintf("the preview says of %s: %s (%s), but: %s", vm.Name, says.Outcome, says.Why, met))
			}
		}
		return strings.Join(wrong, "\n")
	})
}
