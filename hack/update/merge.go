package main

// The merge: take out the blocks that are whole, judge what is left, put all blocks back in their places.

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// found is a whole block in the file.
type found struct {
	block *block
	line  int // its first line, from 1
	slot  int // the index of the skeleton line that follows it, or that stands for it
}

func (f found) where() string {
	if n := len(f.block.lines()); n > 1 {
		return fmt.Sprintf("lines %d-%d", f.line, f.line+n-1)
	}
	return fmt.Sprintf("line %d", f.line)
}

// A status says what became of a block.
type status struct {
	block *block
	text  string
}

// A result is what the merge makes of a file. With faults there is nothing to write.
type result struct {
	data     []byte // the file to be
	origin   []byte // the file that it was made of, put together from what was understood of it
	statuses []status
	faults   []fault
}

// merge returns the data with every lost block restored, or all that stands in the way.
func merge(data []byte) result {
	src, faults := read(data)
	if len(faults) > 0 {
		return result{faults: faults}
	}
	present, skeleton := takeOut(src)
	var absent []*block
	doubled := map[*block]bool{}
	for i := range blocks {
		var at []found
		for _, f := range present {
			if f.block == &blocks[i] {
				at = append(at, f)
			}
		}
		switch {
		case len(at) == 0:
			absent = append(absent, &blocks[i])
		case len(at) > 1:
			doubled[&blocks[i]] = true
			for _, f := range at[1:] {
				faults = append(faults, fault{f.line, f.block.String(), fmt.Sprintf("stands a second time, in %s; the first is in %s", f.where(), at[0].where()), "delete the one that is out of place"})
			}
		}
	}
	left := &remains{src: src, skeleton: skeleton, absent: absent, present: present, claimed: make([]bool, len(skeleton)), damaged: map[*block]bool{}}
	left.explain()
	p := &plan{remains: left, replaced: map[int]*block{}, unfit: map[string]bool{}}
	for i := range p.present {
		p.present[i].slot = p.slotOf(p.present[i].line)
	}
	p.faults = append(faults, p.faults...)
	t, structureFaults := parse(p.skeleton, p.hints())
	p.faults = append(p.faults, structureFaults...)
	if t != nil {
		p.tree = t
		p.settle(doubled)
	}
	r := result{faults: p.faults}
	if len(p.faults) == 0 {
		r = p.build()
		if !bytes.Equal(r.origin, data) {
			r = result{faults: []fault{{subject: "file", problem: "the blocks do not add up to the file, which is a mistake in hack/update", remedy: "report it with the file"}}}
		}
	}
	if len(r.faults) > 0 {
		sort.SliceStable(r.faults, func(i, k int) bool { return r.faults[i].line < r.faults[k].line })
		r.statuses = verdicts(p.present, r.faults)
	}
	return r
}

// takeOut finds the blocks that are whole and returns the other lines: the skeleton. Upstream's line stands
// in it for a block that replaces one. A line belongs to one block at most. The ends that are known by their
// place only stay in the skeleton.
func takeOut(src *source) ([]found, []line) {
	var present []found
	taken := make([]*block, len(src.lines))
	lines := make([][]string, len(blocks))
	for b := range blocks {
		lines[b] = blocks[b].lines()
	}
	matches := func(at int, want []string) bool {
		end := at + len(want)
		if end > len(src.lines) || end < len(src.lines) && src.lines[end].inside {
			return false // it stands in a comment
		}
		for i, text := range want {
			if src.lines[at+i].text != text || taken[at+i] != nil {
				return false
			}
		}
		return true
	}
	for b, want := range lines {
		for at := range src.lines {
			if blocks[b].isEnd() || !matches(at, want) {
				continue
			}
			present = append(present, found{block: &blocks[b], line: at + 1})
			for i := range want {
				taken[at+i] = &blocks[b]
			}
		}
	}
	sort.Slice(present, func(i, k int) bool { return present[i].line < present[k].line })
	first := map[int]*block{}
	for _, f := range present {
		first[f.line] = f.block
	}
	var skeleton []line
	for i, l := range src.lines {
		if taken[i] == nil {
			skeleton = append(skeleton, l)
		} else if b := first[i+1]; b != nil && b.upstream != nil {
			skeleton = append(skeleton, line{text: b.placeholder(), plain: b.placeholder(), no: l.no})
		}
	}
	return present, skeleton
}

