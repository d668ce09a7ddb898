// Package release holds what hack/release.sh made against what a user does with it: krew, Helm and a shell install it.
package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// downloads is where the manifest and the index say that the archives are.
const downloads = "https://github.com/cozy-kubevirt/cozy-kubevirt/releases/download/"

var (
	root    = must(filepath.Abs("../.."))
	bin     = filepath.Join(root, "bin")
	folder  = os.Getenv("RELEASE") // what hack/release.sh made
	version = os.Getenv("RELEASE_VERSION")
	tag     = "v" + version
)

func TestMain(m *testing.M) {
	if folder == "" || version == "" {
		fmt.Println("run this by make release-dry-run, which names the release in RELEASE and RELEASE_VERSION")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestTheChecksumsAreThoseOfAllThatIsPublished(t *testing.T) {
	var want []string
	for _, name := range names(t) {
		if name != "checksums.txt" && name != "notes.md" {
			want = append(want, fmt.Sprintf("%x  %s", sha256.Sum256(read(t, name)), name))
		}
	}
	got := strings.Split(strings.TrimSpace(string(read(t, "checksums.txt"))), "\n")
	assert.ElementsMatch(t, want, got)
	assert.Len(t, got, 6+6+4, "archives, SBOMs, and the chart, its index, its schema and krew's manifest")
}

func TestEveryPlatformHasAnArchiveOfABinaryThatAnybodyBuildsTheSame(t *testing.T) {
	commit := strings.TrimSpace(output(t, nil, "git", "-C", root, "rev-parse", "HEAD"))
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, goarch := range []string{"amd64", "arm64"} {
			t.Run(goos+"/"+goarch, func(t *testing.T) {
				files := unpacked(t, archive(goos, goarch))
				binary := "kubectl-drain_preview"
				if goos == "windows" {
					binary += ".exe"
				}
				require.ElementsMatch(t, []string{binary, "LICENSE", "kubectl-drain-preview.1"}, keys(files))
				assert.Equal(t, must(os.ReadFile(filepath.Join(root, "LICENSE"))), files["LICENSE"])
				info, err := buildinfo.Read(bytes.NewReader(files[binary]))
				require.NoError(t, err)
				settings := map[string]string{}
				for _, setting := range info.Settings {
					settings[setting.Key] = setting.Value
				}
				assert.Equal(t, goos, settings["GOOS"])
				assert.Equal(t, goarch, settings["GOARCH"])
				assert.Equal(t, "0", settings["CGO_ENABLED"])
				assert.Equal(t, "true", settings["-trimpath"])
				assert.NotContains(t, settings, "vcs.revision", "a checkout says more than another")
				assert.Contains(t, string(files[binary]), commit)
				if goos == "linux" {
					static, err := elf.NewFile(bytes.NewReader(files[binary]))
					require.NoError(t, err)
					for _, segment := range static.Progs {
						assert.NotEqual(t, elf.PT_INTERP, segment.Type, "the image has nothing but the binary")
					}
				}
			})
		}
	}
}

func TestTheBillOfMaterialsNamesEveryModuleOfItsBinary(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		files := unpacked(t, archive(goos, "arm64"))
		info, err := buildinfo.Read(bytes.NewReader(files[slices.DeleteFunc(keys(files), func(name string) bool { return !strings.HasPrefix(name, "kubectl-drain_preview") })[0]]))
		require.NoError(t, err)
		var bill struct {
			BOMFormat  string
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name, Version string }
		}
		require.NoError(t, json.Unmarshal(read(t, "kubectl-drain_preview_"+tag+"_"+goos+"_arm64.cdx.json"), &bill))
		assert.Equal(t, "CycloneDX", bill.BOMFormat)
		assert.Equal(t, tag, bill.Metadata.Component.Version)
		billed := map[string]string{}
		for _, component := range bill.Components {
			billed[component.Name] = component.Version
		}
		require.NotEmpty(t, info.Deps)
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			assert.Equal(t, module.Version, billed[module.Path], module.Path)
		}
	}
}

