// kubectl-drain_preview is a kubectl plugin that says what the next drain, and the next upgrade of KubeVirt, do to each VM.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/command"
)

func main() {
	command.Frugally()
	os.Exit(command.Run(os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
