// SPDX-FileCopyrightText: The batch-scheduler Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"log"
	"os"
	"strings"

	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// tailLines is the number of log lines in errors.
const tailLines = 15

// logFile is the log of all components in the process.
type logFile struct {
	path string
	file *os.File
}

// openLog redirects the logs and the standard error of all components to the file. It can be called once in a
// process.
func openLog(path string, verbosity int) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	config := logsapi.NewLoggingConfiguration()
	config.Verbosity = logsapi.VerbosityLevel(verbosity)
	streams := &logsapi.LoggingOptions{ErrorStream: file, InfoStream: file}
	if err := logsapi.ValidateAndApplyWithOptions(config, streams, nil); err != nil {
		return nil, fmt.Errorf("setting up the log: %w", err)
	}
	log.SetOutput(logs.KlogWriter{})
	log.SetFlags(0)
	if err := redirectStderr(file); err != nil {
		return nil, fmt.Errorf("sending standard error to the log: %w", err)
	}
	return &logFile{path: path, file: file}, nil
}

// explain adds the last lines of the log to an error, because components log the cause there.
func (l *logFile) explain(err error) error {
	data, readErr := os.ReadFile(l.path)
	if readErr != nil || len(data) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Errorf("%w\nthe last lines of the log:\n  %s", err, strings.Join(lines, "\n  "))
}