// A plan says where in the skeleton each block goes.
type plan struct {
	*remains
	tree     *tree
	slots    []slot
	replaced map[int]*block  // by skeleton index: the block that replaces upstream's line
	unfit    map[string]bool // anchors that cannot give a block its place
}

type slot struct {
	at    int // the index of the skeleton line that follows the block
	block *block
	after string // the same in words
}

func (p *plan) fault(line int, subject, problem, remedy string) {
	p.faults = append(p.faults, fault{line, subject, problem, remedy})
}

// slotOf returns the index of the skeleton line that follows a line of the file, or that stands for it.
func (p *plan) slotOf(line int) int {
	return sort.Search(len(p.skeleton), func(k int) bool { return p.skeleton[k].no >= line })
}

// hints tells from the whole blocks where their anchors stand or, if they are lost, stood.
func (p *plan) hints() map[string]hint {
	hints := map[string]hint{}
	for _, f := range p.present {
		end := f.line + len(f.block.lines())
		switch f.block.place {
		case firstKey, aboveItems:
			hints[f.block.anchor] = hint{f.line, fmt.Sprintf("right above line %d, where %s begins", f.line, f.block)}
		case before:
			hints[f.block.anchor] = hint{end, fmt.Sprintf("right below line %d, where %s ends", end-1, f.block)}
		}
	}
	return hints
}

// settle finds the place of every block, and faults.
func (p *plan) settle(doubled map[*block]bool) {
	needs := map[string][]string{} // by path: the blocks that need it
	need := func(path string, who ...string) {
		for i := 0; i <= len(path); i++ {
			if i == len(path) || path[i] == '.' {
				needs[path[:i]] = append(needs[path[:i]], who...)
			}
		}
	}
	for i := range blocks {
		b := &blocks[i]
		if b.place != endOfFile {
			need(b.anchor, b.name)
		}
	}
	for _, c := range constants {
		need(c.path)
	}
	faults, sound := p.tree.check(needs, p.hints())
	p.faults = append(p.faults, faults...)
	if sound == nil {
		return
	}
	p.faults = append(p.faults, p.tree.checkConstants(sound)...)
	for i := range blocks {
		b := &blocks[i]
		owned := p.tree.find(b.owns)
		if b.upstream != nil {
			if p.settleReplacing(b, p.find(b), owned, p.damaged[b] || doubled[b]) {
				continue
			}
		} else if len(owned) > 0 && !p.damaged[b] {
			l := p.skeleton[owned[0].line()-1]
			p.fault(l.no, b.String(), fmt.Sprintf("found %s, which only the block may bring in", show(l.text)), fmt.Sprintf("delete line %d and what belongs to it, and run make update again", l.no))
		}
		s, ok := p.slot(b, sound)
		if ok && !p.damaged[b] && !doubled[b] {
			p.slots = append(p.slots, s)
		}
	}
	sort.SliceStable(p.slots, func(i, k int) bool { return p.slots[i].at < p.slots[k].at })
	p.placeEnds()
	p.checkPlaces()
}

