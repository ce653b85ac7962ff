// Command expressions reads the lines of fixtures/cel/expressions.jsonl and prints them with what the API server's CEL
// library makes of each expression. The first line is the setting: a schema, an object and its old self. The others have an
// `expression`, and get `compile` or `program` (what is wrong with it), or `value` with its `cost`, or `error`, and the
// `estimate` of the cost.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type setting struct {
	Schema v1.JSONSchemaProps `json:"schema"`
	Object json.RawMessage    `json:"object"`
	Old    json.RawMessage    `json:"old"`
}

type result struct {
	Expression string     `json:"expression"`
	Compile    string     `json:"compile,omitempty"`
	Program    string     `json:"program,omitempty"`
	Error      string     `json:"error,omitempty"`
	Value      string     `json:"value,omitempty"`
	Estimate   *[2]uint64 `json:"estimate,omitempty"`
	Cost       *uint64    `json:"cost,omitempty"`
}

// A world is the environment of the expressions, and what their variables are.
type world struct {
	env       *cel.Env
	estimator *library.CostEstimator
	variables map[string]any
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	lines.Scan()
	fmt.Println(lines.Text())
	here := worldOf(lines.Bytes())
	for lines.Scan() {
		var line result
		check(json.Unmarshal(lines.Bytes(), &line))
		check(out.Encode(here.outcome(line.Expression)))
	}
}

func worldOf(line []byte) world {
	var given setting
	check(json.Unmarshal(line, &given))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&given.Schema, &internal, nil))
	schema, err := structuralschema.NewStructural(&internal)
	check(err)
	declared := model.SchemaDeclType(schema, false).MaybeAssignTypeName("selfType123")
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", declared.CelType()), cel.Variable("oldSelf", declared.CelType())},
		DeclTypes:         []*apiservercel.DeclType{declared},
	})
	check(err)
	env, err := set.Env(environment.NewExpressions)
	check(err)
	return world{env, &library.CostEstimator{SizeEstimator: sizes{declared}}, map[string]any{
		"self": valueOf(given.Object, schema), "oldSelf": valueOf(given.Old, schema),
	}}
}

func valueOf(text []byte, schema *structuralschema.Structural) ref.Val {
	var value any
	check(utiljson.Unmarshal(text, &value))
	return schemacel.UnstructuredToVal(value, schema)
}

// sizes estimates sizes by what the schema says of the place that an expression names.
type sizes struct{ root *apiservercel.DeclType }

func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if len(node.Path()) == 0 {
		return nil
	}
	place := s.root
	for _, step := range node.Path()[1:] {
		next := place.ElemType
		switch step {
		case "@items", "@values":
		case "@keys":
			next = place.KeyType
		default:
			next = nil
			if field := place.Fields[step]; field != nil {
				next = field.Type
			}
		}
		if next == nil {
			return nil
		}
		place = next
	}
	return &checker.SizeEstimate{Max: uint64(place.MaxElements)}
}

func (s sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func (w world) outcome(expression string) result {
	line := result{Expression: expression}
	ast, issues := w.env.Compile(expression)
	if issues != nil {
		line.Compile = issues.String()
		return line
	}
	program, err := w.env.Program(ast, cel.CostTracking(w.estimator))
	if err != nil {
		line.Program = err.Error()
		return line
	}
	estimate, err := w.env.EstimateCost(ast, w.estimator)
	check(err)
	line.Estimate = &[2]uint64{estimate.Min, estimate.Max}
	value, details, err := program.Eval(w.variables)
	if err != nil {
		line.Error = err.Error()
		return line
	}
	line.Value, line.Cost = shown(value), details.ActualCost()
	return line
}

// shown prints a value with its type.
func shown(value ref.Val) string {
	switch value := value.(type) {
	case types.Bool, types.Int, types.Uint:
		return fmt.Sprintf("%s(%v)", value.Type().TypeName(), value.Value())
	case types.Double:
		return "double(" + strings.ReplaceAll(strconv.FormatFloat(float64(value), 'g', -1, 64), "inf", "Inf") + ")"
	case types.String:
		return "string(" + quoted(string(value)) + ")"
	case types.Bytes:
		return "bytes(" + hex.EncodeToString(value) + ")"
	case types.Null:
		return "null"
	case types.Duration:
		return fmt.Sprintf("duration(%d)", value.Duration.Nanoseconds())
	case types.Timestamp:
		return fmt.Sprintf("timestamp(%d,%d)", value.Unix(), value.Nanosecond())
	case *types.Optional:
		if !value.HasValue() {
			return "optional()"
		}
		return "optional(" + shown(value.GetValue()) + ")"
	case *types.Type:
		return "type(" + value.TypeName() + ")"
	case traits.Lister:
		items := []string{}
		for it := value.Iterator(); it.HasNext() == types.True; {
			items = append(items, shown(it.Next()))
		}
		return "[" + strings.Join(items, ",") + "]"
	case traits.Mapper:
		items := []string{}
		for it := value.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			items = append(items, shown(key)+":"+shown(value.Get(key)))
		}
		sort.Strings(items)
		return "{" + strings.Join(items, ",") + "}"
	}
	return value.Type().TypeName()
}

func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(text))
	return strings.TrimSuffix(out.String(), "\n")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
