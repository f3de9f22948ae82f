// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/batch-scheduler/batch-scheduler/internal/text"
)

const (
	width  = 80
	margin = 10 // for labels
)

// textWriter is text in paragraphs with labels in the margin.
type textWriter struct{ strings.Builder }

// add adds paragraphs below one label; empty ones count for nothing.
func (s *textWriter) add(label string, paragraphs ...string) {
	if label != "" {
		label += ":"
	}
	for _, paragraph := range paragraphs {
		lines := text.Wrap(paragraph, width-margin)
		if strings.HasPrefix(paragraph, "kubectl ") {
			lines = []string{paragraph} // a command that can be copied
		}
		for _, line := range lines {
			fmt.Fprintf(s, "%-*s%s\n", margin, label, line)
			label = ""
		}
	}
}
