package openphone

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// base is where schemas stand while they are compiled, so that references between our files resolve. Nothing is fetched.
const base = "https://openphone.invalid/"

// closed refuses every reference that leaves the files: a manifest must not make its reader open files or connections.
type closed struct{}

func (closed) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the manifests", url)
}

// compile checks a schema that stands in a manifest. It may refer to the schema file.
func (v *validator) compile(r *report, raw []byte, pointer string) {
	if raw == nil {
		return // said already
	}
	err, known := v.compiled[string(raw)]
	if !known {
		err = v.tryCompile(raw)
		v.compiled[string(raw)] = err
	}
	r.schemaError(err, pointer)
}

func (v *validator) tryCompile(raw []byte) error {
	const here = base + "this.json"
	files := map[string][]byte{here: raw}
	if bytes.Contains(raw, []byte(schemaName)) {
		files[base+schemaName] = v.schema
	}
	c, err := compiler(files)
	if err == nil {
		_, err = c.Compile(here)
	}
	return err
}

// compileAll checks the schema file itself.
func compileAll(r *report, raw []byte) {
	c, err := compiler(map[string][]byte{base + schemaName: raw})
	if err == nil {
		_, err = c.Compile(base + schemaName)
	}
	r.schemaError(err, "")
}

// Shape is a compiled shape of the schema file, such as toolRequest: it says whether an object has that shape.
func Shape(name string) (*jsonschema.Schema, error) {
	c, err := compiler(map[string][]byte{base + schemaName: Schema()})
	if err != nil {
		return nil, err
	}
	return c.Compile(base + schemaName + "#" + at("/$defs", name))
}

// Parameters compiles the input schema of a command; whoever checks many calls keeps it.
func (c *Command) Parameters() (*jsonschema.Schema, error) {
	const here = base + "parameters.json"
	k, err := compiler(map[string][]byte{here: c.InputSchema, base + schemaName: Schema()})
	if err != nil {
		return nil, err
	}
	return k.Compile(here)
}

func compiler(resources map[string][]byte) (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(closed{})
	for url, raw := range resources {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(url, doc); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// schemaError turns what the compiler says into violations, each at its place where the compiler knows it.
func (r *report) schemaError(err error, pointer string) {
	var invalid *jsonschema.ValidationError
	var gone *jsonschema.JSONPointerNotFoundError
	var foreign *jsonschema.LoadURLError
	switch {
	case err == nil:
	case asValidation(err, &invalid):
		seen := map[string]bool{}
		for _, leaf := range leaves(invalid) {
			p := pointer
			for _, name := range leaf.InstanceLocation {
				p = at(p, name)
			}
			if !seen[p] { // one place, one sentence: alternatives of the metaschema repeat each other
				seen[p] = true
				r.say(p, "this is no JSON Schema: %s", sentence(leaf))
			}
		}
	case errors.As(err, &gone):
		r.say(pointer, "the schema refers to %s, which does not exist", strings.TrimPrefix(gone.URL, base))
	case errors.As(err, &foreign):
		r.say(pointer, "the schema refers to %s, which is outside the manifests", strings.TrimPrefix(foreign.URL, base))
	default:
		r.say(pointer, "this is no JSON Schema: %s", strings.ReplaceAll(err.Error(), base, ""))
	}
}

// asValidation finds the report about the metaschema, which the library wraps without an Unwrap method.
func asValidation(err error, target **jsonschema.ValidationError) bool {
	var s *jsonschema.SchemaValidationError
	if errors.As(err, &s) {
		err = s.Err
	}
	return errors.As(err, target)
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, c := range e.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// sentence is what the library says about a leaf, without its place.
func sentence(leaf *jsonschema.ValidationError) string {
	return leaf.BasicOutput().Error.String()
}
