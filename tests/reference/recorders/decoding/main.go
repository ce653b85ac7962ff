// Command decoding reads the lines of fixtures/decoding/cases.jsonl and prints them with what the API server makes of their
// bodies: the `error`, or what is `stored` and the `strict` errors, and the object `defaulted` if that changes anything.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs all API groups
)

type result struct {
	Kind      [3]string `json:"kind"`
	Body      string    `json:"body"`
	Error     string    `json:"error,omitempty"`
	Strict    []string  `json:"strict,omitempty"`
	Stored    string    `json:"stored,omitempty"`
	Defaulted string    `json:"defaulted,omitempty"`
}

// protobuf is what generated API types do; storage keeps them in this form.
type protobuf interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var line result
		check(json.Unmarshal(lines.Bytes(), &line))
		check(out.Encode(decoded(line.Kind, line.Body)))
	}
}

func decoded(kind [3]string, body string) result {
	gvk := schema.GroupVersionKind{Group: kind[0], Version: kind[1], Kind: kind[2]}
	line := result{Kind: kind, Body: body}
	scheme := schemeOf(gvk)
	object, err := scheme.New(gvk)
	check(err)
	decoder := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, scheme, scheme, serializer.SerializerOptions{Strict: true})
	found, _, err := decoder.Decode([]byte(body), &gvk, object)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, problem := range strict.Errors() {
			line.Strict = append(line.Strict, problem.Error())
		}
	} else if err != nil {
		line.Error = err.Error()
		return line
	}
	found.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if kept, ok := found.(protobuf); ok {
		data, err := kept.Marshal()
		check(err)
		fresh, err := scheme.New(gvk)
		check(err)
		check(fresh.(protobuf).Unmarshal(data))
		found = fresh
	}
	line.Stored = printed(found)
	scheme.Default(found)
	if line.Defaulted = printed(found); line.Defaulted == line.Stored {
		line.Defaulted = ""
	}
	return line
}

func schemeOf(gvk schema.GroupVersionKind) *runtime.Scheme {
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregator.Scheme} {
		if scheme.Recognizes(gvk) {
			return scheme
		}
	}
	panic("unknown kind " + gvk.String())
}

func printed(object runtime.Object) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	check(encoder.Encode(object))
	return string(bytes.TrimRight(buffer.Bytes(), "\n"))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
