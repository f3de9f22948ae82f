// Command shadow checks the packages that it is given. It fails where a declaration of err hides another err that is
// still in use, for then the one that is looked at later may not be the one that was set. Other names may hide
// each other.
package main

import (
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/shadow"
	"golang.org/x/tools/go/analysis/singlechecker"
)

func main() {
	errOnly := *shadow.Analyzer
	errOnly.Run = func(pass *analysis.Pass) (any, error) {
		filtered := *pass
		filtered.Report = func(d analysis.Diagnostic) {
			if strings.HasPrefix(d.Message, `declaration of "err"`) {
				pass.Report(d)
			}
		}
		return shadow.Analyzer.Run(&filtered)
	}
	singlechecker.Main(&errOnly)
}