// Krew's own check installs every platform, by the addresses of the manifest, which lead to a server of this machine.
func TestKrewTakesTheManifestAndInstallsEveryPlatform(t *testing.T) {
	assert.Contains(t, string(read(t, "drain-preview.yaml")), downloads+tag+"/")
	manifest := filepath.Join(t.TempDir(), "drain-preview.yaml")
	text := strings.ReplaceAll(string(read(t, "drain-preview.yaml")), downloads+tag, serve(t))
	require.NoError(t, os.WriteFile(manifest, []byte(text), 0o600))
	said, err := run(t, krewEnvironment(t), "validate-krew-manifest", "-manifest", manifest)
	require.NoError(t, err, said)
	assert.Contains(t, said, "all 6 spec.platforms installed fine")

	require.NoError(t, os.WriteFile(manifest, []byte(regexp.MustCompile(`sha256: [0-9a-f]`).ReplaceAllString(text, "sha256: 0")), 0o600))
	said, err = run(t, krewEnvironment(t), "validate-krew-manifest", "-manifest", manifest)
	assert.Error(t, err, "another checksum")
	assert.Contains(t, said, "checksum does not match")
}

func TestWhatKrewInstalledAnswersToKubectl(t *testing.T) {
	environment := krewEnvironment(t)
	said, err := run(t, environment, "kubectl", "krew", "install", "--manifest", filepath.Join(folder, "drain-preview.yaml"), "--archive", filepath.Join(folder, archive(runtime.GOOS, runtime.GOARCH)))
	require.NoError(t, err, said)
	commit := strings.TrimSpace(output(t, nil, "git", "-C", root, "rev-parse", "HEAD"))
	kubevirt := strings.TrimSpace(output(t, nil, "go", "-C", filepath.Join(root, "cmd", "kubectl-drain_preview"), "list", "-m", "-f", "{{.Version}}", "kubevirt.io/api"))
	assert.Equal(t, fmt.Sprintf("kubectl drain-preview %s, commit %s, KubeVirt %s\n", version, commit, kubevirt), output(t, environment, "kubectl", "drain-preview", "--version"))
}

func TestHelmPullsTheChartFromAPlainHTTPRepository(t *testing.T) {
	address := serve(t)
	home := t.TempDir()
	environment := []string{"HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home}
	said, err := run(t, environment, "helm", "repo", "add", "cozy", address)
	require.NoError(t, err, said)
	pulled := filepath.Join(home, "cozy-kubevirt-"+version+".tgz")
	said, err = run(t, environment, "helm", "pull", "cozy/cozy-kubevirt", "--version", version, "--destination", home)
	require.NoError(t, err, said)
	assert.Equal(t, read(t, "cozy-kubevirt-"+version+".tgz"), must(os.ReadFile(pulled)))
	assert.Contains(t, string(read(t, "index.yaml")), downloads+tag+"/cozy-kubevirt-"+version+".tgz")
}

func TestTheChartOfTheReleaseIsOfItsVersionAndHasItsSchema(t *testing.T) {
	chart, err := loader.LoadFile(filepath.Join(folder, "cozy-kubevirt-"+version+".tgz"))
	require.NoError(t, err)
	assert.Equal(t, version, chart.Metadata.Version)
	assert.NotEmpty(t, chart.Schema)
	schema := read(t, "values.schema.json")
	assert.Equal(t, string(chart.Schema), string(schema), "an editor finds it beside the archive")
}

func TestTheNotesBeginWithWhatBreaks(t *testing.T) {
	notes := string(read(t, "notes.md"))
	if strings.Contains(notes, "**Breaking:") {
		assert.Regexp(t, `^### Breaking: read this before you upgrade\n\n- \*\*Breaking: `, notes)
		assert.Greater(t, strings.Index(notes, "\n### "), strings.LastIndex(notes, "**Breaking:"), "and nothing that breaks comes later")
	}
	assert.Contains(t, notes, "\n- ")
}

// Docker is not here to build it: what it takes from the release has to be there, and nothing runs as root.
func TestTheImageIsMadeOfTheReleasesOwnFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "cmd", "kubectl-drain_preview", "Dockerfile"))
	require.NoError(t, err)
	var instructions []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			instructions = append(instructions, strings.TrimSpace(line))
		}
	}
	require.Equal(t, []string{
		"FROM scratch", "ARG VERSION", "ARG TARGETARCH", "ADD kubectl-drain_preview_${VERSION}_linux_${TARGETARCH}.tar.gz /",
		"USER 65532:65532", `ENTRYPOINT ["/kubectl-drain_preview"]`,
	}, instructions)
	for _, goarch := range []string{"amd64", "arm64"} {
		added := strings.NewReplacer("${VERSION}", tag, "${TARGETARCH}", goarch).Replace(strings.Fields(instructions[3])[1])
		assert.Contains(t, unpacked(t, added), "kubectl-drain_preview")
	}
}

