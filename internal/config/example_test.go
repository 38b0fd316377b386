package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

// settingLine is a setting that is commented out; what begins with "# " is words.
var settingLine = regexp.MustCompile(`(?m)^#(\S.*|  \S+:.*)$`)

func TestExampleSettingsLoad(t *testing.T) {
	d := newDesk(t)
	file := d.file(d.dir+"/rollcall.yaml", ExampleSettings())
	if s := d.load(); s.File != file || len(s.Warnings) > 0 || len(s.origins) > 0 {
		t.Errorf("as it is written it sets %v, %v", s.origins, s.Warnings)
	}
	// A context of the nats command line must exist where one is named.
	without := strings.Replace(ExampleSettings(), "\n#nats_context:", "\n# nats_context:", 1)
	d.file(file, settingLine.ReplaceAllString(without, "$1"))
	s := d.load()
	for _, x := range All {
		if s.Origin(x.Name) == "default" && x.Name != "nats_context" {
			t.Errorf("%s is not in the example", x.Name)
		}
		if !strings.Contains(ExampleSettings(), "\n#"+x.Name+": ") {
			t.Errorf("the example does not show %s", x.Name)
		}
	}
	if s.Prices["qwen3:14b"] != (domain.Price{Input: 150_000, Cached: 75_000, Output: 600_000}) {
		t.Errorf("prices: %v", s.Prices)
	}
}

func TestExampleTeamLoads(t *testing.T) {
	team, err := ParseTeam("team.yaml", []byte(ExampleTeam))
	if err != nil {
		t.Fatal(err)
	}
	if team.Contract != "dag" || team.Lead != "editor" || len(team.Members) != 3 || team.Goal == "" || len(team.Agents) != 4 {
		t.Errorf("the example is %+v", team)
	}
	// What is commented out in it can be used as it stands.
	more := regexp.MustCompile(`(?m)^( +)# (model|memory|approve):`).ReplaceAllString(ExampleTeam, "$1$2:")
	if more == ExampleTeam {
		t.Fatal("nothing is commented out")
	}
	if _, err := ParseTeam("team.yaml", []byte(more)); err != nil {
		t.Error(err)
	}
}
