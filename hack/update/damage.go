package main

// Explains what is left of blocks that are not whole. Nothing is repaired here: a line that only a block may
// hold is reported with the line of the block that it should be, and taken out of the rest's way.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// remains is the search for fragments in the skeleton, the file without its whole blocks.
type remains struct {
	src      *source
	skeleton []line
	absent   []*block
	present  []found
	claimed  []bool   // by skeleton line: explained, and to be left out from here on
	changed  []*block // by skeleton line: the block of which it is likely a changed line
	faults   []fault
	damaged  map[*block]bool
	loose    []line // directives' ends that no fragment claims: their places will tell whose they are
}

// explain reports every fragment, and leaves in the skeleton neither fragments nor loose ends. A sound skeleton
// stays as it is.
func (r *remains) explain() {
	r.changed = make([]*block, len(r.skeleton))
	for i, l := range r.skeleton {
		r.changed[i] = r.resembled(l)
	}
	for _, b := range r.absent {
		r.fragments(b)
	}
	for i, l := range r.skeleton {
		switch {
		case !l.directive || r.claimed[i]:
		case !slices.ContainsFunc(blocks, func(b block) bool { return b.isEnd() && b.lines()[0] == l.text }):
			r.stray(l)
			r.claimed[i] = true
		default:
			r.loose = append(r.loose, l)
			r.claimed[i] = true
		}
	}
	for i, l := range r.skeleton {
		if !r.claimed[i] && l.comment() {
			if b := r.owner(l.commented(), l.no); b != nil && !r.damaged[b] {
				r.onlyInComment(b, l)
			}
		}
	}
	var rest []line
	for i, l := range r.skeleton {
		if !r.claimed[i] {
			rest = append(rest, l)
		}
	}
	r.skeleton = rest
}

func (r *remains) report(b *block, line int, problem, remedy string) {
	r.damaged[b] = true
	r.faults = append(r.faults, fault{line, b.String(), problem, remedy})
}

// holders maps each line to the blocks that hold it, whatever the indentation. The ends of directives are left
// out, since they tell nothing.
var holders = func() map[string][]*block {
	holders := map[string][]*block{}
	for i := range blocks {
		b := &blocks[i]
		for n, l := range b.lines() {
			l = strings.TrimSpace(l)
			if n == 0 && b.upstream != nil && len(b.lines()) > 1 || l == directiveEnd {
				continue // the key of a block that replaces upstream's may stand without the block
			}
			if !slices.Contains(holders[l], b) {
				holders[l] = append(holders[l], b)
			}
		}
	}
	return holders
}()

// owner returns the absent block that a text in this line of the file must be a part of, if it is one's.
func (r *remains) owner(text string, no int) *block {
	return r.nearest(holders[strings.TrimSpace(text)], no)
}

// resembled returns the absent block of which the line, a directive that no block holds, is likely a changed line.
func (r *remains) resembled(l line) *block {
	text := strings.TrimSpace(l.text)
	if !l.directive || strings.HasPrefix(text, "#") || holders[text] != nil || text == directiveEnd {
		return nil
	}
	letters := strings.Split(text, "")
	var alike []*block
	var expected string
	best := 0.6 // less alike than that is something else
	for _, b := range r.absent {
		for _, want := range b.lines() {
			if strings.TrimSpace(want) == directiveEnd && !b.isEnd() {
				continue
			}
			if want == expected {
				alike = append(alike, b)
				continue
			}
			m := difflib.NewMatcherWithJunk(letters, strings.Split(strings.TrimSpace(want), ""), false, nil)
			if m.RealQuickRatio() <= best || m.QuickRatio() <= best { // the upper bounds cost little
				continue
			}
			if likeness := m.Ratio(); likeness > best {
				alike, expected, best = []*block{b}, want, likeness
			}
		}
	}
	return r.nearest(alike, l.no)
}

// nearest returns the one of the absent candidates whose anchor stands nearest, on the side where it belongs.
func (r *remains) nearest(candidates []*block, no int) *block {
	var best *block
	least := 0
	for _, b := range candidates {
		if !slices.Contains(r.absent, b) {
			continue
		}
		distance := len(r.src.lines) // where the anchor is lost
		key, _, _ := strings.Cut(shippedLines(b.anchor)[0], ":")
		for _, l := range r.src.lines {
			if away := no - l.no; strings.HasPrefix(l.plain, key+":") && (away > 0) == (b.place != before) {
				distance = min(distance, max(away, -away))
			}
		}
		if best == nil || distance < least {
			best, least = b, distance
		}
	}
	return best
}

