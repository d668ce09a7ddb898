package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helm-unittest/helm-unittest/pkg/unittest"
	"github.com/helm-unittest/helm-unittest/pkg/unittest/results"
	"github.com/helm-unittest/helm-unittest/pkg/unittest/snapshot"
	"github.com/helm-unittest/helm-unittest/pkg/unittest/valueutils"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"cozy-kubevirt/hack/internal/render"
)

// unitCase is one case of a helm-unittest suite, which runs alone.
type unitCase struct {
	suite *unittest.TestSuite
	job   *unittest.TestJob
	file  string
	cache *snapshot.Cache
}

func (c *unitCase) name() string {
	return fmt.Sprintf("%s: %s", filepath.Base(c.file), c.job.Name)
}

// loadCases reads the suites of a chart, as strictly as `helm unittest --strict` does.
func loadCases(dir, chartName, pattern string) ([]*unitCase, error) {
	files, err := unittest.GetFiles(dir, []string{pattern}, false)
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var cases []*unitCase
	for _, file := range files {
		suites, err := unittest.ParseTestSuiteFile(file, chartName, true, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, suite := range suites {
			// Not snapshot.CreateSnapshotOfSuite, which makes a folder in the chart.
			url := suite.SnapshotFileUrl()
			cache := &snapshot.Cache{Filepath: filepath.Join(filepath.Dir(url), "__snapshot__", filepath.Base(url)+".snap")}
			if err := cache.RestoreFromFile(); err != nil {
				return nil, fmt.Errorf("%s: %w", cache.Filepath, err)
			}
			for _, job := range suite.Tests {
				if job.Skip.Reason == "" && suite.Skip.Reason == "" {
					cases = append(cases, &unitCase{suite, job, file, cache})
				}
			}
		}
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case to run: %s has no helm-unittest suite that matches %s", dir, pattern)
	}
	return cases, nil
}

// defaults is what Helm assumes of a cluster that it does not ask. helm-unittest writes the versions of
// each case into it, where the next case would find them (and where two at a time would meet, which is why
// mutate works with processes).
var defaults = *chartutil.DefaultCapabilities

// run returns why the case fails on a chart, nil if it passes.
func (c *unitCase) run(chart *render.Chart) (failure error) {
	*chartutil.DefaultCapabilities = defaults
	defer func() {
		if problem := recover(); problem != nil {
			failure = fmt.Errorf("panic: %v", problem)
		}
	}()
	// A run writes into the suite and the case: copies keep the next run from finding the traces.
	suite, job := *c.suite, *c.job
	suite.Tests = []*unittest.TestJob{&job}
	result := suite.RunV3(chart.Helm(), c.cache, true, "", &results.TestSuiteResult{})
	if result.Passed {
		return nil
	}
	var why strings.Builder
	for _, test := range result.TestsResult {
		why.WriteString(test.Stringify())
	}
	return errors.New(strings.TrimSpace(why.String()))
}

// below resolves a path of a suite, which is relative to its file.
func (c *unitCase) below(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.file), path)
}

// probe is what the case renders.
func (c *unitCase) probe() (probe, error) {
	merged := map[string]any{}
	for _, path := range slices.Concat(c.suite.Values, c.job.Values) {
		values, err := chartutil.ReadValuesFile(c.below(path))
		if err != nil {
			return probe{}, err
		}
		merged = chartutil.MergeTables(values, merged)
	}
	for _, sets := range []map[string]any{c.suite.Set, c.job.Set} {
		for path, value := range sets {
			set, err := valueutils.BuildValueOfSetPath(value, path)
			if err != nil {
				return probe{}, err
			}
			data, err := yaml.Marshal(set)
			if err != nil {
				return probe{}, err
			}
			values, err := chartutil.ReadValues(data)
			if err != nil {
				return probe{}, err
			}
			merged = chartutil.MergeTables(values, merged)
		}
	}
	job := c.job
	release := chartutil.ReleaseOptions{
		Name:      cmp.Or(job.Release.Name, c.suite.Release.Name, "RELEASE-NAME"),
		Namespace: cmp.Or(job.Release.Namespace, c.suite.Release.Namespace, "NAMESPACE"),
		Revision:  cmp.Or(job.Release.Revision, c.suite.Release.Revision),
		IsUpgrade: job.Release.IsUpgrade || c.suite.Release.IsUpgrade,
	}
	release.IsInstall = !release.IsUpgrade
	return probe{
		name:   "the input of " + c.name(),
		values: merged,
		target: render.Target{
			KubeVersion: fmt.Sprintf("v%s.%s.0", cmp.Or(job.Capabilities.MajorVersion, defaults.KubeVersion.Major), cmp.Or(job.Capabilities.MinorVersion, defaults.KubeVersion.Minor)),
			APIVersions: job.Capabilities.APIVersions, OnlyAPIVersions: true,
			Release:      release,
			Cluster:      c.cluster(),
			ChartVersion: cmp.Or(job.Chart.Version, c.suite.Chart.Version),
			AppVersion:   cmp.Or(job.Chart.AppVersion, c.suite.Chart.AppVersion),
		},
	}, nil
}

// cluster is what the case lets lookup find, nil if it names no object: as helm-unittest puts it together.
func (c *unitCase) cluster() engine.ClientProvider {
	objects := slices.Concat(c.job.KubernetesProvider.Objects, c.suite.KubernetesProvider.Objects)
	if len(objects) == 0 {
		return nil
	}
	scheme := maps.Clone(c.job.KubernetesProvider.Scheme)
	if scheme == nil {
		scheme = map[string]unittest.KubernetesFakeKindProps{}
	}
	maps.Copy(scheme, c.suite.KubernetesProvider.Scheme)
	return &unittest.KubernetesFakeClientProvider{Scheme: scheme, Objects: objects}
}

// opaque says whether a case looks at more than what Helm renders from its input.
func (c *unitCase) opaque() bool {
	return c.job.PostRendererConfig.Cmd != "" || c.suite.PostRendererConfig.Cmd != ""
}