// A workflow runs on GitHub only: what is held here is that it runs nothing that is not pinned, and may do no more than it has to.
func TestTheWorkflowsArePinnedAndMayDoLittle(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		text := must(os.ReadFile(file))
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []struct {
					Uses string
					With map[string]any
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &workflow), file)
		assert.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions, file)
		for name, job := range workflow.Jobs {
			for right, level := range job.Permissions {
				assert.True(t, level == "read" || slices.Contains([]string{"build id-token", "build attestations", "publish contents", "publish packages", "publish id-token", "publish attestations"}, name+" "+right), "%s: %s may write %s", file, name, right)
			}
			for _, step := range job.Steps {
				if step.Uses == "" {
					continue
				}
				assert.Regexp(t, `^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`, step.Uses, file)
				if strings.HasPrefix(step.Uses, "actions/checkout@") {
					assert.Equal(t, false, step.With["persist-credentials"], file)
				}
			}
		}
	}
}

// krewEnvironment is a home for krew, with kubectl and krew on the path, and no other plugin.
func krewEnvironment(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	programs := filepath.Join(home, "programs")
	require.NoError(t, os.Mkdir(programs, 0o700))
	for name, program := range map[string]string{"kubectl": "kubectl", "kubectl-krew": "krew", "krew": "krew", "validate-krew-manifest": "validate-krew-manifest"} {
		require.NoError(t, os.Symlink(filepath.Join(bin, program), filepath.Join(programs, name)))
	}
	path := strings.Join([]string{filepath.Join(home, "krew", "bin"), programs, os.Getenv("PATH")}, string(os.PathListSeparator))
	return []string{"KREW_ROOT=" + filepath.Join(home, "krew"), "KREW_NO_UPGRADE_CHECK=1", "HOME=" + home, "PATH=" + path}
}

// serve serves the release's files, and an index whose archives lie beside it.
func serve(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Base(r.URL.Path) == "index.yaml" {
			_, _ = io.WriteString(w, strings.ReplaceAll(string(must(os.ReadFile(filepath.Join(folder, "index.yaml")))), downloads+tag+"/", ""))
			return
		}
		http.ServeFile(w, r, filepath.Join(folder, filepath.Base(r.URL.Path)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func archive(goos, goarch string) string {
	extension := "tar.gz"
	if goos == "windows" {
		extension = "zip"
	}
	return fmt.Sprintf("kubectl-drain_preview_%s_%s_%s.%s", tag, goos, goarch, extension)
}

// unpacked are an archive's files by name.
func unpacked(t *testing.T, name string) map[string][]byte {
	t.Helper()
	content, files := read(t, name), map[string][]byte{}
	if strings.HasSuffix(name, ".zip") {
		packed, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		for _, file := range packed.File {
			files[file.Name] = must(io.ReadAll(must(file.Open())))
		}
		return files
	}
	packed := tar.NewReader(must(gzip.NewReader(bytes.NewReader(content))))
	for {
		header, err := packed.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[header.Name] = must(io.ReadAll(packed))
	}
}

func names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return content
}

// run runs a program, found first where the environment's PATH says, or else in bin/.
func run(t *testing.T, environment []string, program string, arguments ...string) (said string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Path, command.Err = program, nil
	path := bin
	for _, variable := range environment {
		if value, isPath := strings.CutPrefix(variable, "PATH="); isPath {
			path = value
		}
	}
	for _, folder := range append(filepath.SplitList(path), filepath.SplitList(os.Getenv("PATH"))...) {
		if _, err := os.Stat(filepath.Join(folder, program)); err == nil {
			command.Path = filepath.Join(folder, program)
			break
		}
	}
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	return string(out), err
}

func output(t *testing.T, environment []string, program string, arguments ...string) string {
	t.Helper()
	said, err := run(t, environment, program, arguments...)
	require.NoError(t, err, said)
	return said
}

func keys(files map[string][]byte) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	return names
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
