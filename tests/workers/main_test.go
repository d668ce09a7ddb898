// Package workers shows what Cluster API and its KubeVirt provider do with a tenant's worker once KubeVirt has marked it
// for evacuation. Their own controllers run; what lies outside them is played by a stand-in (standin_test.go).
package workers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// infra is the cluster that all tests share: the platform, with Cluster API and KubeVirt's API on it.
var infra *cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

// folderVariable names the folder of the run.
const folderVariable = "WORKERS_FOLDER"

func run(m *testing.M) int {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		fmt.Println(restartInFolder())
		return 1
	}
	release, err := guard(folder)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer release()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctrllog.SetLogger(logr.Discard())
	infra = &cluster{}
	defer infra.stop()
	if err := infra.start(context.Background(), folder); err != nil {
		fmt.Println("the control plane does not start:", err)
		return 1
	}
	// The tests mostly wait, so more of them run at once than there are cores.
	_ = flag.Set("test.parallel", "20")
	return m.Run()
}

// restartInFolder runs this process anew with all its files in one temporary folder: envtest asks for the place of its
// own before TestMain runs. It returns only if it cannot.
func restartInFolder() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "workers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	return syscall.Exec(self, os.Args, append(os.Environ(),
		folderVariable+"="+folder, "TMPDIR="+folder, "XDG_CACHE_HOME="+folder))
}

// pidFile is where the servers leave their process ids, in the folder of the run.
const pidFile = "pids"

// guard starts a process that waits until this one is done or gone, however it ends (^C and a test's timeout included),
// and then stops its servers and removes its folder. release says that it is done and waits for that.
func guard(folder string) (release func(), err error) {
	const script = `read -r _
for pid in $(cat "$1/$2"); do kill -9 "$pid"; done 2>/dev/null
rm -rf "$1" || rm -rf "$1"`
	guardian := exec.Command("sh", "-c", script, "guard", folder, pidFile)
	guardian.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is not for it
	alive, err := guardian.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := guardian.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = alive.Close()
		_ = guardian.Wait()
	}, nil
}

// guarded puts a script of the binary's name into the folder that tells the guard its process id and runs the binary.
func guarded(folder, binary string) error {
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("%w (make tools builds it)", err)
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("#!/bin/sh\necho $$ >>'%s'\nexec '%s' \"$@\"\n", filepath.Join(folder, pidFile), binary)
	return os.WriteFile(filepath.Join(folder, filepath.Base(binary)), []byte(text), 0o700)
}
