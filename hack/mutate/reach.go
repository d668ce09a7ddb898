package main

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"cozy-kubevirt/hack/internal/render"
)

// An input that does not run a changed line is treated as before, so it need not be rendered again. What an input runs
// is seen in a copy of the templates in which every list of nodes (a file, a define, a branch) looks itself up first.

// reach is the set of lists that an input runs, by their marks; nil if it is not known, and may be all.
type reach map[string]bool

// runs says whether the input may run one of the lists.
func (r reach) runs(lists []string) bool {
	return r == nil || lists == nil || slices.ContainsFunc(lists, func(mark string) bool { return r[mark] })
}

// marked is the chart with its templates marked, or nil where that can't be done.
func marked(chart *render.Chart) *render.Chart {
	for _, file := range chart.Names() {
		if !strings.HasPrefix(file, "templates/") {
			continue
		}
		set, err := parsed(string(chart.Data(file)))
		if err != nil {
			return nil
		}
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(set)) {
			for mark, list := range listsOf(file, name, set[name].Root) {
				list.Nodes = slices.Insert(list.Nodes, 0, lookup(mark))
			}
			if name == topOfFile {
				text.WriteString(set[name].Root.String())
			} else {
				fmt.Fprintf(&text, "{{define %q}}%s{{end}}", name, set[name].Root)
			}
		}
		if chart, err = chart.With(file, []byte(text.String())); err != nil {
			return nil
		}
	}
	return chart
}

// lookup is an action that prints nothing, and that Helm tells its client of.
func lookup(mark string) parse.Node {
	set, err := parsed(fmt.Sprintf("{{$_ := lookup %q %q \"\" \"none\"}}", watchedVersion, mark))
	if err != nil {
		panic(err) // a mark holds nothing but a path and numbers
	}
	return set[topOfFile].Root.Nodes[0]
}

// listsOf names the lists below a list, itself included.
func listsOf(file, name string, root *parse.ListNode) map[string]*parse.ListNode {
	found := map[string]*parse.ListNode{}
	var walk func(list *parse.ListNode)
	walk = func(list *parse.ListNode) {
		if list == nil {
			return
		}
		found[fmt.Sprintf("%s %s %d", file, name, len(found))] = list
		for _, node := range list.Nodes {
			if branch := branchOf(node); branch != nil {
				walk(branch.List)
				walk(branch.ElseList)
			}
		}
	}
	walk(root)
	return found
}

func branchOf(node parse.Node) *parse.BranchNode {
	switch node := node.(type) {
	case *parse.IfNode:
		return &node.BranchNode
	case *parse.RangeNode:
		return &node.BranchNode
	case *parse.WithNode:
		return &node.BranchNode
	}
	return nil
}

// changedLists names the lists of a template in which a node is another one after a change; nil where it may be any.
func changedLists(file string, before, after []byte) []string {
	if !strings.HasPrefix(file, "templates/") {
		return nil
	}
	a, errA := parsed(string(before))
	b, errB := parsed(string(after))
	if errA != nil || errB != nil || !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
		return nil
	}
	var changed []string
	for name := range a {
		marks := map[*parse.ListNode]string{}
		for mark, list := range listsOf(file, name, a[name].Root) {
			marks[list] = mark
		}
		var compare func(x, y *parse.ListNode)
		compare = func(x, y *parse.ListNode) {
			same := len(x.Nodes) == len(y.Nodes)
			for i := 0; same && i < len(x.Nodes); i++ {
				one, other := branchOf(x.Nodes[i]), branchOf(y.Nodes[i])
				switch {
				case x.Nodes[i].String() == y.Nodes[i].String():
				case one == nil || other == nil || one.NodeType != other.NodeType || one.Pipe.String() != other.Pipe.String(),
					(one.ElseList == nil) != (other.ElseList == nil):
					same = false
				default:
					compare(one.List, other.List)
					if one.ElseList != nil {
						compare(one.ElseList, other.ElseList)
					}
				}
			}
			if !same {
				changed = append(changed, marks[x])
			}
		}
		compare(a[name].Root, b[name].Root)
	}
	return changed
}

// reachOf renders a probe once more, with the marked templates. Where these give another result, nothing is known.
func (p *probe) reachOf(marked *render.Chart) reach {
	if marked == nil {
		return nil
	}
	seen := reach{}
	target := p.target
	target.Cluster = watcher{seen: seen}
	if got := outcomeOf(marked.RenderAccepted(p.values, target)); !reflect.DeepEqual(p.want, got) {
		return nil
	}
	return seen
}

// watcher is a cluster that holds nothing, and notes the marks that are looked up in it.
type watcher struct {
	dynamic.NamespaceableResourceInterface
	seen reach
}

const watchedVersion = "watched"

var _ engine.ClientProvider = watcher{}

func (w watcher) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if apiVersion == watchedVersion {
		w.seen[kind] = true
	}
	return w, false, nil
}

func (watcher) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (watcher) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}