// placeEnds finds out by their places which blocks the loose ends are, and reports those that are none.
func (p *plan) placeEnds() {
	var lost []*block // the ends that are still looked for
	expected := map[*block]string{}
	for _, s := range p.slots {
		if !s.block.isEnd() {
			continue
		}
		here := func(l line) bool { return l.text == s.block.lines()[0] && p.slotOf(l.no) == s.at }
		if i := slices.IndexFunc(p.loose, here); i >= 0 {
			l := p.loose[i]
			p.present = append(p.present, found{block: s.block, line: l.no, slot: s.at})
			p.loose = slices.Delete(p.loose, i, i+1)
		} else {
			lost = append(lost, s.block)
			expected[s.block] = s.after
		}
	}
	p.absent = slices.DeleteFunc(p.absent, func(b *block) bool { return b.isEnd() && !slices.Contains(lost, b) })
	for _, l := range p.loose {
		if b := p.nearest(lost, l.no); b != nil {
			p.fault(l.no, b.String(), fmt.Sprintf("stands in line %d, expected %s", l.no, expected[b]), fmt.Sprintf("delete line %d and run make update again, or move it there", l.no))
		} else {
			p.stray(l)
		}
	}
	for _, l := range p.skeleton {
		if !l.comment() || l.commented() != directiveEnd {
			continue
		}
		if b := p.nearest(lost, l.no); b != nil && (!l.inside || l.text == b.lines()[0]) {
			p.onlyInComment(b, l)
		}
	}
}

// find returns where a block stands, if it is whole.
func (p *plan) find(b *block) *found {
	i := slices.IndexFunc(p.present, func(f found) bool { return f.block == b })
	if i < 0 {
		return nil
	}
	return &p.present[i]
}

// settleReplacing handles a block that replaces upstream's line, and reports whether nothing is left to do.
func (p *plan) settleReplacing(b *block, at *found, owned []*entry, broken bool) bool {
	switch {
	case broken || len(owned) > 1:
		return true // reported already
	case at != nil && (len(owned) == 0 || owned[0].line() != at.slot+1):
		dot := strings.LastIndex(b.owns, ".")
		p.fault(at.line, b.String(), fmt.Sprintf("stands in %s, where it is not %s", at.where(), b.owns), fmt.Sprintf("move it under %s, or delete %s and run make update again", show(shippedLines(b.owns[:dot])[0]), at.where()))
		return true
	case len(owned) == 0:
		return false
	}
	e := owned[0]
	l := p.skeleton[e.line()-1]
	text := strings.TrimRight(l.text, " ")
	for _, value := range b.upstream {
		if strings.TrimRight(strings.Replace(b.placeholder(), ": "+b.upstream[0], ": "+value, 1), " ") == text && e.value.Line <= e.line() && p.alone(e) {
			p.replaced[e.line()-1] = b
			return true
		}
	}
	got, expected := show(l.text), show(b.lines()[0])
	if !p.alone(e) {
		got += " and what stands below it"
	}
	if len(b.lines()) > 1 {
		expected = "the block that begins with " + expected
	}
	p.fault(l.no, b.String(), fmt.Sprintf("found %s, expected upstream's %s or %s", got, show(b.placeholder()), expected), "leave nothing of it but upstream's line, without a comment, and run make update again")
	return true
}

// alone reports whether the entry's value is on the entry's line, or nowhere.
func (p *plan) alone(e *entry) bool {
	return p.tree.lastLine(e) == e.line() && len(e.value.Content) == 0
}

