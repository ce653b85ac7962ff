// Command merges reads the lines of tests/unit/patch/apply/recorded/operations.jsonl (`merges operations`) or
// histories.jsonl (`merges histories`) and prints, for each, what structured-merge-diff makes of it.
//
// An operation gets its `result` or its `error`; a history a list with what each step changed (`live`, `owned`), the
// `conflicts` it met, or its `error`. tests/unit/patch/apply/test_recorded.py tells what the members of a line mean.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// The types of tests/unit/patch/shapes.py: one field of every way to merge.
const common = `
- name: item
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: value, type: {scalar: string}}
    - {name: tags, type: {list: {elementType: {namedType: tag}, elementRelationship: associative, keys: [k]}}}
    - {name: names, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: tag
  map:
    fields:
    - {name: k, type: {scalar: numeric}}
    - {name: v, type: {scalar: string}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: note, type: {scalar: string}}
- name: part
  map:
    fields:
    - {name: x, type: {scalar: string}}
    - {name: "y", type: {scalar: string}}
- name: deep
  map:
    fields:
    - {name: c, type: {scalar: string}}
- name: __untyped_atomic_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_deduced_}, elementRelationship: separable}
`

// spec is the type of the objects; an argument is atomic or granular, associative or atomic, as the version has it.
func spec(text, number, items string, flipped bool) string {
	way := func(usual, other string) string {
		if flipped {
			return other
		}
		return usual
	}
	maps := func(usual string) string {
		return way(usual, map[string]string{"separable": "atomic", "atomic": "separable"}[usual])
	}
	keyed := func(keys string) string {
		return way("elementRelationship: associative, keys: ["+keys+"]", "elementRelationship: atomic")
	}
	return fmt.Sprintf(`
- name: spec
  map:
    fields:
    - {name: %s, type: {scalar: string}}
    - {name: %s, type: {scalar: numeric}}
    - {name: flag, type: {scalar: boolean}}
    - {name: labels, type: {map: {elementType: {scalar: string}, elementRelationship: %s}}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: %s}}}
    - {name: inner, type: {map: {elementRelationship: %s, fields: [{name: a, type: {scalar: string}}, {name: b, type: {namedType: deep}}]}}}
    - {name: whole, type: {map: {elementRelationship: %s, fields: [{name: a, type: {scalar: string}}, {name: b, type: {scalar: string}}]}}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: %s}}}
    - {name: atoms, type: {list: {elementType: {scalar: string}, elementRelationship: %s}}}
    - {name: %s, type: {list: {elementType: {namedType: item}, %s}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, %s}}}
    - {name: parts, type: {map: {elementType: {namedType: part}, elementRelationship: %s}}}
    - {name: any, type: {namedType: __untyped_deduced_}}
`, text, number, maps("separable"), maps("atomic"), maps("separable"), maps("atomic"), way("associative", "atomic"),
		way("atomic", "associative"), items, keyed("name"), keyed("port, protocol"), maps("separable"))
}

const narrowSpec = `
- name: spec
  map:
    fields:
    - {name: number, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
`

func typeOf(spec string) typed.ParseableType {
	parser, err := typed.NewParser(typed.YAMLObject("types:" + spec + strings.TrimPrefix(common, "\n")))
	check(err)
	return parser.Type("spec")
}

var (
	usual   = typeOf(spec("text", "number", "items", false))
	flipped = typeOf(spec("text", "number", "items", true))
	narrow  = typeOf(narrowSpec)
	renamed = typeOf(spec("title", "count", "things", false))

	newNames = map[string]string{"text": "title", "number": "count", "items": "things"}
	oldNames = map[string]string{"title": "text", "count": "number", "things": "items"}
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		if os.Args[1] == "operations" {
			var line operation
			check(json.Unmarshal(lines.Bytes(), &line))
			check(out.Encode(line.outcome()))
			continue
		}
		var steps []step
		check(json.Unmarshal(lines.Bytes(), &steps))
		check(out.Encode(changes(steps)))
	}
}

// ---------------------------------------------------------------- operations

type operation struct {
	Op         string          `json:"op"`
	Object     any             `json:"object"`
	Other      any             `json:"other"`
	Set        json.RawMessage `json:"set"`
	Set2       json.RawMessage `json:"set2"`
	Duplicates bool            `json:"duplicates"`
}

func (o operation) outcome() map[string]any {
	result, err := o.result()
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"result": result}
}

func (o operation) result() (any, error) {
	one, other := setOf(o.Set), setOf(o.Set2)
	switch o.Op {
	case "union":
		return tree(one.Union(other)), nil
	case "difference":
		return tree(one.Difference(other)), nil
	case "recursive":
		return tree(one.RecursiveDifference(other)), nil
	case "intersection":
		return tree(one.Intersection(other)), nil
	case "leaves":
		return tree(one.Leaves()), nil
	}
	object, err := o.typed(o.Object)
	if err != nil {
		return nil, err
	}
	switch o.Op {
	case "named":
		return tree(one.EnsureNamedFieldsAreMembers(object.Schema(), object.TypeRef())), nil
	case "reconcile":
		changed, err := typed.ReconcileFieldSetWithSchema(one, object)
		if err != nil || changed == nil {
			return nil, err
		}
		return tree(changed), nil
	case "validate":
		return nil, nil
	case "fieldset":
		found, err := object.ToFieldSet()
		if err != nil {
			return nil, err
		}
		return tree(found), nil
	case "remove":
		return object.RemoveItems(one).AsValue().Unstructured(), nil
	}
	second, err := o.typed(o.Other)
	if err != nil {
		return nil, err
	}
	if o.Op == "merge" {
		merged, err := object.Merge(second)
		if err != nil {
			return nil, err
		}
		return merged.AsValue().Unstructured(), nil
	}
	compared, err := object.Compare(second)
	if err != nil {
		return nil, err
	}
	return []any{branch(compared.Removed), branch(compared.Modified), branch(compared.Added)}, nil
}

