package conf

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a file may declare itself to be; both fields are optional.
const (
	APIVersion = "config.batch-scheduler.dev/v1alpha1"
	Kind       = "SchedulerConfiguration"
)

// DefaultSource stands for the file in messages about the built-in default.
const DefaultSource = "built-in default"

//go:embed default.yaml
var defaultYAML string

// DefaultYAML returns the text of the built-in default configuration.
func DefaultYAML() string {
	return defaultYAML
}

// Default returns the built-in configuration. It goes through Parse like any file and fails if
// the catalog lacks what the default names.
func Default(catalog Catalog) (*Configuration, error) {
	c, _, err := Parse(DefaultSource, []byte(defaultYAML), catalog)
	return c, err
}

// Load reads a configuration file. It fails if the file cannot be read, and as Parse does.
func Load(path string, catalog Catalog) (*Configuration, []Warning, error) {
	data, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	return Parse(path, data, catalog)
}

func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	return data, nil
}

// Parse reads a configuration from YAML or JSON text. If anything is wrong with it, the error is an
// *Error that lists all of it and the configuration is nil; the warnings are returned in any case.
// The source names the text in messages.
func Parse(source string, data []byte, catalog Catalog) (*Configuration, []Warning, error) {
	root, err := document(data)
	if err != nil {
		return nil, nil, &Error{Source: source, Problems: []Problem{notYAML(err)}}
	}
	r := newReader(source, catalog, root.Line)
	c := r.configuration(root)
	if len(r.problems) > 0 {
		return nil, r.warnings, &Error{Source: source, Problems: r.sorted()}
	}
	return c, r.warnings, nil
}

// document returns the top node of the only document in the text; of a text without any, an empty
// mapping.
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
	if isNull(root) { // which the parser may say is in a line after the last
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1}, nil
	}
	return root, nil
}

// notYAML turns an error of the YAML parser, which has the line in its text, into a problem.
func notYAML(err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if _, scanErr := fmt.Sscanf(text, "line %d:", &line); scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
	}
	return Problem{Line: line, Text: "not a YAML document: " + text}
}
