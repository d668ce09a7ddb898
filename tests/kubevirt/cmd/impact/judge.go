// The report on one change: everything is asked, and what is due first is put first.
package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
	"cozy-kubevirt/tests/kubevirt/internal/configuration"
)

// report is what a change does. Everything in it may hold text of the CRs, which nobody vouches for.
type report struct {
	Where    []string  `json:"where,omitempty"`
	Old      string    `json:"old"`
	New      string    `json:"new"`
	Cautions []string  `json:"cautions"`
	Refused  []string  `json:"refused"`
	Warnings []string  `json:"warnings"`
	Spec     []change  `json:"spec"` // of the CR
	ID       [2]string `json:"deploymentID"`
	Objects  []object  `json:"objects"`
	Outdated bool      `json:"vmisOutdated"`
	Updater  []string  `json:"updater"`
	Fields   []field   `json:"configuration"`
	Answers  []answer  `json:"answers"`
	Gates    []gate    `json:"gates"`
	Routes   []route   `json:"routes"`
}

func (r *report) none() bool {
	return len(r.Cautions)+len(r.Refused)+len(r.Spec)+len(r.Objects)+len(r.Fields)+len(r.Answers)+len(r.Gates)+len(r.Routes) == 0 && !r.Outdated
}

func (r *report) status() int {
	switch {
	case len(r.Cautions)+len(r.Refused) > 0:
		return beware
	case r.none():
		return noEffect
	}
	return effect
}

func judge(ctx context.Context, p pair) (*report, error) {
	r := &report{Where: p.sets, Old: p.old.name, New: p.new.name}
	var err error
	if r.Routes, err = changedRoutes(p.old.routes, p.new.routes); err != nil {
		return nil, err
	}
	old, err := decode(p.old)
	if err != nil {
		return nil, err
	}
	if p.new.object == nil {
		r.Cautions = append(r.Cautions, "The KubeVirt goes. "+removal(old))
		return r, nil
	}
	refused, dropped, err := schemaRefusals(ctx, p.new.object)
	if err != nil {
		return nil, err
	}
	r.Warnings = append(r.Warnings, dropped...)
	if len(refused) > 0 {
		r.Refused = refused // by the API server, so nothing comes of it
		return r, nil
	}
	new, err := decode(p.new)
	if err != nil {
		return nil, err
	}
	if old.Namespace != new.Namespace || old.Name != new.Name {
		r.Cautions = append(r.Cautions, fmt.Sprintf(
			"The KubeVirt is another: %s/%s goes, %s/%s comes. %s With two of them the operator does nothing for either (pkg/virt-operator/kubevirt.go:621-626).",
			old.Namespace, old.Name, new.Namespace, new.Name, removal(old)))
	}
	if r.Spec, err = differences(old.Spec, new.Spec); err != nil {
		return nil, err
	}
	return r, r.compare(ctx, old, new)
}

// compare fills in what KubeVirt's code says of the two.
func (r *report) compare(ctx context.Context, old, new *v1.KubeVirt) error {
	before, validBefore, err := configuration.Of(old)
	if err != nil {
		return err
	}
	after, valid, err := configuration.Of(new)
	if err != nil {
		return err
	}
	refused, warnings, err := askWebhook(ctx, old, new, before)
	if err != nil {
		return err
	}
	r.Refused = append(r.Refused, refused...)
	r.Warnings = append(r.Warnings, warnings...)
	for _, name := range unknownGates(new) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("KubeVirt knows no feature gate %q, and ignores it in silence", name))
	}
	if !validBefore {
		return fmt.Errorf("%s: KubeVirt drops the configuration of this CR whole, so what runs is an earlier one that is not known", r.Old)
	}
	if !valid {
		r.Cautions = append(r.Cautions, "KubeVirt drops the new configuration whole, in silence, for the last good one (pkg/virt-config/configuration.go:347-353).")
		after = before
	}
	if r.Fields, err = changedFields(before, after); err != nil {
		return err
	}
	if r.Gates, err = changedGates(old, new, before, after); err != nil {
		return err
	}
	if valid {
		r.Answers = flips(old, new)
	}
	if err := r.roll(old, new); err != nil {
		return err
	}
	r.updates(old, new)
	r.cautions(old, new)
	return nil
}

// roll compares the deployments. A CR whose patches do not apply has none.
func (r *report) roll(old, new *v1.KubeVirt) error {
	before, err := deploy(old)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Old, err)
	}
	after, err := deploy(new)
	if err != nil {
		r.Cautions = append(r.Cautions, "virt-operator can't roll it out, and applies nothing: "+err.Error())
		return nil
	}
	r.ID = [2]string{before.id, after.id}
	r.Outdated = before.launcher != after.launcher
	r.Warnings = append(r.Warnings, after.findings...)
	r.Objects, err = rollout(before, after)
	return err
}

// updates is how the workload updater acts on outdated VMIs from now on.
func (r *report) updates(old, new *v1.KubeVirt) {
	was, is := verdict.NewPlatform(old), verdict.NewPlatform(new)
	for _, of := range []struct {
		name    string
		was, is any
	}{
		{"migrates", was.LiveMigrates, is.LiveMigrates}, {"evicts", was.Evicts, is.Evicts}, {"evictions a batch", was.BatchSize, is.BatchSize},
		{"from batch to batch", was.BatchInterval, is.BatchInterval}, {"migrations at once", was.Migrations, is.Migrations},
	} {
		if of.was != of.is {
			r.Updater = append(r.Updater, fmt.Sprintf("%s: %v -> %v", of.name, of.was, of.is))
		}
	}
}

func decode(s side) (*v1.KubeVirt, error) {
	kv := &v1.KubeVirt{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.object, kv); err != nil {
		u := unstructured.Unstructured{Object: s.object}
		return nil, fmt.Errorf("%s: KubeVirt %s is not of KubeVirt's type: %w", s.name, u.GetName(), err)
	}
	return kv, nil
}
