// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/batch-scheduler/batch-scheduler/pkg/apis/config/v1alpha1"
)

// configurationTypes is the file with the types of the policy file.
const configurationTypes = "pkg/apis/config/v1alpha1/types.go"

// member is a field of the policy file.
type member struct{ Path, Type, Default, About string }

// members returns the fields of SchedulerConfiguration in the order of the types, with the comments on them.
func members() ([]member, error) {
	file, err := parser.ParseFile(token.NewFileSet(), configurationTypes, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	comments := map[string]string{} // by "Type.Field"
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				comments[spec.Name.Name+"."+fieldName(f)] = about(f)
			}
		}
		return true
	})
	defaults := &v1alpha1.SchedulerConfiguration{Tiers: []v1alpha1.Tier{{Plugins: []v1alpha1.Plugin{{}}}}}
	v1alpha1.SetDefaults_SchedulerConfiguration(defaults)
	return walk("", reflect.ValueOf(defaults).Elem(), comments)
}

func fieldName(f *ast.Field) string {
	if len(f.Names) > 0 {
		return f.Names[0].Name
	}
	return f.Type.(*ast.SelectorExpr).Sel.Name
}

// about returns the comment on a field without markers, as one line of Markdown.
func about(f *ast.Field) string {
	var lines []string
	for line := range strings.Lines(f.Doc.Text()) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	var p comment.Parser
	text := string(new(comment.Printer).Markdown(p.Parse(strings.Join(lines, ""))))
	return strings.Join(strings.Fields(text), " ")
}

// walk describes the fields of a struct whose defaults are set, and those below them.
func walk(prefix string, v reflect.Value, comments map[string]string) ([]member, error) {
	var list []member
	for f, value := range v.Fields() {
		text := comments[v.Type().Name()+"."+f.Name]
		if text == "" {
			return nil, fmt.Errorf("the field %s.%s has no comment in %s", v.Type().Name(), f.Name, configurationTypes)
		}
		if object, ok := value.Interface().(metav1.TypeMeta); ok {
			for _, m := range []member{{Path: "apiVersion", Default: object.APIVersion}, {Path: "kind", Default: object.Kind}} {
				list = append(list, member{m.Path, "string", m.Default, text})
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		m := member{Path: prefix + name, About: text}
		var below []member
		switch f.Type.Kind() {
		case reflect.Slice:
			m.Type = "list"
			if f.Type.Elem().Kind() == reflect.Struct {
				var err error
				if below, err = walk(m.Path+"[].", value.Index(0), comments); err != nil {
					return nil, err
				}
			}
		case reflect.Map:
			m.Type = "map"
		case reflect.Struct:
			m.Type = "object"
			var err error
			if below, err = walk(m.Path+".", value, comments); err != nil {
				return nil, err
			}
		case reflect.Pointer:
			def, err := json.Marshal(value.Interface())
			if err != nil {
				return nil, err
			}
			m.Type, m.Default = strings.ToLower(f.Type.Elem().Name()), strings.Trim(string(def), `"`)
		default:
			m.Type, m.Default = f.Type.Kind().String(), fmt.Sprint(value.Interface())
		}
		list = append(append(list, m), below...)
	}
	return list, nil
}
