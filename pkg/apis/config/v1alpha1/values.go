// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ActionList is a list of names of actions. A file has it as a list or, as kube-batch does, as one string with commas
// between the names.
type ActionList []string

// UnmarshalText splits a string at its commas. A blank string is an empty list; otherwise a name may be empty, which
// validation reports. It never fails.
func (l *ActionList) UnmarshalText(text []byte) error {
	*l = nil
	if strings.TrimSpace(string(text)) == "" {
		return nil
	}
	for name := range strings.SplitSeq(string(text), ",") {
		*l = append(*l, strings.TrimSpace(name))
	}
	return nil
}

// UnmarshalJSON accepts a list of strings, or a string as UnmarshalText does.
func (l *ActionList) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return l.UnmarshalText([]byte(text))
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// Arguments are the arguments of one plugin by key. Numbers and booleans are kept as their text, so that `weight: 2`
// and `weight: "2"` are equal.
type Arguments map[string]string

// UnmarshalJSON accepts strings, numbers and booleans as values.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*a = nil
	if values != nil {
		*a = make(Arguments, len(values))
	}
	for key, value := range values {
		var text string
		switch value[0] {
		case '{', '[', 'n':
			return fmt.Errorf("argument %s: must be a string, a number or a boolean, not %s", key, value)
		case '"':
			if err := json.Unmarshal(value, &text); err != nil {
				return fmt.Errorf("argument %s: %w", key, err)
			}
		default:
			text = string(value)
		}
		(*a)[key] = text
	}
	return nil
}
