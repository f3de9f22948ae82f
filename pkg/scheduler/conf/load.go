// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/validation"
)

// DefaultSource takes the place of the path in messages about the built-in default.
const DefaultSource = "built-in default"

//go:embed default.yaml
var defaultYAML string

// DefaultYAML returns the text of the built-in default configuration.
func DefaultYAML() string {
	return defaultYAML
}

// Default returns the built-in configuration. Like a file, it is parsed and validated; it fails if one of its
// plugins or actions is not in the catalog.
func Default(catalog Catalog) (*Configuration, error) {
	c, _, err := Parse(DefaultSource, []byte(defaultYAML), catalog)
	return c, err
}

// Load reads a configuration file. It fails if the file cannot be read, and as Parse does.
func Load(path string, catalog Catalog) (*Configuration, []Warning, error) {
	data, err := Read(path)
	if err != nil {
		return nil, nil, err
	}
	return Parse(path, data, catalog)
}

// Read reads the text of a configuration file.
func Read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	return data, nil
}

// Parse reads a configuration from YAML or JSON text: it decodes the text, sets defaults, and validates first the
// object and then its names against the catalog. If anything is wrong, the configuration is nil and the error is an
// *Error that lists everything; the warnings are returned in any case. The source identifies the text in messages.
func Parse(source string, data []byte, catalog Catalog) (*Configuration, []Warning, error) {
	root, err := document(data)
	if err != nil {
		return nil, nil, &Error{Source: source, Problems: []Problem{notYAML(err)}}
	}
	if isConfigMap(root) {
		return nil, nil, &Error{Source: source, Problems: []Problem{{
			Line: max(root.Line, 1), Path: "kind", Text: `this is a ConfigMap: the configuration is in its data; "config check" finds it there`,
		}}}
	}
	r := newReport(source, root.Line)
	object := &v1alpha1.SchedulerConfiguration{}
	(&decoder{r}).decode(root, nil, reflect.ValueOf(object).Elem())
	v1alpha1.SetDefaults_SchedulerConfiguration(object)
	r.invalid(validation.ValidateSchedulerConfiguration(object))
	r.invalid(catalog.validate(object))
	r.invalid(validateGroupSources(object.GroupSources))
	r.invalid(validateGrouping(&object.Grouping))

	c := newConfiguration(object)
	r.adviseOnActions(object, c, catalog)
	r.adviseOnTiers(c, catalog)
	if err := r.err(); err != nil {
		return nil, r.warnings, err
	}
	return c, r.warnings, nil
}

// document returns the top node of the only document in the text, or an empty mapping if the text has no document.
func document(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); err == nil {
		return nil, fmt.Errorf("line %d: a second document starts here; a configuration is one document", second.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	root := doc.Content[0]
	if isNull(root) { // The parser may report it in a line after the last.
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}, nil
	}
	return root, nil
}

// notYAML converts an error of the YAML parser, which has the line in its text, to a problem.
func notYAML(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if _, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	return Problem{Line: line, Text: "not a YAML document: " + text}
}
