// Package config reads what a person sets: the settings of the program (flags
// over environment over rollcall.yaml) and the YAML files of agents and teams.
//
// Files are read strictly: an unknown field, a wrong kind of value or a name
// that means nothing is refused with line and column and with what is valid.
// All problems of a file are told at once. Errors are *domain.Refusal with the
// codes settings-invalid and team-invalid.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/domain"
)

// A problem is one thing that is wrong in a file, with its place there.
type problem struct {
	line, column int
	why, try     string
}

// problems of one file.
type problems struct {
	file string
	all  []problem
}

// at adds a problem at a token; a nil token is the file as a whole.
func (p *problems) at(t *token.Token, why, try string) {
	found := problem{why: why, try: try}
	if t != nil && t.Position != nil {
		found.line, found.column = t.Position.Line, t.Position.Column
	}
	p.all = append(p.all, found)
}

// refusal is nil when nothing is wrong.
func (p *problems) refusal(code string) error {
	if len(p.all) == 0 {
		return nil
	}
	slices.SortStableFunc(p.all, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	var whys, tries []string
	for _, found := range p.all {
		place := p.file
		if found.line > 0 {
			place = fmt.Sprintf("%s:%d:%d", p.file, found.line, found.column)
		}
		whys = append(whys, place+": "+found.why)
		if found.try != "" && !slices.Contains(tries, found.try) {
			tries = append(tries, found.try)
		}
	}
	const most = 20
	if more := len(whys) - most; more > 0 {
		whys = append(whys[:most], fmt.Sprintf("and %d problems more", more))
	}
	return refuse(code, p.file, strings.Join(whys, "\n"), strings.Join(tries[:min(len(tries), most)], "\n"))
}

func refuse(code, what, why, try string) error {
	if code == codeTeam {
		return domain.Refuse("team-invalid", what+" cannot be used", why, try)
	}
	return domain.Refuse("settings-invalid", what+" cannot be used", why, try)
}

const (
	codeSettings = "settings-invalid"
	codeTeam     = "team-invalid"
)
