package main

// Explains what is left of blocks that are not whole. Nothing is repaired here: a line that only a block may
// hold is reported with the line of the block that it should be, and taken out of the rest's way.

import (
	"fmt"
	"slices"
	"strings"
)

// remains is the search for fragments in the skeleton, the file without its whole blocks.
type remains struct {
	src      *source
	skeleton []line
	absent   []*block
	present  []found
	claimed  []bool // by skeleton line: explained, and to be left out from here on
	faults   []fault
	damaged  map[*block]bool
}

// explain reports every fragment and returns the skeleton without them. A sound skeleton is returned as it is.
func explain(src *source, skeleton []line, absent []*block, present []found) ([]line, map[*block]bool, []fault) {
	r := &remains{src: src, skeleton: skeleton, absent: absent, present: present, claimed: make([]bool, len(skeleton)), damaged: map[*block]bool{}}
	for _, b := range absent {
		r.fragments(b)
	}
	for i := range skeleton {
		if skeleton[i].directive && !r.claimed[i] {
			r.stray(i)
		}
	}
	for i := range skeleton {
		if l := &skeleton[i]; !r.claimed[i] && l.comment() {
			if b := owner(l.commented()); b != nil && !r.damaged[b] && slices.Contains(absent, b) {
				r.onlyInComment(b, *l)
			}
		}
	}
	var rest []line
	for i, l := range skeleton {
		if !r.claimed[i] {
			rest = append(rest, l)
		}
	}
	return rest, r.damaged, r.faults
}

func (r *remains) report(b *block, line int, problem, remedy string) {
	r.damaged[b] = true
	r.faults = append(r.faults, fault{line, b.String(), problem, remedy})
}

// owners maps each line that only one block holds to that block, whatever the indentation. A line of several
// blocks, such as {{- end }}, tells nothing by itself.
var owners = func() map[string]*block {
	owners := map[string]*block{}
	for i := range blocks {
		b := &blocks[i]
		for n, l := range b.lines() {
			l = strings.TrimSpace(l)
			if n == 0 && b.upstream != nil && len(b.lines()) > 1 {
				continue // the key of a block that replaces upstream's may stand without the block
			}
			if other, ok := owners[l]; ok && other != b {
				owners[l] = nil
			} else {
				owners[l] = b
			}
		}
	}
	return owners
}()

func owner(text string) *block { return owners[strings.TrimSpace(text)] }

// fragments finds the regions that hold lines of a block and compares each with the whole block.
func (r *remains) fragments(b *block) {
	hit := func(i int) bool {
		return !r.claimed[i] && !r.skeleton[i].comment() && owner(r.skeleton[i].text) == b
	}
	joins := func(i int) bool { // the line continues a region beside it
		return i >= 0 && i < len(r.skeleton) && !r.claimed[i] && r.skeleton[i].directive && owner(r.skeleton[i].text) == nil
	}
	for first := 0; first < len(r.skeleton); first++ {
		if !hit(first) {
			continue
		}
		last := first
		for i := first; i < len(r.skeleton) && i-last <= len(b.lines()); i++ {
			if hit(i) {
				last = i
			}
		}
		for next := last + 1; next < len(r.skeleton) && r.skeleton[next].no == r.skeleton[next-1].no+1; next++ {
			if joins(next) {
				last = next
			} else if !r.skeleton[next].blank() { // a comment may have come between
				break
			}
		}
		for joins(first-1) && r.skeleton[first-1].no == r.skeleton[first].no-1 {
			first--
		}
		r.compare(b, r.skeleton[first:last+1])
		for i := first; i <= last; i++ {
			r.claimed[i] = true
		}
		first = last
	}
}

