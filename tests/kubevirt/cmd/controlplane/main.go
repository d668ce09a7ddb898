// One binary that is virt-operator, virt-api or virt-controller, by the name under which it is run, at the release that
// the build names (go.mod or go.v1.8.mod). They share most of their code, so that it is built, linked and kept once. Run
// as operator-manifest it prints what a cluster is given to install that release's operator.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"kubevirt.io/client-go/log"
	"kubevirt.io/kubevirt/pkg/service"
	virtapi "kubevirt.io/kubevirt/pkg/virt-api"
	"kubevirt.io/kubevirt/pkg/virt-controller/watch"
	virtoperator "kubevirt.io/kubevirt/pkg/virt-operator"
)

// commands do what the main functions under KubeVirt's cmd/ do.
var commands = map[string]func(){
	"virt-operator":   virtoperator.Execute,
	"virt-controller": watch.Execute,
	"virt-api": func() {
		log.InitializeLogging("virt-api")
		app := virtapi.NewVirtApi()
		service.Setup(app)
		app.Execute()
	},
	"operator-manifest": printManifest,
}

func main() {
	name := filepath.Base(os.Args[0])
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: run it as virt-operator, virt-api, virt-controller or operator-manifest\n", name)
		os.Exit(1)
	}
	command()
}
