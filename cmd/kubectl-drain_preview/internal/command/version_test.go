package command

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheVersionIsWhatWasStampedAndElseWhatGoKnows(t *testing.T) {
	built := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.0.0-2026"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
		Deps:     []*debug.Module{{Path: "kubevirt.io/api", Version: "v7.8.9"}},
	}
	assert.Equal(t, "1.2.3, commit def, KubeVirt v7.8.9", describe("1.2.3", "def", built))
	assert.Equal(t, "v0.0.0-2026, commit abc, KubeVirt v7.8.9", describe("", "", built))
	assert.Equal(t, "(devel), commit unknown, KubeVirt unknown", describe("", "", &debug.BuildInfo{}))
}

// Go says nothing of a test's modules; that a release names the KubeVirt of its go.mod is shown on its binary (tests/release).
func TestVersionIsOneLineOnStandardOutput(t *testing.T) {
	out, errOut, status := run("", "--version")
	assert.Empty(t, errOut)
	assert.Zero(t, status)
	assert.Regexp(t, `^kubectl drain-preview \S+, commit \S+, KubeVirt \S+\n$`, out)
}
