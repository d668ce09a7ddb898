package report

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"cozy-kubevirt/cmd/kubectl-drain_preview/verdict"
)

// answers is a cluster that says what a test wants.
type answers struct {
	eviction  error
	launchers []corev1.Pod
	vmi       *v1.VirtualMachineInstance
	asked     *policyv1.Eviction
}

func (a *answers) Evict(_ context.Context, eviction *policyv1.Eviction) error {
	a.asked = eviction
	return a.eviction
}
func (a *answers) Launchers(context.Context, *corev1.Pod) ([]corev1.Pod, error) {
	return a.launchers, nil
}
func (a *answers) VMI(context.Context, string, string) (*v1.VirtualMachineInstance, error) {
	return a.vmi, nil
}

func denied(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

const webhook = `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: `

func TestVerifyTellsRightAnswersFromWrongOnes(t *testing.T) {
	triggered := denied(429, webhook+`Eviction triggered evacuation of VMI "shop/web"`)
	stuck := denied(429, webhook+"VMI web is configured with an eviction strategy but is not live-migratable")
	budget := denied(429, "Cannot evict pod as it would violate the pod's disruption budget.")
	for name, c := range map[string]struct {
		hold   verdict.Hold
		budget string
		said   error
		change func(*answers)
		agreed bool
	}{
		"marked, as previewed":                {verdict.Marked, "", triggered, nil, true},
		"let go, as previewed":                {"", "", nil, nil, true},
		"held by a budget, as previewed":      {"", "PodDisruptionBudget x allows no disruption", budget, nil, true},
		"stuck, as previewed":                 {verdict.NotMigratable, "", stuck, nil, true},
		"let go, though it would be marked":   {verdict.Marked, "", nil, nil, false},
		"marked, though it would be let go":   {"", "", triggered, nil, false},
		"stuck, though it would be marked":    {verdict.Marked, "", stuck, nil, false},
		"a budget, though it would be marked": {verdict.Marked, "", budget, nil, false},
		"a budget that was not seen":          {"", "", budget, nil, false},
		"the webhook of another VMI":          {verdict.Marked, "", denied(429, webhook+`Eviction triggered evacuation of VMI "shop/db"`), nil, false},
		"in progress, though not marked":      {verdict.Marked, "", denied(429, webhook+`Evacuation in progress: Eviction triggered evacuation of VMI "shop/web"`), nil, false},
		"another status":                      {verdict.Marked, "", denied(500, webhook+`Eviction triggered evacuation of VMI "shop/web"`), nil, false},
		"no answer":                           {verdict.Marked, "", errors.New("connection refused"), nil, false},
		"the dry run marked it":               {verdict.Marked, "", triggered, func(a *answers) { a.vmi.Status.EvacuationNodeName = "node-a" }, false},
		"the dry run replaced its VMI":        {"", "", nil, func(a *answers) { a.vmi.UID = "other" }, false},
		"the dry run replaced its launcher":   {"", "", nil, func(a *answers) { a.launchers[0].UID = "other" }, false},
		"the dry run deletes its launcher":    {"", "", nil, func(a *answers) { a.launchers[0].DeletionTimestamp = &metav1.Time{} }, false},
		"the dry run started a launcher": {verdict.Marked, "", triggered, func(a *answers) {
			a.launchers = append(a.launchers, corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "second"}})
		}, false},
		"a launcher that has ended": {verdict.Marked, "", triggered, func(a *answers) {
			a.launchers = append(a.launchers, corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "old"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
		}, true},
		"a status in KubeVirt's words":       {verdict.Marked, "", denied(403, webhook+`Eviction triggered evacuation of VMI "shop/web"`), nil, false},
		"the dry run took its launcher away": {"", "", nil, func(a *answers) { a.launchers = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}
			vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{UID: "vmi"}}
			cluster := &answers{eviction: c.said, launchers: []corev1.Pod{*pod.DeepCopy()}, vmi: vmi.DeepCopy()}
			if c.change != nil {
				c.change(cluster)
			}
			r := &Report{Drains: verdict.Ends, VMs: []VM{{Namespace: "shop", Name: "web", Launcher: "virt-launcher-web", launcher: pod, launchers: []*corev1.Pod{pod}, vmi: vmi,
				eviction: verdict.Answer{Hold: c.hold}, budget: c.budget}}}
			require.NoError(t, r.Verify(t.Context(), cluster))
			assert.Equal(t, []string{metav1.DryRunAll}, cluster.asked.DeleteOptions.DryRun, "nothing may be evicted")
			assert.Equal(t, c.agreed, r.VMs[0].Verified.Agreed, "%+v", r.VMs[0].Verified)
			want := ExitEnds
			if !c.agreed {
				want = ExitDisagrees
			}
			assert.Equal(t, want, r.ExitStatus())
		})
	}
}

func TestVerifyWithoutTheRightIsAnError(t *testing.T) {
	r := &Report{VMs: []VM{{Namespace: "shop", Name: "web", launcher: &corev1.Pod{}}}}
	err := r.Verify(t.Context(), &answers{eviction: apierrors.NewForbidden(corev1.Resource("pods"), "x", nil)})
	assert.ErrorContains(t, err, "shop/web cannot be verified")
}
