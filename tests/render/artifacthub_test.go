// What Artifact Hub's linter (`ah lint`, github.com/artifacthub/hub v1.23.0) refuses in a chart, and what its pages lack without.
// The linter itself is 2,273 packages to build, so its rules are stated here; file and line are of that version.
package render

import (
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const artifactHub = "artifacthub.io/"

// annotations are the ones that Artifact Hub reads (internal/tracker/source/helm/helm.go:40-55), each with what is wrong with a text.
var annotations = map[string]func(text string) string{
	"alternativeName":         is(`.+`),
	"category":                is(`ai-machine-learning|database|integration-delivery|monitoring-logging|networking|security|storage|streaming-messaging|skip-prediction`), // internal/hub/pkg.go:153
	"changes":                 list(changeFault),                                                                                                                          // internal/pkg/metadata.go:213
	"containsSecurityUpdates": isBool,
	"crds":                    list(nil),
	"crdsExamples":            list(nil),
	"images":                  list(imageFault), // internal/pkg/metadata.go:253
	"license":                 is(`[A-Za-z0-9.+-]+`),
	"links":                   list(linkFault),
	"maintainers":             list(nil),
	"operator":                isBool,
	"operatorCapabilities":    is(`(?i)basic install|seamless upgrades|full lifecycle|deep insights|auto pilot`), // helm.go:87
	"prerelease":              isBool,
	"recommendations":         list(linkFault),
	"screenshots":             list(nil),
	"signKey":                 is(`(?s).*\burl: *https?://.*`),
}

func TestTheChartHasWhatArtifactHubAsksFor(t *testing.T) {
	t.Parallel()
	chart, err := loader.LoadDir(chartDir)
	require.NoError(t, err)
	assert.Empty(t, faults(chart))
}

func TestWhatArtifactHubRefusesIsAFault(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*helmchart.Chart){
		"a kind of change that it does not know": annotate("changes", "- {kind: improved, description: A.}"),
		"a change without a word":                annotate("changes", "- {kind: added}"),
		"a list that is none":                    annotate("changes", "a: b"),
		"an image that is no reference":          annotate("images", "- {name: a, image: 'Quay.io/A:b c'}"),
		"a link that leads nowhere":              annotate("links", "- {name: a, url: here}"),
		"an annotation of another name":          annotate("license_", "Apache-2.0"),
		"a category of its own":                  annotate("category", "virtualization"),
		"no license":                             func(c *helmchart.Chart) { delete(c.Metadata.Annotations, artifactHub+"license") },
		"no description":                         func(c *helmchart.Chart) { c.Metadata.Description = "" },
		"a version that is not SemVer":           func(c *helmchart.Chart) { c.Metadata.Version = "1.x" },
		"no home":                                func(c *helmchart.Chart) { c.Metadata.Home = "" },
		"no schema":                              func(c *helmchart.Chart) { c.Schema = nil },
		"no README": func(c *helmchart.Chart) {
			c.Files = slices.DeleteFunc(c.Files, func(f *helmchart.File) bool { return f.Name == "README.md" })
		},
	} {
		chart, err := loader.LoadDir(chartDir)
		require.NoError(t, err)
		damage(chart)
		assert.Len(t, faults(chart), 1, name)
	}
}

// The file lies beside index.yaml (internal/repo/manager.go:461), and its id is a UUID once Artifact Hub has given one.
func TestTheRepositorysMetadataNamesItsOwners(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "artifacthub-repo.yml"))
	require.NoError(t, err)
	var repository struct {
		RepositoryID string                         `yaml:"repositoryID"`
		Owners       []struct{ Name, Email string } `yaml:"owners"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&repository))
	assert.Regexp(t, `^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$`, repository.RepositoryID)
	require.NotEmpty(t, repository.Owners)
	for _, owner := range repository.Owners {
		_, err := mail.ParseAddress(owner.Email)
		assert.NoError(t, err)
	}
}

// faults is what Artifact Hub would refuse in a chart, or could not show of it.
func faults(chart *helmchart.Chart) (found []string) {
	fault := func(wrong bool, what string) {
		if wrong {
			found = append(found, what)
		}
	}
	metadata := chart.Metadata
	_, err := semver.NewVersion(metadata.Version) // internal/pkg/manager.go, Register
	fault(err != nil, "version: not SemVer")
	fault(metadata.Description == "", "description: none")
	fault(metadata.Home == "", "home: none")
	fault(metadata.Annotations[artifactHub+"license"] == "", "license: none")
	fault(len(chart.Schema) == 0, "values.schema.json: none")
	fault(!slices.ContainsFunc(chart.Files, func(f *helmchart.File) bool { return f.Name == "README.md" }), "README.md: none")
	for key, text := range metadata.Annotations {
		name, theirs := strings.CutPrefix(key, artifactHub)
		if !theirs {
			continue
		}
		check := annotations[name]
		if check == nil {
			found = append(found, key+": no annotation of Artifact Hub's")
		} else if why := check(text); why != "" {
			found = append(found, key+": "+why)
		}
	}
	return found
}

func annotate(name, text string) func(*helmchart.Chart) {
	return func(c *helmchart.Chart) { c.Metadata.Annotations[artifactHub+name] = text }
}

func is(pattern string) func(string) string {
	whole := regexp.MustCompile("^(?:" + pattern + ")$")
	return func(text string) string {
		if whole.MatchString(text) {
			return ""
		}
		return strconv.Quote(text) + ", expected " + pattern
	}
}

func isBool(text string) string {
	if _, err := strconv.ParseBool(text); err != nil {
		return err.Error()
	}
	return ""
}

// list is a list in YAML, whose entries a fault is found in.
func list(fault func(entry map[string]any) string) func(string) string {
	return func(text string) string {
		var entries []map[string]any
		if err := yaml.Unmarshal([]byte(text), &entries); err != nil {
			return err.Error()
		}
		for _, entry := range entries {
			if fault == nil {
				continue
			}
			if why := fault(entry); why != "" {
				return why
			}
		}
		return ""
	}
}

func changeFault(entry map[string]any) string {
	if !slices.Contains([]any{"added", "changed", "deprecated", "removed", "fixed", "security"}, entry["kind"]) {
		return "kind of change"
	}
	if text, _ := entry["description"].(string); text == "" {
		return "change without a description"
	}
	return ""
}

func imageFault(entry map[string]any) string {
	image, _ := entry["image"].(string)
	return is(`[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[0-9a-f]{64})?`)(image)
}

func linkFault(entry map[string]any) string {
	address, _ := entry["url"].(string)
	if parsed, err := url.Parse(address); err != nil || parsed.Host == "" {
		return "link to " + strconv.Quote(address)
	}
	return ""
}