// fragments finds the regions that hold lines of a block and compares each with the whole block.
func (r *remains) fragments(b *block) {
	hit := func(i int) bool {
		l := r.skeleton[i]
		return !r.claimed[i] && !l.comment() && (r.owner(l.text, l.no) == b || r.changed[i] == b)
	}
	unknown := func(i int) bool { // a directive of no block, which is likely a changed line of one beside it
		return i >= 0 && !r.claimed[i] && r.skeleton[i].directive && !isEnd(r.skeleton[i]) && r.changed[i] == nil && holders[strings.TrimSpace(r.skeleton[i].text)] == nil
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
		for unknown(first-1) && r.skeleton[first-1].no == r.skeleton[first].no-1 {
			first--
		}
		ends := 0 // those that are still to come
		for _, l := range b.lines() {
			if strings.TrimSpace(l) == directiveEnd {
				ends++
			}
		}
		for _, l := range r.skeleton[first : last+1] {
			if isEnd(l) {
				ends--
			}
		}
		for next := last + 1; next < len(r.skeleton) && r.skeleton[next].no == r.skeleton[next-1].no+1; next++ {
			if !r.claimed[next] && isEnd(r.skeleton[next]) {
				if ends--; ends < 0 {
					break // it is another's
				}
				last = next
			} else if unknown(next) {
				last = next
			} else if !r.skeleton[next].blank() { // a comment may have come between
				break
			}
		}
		r.compare(b, r.skeleton[first:last+1])
		for i := first; i <= last; i++ {
			r.claimed[i] = true
		}
		first = last
	}
}

// isEnd reports whether the line ends a directive, whatever its indentation.
func isEnd(l line) bool { return l.directive && strings.TrimSpace(l.text) == directiveEnd }

// compare reports how a region differs from the block, line by line.
func (r *remains) compare(b *block, region []line) {
	want := b.lines()
	from, to := region[0].no, region[len(region)-1].no
	what := fmt.Sprintf("lines %d-%d, what is left of the block,", from, to)
	if from == to {
		what = fmt.Sprintf("line %d, what is left of the block,", from)
	}
	remedy := "delete " + what + " and run make update again, or restore the block by hand"
	var got []string
	for _, l := range region {
		got = append(got, l.text)
	}
	before := len(r.faults)
	for _, op := range difflib.NewMatcherWithJunk(got, want, false, nil).GetOpCodes() {
		i, k := op.I1, op.J1
		if op.Tag == 'e' {
			continue
		}
		for ; i < op.I2 && k < op.J2; i, k = i+1, k+1 {
			r.report(b, region[i].no, fmt.Sprintf("its line %d of %d is %s, expected %s", k+1, len(want), show(got[i]), show(want[k])), remedy)
		}
		for ; i < op.I2; i++ {
			r.report(b, region[i].no, fmt.Sprintf("holds %s, which is no line of it at this place", show(got[i])), remedy)
		}
		for ; k < op.J2; k++ {
			at := to + 1
			if i < len(region) {
				at = region[i].no
			}
			r.report(b, at, fmt.Sprintf("its line %d of %d is missing, found %s, expected %s", k+1, len(want), r.at(at), show(want[k])), remedy)
		}
	}
	if len(r.faults) == before { // all lines are there, in order: something whole stands between them
		r.report(b, from, fmt.Sprintf("its lines are torn apart by another block between lines %d and %d", from, to),
			fmt.Sprintf("move the other block out of lines %d-%d, or delete those of this one and run make update again", from, to))
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
func (r *remains) stray(l line) {
	for _, f := range r.present {
		if (f.line+len(f.block.lines()) == l.no || f.line == l.no+1) && slices.Contains(f.block.lines(), l.text) {
			r.report(f.block, l.no, fmt.Sprintf("%s stands a second time beside the block, which is whole in %s", show(l.text), f.where()), fmt.Sprintf("delete line %d", l.no))
			return
		}
	}
	if strings.HasPrefix(strings.TrimSpace(l.text), "#") {
		if b := r.owner(l.commented(), l.no); b != nil {
			r.onlyInComment(b, l)
			return
		}
		r.faults = append(r.faults, fault{l.no, "comment", "holds a template directive, " + show(l.text) + ", which Helm executes all the same", fmt.Sprintf("delete line %d, or write {{- /* … */}} around it", l.no)})
		return
	}
	if isEnd(l) {
		ends := slices.DeleteFunc(slices.Clone(r.absent), func(b *block) bool { return !b.isEnd() })
		if b := r.nearest(ends, l.no); b != nil {
			r.report(b, l.no, fmt.Sprintf("found %s, expected %s", show(l.text), show(b.lines()[0])), fmt.Sprintf("delete line %d and run make update again, or restore it", l.no))
			return
		}
	}
	r.faults = append(r.faults, fault{l.no, "template directive", show(l.text) + " belongs to no block", fmt.Sprintf("delete line %d, or declare it as a block in hack/update/blocks.go", l.no)})
}

// onlyInComment reports a lost block of which a comment still holds a line: somebody took it out on purpose or
// by mistake, and only they know which.
func (r *remains) onlyInComment(b *block, l line) {
	r.report(b, l.no, "stands only in a comment, "+show(l.text), fmt.Sprintf("delete line %d and run make update again, or uncomment it", l.no))
}
