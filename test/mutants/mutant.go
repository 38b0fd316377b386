package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mutant is one seeded fault.
type Mutant struct {
	Name string
	// Breaks is the promise that does not hold any more, in a sentence.
	Breaks string
	// File is relative to the module's root. Old occurs in it exactly once and
	// New stands there instead.
	File, Old, New string
	// Package and Test name who must notice: the narrowest test of the promise,
	// a subtest after a slash.
	Package, Test string
}

// All are the mutants, in the order of the layers they break.
func All() []Mutant {
	return slices.Concat(domainMutants, guardMutants, engineMutants, storeMutants, clusterMutants, versionMutants, dagMutants, outsideMutants, approvalMutants, subagentMutants)
}

// mutated is the file's text with the fault in it.
func (m Mutant) mutated(root string) ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(m.Old)); n != 1 {
		return nil, fmt.Errorf("%s: the text to change occurs %d times in %s, not once:\n%s", m.Name, n, m.File, m.Old)
	}
	return bytes.Replace(src, []byte(m.Old), []byte(m.New), 1), nil
}

// row is the mutant in docs/mutants.md.
func (m Mutant) row() string {
	return fmt.Sprintf("| `%s` | %s | `%s` | `%s` `%s` |", m.Name, m.Breaks, m.File, strings.TrimPrefix(m.Package, "./"), m.Test)
}

// pattern selects the mutant's test and nothing else.
func (m Mutant) pattern() string {
	parts := strings.Split(m.Test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(asRun(p)) + "$"
	}
	return strings.Join(parts, "/")
}

// asRun is a subtest's name as go test writes it.
func asRun(name string) string { return strings.ReplaceAll(name, " ", "_") }
