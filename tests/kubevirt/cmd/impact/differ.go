// How two objects differ, path by path.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// change is one field that differs. Old or New is empty where the field is not there.
type change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

func (c change) String() string {
	none := func(s string) string {
		if s == "" {
			return "(none)"
		}
		return s
	}
	return fmt.Sprintf("%s: %s -> %s", c.Path, none(c.Old), none(c.New))
}

// collector is a reporter of go-cmp's.
type collector struct {
	path    cmp.Path
	changes []change
}

func (c *collector) PushStep(step cmp.PathStep) { c.path = append(c.path, step) }
func (c *collector) PopStep()                   { c.path = c.path[:len(c.path)-1] }
func (c *collector) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	var path strings.Builder
	for _, step := range c.path {
		switch step := step.(type) {
		case cmp.MapIndex:
			fmt.Fprintf(&path, ".%v", step.Key())
		case cmp.SliceIndex:
			old, new := step.SplitKeys()
			fmt.Fprintf(&path, "[%d]", max(old, new))
		}
	}
	old, new := c.path.Last().Values()
	text := func(valid bool, value func() any) string {
		if !valid {
			return ""
		}
		raw, err := json.Marshal(value())
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	c.changes = append(c.changes, change{strings.TrimPrefix(path.String(), "."),
		text(old.IsValid(), func() any { return old.Interface() }), text(new.IsValid(), func() any { return new.Interface() })})
}

// differences compares two objects as JSON.
func differences(old, new any) ([]change, error) {
	if reflect.DeepEqual(old, new) { // as nearly all of a deployment is, and comparing as JSON is dear
		return nil, nil
	}
	var trees [2]any
	for i, o := range []any{old, new} {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &trees[i]); err != nil {
			return nil, err
		}
	}
	c := &collector{}
	cmp.Equal(trees[0], trees[1], cmp.Reporter(c))
	return c.changes, nil
}
