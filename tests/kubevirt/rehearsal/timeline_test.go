package rehearsal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "kubevirt.io/api/core/v1"
)

// This file records what is seen of a scenario's VMIs, for the report.

// maxRows is how many VMs a chart shows; a longer one cannot be read.
const maxRows = 30

type timeline struct {
	stop func()

	mu    sync.Mutex
	spans map[string][]*span // by VM
	marks []*span            // what was done to them
}

// span is a time in which nothing changed.
type span struct {
	label      string
	vmi        string // uid
	begun, end time.Time
}

// watchVMIs records until stop is called.
func watchVMIs(t *testing.T, namespace string) *timeline {
	ctx, stop := context.WithCancel(context.Background())
	l := &timeline{stop: stop, spans: map[string][]*span{}}
	watch, err := cluster.Virt.VirtualMachineInstance(namespace).Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	go func() {
		defer watch.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, ok := <-watch.ResultChan():
				if !ok {
					return
				}
				if vmi, ok := event.Object.(*v1.VirtualMachineInstance); ok {
					l.see(vmi)
				}
			}
		}
	}()
	return l
}

func (l *timeline) see(vmi *v1.VirtualMachineInstance) {
	now := time.Now()
	label := ""
	if vmi.Status.Phase == v1.Running {
		label = strings.TrimPrefix(vmi.Status.NodeName, vmi.Namespace+"-")
		switch vmi.Status.LauncherContainerImageVersion {
		case newLauncher:
			label += ", new launcher"
		case "": // not known yet, right after a start or a migration
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	spans := l.spans[vmi.Name]
	if len(spans) > 0 {
		last := spans[len(spans)-1]
		if last.end.IsZero() {
			if last.label == label && last.vmi == string(vmi.UID) {
				return
			}
			last.end = now
		}
	}
	if label != "" {
		l.spans[vmi.Name] = append(spans, &span{label: label, vmi: string(vmi.UID), begun: now})
	}
}

func (l *timeline) mark(label string) { l.during(label, func() {}) }

func (l *timeline) during(label string, act func()) {
	m := &span{label: label, begun: time.Now()}
	l.mu.Lock()
	l.marks = append(l.marks, m)
	l.mu.Unlock()
	act()
	l.mu.Lock()
	m.end = time.Now()
	l.mu.Unlock()
}

// chart renders what was seen from just before the first mark on.
func (l *timeline) chart() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.marks) == 0 || len(l.spans) == 0 {
		return ""
	}
	begin, now := l.marks[0].begun.Add(-time.Second), time.Now()
	text := &strings.Builder{}
	fmt.Fprint(text, "```mermaid\ngantt\n  dateFormat x\n  axisFormat %M:%S\n  section done\n")
	row := func(style string, s *span) {
		from, to := s.begun, s.end
		if from.Before(begin) {
			from = begin
		}
		if to.IsZero() {
			to = now
		}
		if to.After(from) {
			label := strings.NewReplacer(":", "", ",", "").Replace(s.label)
			fmt.Fprintf(text, "  %s :%s%d, %d\n", label, style, from.Sub(begin).Milliseconds(), to.Sub(begin).Milliseconds())
		}
	}
	for _, m := range l.marks {
		row("crit, ", m)
	}
	names := slices.Sorted(maps.Keys(l.spans))
	shown := names[:min(len(names), maxRows)]
	for _, name := range shown {
		fmt.Fprintf(text, "  section %s\n", name)
		for _, s := range l.spans[name] {
			row("", s)
		}
	}
	fmt.Fprint(text, "```\n")
	if len(shown) < len(names) {
		fmt.Fprintf(text, "\nThe first %d of %d VMs.\n", len(shown), len(names))
	}
	return text.String()
}
