package scheduling

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

func TestATaintKeepsAPodOutUnlessItOnlyPrefers(t *testing.T) {
	for effect, want := range map[corev1.TaintEffect]bool{
		corev1.TaintEffectNoSchedule: true, corev1.TaintEffectNoExecute: true, corev1.TaintEffectPreferNoSchedule: false,
	} {
		assert.Equal(t, want, keepsOut(&corev1.Taint{Effect: effect}), effect)
	}
}