// compare reports how a region differs from the block, line by line.
func (r *remains) compare(b *block, region []line) {
	want := b.lines()
	from, to := region[0].no, region[len(region)-1].no
	again := fmt.Sprintf("or delete what is left of the block, lines %d-%d, and run make update again", from, to)
	if from == to {
		again = fmt.Sprintf("or delete line %d and run make update again", from)
	}
	before := len(r.faults)
	i, k := 0, 0
	for _, pair := range append(common(region, want), [2]int{len(region), len(want)}) {
		for ; i < pair[0] && k < pair[1]; i, k = i+1, k+1 {
			r.report(b, region[i].no, fmt.Sprintf("its line %d of %d is %s, expected %s", k+1, len(want), show(region[i].text), show(want[k])), "restore it, "+again)
		}
		for ; i < pair[0]; i++ {
			r.report(b, region[i].no, fmt.Sprintf("holds %s, which is no line of it at this place", show(region[i].text)), fmt.Sprintf("delete line %d, ", region[i].no)+again)
		}
		for ; k < pair[1]; k++ {
			at := to + 1
			if i < len(region) {
				at = region[i].no
			}
			r.report(b, at, fmt.Sprintf("its line %d of %d is missing, found %s, expected %s", k+1, len(want), r.at(at), show(want[k])), "insert it before this line, "+again)
		}
		i, k = i+1, k+1
	}
	if len(r.faults) == before { // all lines are there, in order: something whole stands between them
		r.report(b, from, fmt.Sprintf("its lines are torn apart by another block between lines %d and %d", from, to), "move the other block out, or delete the lines of this one and run make update again")
	}
}

// at shows the line of the file that has the number.
func (r *remains) at(no int) string {
	if no > len(r.src.lines) {
		return "the end of the file"
	}
	return show(r.src.lines[no-1].text)
}

// stray explains a directive that stands near no fragment: a changed line, a second copy, or a hole that
// nobody declared.
func (r *remains) stray(i int) {
	l := r.skeleton[i]
	r.claimed[i] = true
	for _, f := range r.present {
		if (f.line+len(f.block.lines()) == l.no || f.line == l.no+1) && slices.Contains(f.block.lines(), l.text) {
			r.report(f.block, l.no, fmt.Sprintf("%s stands a second time beside the block, which is whole in %s", show(l.text), f.where()), fmt.Sprintf("delete line %d", l.no))
			return
		}
	}
	if strings.HasPrefix(strings.TrimSpace(l.text), "#") {
		if b := owner(l.commented()); b != nil && slices.Contains(r.absent, b) {
			r.onlyInComment(b, l)
			return
		}
		r.faults = append(r.faults, fault{l.no, "comment", "holds a template directive, " + show(l.text) + ", which Helm executes all the same", "delete the line, or write {{- /* … */}} around it"})
		return
	}
	var nearest *block
	var expected string
	best := 0.6 // less alike than that is something else
	for _, b := range r.absent {
		for _, want := range b.lines() {
			if alike := likeness(strings.TrimSpace(l.text), strings.TrimSpace(want)); alike > best && owner(want) == b {
				nearest, expected, best = b, want, alike
			}
		}
	}
	if nearest != nil {
		r.report(nearest, l.no, fmt.Sprintf("found %s, expected %s", show(l.text), show(expected)), fmt.Sprintf("restore it, or delete line %d and run make update again", l.no))
		return
	}
	r.faults = append(r.faults, fault{l.no, "template directive", show(l.text) + " belongs to no block", fmt.Sprintf("delete line %d, or declare it as a block in hack/update/blocks.go", l.no)})
}

// onlyInComment reports a lost block of which a comment still holds a line: somebody took it out on purpose or
// by mistake, and only they know which.
func (r *remains) onlyInComment(b *block, l line) {
	r.report(b, l.no, "stands only in a comment, "+show(l.text), fmt.Sprintf("uncomment it, or delete line %d and run make update again", l.no))
}

// common returns the index pairs of a longest common subsequence.
func common(region []line, want []string) [][2]int {
	length := make([][]int, len(region)+1)
	for i := range length {
		length[i] = make([]int, len(want)+1)
	}
	for i := len(region) - 1; i >= 0; i-- {
		for k := len(want) - 1; k >= 0; k-- {
			if region[i].text == want[k] {
				length[i][k] = length[i+1][k+1] + 1
			} else {
				length[i][k] = max(length[i+1][k], length[i][k+1])
			}
		}
	}
	var pairs [][2]int
	for i, k := 0, 0; i < len(region) && k < len(want); {
		switch {
		case region[i].text == want[k]:
			pairs = append(pairs, [2]int{i, k})
			i, k = i+1, k+1
		case length[i+1][k] >= length[i][k+1]:
			i++
		default:
			k++
		}
	}
	return pairs
}

// likeness is the share of two texts that is common at their beginnings and ends.
func likeness(a, b string) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	head := 0
	for head < len(a) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return float64(head+tail) / float64(max(len(b), 1))
}
