// Package scheduling asks Kubernetes' own scheduler plugins where a pod could run, on what was read of a cluster.
package scheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"k8s.io/kubernetes/pkg/scheduler/metrics"

	_ "k8s.io/kubernetes/pkg/features" // the gates that the plugins ask about
)

// This file is the plugins of the default scheduler that can refuse a node, in the order in which it asks them
// (k8s.io/kubernetes v1.34.2, pkg/scheduler/apis/config/v1/default_plugins.go), as cluster-autoscaler runs them.

// plugin is one of them.
type plugin struct {
	name string
	framework.FilterPlugin
	prepare framework.PreFilterPlugin // nil if it needs no preparation
}

// byDefault makes them, with the arguments of the default profile.
var byDefault = []create{
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return nodeunschedulable.New(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return tainttoleration.New(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return nodeports.New(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return noderesources.NewFit(ctx, &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
			Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}},
		}}, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return volumerestrictions.New(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return nodevolumelimits.NewCSI(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return volumebinding.New(ctx, &config.VolumeBindingArgs{BindTimeoutSeconds: 600}, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		return volumezone.New(ctx, nil, h, f)
	},
	func(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
		// The constraints that the scheduler has by default only score (podtopologyspread/plugin.go, systemDefaultConstraints).
		return podtopologyspread.New(ctx, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, h, f)
	},
	podAffinity,
}

// create makes a plugin.
type create = func(context.Context, framework.Handle, feature.Features) (framework.Plugin, error)

func podAffinity(ctx context.Context, h framework.Handle, f feature.Features) (framework.Plugin, error) {
	return interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, h, f)
}

// Without leaves out one of the plugins, by its name: the tests show by it that each is needed.
var Without string

func newPlugins(h framework.Handle, creates ...create) ([]plugin, error) {
	metrics.InitMetrics() // which the plugins count in
	gates := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	var all []plugin
	for _, create := range creates {
		made, err := create(context.Background(), h, gates)
		if err != nil {
			return nil, fmt.Errorf("a scheduler plugin cannot be made: %w", err)
		}
		if made.Name() == Without {
			continue
		}
		p := plugin{name: made.Name(), FilterPlugin: made.(framework.FilterPlugin)}
		p.prepare, _ = made.(framework.PreFilterPlugin)
		all = append(all, p)
	}
	return all, nil
}

// prepared is a pod that the plugins are ready to judge.
type prepared struct {
	pod     *corev1.Pod
	state   fwk.CycleState
	skipped sets.Set[string] // plugins that the pod is none of the business of
	only    sets.Set[string] // nodes that a plugin has narrowed the choice to; nil is all
	refused string           // why no node takes it, whichever
	by      string
}

func prepare(plugins []plugin, pod *corev1.Pod, nodes []fwk.NodeInfo) *prepared {
	p := &prepared{pod: pod, state: framework.NewCycleState(), skipped: sets.Set[string]{}}
	for _, plugin := range plugins {
		if plugin.prepare == nil {
			continue
		}
		result, status := plugin.prepare.PreFilter(context.Background(), p.state, pod, nodes)
		switch {
		case status.IsSkip():
			p.skipped.Insert(plugin.name)
		case !status.IsSuccess():
			p.refused, p.by = status.Message(), plugin.name
			return p
		case !result.AllNodes():
			if p.only == nil {
				p.only = result.NodeNames
			} else {
				p.only = p.only.Intersection(result.NodeNames)
			}
		}
	}
	return p
}

// refusal is why a node does not take a pod; the zero value is that it does.
type refusal struct{ plugin, message string }

// ask asks about a node.
func (p *prepared) ask(plugins []plugin, node fwk.NodeInfo) refusal {
	if p.refused != "" {
		return refusal{p.by, p.refused}
	}
	if p.only != nil && !p.only.Has(node.Node().Name) {
		return refusal{nodeaffinity.Name, "its affinity names other nodes"}
	}
	for _, plugin := range plugins {
		if p.skipped.Has(plugin.name) {
			continue
		}
		if status := plugin.Filter(context.Background(), p.state, p.pod, node); !status.IsSuccess() {
			return refusal{plugin.name, status.Message()}
		}
	}
	return refusal{}
}

// handle is what the plugins see of a scheduler.
type handle struct {
	framework.Handle // nothing else is asked for
	lister           framework.SharedLister
	informers        informers.SharedInformerFactory
}

func (h *handle) SnapshotSharedLister() framework.SharedLister           { return h.lister }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) ClientSet() clientset.Interface                         { return nil }
func (h *handle) Parallelizer() parallelize.Parallelizer                 { return parallelize.NewParallelizer(1) }
