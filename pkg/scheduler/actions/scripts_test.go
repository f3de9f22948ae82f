package actions_test

import (
	"testing"

	"github.com/batch-scheduler/batch-scheduler/pkg/scheduler/schedtest"
)

// Several cycles, with what happens between them.
func TestScripts(t *testing.T) { schedtest.Scripts(t, builtIn, "testdata/*.txt") }
