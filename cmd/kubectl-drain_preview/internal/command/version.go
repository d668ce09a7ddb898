package command

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// A release stamps these (-ldflags -X); a build without them says what Go knows of it.
var stampedVersion, stampedCommit string

// version says what was built, from which commit, and whose rules it applies: those of the KubeVirt whose API it was built with.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	return describe(stampedVersion, stampedCommit, info)
}

func describe(version, commit string, info *debug.BuildInfo) string {
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && commit == "" {
			commit = setting.Value
		}
	}
	kubevirt := "unknown"
	for _, dependency := range info.Deps {
		if dependency.Path == "kubevirt.io/api" {
			kubevirt = dependency.Version
		}
	}
	return fmt.Sprintf("%s, commit %s, KubeVirt %s", cmp.Or(version, info.Main.Version, "(devel)"), cmp.Or(commit, "unknown"), kubevirt)
}
