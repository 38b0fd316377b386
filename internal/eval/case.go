package eval

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
)

//go:embed inputs
var inputs embed.FS

// Case is one situation. Every model gets it word for word and byte for byte.
type Case struct {
	Name  string
	About string
	// Objective is what a team and a single agent are told; Hint is added for
	// the team, and says how the work can be divided.
	Objective, Hint string
	// Members that the work needs at most; 0: a team is needless.
	Members int
	// Alone: a single agent can play it too, as the baseline.
	Alone bool
	// Exclusive: each input is one member's business.
	Exclusive bool
	// Facts that the result must have.
	Facts []Fact
	// Claims are what a result can make up: each match of these must stand in
	// what the model was given, or be derived.
	Claims []*regexp.Regexp
	// Derived are values that follow from the inputs without standing there.
	Derived []string
	// Removed are paths that the objective names and nobody finds: reading them
	// fails, and that is no fault.
	Removed []string
	// Steps are what the operator does each time that nothing is due.
	Steps []Step

	// evidence that the situation came about, from the log of a team.
	evidence func(*book) []string
}

// Fact is something that must be in the result.
type Fact struct {
	Name string
	// File that must have it; empty: the answer.
	File string
	Is   *regexp.Regexp
}

// Step is an intervention.
type Step struct {
	// Asked: only if somebody asked; the words go to whoever did.
	Asked bool
	// About is in a question that is asked without a question mark.
	About *regexp.Regexp
	// Restart kills the node and starts it again before the words are said.
	Restart bool
	Say     string
}

// Inputs of the case by path, in order.
func (c Case) Inputs() (paths []string, files map[string]string) {
	files = map[string]string{}
	dir := path.Join("inputs", c.Name)
	entries, err := fs.ReadDir(inputs, dir)
	if err != nil { // the case has none
		return nil, files
	}
	for _, e := range entries {
		data, err := inputs.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			panic(fmt.Sprintf("read an embedded file: %v", err))
		}
		paths = append(paths, e.Name())
		files[e.Name()] = string(data)
	}
	slices.Sort(paths)
	return paths, files
}

// Names of all cases, in order.
func Names() []string {
	var names []string
	for _, c := range Cases {
		names = append(names, c.Name)
	}
	return names
}

// Named finds a case.
func Named(name string) (Case, bool) {
	i := slices.IndexFunc(Cases, func(c Case) bool { return c.Name == name })
	if i < 0 {
		return Case{}, false
	}
	return Cases[i], true
}
