// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/pflag"

	"github.com/batch-scheduler/batch-scheduler/cmd/batch-scheduler/app"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/builtin"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/conf"
	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/framework"
)

//go:embed configuration.md.tmpl
var configuration string

// content is the data of the template.
type content struct {
	Policy           string
	Fields           []member
	Actions, Plugins []part
	Cycle            []framework.ListedAction
	Flags            []option
}

// part is an action or a plugin.
type part struct {
	Name, About string
	Arguments   []conf.Argument
	Without     string // what happens if a policy lacks the plugin; empty: nothing that needs a warning
}

// option is a flag of the program.
type option struct{ Name, Default, Usage string }

func writeConfiguration(w io.Writer) error {
	registry, err := builtin.NewRegistry()
	if err != nil {
		return err
	}
	catalog := registry.Catalog()
	policy, err := conf.Default(catalog)
	if err != nil {
		return err
	}
	actions, err := parts("actions", "action", catalog.Actions)
	if err != nil {
		return err
	}
	plugins, err := parts("plugins", "plugin", pluginNames(policy, slices.Sorted(maps.Keys(catalog.Plugins))))
	if err != nil {
		return err
	}
	for i := range plugins {
		plugins[i].Arguments = catalog.ArgumentsOf(plugins[i].Name)
		plugins[i].Without = catalog.Plugins[plugins[i].Name].Without
	}
	fields, err := members()
	if err != nil {
		return err
	}
	text, err := template.New("configuration").Funcs(template.FuncMap{"code": code}).Parse(configuration)
	if err != nil {
		return err
	}
	_, policyText, _ := strings.Cut(conf.DefaultYAML(), "\n") // without the comment
	return text.Execute(w, content{
		Policy: policyText, Fields: fields, Actions: actions, Plugins: plugins, Flags: flags(),
		Cycle: registry.ActionsOf(&conf.Configuration{Actions: catalog.Actions}),
	})
}

// pluginNames returns the names of the plugins of the policy in the order of its tiers, then those that it does not use.
func pluginNames(policy *conf.Configuration, all []string) []string {
	var names []string
	for _, tier := range policy.Tiers {
		for _, p := range tier.Plugins {
			names = append(names, p.Name)
		}
	}
	for _, name := range all {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// parts describes each by the comment of its package, which begins with "Package NAME is the KIND that ...".
func parts(folder, kind string, names []string) ([]part, error) {
	var list []part
	for _, name := range names {
		about, err := synopsis(filepath.Join("pkg/scheduler", folder, name))
		if err != nil {
			return nil, err
		}
		about, ok := strings.CutPrefix(about, fmt.Sprintf("Package %s is the %s that ", name, kind))
		if !ok {
			return nil, fmt.Errorf("the comment about the package %s does not begin with \"Package %s is the %s that\"", name, name, kind)
		}
		list = append(list, part{Name: name, About: strings.TrimSuffix(about, ".")})
	}
	return list, nil
}

// synopsis returns the first sentence of the comment of the package in dir.
func synopsis(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		if parsed.Doc != nil {
			return new(doc.Package).Synopsis(parsed.Doc.Text()), nil
		}
	}
	return "", fmt.Errorf("%s has no comment about its package", dir)
}

// flags returns the flags of the scheduler in the order of its help.
func flags() []option {
	var list []option
	set := app.NewSchedulerCommand().Flags()
	set.SortFlags = false
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand == f.Name {
			name = "-" + f.Name
		}
		list = append(list, option{name, f.DefValue, f.Usage})
	})
	return list
}

// code formats the text of a table cell as code; an empty text stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
