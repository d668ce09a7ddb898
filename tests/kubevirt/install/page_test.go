package install

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"cozy-kubevirt/internal/registry"
)

// This file runs every command of docs/install.md with the real kubectl, helm, krew, curl and tar. Stand-ins are the cluster, an
// API server that knows Flux's kinds by name only (make flux holds the example to their schemas), krew's index and the addresses.

// downloads is where releases are.
const downloads = "https://github.com/cozy-kubevirt/cozy-kubevirt/releases/download/"

// Each block of the page and what has to be true after it.
var installed = []struct {
	begins string
	check  func(t *testing.T, home, said string)
}{
	{"helm upgrade --install", isInstalled("STATUS: deployed")},
	{"helm repo add", isInstalled("STATUS: deployed")},
	{"kubectl create namespace", func(t *testing.T, _, said string) {
		assert.Contains(t, said, "helmrelease.helm.toolkit.fluxcd.io/kubevirt created")
	}},
	{"make vendor", func(t *testing.T, home, _ string) {
		assert.FileExists(t, filepath.Join(home, "platform/packages/system/kubevirt/templates/kubevirt-cr.yaml"))
	}},
	{"kubectl krew install", answers},
	{"curl ", answers},
}

func TestEveryCommandOfTheInstallPageWorks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, len(installed), "each block is run")
	assert.Equal(t, strings.Count(string(text), "```"), 2*len(blocks), "a block of another kind would not be run")
	for i, block := range blocks {
		t.Run(installed[i].begins, func(t *testing.T) {
			require.True(t, strings.HasPrefix(block[1], installed[i].begins), block[1])
			home, said := execute(t, block[1])
			installed[i].check(t, home, said)
		})
	}
}

func TestACommandOfTheInstallPageThatFailsIsNoticed(t *testing.T) {
	said, err := shell(t, t.TempDir(), "helm pull cozy/nothing\necho after", downloads)
	assert.Error(t, err)
	assert.NotContains(t, said, "after")
}

func isInstalled(says string) func(t *testing.T, home, said string) {
	return func(t *testing.T, _, said string) {
		assert.Contains(t, said, says)
		strategy, err := exec.Command(filepath.Join(root, "bin", "kubectl"), "--kubeconfig", kubeconfig, "get", "kubevirt", "kubevirt",
			"--namespace", "cozy-kubevirt", "--output", "jsonpath={.spec.configuration.evictionStrategy}").CombinedOutput()
		require.NoError(t, err, "%s", strategy)
		assert.Equal(t, "LiveMigrateIfPossible", string(strategy))
		// The next way begins where nothing is installed.
		out, err := shell(t, t.TempDir(), "helm uninstall kubevirt --namespace cozy-kubevirt", "")
		require.NoError(t, err, out)
	}
}

func answers(t *testing.T, _, said string) {
	assert.Contains(t, said, "kubectl drain-preview "+os.Getenv("RELEASE_VERSION")+", commit ")
}

// execute runs a block in a home of its own, and returns both.
func execute(t *testing.T, block string) (home, said string) {
	t.Helper()
	home = t.TempDir()
	said, err := shell(t, home, block, serve(t))
	require.NoError(t, err, said)
	return home, said
}

// shell runs commands with the page's addresses exchanged for those of this machine.
func shell(t *testing.T, home, commands, release string) (said string, err error) {
	t.Helper()
	version := os.Getenv("RELEASE_VERSION")
	require.NotEmpty(t, version, "run this by make release-dry-run")
	commands = strings.NewReplacer(
		downloads+"v1.0.0", release, "1.0.0", version, "linux_amd64", runtime.GOOS+"_"+runtime.GOARCH,
		"DEST=..", "DEST="+home, "oci://registry.example.org", "--plain-http oci://"+pushed(t, commands),
	).Replace(commands)
	programs := filepath.Join(home, "programs")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, program := range map[string]string{"kubectl": "kubectl", "kubectl-krew": "krew", "helm": "helm"} {
		target, err := filepath.Abs(filepath.Join(root, "bin", program))
		require.NoError(t, err)
		require.NoError(t, os.Symlink(target, filepath.Join(programs, name)))
	}
	if strings.Contains(commands, "curl ") { // its files go where it is run
		commands = "cd " + home + "\n" + commands
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = root
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MAKE") && !strings.HasPrefix(variable, "MFLAGS") {
			command.Env = append(command.Env, variable)
		}
	}
	file := filepath.Join(home, "kubeconfig")
	config, err := clientcmd.LoadFromFile(kubeconfig)
	require.NoError(t, err)
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	command.Env = append(command.Env, "HOME="+home, "KUBECONFIG="+file, "KREW_NO_UPGRADE_CHECK=1", "KREW_ROOT="+filepath.Join(home, "krew"), "KREW_DEFAULT_INDEX_URI="+index(t),
		"HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home,
		"PATH="+strings.Join([]string{filepath.Join(home, "krew", "bin"), programs, os.Getenv("PATH")}, string(os.PathListSeparator)))
	out, err := command.CombinedOutput()
	return string(out), err
}

// index is an empty index of plugins: krew clones one before it installs by an address.
func index(t *testing.T) (address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "index")
	for _, arguments := range [][]string{
		{"init", "--quiet", address},
		{"-C", address, "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--allow-empty", "--message", "an index"},
	} {
		out, err := exec.CommandContext(t.Context(), "git", arguments...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return address
}

// pushed is a registry that has the chart of the release, where commands ask for one.
func pushed(t *testing.T, commands string) (address string) {
	t.Helper()
	if !strings.Contains(commands, "oci://") {
		return ""
	}
	address, stop := registry.Start()
	t.Cleanup(stop)
	chart := filepath.Join(os.Getenv("RELEASE"), "cozy-kubevirt-"+os.Getenv("RELEASE_VERSION")+".tgz")
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "push"), "-archive", chart, "-registry", "oci://"+address+"/charts").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return address
}

// serve serves the files of the release, whose addresses lead back to it.
func serve(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(os.Getenv("RELEASE"), filepath.Base(r.URL.Path))
		if !strings.HasSuffix(file, ".yaml") {
			http.ServeFile(w, r, file)
			return
		}
		text, err := os.ReadFile(file)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(string(text), downloads+"v"+os.Getenv("RELEASE_VERSION"), address))
	}))
	address = server.URL
	t.Cleanup(server.Close)
	return address
}
