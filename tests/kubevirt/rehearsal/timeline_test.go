package rehearsal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// This file records what is seen of a scenario's VMIs, for the report.

// maxRows is how many VMs a chart shows; a longer one cannot be read.
const maxRows = 30

type timeline struct {
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

func (l *timeline) see(vmi *v1.VirtualMachineInstance) {
	now := time.Now()
	label := "" // what cannot be seen is not drawn: a VMI that does not run
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
	if l.spans == nil {
		l.spans = map[string][]*span{}
	}
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

// starts is how often a VM was seen to start or to arrive on a node since then.
func (l *timeline) starts(vm string, since time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, s := range l.spans[vm] {
		if s.begun.After(since) {
			count++
		}
	}
	return count
}

// left are the times since then at which a VM was first seen not to run on a node any more, in order.
func (l *timeline) left(node string, since time.Time) []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	var times []time.Time
	for _, spans := range l.spans {
		for _, s := range spans {
			if s.label == node && s.end.After(since) {
				times = append(times, s.end)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// down is how long a VM was seen not to run between two times: the gaps between its spans. A VM that does not come back is
// down until the end.
func (l *timeline) down(vm string, from, to time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var total time.Duration
	spans := l.spans[vm]
	for i, s := range spans {
		if s.end.IsZero() || s.end.Before(from) || s.end.After(to) {
			continue
		}
		back := to
		if i+1 < len(spans) && spans[i+1].begun.Before(to) {
			back = spans[i+1].begun
		}
		total += back.Sub(s.end)
	}
	return total
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