// slot finds the place of a block from its anchor.
func (p *plan) slot(b *block, sound map[string]*entry) (slot, bool) {
	if b.place == endOfFile {
		at := len(p.skeleton)
		for at > 0 && strings.TrimSpace(p.skeleton[at-1].text) == "" {
			at--
		}
		return slot{at, b, "at the end of the file"}, true
	}
	e := sound[b.anchor]
	if e == nil {
		return slot{}, false // reported with the anchor
	}
	own := p.skeleton[e.line()-1]
	name := fmt.Sprintf("%s (line %d)", show(e.key.Value+":"), own.no)
	kind, noun, column := yaml.MappingNode, "keys", e.value.Column-1
	switch b.place {
	case before:
		at := e.line() - 1
		for at > 0 && p.tree.comment(at-1) {
			at--
		}
		if at < e.line()-1 {
			name += " and the comment above it"
		}
		return slot{at, b, "right before " + name}, true
	case after:
		column = e.key.Column - 1 // the block stands beside the anchor, not below it
		if e.value.Kind == yaml.ScalarNode {
			return slot{p.tree.lastLine(e), b, "right after " + name}, true
		}
	case aboveItems, belowItems:
		kind, noun = yaml.SequenceNode, "items"
	}
	switch {
	case p.unfit[b.anchor]: // reported for the block before
	case e.value.Kind != kind || len(e.value.Content) == 0 || e.value.Style&yaml.FlowStyle != 0 || e.value.Line == e.line():
		p.unfit[b.anchor] = true
		p.fault(own.no, "anchor "+b.anchor, fmt.Sprintf("is %s, expected %s below it, for %s to stand among", show(strings.TrimSpace(own.text)), noun, b), "write its "+noun+" each on a line of its own")
	case column != b.indent():
		p.unfit[b.anchor] = true
		p.fault(p.tree.number(e.value.Line), "anchor "+b.anchor, fmt.Sprintf("its %s are indented by %d, expected %d as in %s", noun, column, b.indent(), b), fmt.Sprintf("indent them by %d", b.indent()))
	case b.place == firstKey || b.place == aboveItems:
		return slot{e.line(), b, "right under " + name}, true
	default:
		at := p.tree.lastLine(e)
		last := p.skeleton[at-1]
		return slot{at, b, fmt.Sprintf("right after the last line of %s, %s (line %d)", name, show(strings.TrimSpace(last.text)), last.no)}, true
	}
	return slot{}, false
}

// checkPlaces compares where the present blocks stand with where they belong.
func (p *plan) checkPlaces() {
	var above *found // the present block that stands before this one at the same place
	for _, s := range p.slots {
		f := p.find(s.block)
		if f == nil {
			continue
		}
		remedy := fmt.Sprintf("move it there, or delete %s and run make update again", f.where())
		if f.slot != s.at {
			p.fault(f.line, s.block.String(), fmt.Sprintf("stands in %s, expected %s", f.where(), s.after), remedy)
			continue
		}
		if above != nil && above.slot == f.slot && above.line > f.line {
			p.fault(f.line, s.block.String(), fmt.Sprintf("stands in %s, expected after %s in %s", f.where(), above.block, above.where()), remedy)
		}
		above = f
	}
}

// build puts the blocks in their places.
func (p *plan) build() result {
	var r result
	var before, after []string
	put := func(b *block) {
		lines := b.lines()
		text := fmt.Sprintf("inserted at line %d", len(after)+1)
		if p.find(b) != nil {
			text = "unchanged, " + found{block: b, line: len(after) + 1}.where()
			before = append(before, lines...)
		}
		after = append(after, lines...)
		r.statuses = append(r.statuses, status{b, text})
	}
	next := 0
	for i := 0; i <= len(p.skeleton); i++ {
		for ; next < len(p.slots) && p.slots[next].at == i; next++ {
			put(p.slots[next].block)
		}
		if i == len(p.skeleton) {
			break
		}
		text := p.skeleton[i].text
		if b := p.replaced[i]; b != nil {
			if p.find(b) == nil {
				before = append(before, text)
			}
			put(b)
			continue
		}
		before, after = append(before, text), append(after, text)
	}
	r.origin, r.data = p.src.join(before), p.src.join(after)
	return r
}

// verdicts are the statuses of a file that is refused.
func verdicts(present []found, faults []fault) []status {
	var statuses []status
	for i := range blocks {
		b := &blocks[i]
		text := "lost, to be inserted once the faults are mended"
		for _, f := range present {
			if f.block == b {
				text = "whole, " + f.where()
			}
		}
		for _, f := range faults {
			if f.subject == b.String() {
				text = fmt.Sprintf("wrong, see line %d", f.line)
				break
			}
		}
		statuses = append(statuses, status{b, text})
	}
	return statuses
}
