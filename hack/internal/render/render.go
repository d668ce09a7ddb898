// Package render renders a chart in process, from files in memory, the way `helm template` does:
// so that hundreds of changed charts and thousands of values files take seconds.
package render

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	facts "cozy-kubevirt/internal/chart"
)

// Namespace is the namespace of every release that Render pretends to install.
const Namespace = facts.Namespace

// Chart is a chart in memory. It is never changed: With returns another one.
type Chart struct {
	files  []*loader.BufferedFile
	helm   *chart.Chart
	schema *jsonschema.Schema
}

// Open reads a chart directory as Helm does, .helmignore included.
func Open(dir string) (*Chart, error) {
	read, err := loader.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	files := make([]*loader.BufferedFile, 0, len(read.Raw))
	for _, file := range read.Raw {
		files = append(files, &loader.BufferedFile{Name: file.Name, Data: file.Data})
	}
	helm, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	schema, err := compileSchema(helm.Schema)
	return &Chart{files: files, helm: helm, schema: schema}, err
}

// compileSchema compiles a values.schema.json with the library that Helm judges values with; no schema
// gives none. Helm compiles it again for every rendering, which takes three times as long as the rest.
func compileSchema(data []byte) (*jsonschema.Schema, error) {
	if data == nil {
		return nil, nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
}

const (
	schemaFile = "values.schema.json"
	schemaURL  = "file:///" + schemaFile
)

// Schema is the chart's compiled values.schema.json, nil if it has none.
func (c *Chart) Schema() *jsonschema.Schema { return c.schema }

// Validate says in Helm's words why the schema refuses values that are merged with the chart's defaults.
func (c *Chart) Validate(values map[string]any) error {
	if c.schema == nil {
		return nil
	}
	err := c.schema.Validate(values)
	if err == nil {
		return nil
	}
	reason := strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaURL+"#'\n")
	//nolint:staticcheck // these are Helm's own words, line end included
	return fmt.Errorf("values don't meet the specifications of the schema(s) in the following chart(s):\n%s:\n%s\n", c.helm.Name(), reason)
}

// Coalesce merges values with the chart's defaults.
func (c *Chart) Coalesce(values map[string]any) (map[string]any, error) {
	return chartutil.CoalesceValues(c.helm, values)
}

// With returns the chart with one file replaced.
func (c *Chart) With(name string, data []byte) (*Chart, error) {
	files := slices.Clone(c.files)
	for i, file := range files {
		if file.Name == name {
			files[i] = &loader.BufferedFile{Name: name, Data: data}
			helm, err := loader.LoadFiles(files)
			if err != nil {
				return nil, err
			}
			schema := c.schema
			if name == schemaFile {
				schema, err = compileSchema(data)
			}
			return &Chart{files: files, helm: helm, schema: schema}, err
		}
	}
	return nil, fmt.Errorf("the chart has no file %s", name)
}

// Names lists the chart's files.
func (c *Chart) Names() []string {
	names := make([]string, 0, len(c.files))
	for _, file := range c.files {
		names = append(names, file.Name)
	}
	slices.Sort(names)
	return names
}

// Data returns a file of the chart, nil if there is none of that name.
func (c *Chart) Data(name string) []byte {
	for _, file := range c.files {
		if file.Name == name {
			return file.Data
		}
	}
	return nil
}

// Helm returns the chart as Helm's packages take it.
func (c *Chart) Helm() *chart.Chart { return c.helm }

// Target is what a chart is rendered for.
type Target struct {
	// KubeVersion is a Kubernetes version such as 1.34.2.
	KubeVersion string
	// APIVersions are served beside those that Helm assumes of every cluster, or, with OnlyAPIVersions,
	// in their place.
	APIVersions     []string
	OnlyAPIVersions bool
	// Release is Namespace's first installation if it has no name.
	Release chartutil.ReleaseOptions
	// Cluster is what lookup asks, which finds nothing if it is nil.
	Cluster engine.ClientProvider
	// ChartVersion and AppVersion replace those of Chart.yaml unless empty.
	ChartVersion, AppVersion string
}

// Render returns the rendered files by name, or Helm's reason to refuse. Values go the way of a values
// file: the chart's defaults under them, then the schema, then the templates.
func (c *Chart) Render(values map[string]any, target Target) (map[string]string, error) {
	helm := c.helm
	if len(helm.Dependencies()) > 0 {
		// Helm removes disabled subcharts from the chart that it is given.
		var err error
		if helm, err = loader.LoadFiles(c.files); err != nil {
			return nil, err
		}
		if err := chartutil.ProcessDependenciesWithMerge(helm, values); err != nil {
			return nil, err
		}
		return c.render(helm, values, target, false)
	}
	merged, err := c.Coalesce(values)
	if err != nil {
		return nil, err
	}
	if err := c.Validate(merged); err != nil {
		return nil, err
	}
	return c.render(helm, values, target, true)
}

// RenderAccepted is Render for values that the schema is known to accept.
func (c *Chart) RenderAccepted(values map[string]any, target Target) (map[string]string, error) {
	if len(c.helm.Dependencies()) > 0 {
		return c.Render(values, target)
	}
	return c.render(c.helm, values, target, true)
}

func (c *Chart) render(helm *chart.Chart, values map[string]any, target Target, judged bool) (map[string]string, error) {
	version, err := chartutil.ParseKubeVersion(target.KubeVersion)
	if err != nil {
		return nil, err
	}
	capabilities := &chartutil.Capabilities{KubeVersion: *version, APIVersions: target.APIVersions}
	if !target.OnlyAPIVersions {
		capabilities.APIVersions = slices.Concat(chartutil.DefaultVersionSet, target.APIVersions)
	}
	release := target.Release
	if release.Name == "" {
		release = chartutil.ReleaseOptions{Name: "release", Namespace: Namespace, Revision: 1, IsInstall: true}
	}
	if target.ChartVersion != "" || target.AppVersion != "" {
		metadata, changed := *helm.Metadata, *helm
		metadata.Version = cmp.Or(target.ChartVersion, metadata.Version)
		metadata.AppVersion = cmp.Or(target.AppVersion, metadata.AppVersion)
		changed.Metadata = &metadata
		helm = &changed
	}
	top, err := chartutil.ToRenderValuesWithSchemaValidation(helm, values, release, capabilities, judged)
	if err != nil {
		return nil, err
	}
	if target.Cluster != nil {
		return engine.RenderWithClientProvider(helm, top, target.Cluster)
	}
	return engine.Render(helm, top)
}

var position = regexp.MustCompile(`(\.(?:tpl|yaml|yml|txt)):\d+(?::\d+)?`)

// WithoutPositions removes line and column numbers of templates from an error message, so that a message
// is the same wherever in its file it comes from.
func WithoutPositions(message string) string {
	return position.ReplaceAllString(message, "$1")
}