func (o operation) typed(value any) (*typed.TypedValue, error) {
	return typedValue(usual, value, o.Duplicates)
}

func typedValue(t typed.ParseableType, value any, duplicates bool) (*typed.TypedValue, error) {
	options := []typed.ValidationOptions{}
	if duplicates {
		options = append(options, typed.AllowDuplicates)
	}
	return t.FromUnstructured(whole(value), options...)
}

// whole gives a value with integers where JSON has whole numbers.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range value {
			out[key] = whole(member)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range value {
			out = append(out, whole(item))
		}
		return out
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}

func setOf(text json.RawMessage) *fieldpath.Set {
	set := fieldpath.NewSet()
	if len(text) > 0 {
		check(set.FromJSON(bytes.NewReader(text)))
	}
	return set
}

// tree is the JSON form of a set; that of an empty one is null.
func tree(set *fieldpath.Set) any {
	if set.Empty() {
		return nil
	}
	return branch(set)
}

func branch(set *fieldpath.Set) json.RawMessage {
	text, err := set.ToJSON()
	check(err)
	return text
}

// ---------------------------------------------------------------- histories

type step struct {
	Op      string          `json:"op"`
	Manager string          `json:"manager"`
	Version string          `json:"version"`
	Object  any             `json:"object"`
	Set     json.RawMessage `json:"set"`
}

type change struct {
	Conflicts []string                    `json:"conflicts,omitempty"`
	Error     string                      `json:"error,omitempty"`
	Live      any                         `json:"live,omitempty"`
	Owned     *map[string]json.RawMessage `json:"owned,omitempty"`
}

// A world is one object and its owners, in versions of its type: v1 and v2 are the usual type or its flipped form, v3 has
// two fields only, v4 has some under other names.
type world struct {
	usual    typed.ParseableType
	live     any
	managers fieldpath.ManagedFields
	filters  map[fieldpath.APIVersion]fieldpath.Filter
}

func changes(steps []step) []change {
	here := &world{usual, map[string]any{}, fieldpath.ManagedFields{}, map[fieldpath.APIVersion]fieldpath.Filter{}}
	out := []change{}
	for _, step := range steps {
		out = append(out, here.take(step))
	}
	return out
}

func (w *world) take(step step) change {
	switch step.Op {
	case "flip":
		if w.usual == usual {
			w.usual = flipped
		} else {
			w.usual = usual
		}
		return change{}
	case "ignore":
		w.filters[fieldpath.APIVersion(step.Version)] = fieldpath.NewExcludeSetFilter(setOf(step.Set))
		return change{}
	}
	live, owned := w.live, w.owned()
	var found change
	if err := w.write(step); err != nil {
		var conflicts merge.Conflicts
		if errors.As(err, &conflicts) {
			for _, conflict := range conflicts {
				found.Conflicts = append(found.Conflicts, conflict.Manager+": "+conflict.Path.String())
			}
			sort.Strings(found.Conflicts)
		} else if found.Error = err.Error(); strings.Contains(found.Error, unknown) {
			found.Error = unknown // several are met in any order
		}
	}
	if !reflect.DeepEqual(whole(live), whole(w.live)) {
		found.Live = w.live
	}
	if after := w.owned(); !reflect.DeepEqual(owned, after) {
		found.Owned = &after
	}
	return found
}

const unknown = "field not declared in schema"

func (w *world) write(step step) error {
	update, version := step.Op == "update", fieldpath.APIVersion(step.Version)
	object, err := typedValue(w.typeOf(version), step.Object, update)
	if err != nil {
		return err
	}
	stored, err := typedValue(w.usual, w.live, true)
	if err != nil {
		return err
	}
	live, err := w.Convert(stored, version)
	if err != nil {
		return err
	}
	updater := (&merge.UpdaterBuilder{Converter: w, IgnoreFilter: w.filters}).BuildUpdater()
	managers := w.managers.Copy()
	if update {
		object, managers, err = updater.Update(live, object, version, managers, step.Manager)
	} else {
		object, managers, err = updater.Apply(live, object, version, managers, step.Manager, step.Op == "force")
	}
	if err != nil {
		return err
	}
	w.managers = managers
	if object == nil {
		return nil
	}
	back, err := w.Convert(object, "v1")
	if err != nil {
		return err
	}
	w.live = back.AsValue().Unstructured()
	if w.live == nil {
		w.live = map[string]any{}
	}
	return nil
}

func (w *world) typeOf(version fieldpath.APIVersion) typed.ParseableType {
	switch version {
	case "v3":
		return narrow
	case "v4":
		return renamed
	}
	return w.usual
}

// Convert makes merge's updater know the versions.
func (w *world) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	value, _ := object.AsValue().Unstructured().(map[string]any)
	if object.Schema() == renamed.Schema {
		value = withNames(value, oldNames)
	}
	if version == "v4" {
		value = withNames(value, newNames)
	}
	return typedValue(w.typeOf(version), value, version != "v3")
}

// IsMissingVersionError is never true: all versions are served.
func (w *world) IsMissingVersionError(error) bool { return false }

func withNames(value map[string]any, names map[string]string) map[string]any {
	out := map[string]any{}
	for name, member := range value {
		if other, ok := names[name]; ok {
			name = other
		}
		out[name] = member
	}
	return out
}

func (w *world) owned() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for manager, set := range w.managers {
		out[manager] = branch(set.Set())
	}
	return out
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
